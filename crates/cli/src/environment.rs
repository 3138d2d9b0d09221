//! The environment of the tasks: the user's, except what must not travel.
//!
//! What belongs to the login that we run in (`reference/cli-compat.md` §11) would be wrong on another
//! host, functions of bash break older shells, and the variables of an outer job would make the
//! tasks believe that they are part of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bytes::Bytes;

/// Variables of this login, this host or this process.
const LEFT_OUT: [&str; 13] = [
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "DBUS_SESSION_BUS_ADDRESS",
    "_",
    "SHLVL",
    "CONVOKE_BOOT",
    "CONVOKE_BULK_INDEX",
];

/// What the names of others begin with.
const LEFT_OUT_PREFIXES: [&str; 11] = [
    "SSH_",
    "BASH_FUNC_",
    "PMI_",
    "PMI2_",
    "PMIX_",
    "OMPI_",
    "PRTE_",
    "MPI_LOCAL",
    "HYDI_",
    "HYDRA_",
    "MPIRUN_",
];

/// A variable that cannot be set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum EnvError {
    /// `=x` has no name.
    #[error("`--env {0}` has no name before the `=`")]
    NoName(String),
    /// A name alone, of a variable that is not set.
    #[error("`--env {0}` copies a variable that is not set")]
    NotSet(String),
}

/// The environment of all tasks: `ours` without what must not travel. Sorted by name.
pub(crate) fn of_job(ours: &BTreeMap<OsString, OsString>) -> Vec<Bytes> {
    let travelling = ours.iter().filter(|(name, _)| travels(name));
    travelling.map(|(name, value)| joined(name, value)).collect()
}

/// What a program has of its own over the job's: the options' variables, and `dir` as `PWD`.
pub(crate) fn of_app(
    ours: &BTreeMap<OsString, OsString>,
    options: &[OsString],
    dir: &Path,
) -> Result<Vec<Bytes>, EnvError> {
    let mut env = BTreeMap::from([("PWD".into(), dir.into())]);
    for option in options {
        let (name, value) = understand(option, ours)?;
        env.insert(name, value);
    }
    Ok(env.iter().map(|(name, value)| joined(name, value)).collect())
}

fn travels(name: &OsStr) -> bool {
    let is_left_out = LEFT_OUT.iter().any(|left_out| name == *left_out);
    let has_prefix = |prefix: &&str| name.as_bytes().starts_with(prefix.as_bytes());
    !is_left_out && !LEFT_OUT_PREFIXES.iter().any(has_prefix)
}

/// `NAME=VALUE`, or `NAME` for the value that it has here.
fn understand(
    option: &OsStr,
    ours: &BTreeMap<OsString, OsString>,
) -> Result<(OsString, OsString), EnvError> {
    let shown = || option.to_string_lossy().into_owned();
    let bytes = option.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(0) => Err(EnvError::NoName(shown())),
        None if bytes.is_empty() => Err(EnvError::NoName(shown())),
        Some(at) => Ok((os_string(&bytes[..at]), os_string(&bytes[at + 1..]))),
        None => {
            let value = ours.get(option).ok_or_else(|| EnvError::NotSet(shown()))?;
            Ok((option.to_owned(), value.clone()))
        }
    }
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn joined(name: &OsStr, value: &OsStr) -> Bytes {
    [name.as_bytes(), value.as_bytes()].join(&b'=').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(ours: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        ours.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn texts(env: Vec<Bytes>) -> Vec<String> {
        env.into_iter().map(|it| String::from_utf8(it.to_vec()).unwrap()).collect()
    }

    fn own(ours: &[(&str, &str)], options: &[&str]) -> Result<Vec<String>, EnvError> {
        let options: Vec<OsString> = options.iter().map(OsString::from).collect();
        of_app(&map(ours), &options, Path::new("/w")).map(texts)
    }

    #[test]
    fn what_belongs_to_this_login_or_an_outer_job_stays_here() {
        let ours = [
            ("PATH", "/bin"),
            ("SSH_AUTH_SOCK", "/s"),
            ("PMI_RANK", "3"),
            ("BASH_FUNC_f%%", "() {"),
            ("OLDPWD", "/x"),
            ("PWD", "/y"),
            ("DISPLAY", ":0"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            ("MPI_LOCALRANKID", "1"),
            ("TMPDIR", "/t"),
            ("CUDA_VISIBLE_DEVICES", "1"),
        ];
        let expected = ["CUDA_VISIBLE_DEVICES=1", "PATH=/bin", "TMPDIR=/t"];
        assert_eq!(texts(of_job(&map(&ours))), expected);
    }

    #[test]
    fn options_set_and_copy_variables_also_those_left_out() {
        let ours = [("DISPLAY", ":0"), ("A", "1")];
        let options = ["DISPLAY", "A=x=y\nz", "E="];
        assert_eq!(own(&ours, &options).unwrap(), ["A=x=y\nz", "DISPLAY=:0", "E=", "PWD=/w"]);
    }

    #[test]
    fn an_option_without_a_name_or_a_value_to_copy_is_refused() {
        assert_eq!(own(&[], &["=x"]), Err(EnvError::NoName("=x".into())));
        assert_eq!(own(&[], &["NO_SUCH"]), Err(EnvError::NotSet("NO_SUCH".into())));
    }
}
