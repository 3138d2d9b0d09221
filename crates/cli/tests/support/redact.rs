//! Takes out of the command's words what differs from run to run.

use super::convoke::convoke_path;
use super::stand::{misbehave, profile_directory};

/// `text` with place-holders for times and for paths of this machine.
pub(crate) fn redact(text: &str) -> String {
    let mut text = text.to_owned();
    for (path, name) in [
        (convoke_path().to_path_buf(), "<convoke>"),
        (misbehave(), "<misbehave>"),
        (profile_directory(), "<profile>"),
    ] {
        text = text.replace(&*path.to_string_lossy(), name);
    }
    let text = text.replace(&*std::env::temp_dir().to_string_lossy(), "<tmp>");
    let words: Vec<String> = text.split(' ').map(without_temporary_name).collect();
    without_times(&words.join(" ")).replace("<time> to <time>", "<time>")
}

/// `<tmp>/.tmpXYZ/x` as `<tmp>/x`.
fn without_temporary_name(word: &str) -> String {
    let Some((before, name)) = word.split_once("<tmp>/.tmp") else { return word.to_owned() };
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    format!("{before}<tmp>{}", &name[end..])
}

/// `1.2 s` and `17 ms` as `<time>`.
fn without_times(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = ["s", "ms"].iter().find_map(|unit| {
            let rest = word.strip_prefix(unit)?;
            (!rest.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(rest)
        });
        match (unit, out.last_mut()) {
            (Some(rest), Some(number)) if number.parse::<f64>().is_ok() => {
                *number = format!("<time>{rest}");
            }
            (Some(_) | None, Some(_) | None) => out.push(word.to_owned()),
        }
    }
    out.join(" ")
}
