//! The floor of carrying output over encrypted links: what each task writes is sealed as a link
//! seals it, sent over a connection of the task's own, opened, and written to standard output.
//!
//! Agents are on this host, with a connection or a pair of sockets each, as a shell's streams are; or
//! one is on a host of a testbed, where `ssh` starts it and may carry its records.
//!
//! A peer that sends in clear need not pay for this, so the floor tells what the cipher costs from
//! what we add. It knows no frames, credits or lines, and copies nothing: a read lands where it is
//! sealed, and what is opened is written from where it was received. Lines may be torn.

use std::env;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, anyhow, bail, ensure};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use testbed::command;

/// The first word of a command line that asks for the side that writes the output.
pub(crate) const HEAD: &str = "sealed-head";

/// The first word of a command line that asks for the side that runs a task.
pub(crate) const AGENT: &str = "sealed-agent";

/// As in the link: a length in two bytes, the text, the tag.
const HEADER_BYTES: usize = 2;
const TAG_BYTES: usize = 16;
const TEXT_BYTES_MAX: usize = 65_535 - TAG_BYTES;
const RECORD_BYTES: usize = HEADER_BYTES + TEXT_BYTES_MAX + TAG_BYTES;

/// Records in one write: what a task's pipe holds.
const RECORDS: usize = 4;

/// Bytes in one read from a connection, and in a pipe.
const READ_BYTES: usize = 256 * 1024;

/// A key that everybody knows, with the number of the next record.
struct Cipher {
    key: LessSafeKey,
    records: u64,
}

/// The way to agents on this host, over connections.
pub(crate) const TCP: &str = "tcp";

/// The way to agents on this host, over the streams that they were started with.
pub(crate) const STREAMS: &str = "streams";

/// Before a host of a testbed: the way to an agent there, over the streams of its `ssh`.
pub(crate) const SSH: &str = "ssh:";

/// An agent's address of a head that reads its standard output.
const OUTPUT: &str = "-";

/// `WAY COUNT PROGRAM [ARGUMENT...]`: starts so many agents and writes what their tasks write. A way
/// that is none of the above is the host of the only agent.
pub(crate) fn run_head(arguments: &[&str]) -> anyhow::Result<()> {
    let [way, count, program @ ..] = arguments else { bail!("no way or no count of tasks") };
    enlarge(rustix::stdio::stdout());
    let count = count.parse().context("read the count of tasks")?;
    let (agents, links): (Vec<Child>, Vec<OwnedFd>) = match *way {
        TCP => start_and_accept("127.0.0.1:0", None, count, program)?,
        STREAMS => start_with_streams(None, count, program)?,
        way => match way.strip_prefix(SSH) {
            Some(host) => start_with_streams(Some(host), count, program)?,
            None => start_and_accept("[::]:0", Some(way), count, program)?,
        },
    };
    let read = |link| thread::spawn(move || open_all(File::from(link)));
    for reader in links.into_iter().map(read).collect::<Vec<_>>() {
        reader.join().map_err(|_| anyhow!("a reader panicked"))??;
    }
    for mut agent in agents {
        ensure!(agent.wait().context("wait for an agent")?.success(), "an agent failed");
    }
    Ok(())
}

/// Agents on `host`, or here, whose output is read here.
fn start_with_streams(
    host: Option<&str>,
    count: u32,
    program: &[&str],
) -> anyhow::Result<(Vec<Child>, Vec<OwnedFd>)> {
    let start = |rank| {
        let (ours, theirs) = UnixStream::pair().context("make a pair of sockets")?;
        let command = agent_command(OUTPUT, rank, program)?;
        let mut command = match host {
            Some(host) => over_ssh(host, &command),
            None => command,
        };
        anyhow::Ok((command::start(command.stdout(OwnedFd::from(theirs)))?, ours.into()))
    };
    (0..count).map(start).collect()
}

/// Agents on `host`, or here, that connect to `listen`.
fn start_and_accept(
    listen: &str,
    host: Option<&str>,
    count: u32,
    program: &[&str],
) -> anyhow::Result<(Vec<Child>, Vec<OwnedFd>)> {
    let listener = TcpListener::bind(listen).context("listen")?;
    let own = listener.local_addr().context("ask for the address")?;
    let address = host.map_or(own.to_string(), |_| format!("{}:{}", testbed::HEAD, own.port()));
    let start = |rank| {
        let mut command = agent_command(&address, rank, program)?;
        match host {
            Some(host) => Ok(command::start(over_ssh(host, &command).stdout(Stdio::null()))?),
            None => Ok(command::start(&mut command)?),
        }
    };
    let agents = (0..count).map(start).collect::<anyhow::Result<_>>()?;
    let accept = |_| anyhow::Ok(listener.accept().context("accept an agent")?.0.into());
    Ok((agents, (0..count).map(accept).collect::<Result<_, _>>()?))
}

/// The same command on another host. `ssh` would let nobody block on an output that it shares.
fn over_ssh(host: &str, command: &Command) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(["-n", host]).arg(command.get_program()).args(command.get_args());
    ssh
}

/// `ADDRESS PROGRAM [ARGUMENT...]`: runs a task and sends what it writes.
pub(crate) fn run_agent(arguments: &[&str]) -> anyhow::Result<()> {
    let [address, program, arguments @ ..] = arguments else { bail!("no address or program") };
    let link: OwnedFd = match *address {
        OUTPUT => rustix::stdio::stdout().try_clone_to_owned().context("take the output")?,
        address => TcpStream::connect(address).context("connect")?.into(),
    };
    let mut task = command::start(Command::new(program).args(arguments).stdout(Stdio::piped()))?;
    let output: OwnedFd = task.stdout.take().context("output is not piped")?.into();
    enlarge(&output);
    seal_all(File::from(output), File::from(link))?;
    ensure!(task.wait().context("wait for the task")?.success(), "the task failed");
    Ok(())
}

/// Where it is no pipe, or the user's share of pipe memory is used up, it stays as it is.
fn enlarge(pipe: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, READ_BYTES);
}

fn agent_command(address: &str, rank: u32, program: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe().context("find this program")?);
    command.args([AGENT, address]).args(program).env("PMI_RANK", rank.to_string());
    Ok(command)
}

fn seal_all(mut output: File, mut link: File) -> anyhow::Result<()> {
    let mut cipher = Cipher::new()?;
    let mut records = vec![0; RECORDS * RECORD_BYTES];
    loop {
        let texts = records.chunks_exact_mut(RECORD_BYTES);
        let texts = texts.map(|record| &mut record[HEADER_BYTES..][..TEXT_BYTES_MAX]);
        let mut slots: Vec<_> = texts.map(IoSliceMut::new).collect();
        let mut left = output.read_vectored(&mut slots).context("read the task's output")?;
        if left == 0 {
            return Ok(());
        }
        let mut sealed = 0;
        for record in records.chunks_exact_mut(RECORD_BYTES).take(left.div_ceil(TEXT_BYTES_MAX)) {
            let len = left.min(TEXT_BYTES_MAX);
            sealed += cipher.seal(record, len)?;
            left -= len;
        }
        link.write_all(&records[..sealed]).context("send records")?;
    }
}

fn open_all(mut link: File) -> anyhow::Result<()> {
    let mut cipher = Cipher::new()?;
    let mut buffer = vec![0; READ_BYTES];
    let mut filled = 0;
    loop {
        let len = link.read(&mut buffer[filled..]).context("receive records")?;
        if len == 0 {
            ensure!(filled == 0, "an agent ended within a record");
            return Ok(());
        }
        filled += len;
        let done = open_records(&mut cipher, &mut buffer[..filled])?;
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

/// Writes what whole records hold. Returns how many bytes they are.
fn open_records(cipher: &mut Cipher, bytes: &mut [u8]) -> anyhow::Result<usize> {
    let mut done = 0;
    while let Some(&header) = bytes[done..].first_chunk() {
        let start = done + HEADER_BYTES;
        let end = start + usize::from(u16::from_le_bytes(header));
        let Some(sealed) = bytes.get_mut(start..end) else { break };
        // Not `Stdout`, which looks for lines in all that it is given.
        write_all(cipher.open(sealed)?).context("write output")?;
        done = end;
    }
    Ok(done)
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written =
            rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), bytes))?;
        bytes = &bytes[written..];
    }
    Ok(())
}

impl Cipher {
    fn new() -> anyhow::Result<Cipher> {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| anyhow!("no cipher"))?;
        Ok(Cipher { key: LessSafeKey::new(key), records: 0 })
    }

    /// Makes a record of `len` bytes of text that stand behind the place of its header.
    fn seal(&mut self, record: &mut [u8], len: usize) -> anyhow::Result<usize> {
        let (header, rest) = record.split_at_mut(HEADER_BYTES);
        let (text, after) = rest.split_at_mut(len);
        let nonce = self.next_nonce();
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), text)
            .map_err(|_| anyhow!("a record is too long"))?;
        after[..TAG_BYTES].copy_from_slice(tag.as_ref());
        header.copy_from_slice(&u16::try_from(len + TAG_BYTES)?.to_le_bytes());
        Ok(HEADER_BYTES + len + TAG_BYTES)
    }

    fn open<'a>(&mut self, sealed: &'a mut [u8]) -> anyhow::Result<&'a [u8]> {
        let nonce = self.next_nonce();
        let text = self.key.open_in_place(nonce, Aad::empty(), sealed);
        text.map(|text| &*text).map_err(|_| anyhow!("a record does not decrypt"))
    }

    fn next_nonce(&mut self) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&self.records.to_be_bytes());
        self.records += 1;
        Nonce::assume_unique_for_key(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_the_other_side() {
        let (mut ours, mut theirs) = (Cipher::new().unwrap(), Cipher::new().unwrap());
        for text in [b"one", b"two"] {
            let mut record = vec![0; 64];
            record[HEADER_BYTES..][..3].copy_from_slice(text);
            let len = ours.seal(&mut record, 3).unwrap();
            assert_eq!(theirs.open(&mut record[HEADER_BYTES..len]).unwrap(), text);
        }
    }
}
