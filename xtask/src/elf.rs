//! Whether a program needs a dynamic linker: read from its program headers (ELF-64, `elf(5)`).

/// A program header that names the dynamic linker.
const PT_INTERP: u32 = 3;

/// Whether `program` is a 64-bit little-endian ELF file that names no dynamic linker.
pub(crate) fn is_static(program: &[u8]) -> bool {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    interpreters(program) == Some(0)
}

/// How many program headers name a dynamic linker; nothing if the file is cut short.
fn interpreters(program: &[u8]) -> Option<usize> {
    let table = usize::try_from(u64::from_le_bytes(bytes(program, 32)?)).ok()?;
    let entry_bytes = usize::from(u16::from_le_bytes(bytes(program, 54)?));
    let entries = usize::from(u16::from_le_bytes(bytes(program, 56)?));
    let kinds =
        (0..entries).map(|i| bytes(program, table + i * entry_bytes).map(u32::from_le_bytes));
    let kinds: Vec<u32> = kinds.collect::<Option<_>>()?;
    Some(kinds.into_iter().filter(|&kind| kind == PT_INTERP).count())
}

fn bytes<const N: usize>(program: &[u8], at: usize) -> Option<[u8; N]> {
    program.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_is_told_from_what_is_no_program() {
        let this = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(interpreters(&this), Some(1));
        assert!(!is_static(&this));
        assert!(!is_static(b"#!/bin/sh"));
        assert_eq!(interpreters(&this[..60]), None);
    }
}
