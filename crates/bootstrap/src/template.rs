//! `--shell 'CMD {host} {cmd}'`: any program that runs a command somewhere else. `{user}` and `{port}`
//! are those of the host; without `{user}`, `{host}` has the user before it.
//!
//! The template is split into words as a shell would split it, without expanding anything, and run
//! without one. A `{cmd}` that stands alone becomes one argument. Inside a longer word it is
//! quoted, since such a word is itself a script: `sh -c 'rsh {host} {cmd}'`.

use model::HostName;

use crate::{CommandError, quote};

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
const USER: &str = "{user}";
const PORT: &str = "{port}";

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

    /// Whether the template has a place for all that the name says, and the name all that it needs.
    pub(crate) fn check(&self, name: &str) -> Result<(), CommandError> {
        let HostName { user, port, .. } = HostName::of(name);
        match (self.has(PORT), port) {
            (false, Some(_)) => return Err(CommandError::NoPlaceForPort(name.to_owned())),
            (true, None) => return Err(CommandError::NotSaid(name.to_owned(), "port")),
            (_, _) => {}
        }
        let lacks_user = self.has(USER) && user.is_none();
        if lacks_user { Err(CommandError::NotSaid(name.to_owned(), "user")) } else { Ok(()) }
    }

    /// The command's words for one host, which [`ShellTemplate::check`] has let pass; `command` is
    /// for the remote shell.
    pub(crate) fn fill(&self, name: &str, command: &[u8]) -> Vec<Vec<u8>> {
        let HostName { user, host, port } = HostName::of(name);
        let in_host = user.filter(|_| !self.has(USER));
        let host = HostName { user: in_host, host, port: None }.to_string();
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        let quoted = quote(command);
        let fill_word = |word: &String| {
            let command = if word == COMMAND { command } else { &quoted };
            let values = [
                (HOST, host.as_bytes()),
                (COMMAND, command),
                (USER, user.unwrap_or_default().as_bytes()),
                (PORT, port.as_bytes()),
            ];
            fill_word(word, &values)
        };
        self.words.iter().map(fill_word).collect()
    }

    fn has(&self, place: &str) -> bool {
        self.words.iter().any(|word| word.contains(place))
    }
}

/// Replaces each place-holder; what is put in is not looked at again.
fn fill_word(word: &str, values: &[(&str, &[u8])]) -> Vec<u8> {
    let mut filled = Vec::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        filled.extend_from_slice(&rest.as_bytes()[..start]);
        rest = &rest[start..];
        let found = values.iter().find(|(place, _)| rest.starts_with(place));
        let (place, value) = found.copied().unwrap_or(("{", b"{"));
        filled.extend_from_slice(value);
        rest = &rest[place.len()..];
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
    fn user_and_port_go_where_the_template_has_them() {
        let fill = |template: &str, name: &str| {
            let template = ShellTemplate::parse(template).unwrap();
            template.check(name).map_err(|error| error.to_string())?;
            let words = template.fill(name, b"c");
            Ok::<_, String>(words.join(&b' ').into_iter().map(char::from).collect::<String>())
        };
        assert_eq!(fill("rsh {host}", "me@n1").unwrap(), "rsh me@n1 c");
        assert_eq!(fill("rsh -l {user} {host}", "me@n1").unwrap(), "rsh -l me n1 c");
        assert_eq!(fill("rsh -p {port} {host}", "me@n1/22").unwrap(), "rsh -p 22 me@n1 c");
        let errors =
            [("rsh {host}", "n1/22"), ("rsh {port} {host}", "n1"), ("rsh {user} {host}", "n1")];
        let errors = errors.map(|(template, name)| fill(template, name).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
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
