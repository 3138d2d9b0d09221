//! Gives the library the name by which programs ask for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpmi.so.0");
    // A program may close what it has opened by `dlopen`, and go on in threads that have been here.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
