//! What an ELF file says of the machine and the loader that it needs, and of the build that it is of:
//! its header, the entries of its program headers that name the loader and the libraries, and its notes
//! (gABI, chapters 4 and 5).
//!
//! Read to tell builds and MPI libraries apart, and to explain why `execve` refuses a file, which it
//! says in two numbers. A crate that knows the
//! whole format would be more code than what is read here: a few fields at fixed places. All of them
//! are the file's own claims, so each read is bounded, and what makes no sense is no ELF file.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// `PT_LOAD`: the program header of a part that is loaded.
const PT_LOAD: u64 = 1;

/// `PT_DYNAMIC`: the program header of what the loader is told.
const PT_DYNAMIC: u64 = 2;

/// `DT_NEEDED` and `DT_STRTAB`: a library's name in the table of names, and where that is loaded.
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// Programs need hundreds of libraries at most.
const DYNAMIC_BYTES_MAX: u64 = 1 << 14;

/// `PT_INTERP`: the program header of the loader's path.
const PT_INTERP: u64 = 3;

/// `PT_NOTE`: the program header of some notes.
const PT_NOTE: u64 = 4;

/// `NT_GNU_BUILD_ID`, of the owner `GNU`: a hash of all that was linked.
const NT_GNU_BUILD_ID: u64 = 3;

/// All notes of a program are less.
const NOTES_BYTES_MAX: u64 = 4096;

/// The kernel takes no longer path.
const LOADER_BYTES_MAX: u64 = 4096;

/// Nor more program headers.
const TABLE_BYTES_MAX: u64 = 1 << 16;

const EM_386: u16 = 3;
const EM_ARM: u16 = 40;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// What there is to know of an executable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Elf {
    machine: u16,
    is_64: bool,
    is_little: bool,
    /// The program that loads it; `None` when it is linked statically.
    pub(crate) loader: Option<PathBuf>,
}

impl Elf {
    /// Reads what `file` says, which begins with `front`: its first 64 bytes or more, if it has them.
    /// `None` if it is no ELF file.
    pub(crate) fn of(front: &[u8], file: &File) -> Option<Elf> {
        let header = Header::of(front)?;
        Some(Elf {
            machine: header.machine,
            is_64: header.is_64,
            is_little: header.is_little,
            loader: header.loader(file),
        })
    }

    /// Whether it is for such a machine as this program is for, or its smaller sibling.
    pub(crate) fn may_run_here(&self) -> bool {
        let here = std::env::consts::ARCH;
        match self.machine {
            EM_386 => matches!(here, "x86" | "x86_64"),
            EM_ARM => matches!(here, "arm" | "aarch64"),
            EM_X86_64 => here == "x86_64",
            EM_AARCH64 => here == "aarch64",
            _ => false,
        }
    }

    /// The machine that it is for, as `uname -m` calls those that are common.
    pub(crate) fn machine(&self) -> String {
        let name = match (self.machine, self.is_64, self.is_little) {
            (EM_386, ..) => "i386",
            (8, ..) => "mips",
            (20, ..) => "ppc",
            (21, _, false) => "ppc64",
            (21, _, true) => "ppc64le",
            (22, ..) => "s390x",
            (EM_ARM, ..) => "arm",
            (EM_X86_64, true, _) => "x86_64",
            (EM_X86_64, false, _) => "x32",
            (EM_AARCH64, ..) => "aarch64",
            (243, false, _) => "riscv32",
            (243, true, _) => "riscv64",
            (258, ..) => "loongarch64",
            (other, ..) => return format!("machine {other}"),
        };
        name.to_owned()
    }
}

/// What the linker calls the build that `file` is of, if it is an ELF file whose linker does.
pub(crate) fn build_id(file: &File) -> Option<Vec<u8>> {
    let mut front = [0; 64];
    file.read_exact_at(&mut front, 0).ok()?;
    let header = Header::of(&front)?;
    header.segments(file).filter(|segment| segment.kind == PT_NOTE).find_map(|segment| {
        let notes = segment.read(file, NOTES_BYTES_MAX)?;
        build_id_in(&notes, header.is_little)
    })
}

/// The names of the libraries that `file` says it needs; none if it is no ELF file.
pub(crate) fn libraries(file: &File) -> Vec<String> {
    let mut front = [0; 64];
    let header = file.read_exact_at(&mut front, 0).ok().and_then(|()| Header::of(&front));
    header.and_then(|header| header.libraries(file)).unwrap_or_default()
}

/// Notes follow each other: three numbers, a name and a description, each padded to four bytes.
fn build_id_in(mut notes: &[u8], is_little: bool) -> Option<Vec<u8>> {
    loop {
        let field = |at| usize::try_from(number(notes, at, 4, is_little)?).ok();
        let (name_bytes, id_bytes, kind) = (field(0)?, field(4)?, number(notes, 8, 4, is_little)?);
        let name = notes.get(12..)?.get(..name_bytes)?;
        let id_at = name_bytes.checked_next_multiple_of(4)?.checked_add(12)?;
        let id = notes.get(id_at..)?.get(..id_bytes)?;
        if name == b"GNU\0" && kind == NT_GNU_BUILD_ID {
            return Some(id.to_vec());
        }
        notes = notes.get(id_at.checked_add(id_bytes.checked_next_multiple_of(4)?)?..)?;
    }
}

/// The fields of an ELF header that matter here.
struct Header {
    is_64: bool,
    is_little: bool,
    machine: u16,
    /// Where the program headers are, how long each is, and how many there are.
    table: u64,
    entry_bytes: u64,
    entries: u64,
}

impl Header {
    fn of(bytes: &[u8]) -> Option<Header> {
        let is_64 = match bytes.strip_prefix(b"\x7fELF")?.first()? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let is_little = *bytes.get(5)? == 1;
        let number = |at, wide: bool| number(bytes, at, if wide { 8 } else { 4 }, is_little);
        let short = |at| self::number(bytes, at, 2, is_little);
        let at = |narrow, wide| if is_64 { wide } else { narrow };
        Some(Header {
            is_64,
            is_little,
            machine: u16::try_from(short(18)?).ok()?,
            table: number(at(28, 32), is_64)?,
            entry_bytes: short(at(42, 54))?,
            entries: short(at(44, 56))?,
        })
    }

    /// The loader's path, if a program header names one.
    fn loader(&self, file: &File) -> Option<PathBuf> {
        let path = self.segments(file).filter(|segment| segment.kind == PT_INTERP).find_map(
            |segment| {
                let path = segment.read(file, LOADER_BYTES_MAX)?;
                path.strip_suffix(&[0])?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
            },
        )?;
        (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(&path)))
    }

    /// The names of the libraries that the loader is told to load.
    fn libraries(&self, file: &File) -> Option<Vec<String>> {
        let segment = self.segments(file).find(|segment| segment.kind == PT_DYNAMIC)?;
        let dynamic = segment.read(file, DYNAMIC_BYTES_MAX)?;
        let width = if self.is_64 { 8 } else { 4 };
        let field = |entry: &[u8], at| number(entry, at * width, width, self.is_little);
        let entries: Vec<(u64, u64)> = dynamic
            .chunks_exact(2 * width)
            .filter_map(|it| field(it, 0).zip(field(it, 1)))
            .collect();
        let names = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?.1;
        let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
        let addresses = needed.filter_map(|(_, name)| names.checked_add(*name));
        Some(addresses.filter_map(|at| self.text_at(file, at)).collect())
    }

    /// The text that is loaded at an address.
    fn text_at(&self, file: &File, address: u64) -> Option<String> {
        let segment = self.segments(file).find(|segment| {
            segment.kind == PT_LOAD
                && address.checked_sub(segment.address).is_some_and(|at| at < segment.bytes)
        })?;
        let at = segment.offset.checked_add(address - segment.address)?;
        let mut name = [0; 255];
        let bytes = file.read_at(&mut name, at).ok()?;
        let end = name[..bytes].iter().position(|byte| *byte == 0)?;
        String::from_utf8(name[..end].to_vec()).ok()
    }

    /// What its program headers say that can be read.
    fn segments(&self, file: &File) -> impl Iterator<Item = Segment> {
        let entries = self.entries.min(TABLE_BYTES_MAX / self.entry_bytes.max(1));
        (0..entries).filter_map(|index| self.segment(file, index))
    }

    fn segment(&self, file: &File, index: u64) -> Option<Segment> {
        let mut entry = [0; 56];
        let entry = if self.is_64 { &mut entry[..] } else { &mut entry[..32] };
        if self.entry_bytes != entry.len() as u64 {
            return None;
        }
        let at = self.table.checked_add(index * self.entry_bytes)?;
        file.read_exact_at(entry, at).ok()?;
        let field = |narrow, wide| match self.is_64 {
            false => number(entry, narrow, 4, self.is_little),
            true => number(entry, wide, 8, self.is_little),
        };
        let kind = number(entry, 0, 4, self.is_little)?;
        Some(Segment { kind, offset: field(4, 8)?, address: field(8, 16)?, bytes: field(16, 32)? })
    }
}

/// A part of the file, and what it is for.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    bytes: u64,
}

impl Segment {
    fn read(&self, file: &File, bytes_max: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.bytes.min(bytes_max)).ok()?];
        file.read_exact_at(&mut bytes, self.offset).ok()?;
        Some(bytes)
    }
}

/// A number of `width` bytes.
fn number(bytes: &[u8], at: usize, width: usize, is_little: bool) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..width)?;
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(match is_little {
        true => bytes.iter().rev().fold(0, add),
        false => bytes.iter().fold(0, add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 64 bits that begins with a header, one program header, and the loader's path.
    fn executable(machine: u16, loader: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = 3;
        bytes[72] = 120;
        bytes[96..104].copy_from_slice(&(loader.len() as u64).to_le_bytes());
        [bytes, loader.to_vec()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Elf> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, bytes).unwrap();
        Elf::of(bytes, file.as_file())
    }

    #[test]
    fn this_program_is_for_this_machine() {
        let elf = read(&std::fs::read("/proc/self/exe").unwrap()).unwrap();
        assert!(elf.may_run_here());
        assert_eq!(elf.machine(), std::env::consts::ARCH);
    }

    #[test]
    fn the_machine_and_the_loader_are_found() {
        let elf = read(&executable(183, b"/lib/ld-linux-aarch64.so.1\0")).unwrap();
        assert_eq!(elf.machine(), "aarch64");
        assert_eq!(elf.loader, Some("/lib/ld-linux-aarch64.so.1".into()));
        assert_eq!(read(&executable(4711, b"/l\0")).unwrap().machine(), "machine 4711");
    }

    #[test]
    fn fields_of_32_bits_and_of_the_other_byte_order_are_read() {
        let mut bytes = vec![0; 84];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x02");
        bytes[19] = 20;
        bytes[31] = 52;
        bytes[43] = 32;
        bytes[45] = 1;
        bytes[55] = 3;
        bytes[59] = 84;
        bytes[71] = 4;
        let elf = read(&[bytes, b"/ld\0".to_vec()].concat()).unwrap();
        assert_eq!((elf.machine(), elf.loader), ("ppc".to_owned(), Some("/ld".into())));
    }

    #[test]
    fn the_build_is_what_the_linker_calls_it_behind_other_notes() {
        let note = |name: &[u8], kind: u8, id: &[u8]| {
            let head = [name.len() as u8, 0, 0, 0, id.len() as u8, 0, 0, 0, kind, 0, 0, 0];
            let padding = vec![0; id.len().next_multiple_of(4) - id.len()];
            [&head[..], name, id, &padding].concat()
        };
        let notes =
            [note(b"GNU\0", 1, b"other"), note(b"XYZ\0", 3, b"x"), note(b"GNU\0", 3, b"id")];
        let mut whole = executable(62, &notes.concat());
        whole[64] = 4;
        let build_of = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, bytes).unwrap();
            build_id(file.as_file())
        };
        assert_eq!(build_of(&whole), Some(b"id".to_vec()));
        for at in 0..whole.len() {
            build_of(&whole[..at]);
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            build_of(&damaged);
        }
        assert!(build_id(&File::open("/proc/self/exe").unwrap()).is_some(), "linked without an id");
    }

    #[test]
    fn the_libraries_of_this_program_are_found_in_a_file_that_may_be_damaged_anywhere() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let libraries_of = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, bytes).unwrap();
            libraries(file.as_file())
        };
        let needed = libraries_of(&own);
        assert!(needed.iter().any(|name| name.starts_with("libc.")), "{needed:?}");
        for at in 0..64 + 56 * 8 {
            let mut damaged = own[..1 << 12].to_vec();
            damaged[at] ^= 0xff;
            libraries_of(&damaged);
            libraries_of(&own[..at]);
        }
    }

    #[test]
    fn a_file_that_is_cut_off_or_damaged_anywhere_is_no_trouble() {
        let whole = executable(62, b"/lib64/ld.so\0");
        assert!(read(&whole).unwrap().loader.is_some());
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]).and_then(|elf| elf.loader), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            read(&damaged);
        }
    }
}
