//! What a program was given as its environment, from `/proc`.

use std::fs;
use std::io;

use crate::Pid;

/// The variables that the program of this process was started with, each with a zero byte at its end. Zombies and
/// processes of the kernel have none.
///
/// # Errors
/// `WouldBlock` while the process starts another program: the kernel takes the old one's memory away, also from under
/// who reads it, some time before it says where the new one's environment lies. Otherwise what `/proc` answers, such as
/// `NotFound`, or `PermissionDenied` for processes of other users.
pub fn environment_of(pid: Pid) -> io::Result<Vec<u8>> {
    let environment = match fs::read(format!("/proc/{pid}/environ")) {
        // What a zombie has instead of an empty file since Linux 6.14.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Vec::new(),
        environment => environment?,
    };
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let stat = String::from_utf8_lossy(&stat);
    // Size, where code begins, which is told last, and where the environment begins and ends (proc_pid_stat(5)).
    let [size, code, begin, end] =
        [23, 26, 50, 51].map(|number| field(&stat, number).unwrap_or_default());
    let has_memory = size != 0;
    let is_whole = code != 0 && end.wrapping_sub(begin) == environment.len() as u64;
    if has_memory && !is_whole {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(environment)
}

/// Fields are counted from 1. The second is a name that may hold blanks and parentheses.
fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, from_third) = stat.rsplit_once(") ")?;
    from_third.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}
