//! Pairs in a command line, for programs that hand them to `PMI_Spawn_multiple`. No server is asked.

use std::ffi::c_int;

use ffi::{Array, ERR_INVALID_ARG, Out, OwnedPairs, Room, Strings, Text, call};

use crate::connection::{ERR_NOMEM, FAIL};

/// `PMI_ERR_INVALID_NUM_ARGS`.
const ERR_INVALID_NUM_ARGS: c_int = 9;
/// `PMI_ERR_INVALID_ARGS`.
const ERR_INVALID_ARGS: c_int = 10;
/// `PMI_ERR_INVALID_NUM_PARSED`.
const ERR_INVALID_NUM_PARSED: c_int = 11;
/// `PMI_ERR_INVALID_KEYVALP`.
const ERR_INVALID_KEYVALP: c_int = 12;
/// `PMI_ERR_INVALID_SIZE`.
const ERR_INVALID_SIZE: c_int = 13;

/// What `PMI_Get_options` says.
const OPTIONS: &[u8] = b"PMI_KEY=VALUE  a pair for the process manager\n";

#[unsafe(no_mangle)]
extern "C" fn PMI_Parse_option(
    count: c_int,
    words: Array<Text>,
    parsed: Out<c_int>,
    pairs: Out<OwnedPairs>,
    size: Out<c_int>,
) -> c_int {
    call(|| {
        for (is_wrong, code) in [
            (count < 0, ERR_INVALID_NUM_ARGS),
            (words.is_null(), ERR_INVALID_ARGS),
            (parsed.is_null(), ERR_INVALID_NUM_PARSED),
            (pairs.is_null(), ERR_INVALID_KEYVALP),
            (size.is_null(), ERR_INVALID_SIZE),
        ] {
            if is_wrong {
                return Err(code);
            }
        }
        let words = words.elements(count).iter().map_while(|word| option(word.bytes()?));
        let number = give(words.collect(), pairs, size)?;
        parsed.set(number);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Args_to_keyval(
    count: Out<c_int>,
    words: Array<Text>,
    pairs: Out<OwnedPairs>,
    size: Out<c_int>,
) -> c_int {
    call(|| {
        let count = count.get().filter(|count| *count > 0).ok_or(ERR_INVALID_ARG)?;
        if words.is_null() || pairs.is_null() || size.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let words: Option<Vec<&[u8]>> = words.elements(count).iter().map(Text::bytes).collect();
        let found = from_words(&words.ok_or(ERR_INVALID_ARG)?).ok_or(ERR_INVALID_ARG)?;
        give(found, pairs, size).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Free_keyvals(pairs: OwnedPairs, size: c_int) -> c_int {
    call(|| {
        if size < 0 || (pairs.is_null() && size > 0) {
            return Err(ERR_INVALID_ARG);
        }
        pairs.free(size);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_options(text: Room, length: Out<c_int>) -> c_int {
    call(|| {
        let size = length.get().filter(|_| !text.is_null()).ok_or(ERR_INVALID_ARG)?;
        if text.write(size, OPTIONS) { Ok(()) } else { Err(ERR_NOMEM) }
    })
}

/// Hands pairs to C, and returns how many.
fn give(found: Vec<Strings>, pairs: Out<OwnedPairs>, size: Out<c_int>) -> Result<c_int, c_int> {
    let number = c_int::try_from(found.len()).map_err(|_| FAIL)?;
    pairs.set(OwnedPairs::new(&found).ok_or(FAIL)?);
    size.set(number);
    Ok(number)
}

/// A word for the process manager: `PMI_KEY=VALUE`, whose value ends with a blank.
fn option(word: &[u8]) -> Option<Strings> {
    let word = word.trim_ascii_start();
    let equals = word.iter().position(|byte| matches!(byte, b'=' | b' ' | b'\n'))?;
    let (key, rest) = word.split_at(equals);
    let value = rest.strip_prefix(b"=")?;
    let value = value.split(|byte| matches!(byte, b' ' | b'\n')).next().unwrap_or_default();
    (key.starts_with(b"PMI_") && key.len() > 4).then(|| (Some(key.to_vec()), Some(value.to_vec())))
}

/// A first word that is no option stands alone; each further must be an option, with or without a value behind it.
fn from_words(words: &[&[u8]]) -> Option<Vec<Strings>> {
    let mut words = words.iter().copied().peekable();
    let is_option = |word: &&[u8]| word.starts_with(b"-");
    let mut pairs = Vec::new();
    if let Some(program) = words.next_if(|word| !is_option(word)) {
        pairs.push((None, Some(program.to_vec())));
    }
    while let Some(word) = words.next() {
        if !is_option(&word) {
            return None;
        }
        let value = words.next_if(|word| !is_option(word));
        pairs.push((Some(word.to_vec()), value.map(<[u8]>::to_vec)));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: Option<&str>, value: Option<&str>) -> Strings {
        let bytes = |text: &str| text.as_bytes().to_vec();
        (key.map(bytes), value.map(bytes))
    }

    #[test]
    fn only_words_with_pmi_in_front_are_options() {
        assert_eq!(option(b"PMI_X=a=b c"), Some(pair(Some("PMI_X"), Some("a=b"))));
        assert_eq!(option(b" PMI_X="), Some(pair(Some("PMI_X"), Some(""))));
        for word in [&b"X=1"[..], b"PMI_=1", b"PMI_X", b"PMI_X 1=2", b""] {
            assert_eq!(option(word), None, "{word:?}");
        }
    }

    #[test]
    fn a_command_line_is_cut_into_options_and_their_values() {
        let words: [&[u8]; 5] = [b"./program", b"-n", b"4", b"-v", b"-x"];
        let expected = [
            pair(None, Some("./program")),
            pair(Some("-n"), Some("4")),
            pair(Some("-v"), None),
            pair(Some("-x"), None),
        ];
        assert_eq!(from_words(&words).unwrap(), expected);
        assert_eq!(from_words(&[b"-n", b"4", b"5"]), None);
    }
}
