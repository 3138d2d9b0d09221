//! For tests that run as root and are about who is not.

use std::path::Path;
use std::process::Command;

/// Makes an ordinary user who exists in this mount namespace only, and becomes that user.
/// Arguments: the directory of the program, its name, its arguments.
///
/// An sshd of an ordinary user lets in nobody but this user, and looks the user up. The program's
/// directory is shown elsewhere, since a user may not get to where root's files are.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o mode=755 ordinary /mnt
mkdir -m 755 /mnt/bin
mkdir -m 1777 /mnt/tmp
cp /etc/passwd /mnt/passwd
echo 'ann:x:4711:4711::/mnt/tmp:/bin/sh' >>/mnt/passwd
mount --bind /mnt/passwd /etc/passwd
mount --bind "$1" /mnt/bin
program=/mnt/bin/$2
shift 2
cd /mnt/tmp
export HOME=/mnt/tmp TMPDIR=/mnt/tmp PATH=/mnt/bin:/usr/bin:/bin USER=ann
exec setpriv --reuid=4711 --regid=4711 --clear-groups -- "$program" "$@"
"#;

/// A command that will run `program` as a user without privileges: as us if we are one, else as a
/// user made for this, with what lies beside `program` in the `PATH` and a home and temporary
/// directory in memory that go with the last process.
pub fn as_ordinary_user(program: &Path) -> Command {
    let (Some(dir), Some(name)) = (program.parent(), program.file_name()) else {
        return Command::new(program);
    };
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "/bin/sh", "-c", SCRIPT, "ordinary"]).arg(dir).arg(name);
        return command;
    }
    let mut command = Command::new(program);
    command.env("PATH", format!("{}:/usr/bin:/bin", dir.display()));
    command
}
