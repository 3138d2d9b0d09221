//! `--shell 'CMD {host} {cmd}'`: any program that runs a command somewhere else.
//!
//! The template is split into words as a shell would split it, without expanding anything, and run
//! without one. A `{cmd}` that stands alone becomes one argument. Inside a longer word it is
//! quoted, since such a word is itself a script: `sh -c 'rsh {host} {cmd}'`.

use crate::quote;

/// A template that has been understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShellTemplate {
    words: Vec<String>,
}

/// What is wrong with a template.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing in it.
    #[error("an empty shell command")]
    Empty,
    /// Every node would be the same one.
    #[error("shell command `{0}` does not say where `{{host}}` goes")]
    NoHost(String),
    /// A quote is open at the end, or the last character is a backslash.
    #[error("shell command `{0}` ends within quotes")]
    Unterminated(String),
}

const HOST: &str = "{host}";
const COMMAND: &str = "{cmd}";

impl ShellTemplate {
    /// Understands what the user wrote.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn parse(text: &str) -> Result<ShellTemplate, TemplateError> {
        let unterminated = || TemplateError::Unterminated(text.to_owned());
        let mut words = split(text).ok_or_else(unterminated)?;
        if words.is_empty() {
            return Err(TemplateError::Empty);
        }
        if !words.iter().any(|word| word.contains(HOST)) {
            return Err(TemplateError::NoHost(text.to_owned()));
        }
        if !words.iter().any(|word| word.contains(COMMAND)) {
            words.push(COMMAND.to_owned());
        }
        Ok(ShellTemplate { words })
    }

    /// The command's words for one host; `command` is for the remote shell.
    pub(crate) fn fill(&self, host: &str, command: &[u8]) -> Vec<Vec<u8>> {
        let quoted = quote(command);
        let fill_word = |word: &String| {
            let command = if word == COMMAND { command } else { &quoted };
            fill_word(word, host.as_bytes(), command)
        };
        self.words.iter().map(fill_word).collect()
    }
}

/// Replaces each place-holder; what is put in is not looked at again.
fn fill_word(word: &str, host: &[u8], command: &[u8]) -> Vec<u8> {
    let mut filled = Vec::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        filled.extend_from_slice(&rest.as_bytes()[..start]);
        rest = &rest[start..];
        let (value, length): (&[u8], usize) = if rest.starts_with(HOST) {
            (host, HOST.len())
        } else if rest.starts_with(COMMAND) {
            (command, COMMAND.len())
        } else {
            (b"{", 1)
        };
        filled.extend_from_slice(value);
        rest = &rest[length..];
    }
    filled.extend_from_slice(rest.as_bytes());
    filled
}

/// Words as a POSIX shell has them (XCU 2.2, Quoting), with nothing expanded. `None`: a quote is open
/// at the end, or the last character is a backslash.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => single_quoted(&mut chars, word.get_or_insert_default())?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn single_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_stands_alone_is_one_argument() {
        assert_eq!(fill("rsh -n {host} {cmd}"), ["rsh", "-n", "n1", "exec a 'b c'"]);
        assert_eq!(fill("rsh {host}"), ["rsh", "n1", "exec a 'b c'"]);
    }

    #[test]
    fn a_command_within_a_script_is_quoted_for_it() {
        let script = r"ssh root@n1 'exec a '\''b c'\'''";
        assert_eq!(fill(r#"sh -c "ssh root@{host} {cmd}""#), ["sh", "-c", script]);
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let words = split(r#"a 'b  c' "d \"e\" \f" g\ h '' i"j"k"#).unwrap();
        assert_eq!(words, ["a", "b  c", "d \"e\" \\f", "g h", "", "ijk"]);
    }

    #[test]
    fn other_braces_are_left_alone() {
        assert_eq!(fill("x {} {a} ${host} {cmd}")[..4], ["x", "{}", "{a}", "$n1"]);
    }

    #[test]
    fn a_template_without_a_host_or_with_an_open_quote_is_refused() {
        assert_eq!(ShellTemplate::parse(" "), Err(TemplateError::Empty));
        let no_host = ShellTemplate::parse("rsh {cmd}").unwrap_err();
        assert_eq!(
            no_host.to_string(),
            "shell command `rsh {cmd}` does not say where `{host}` goes"
        );
        for text in ["rsh '{host}", "rsh \"{host}", "rsh {host} \\"] {
            assert_eq!(
                ShellTemplate::parse(text),
                Err(TemplateError::Unterminated(text.to_owned()))
            );
        }
    }

    fn fill(template: &str) -> Vec<String> {
        let words = ShellTemplate::parse(template).unwrap().fill("n1", b"exec a 'b c'");
        words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }
}
