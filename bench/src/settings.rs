//! How much to measure.

use anyhow::bail;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Fewer and smaller runs, for a first look.
    pub(crate) quick: bool,
    /// Only rows whose title contains this.
    pub(crate) only: Option<String>,
}

impl Settings {
    /// Reads options.
    pub(crate) fn parse(words: &[&str]) -> anyhow::Result<Settings> {
        match words {
            [] => Ok(Settings::default()),
            ["--quick", rest @ ..] => Ok(Settings { quick: true, ..Settings::parse(rest)? }),
            ["--only", text, rest @ ..] => {
                Ok(Settings { only: Some((*text).to_owned()), ..Settings::parse(rest)? })
            }
            [other, ..] => bail!("no option `{other}`\n{}", crate::USAGE),
        }
    }

    /// Whether rows with this title are wanted.
    pub(crate) fn wants(&self, title: &str) -> bool {
        self.only.as_ref().is_none_or(|text| title.contains(text.as_str()))
    }

    /// `full`, or what to do in a quick run.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order() {
        let settings = Settings::parse(&["--only", "n=64", "--quick"]).unwrap();
        assert!(settings.quick && settings.wants("L=G=0, n=64") && !settings.wants("n=1"));
        assert!(Settings::parse(&["--slow"]).is_err());
        assert!(Settings::parse(&["--only"]).is_err());
    }
}
