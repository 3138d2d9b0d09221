//! The processes that hold the namespaces, and whose end takes everything away.
//!
//! One *world* per testbed: the first process of a PID namespace that reads from a pipe which only
//! the testbed's owner holds. However the owner ends, kill -9 included, the pipe closes, the first
//! process ends, and the kernel ends everything in the PID namespace. Network namespaces, links,
//! mounts and the files of the testbed are reachable from there only, so they go as well: there is
//! nothing to sweep. The world's own network namespace holds the bridge and is called the switch;
//! nothing connects it to the machine's network, so no frame can leave, and two testbeds may use
//! the same addresses.
//!
//! Each host is a PID namespace within, so that all processes of a host can be ended at once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::{TestbedError, command};

/// The first process of the world. Arguments: the script of a host, then the hosts' names.
///
/// `/proc` still belongs to the owner's PID namespace when the script reads its own number there,
/// so that the number means something to the owner. What it becomes ignores SIGCHLD, so that the
/// kernel reaps the orphans it is given.
const WORLD_SCRIPT: &str = r#"
set -e
exec 2>&1
mount -t tmpfs -o mode=755 testbed /run
mkdir -p /run/testbed/sshd /run/testbed/log /run/testbed/boot /run/sshd
for file in /etc/hosts /etc/ssh/ssh_config; do
    copy=/run/testbed/${file##*/}
    : >"$copy"
    mount --bind "$copy" "$file"
done
read -r pid _ </proc/self/stat
echo "switch $pid"
script=$1
shift
for name; do
    unshare --net --uts --ipc --mount --pid --fork -- /bin/sh -c "$script" host "$name" &
done
exec env --ignore-signal=CHLD cat >/dev/null
"#;

/// The first process of a host. Argument: its name. The host gets shared memory and a boot
/// identifier of its own, since MPI libraries tell by these which ranks can share memory.
const HOST_SCRIPT: &str = r#"
set -e
exec 2>&1
echo "$1" >/proc/sys/kernel/hostname
read -r pid _ </proc/self/stat
mount -t proc proc /proc
mount -t tmpfs -o mode=1777 shm /dev/shm
random=/proc/sys/kernel/random
read -r id <$random/uuid
echo "$id" >/run/testbed/boot/"$1"
mount --bind /run/testbed/boot/"$1" $random/boot_id
echo "$1 $pid"
exec env --ignore-signal=CHLD sleep infinity </dev/null >/dev/null 2>&1
"#;

/// The namespaces of a testbed. Dropping it ends every process in them, and waits for that.
#[derive(Debug)]
pub(crate) struct World {
    /// The first process of the switch, as the owner numbers it.
    pub(crate) switch_pid: u32,
    /// The first process of each host, as the owner numbers it.
    pub(crate) host_pids: BTreeMap<String, u32>,
    child: Child,
    /// Held open for as long as the world is to live.
    lifeline: Option<ChildStdin>,
}

impl World {
    /// Makes a world with a host for each name.
    pub(crate) fn create(names: &[String]) -> Result<World, TestbedError> {
        let mut child = command::start(
            Command::new("unshare")
                .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--"])
                .args(["/bin/sh", "-c", WORLD_SCRIPT, "testbed", HOST_SCRIPT])
                .args(names)
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )?;
        let lifeline = child.stdin.take();
        let stdout = child.stdout.take();
        let mut world = World { switch_pid: 0, host_pids: BTreeMap::new(), child, lifeline };
        world.read_pids(
            names.len() + 1,
            stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()),
        )?;
        Ok(world)
    }

    /// Takes `count` lines of the form "name pid"; anything else is an error of a set-up step.
    fn read_pids(
        &mut self,
        count: usize,
        lines: impl Iterator<Item = std::io::Result<String>>,
    ) -> Result<(), TestbedError> {
        let mut seen = 0;
        let mut said = String::new();
        for line in lines.map_while(Result::ok) {
            match line.split_once(' ').map(|(name, pid)| (name, pid.parse::<u32>())) {
                Some(("switch", Ok(pid))) => self.switch_pid = pid,
                Some((name, Ok(pid))) => drop(self.host_pids.insert(name.to_owned(), pid)),
                Some((_, Err(_))) | None => {
                    said.push_str(&line);
                    break;
                }
            }
            seen += 1;
            if seen == count {
                return Ok(());
            }
        }
        Err(TestbedError::Tool { what: "making the namespaces".to_owned(), said })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if let Some(mut stdout) = self.child.stdout.take() {
            drop(stdout.read_to_end(&mut Vec::new()));
        }
        drop(self.child.wait());
    }
}
