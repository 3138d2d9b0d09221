//! What C and we give each other: strings, room for strings, arrays, and codes.
//!
//! Each type here is a pointer as C passes it in an argument. Only C makes one, so the functions of the client
//! libraries, which take them, need no `unsafe` of their own: what is believed of C's pointers is said here once. Null
//! is believed of each.
#![expect(unsafe_code, reason = "C's pointers are read and written here, and only here")]

mod array;
mod call;
mod cells;
mod memory;
mod out;
mod shared;
mod spawn;
mod text;

pub use array::Array;
pub use call::{ERR_INVALID_ARG, call, tell};
pub use cells::Cells;
pub use memory::{OwnedPairs, Pair, Strings};
pub use out::Out;
pub use shared::Shared;
pub use spawn::{AsPair, Commands, pairs};
pub use text::{Room, Text};
