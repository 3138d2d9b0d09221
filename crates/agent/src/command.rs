//! An app's command as `execve` wants it, looked up and checked on this node once per job.
//!
//! The look-up comes before anything is launched, so that a missing program is one error for the
//! whole job and not one for each task. Tasks differ only in a few variables.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use model::AgentId;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;
use wire::{App, JobFault, JobSpec};

use crate::{convert, exec_room, interpreter};

/// Where programs are looked for when the job has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that can be run.
#[derive(Debug)]
pub(crate) struct Command {
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    dir: CString,
}

impl Command {
    /// Looks the directory and the program up as they are on this node, agent `agent`'s.
    pub(crate) fn prepare(spec: &JobSpec, app: u32, agent: AgentId) -> Result<Command, JobFault> {
        let App { argv, env, dir, .. } = spec.app(app).ok_or_else(|| no_such_app(app, agent))?;
        let env = overlaid(&spec.env, env, |text| text);
        let dir = Path::new(OsStr::from_bytes(dir));
        enter_check(dir).map_err(|errno| JobFault::Directory {
            agent,
            errno: errno.raw_os_error(),
            words: dir.display().to_string(),
        })?;
        let name = argv.first().map_or(OsStr::new(""), |name| OsStr::from_bytes(name));
        let program = os::which(name, path_list(&env), dir).map_err(|error| JobFault::Program {
            agent,
            app,
            errno: convert::resolve_errno(&error),
            words: error.to_string(),
        })?;
        interpreter::check(&program, dir).map_err(|error| JobFault::Program {
            agent,
            app,
            errno: error.errno.raw_os_error(),
            words: error.to_string(),
        })?;
        exec_room::check(argv, &env).map_err(|error| JobFault::Program {
            agent,
            app,
            errno: Errno::TOOBIG.raw_os_error(),
            words: error.to_string(),
        })?;
        Ok(Command {
            program: c_string(program.as_os_str().as_bytes()),
            argv: c_strings(argv),
            env: env.into_iter().map(|variable| c_string(variable)).collect(),
            dir: c_string(dir.as_os_str().as_bytes()),
        })
    }

    /// The executable's path.
    pub(crate) fn program(&self) -> &CStr {
        &self.program
    }

    /// The arguments, the program's name first.
    pub(crate) fn argv(&self) -> Vec<&CStr> {
        self.argv.iter().map(CString::as_c_str).collect()
    }

    /// The working directory.
    pub(crate) fn dir(&self) -> &CStr {
        &self.dir
    }

    /// The app's environment with `own` in the place of variables of the same names.
    pub(crate) fn env<'a>(&'a self, own: &'a [CString]) -> Vec<&'a CStr> {
        let env = overlaid(&self.env, own, |text| text.as_bytes());
        env.into_iter().map(CString::as_c_str).collect()
    }
}

/// Words or `NAME=value` as `execve` wants them.
pub(crate) fn c_strings(texts: &[Bytes]) -> Vec<CString> {
    texts.iter().map(|text| c_string(text)).collect()
}

/// Up to the first zero byte: no command line and no environment can hold one.
fn c_string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// What stands before the first `=`.
pub(crate) fn name_of(variable: &[u8]) -> &[u8] {
    variable.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// `base` with `own` in the place of variables of the same names.
fn overlaid<'a, T>(base: &'a [T], own: &'a [T], bytes: fn(&T) -> &[u8]) -> Vec<&'a T> {
    let names: Vec<&[u8]> = own.iter().map(|own| name_of(bytes(own))).collect();
    base.iter().filter(|base| !names.contains(&name_of(bytes(base)))).chain(own).collect()
}

/// Only a parent that errs asks for one.
fn no_such_app(app: u32, agent: AgentId) -> JobFault {
    let words = "the job has no such program".to_owned();
    JobFault::Program { agent, app, errno: Errno::NOENT.raw_os_error(), words }
}

fn path_list<'a>(env: &[&'a Bytes]) -> &'a OsStr {
    let found = env.iter().rev().find_map(|variable| variable.strip_prefix(b"PATH="));
    found.map_or(OsStr::new(PATH_DEFAULT), OsStr::from_bytes)
}

fn enter_check(dir: &Path) -> Result<(), Errno> {
    let stat = rustix::fs::stat(dir)?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(Errno::NOTDIR);
    }
    rustix::fs::accessat(CWD, dir, Access::EXEC_OK, AtFlags::EACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variables_replace_those_of_the_job() {
        let command = Command {
            program: c"/bin/true".into(),
            argv: vec![c"true".into()],
            env: vec![c"A=1".into(), c"AB=2".into(), c"C=3".into()],
            dir: c"/".into(),
        };
        let own = c_strings(&[Bytes::from_static(b"A=x=y"), Bytes::from_static(b"D=")]);
        assert_eq!(command.env(&own), [c"AB=2", c"C=3", c"A=x=y", c"D="]);
    }

    #[test]
    fn the_last_path_of_the_job_counts() {
        let env = [Bytes::from_static(b"PATH=/a"), Bytes::from_static(b"PATH=/b:/c")];
        assert_eq!(path_list(&overlaid(&env, &[], |text| text)), "/b:/c");
        let own = [Bytes::from_static(b"PATH=/own")];
        assert_eq!(path_list(&overlaid(&env, &own, |text| text)), "/own");
        assert_eq!(path_list(&[]), PATH_DEFAULT);
    }

    #[test]
    fn a_directory_must_exist_and_be_one() {
        assert_eq!(enter_check(Path::new("/")), Ok(()));
        assert_eq!(enter_check(Path::new("/no-such")), Err(Errno::NOENT));
        assert_eq!(enter_check(Path::new("/proc/self/stat")), Err(Errno::NOTDIR));
    }
}
