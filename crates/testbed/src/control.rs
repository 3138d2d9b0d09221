//! A testbed in the background, and how other commands reach it.
//!
//! It listens on an abstract socket, which vanishes with it: no file can go stale. One request is
//! one line, `VERB [HOST [MILLISECONDS]]`; the answer is text, its first line `ok` or `error`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::testbed::command_in;
use crate::{Sshd, Testbed, TestbedError};

/// The requests that [`serve`] understands, for a usage text.
pub const VERBS: &str = "cut HOST | black-hole HOST | slow HOST MS | kill HOST | power-off HOST | heal HOST | \
stop-sshd HOST | start-sshd HOST | mute-sshd HOST | clog-sshd HOST | hosts | ps | pid HOST | down";

/// A listener for the testbed with this name; fails if there is one already.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&address(name)?)
}

/// Answers requests until one is `down`.
pub fn serve(testbed: &Testbed, listener: &UnixListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let mut stream = stream?;
        if !socket_peercred(&stream)?.uid.is_root() {
            continue;
        }
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        let down = line.trim() == "down";
        // A client that is gone does not need its answer.
        drop(stream.write_all(answer(testbed, line.trim()).as_bytes()));
        if down {
            break;
        }
    }
    Ok(())
}

/// Sends one request to the testbed with this name, and returns the text of its answer.
pub fn request(name: &str, line: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect_addr(&address(name)?)?;
    writeln!(stream, "{line}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    match text.split_once('\n') {
        Some(("ok", rest)) => Ok(rest.to_owned()),
        Some((_, rest)) => Err(io::Error::other(rest.trim().to_owned())),
        None => Err(io::Error::other("the testbed ended without an answer")),
    }
}

/// A command that will run `program` on a host of the testbed with this name.
pub fn command(name: &str, host: &str, program: &str) -> io::Result<Command> {
    let pid = request(name, &format!("pid {host}"))?;
    Ok(command_in(pid.trim().parse().map_err(io::Error::other)?, program))
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("convoke-testbed-{name}"))
}

fn answer(testbed: &Testbed, line: &str) -> String {
    match perform(testbed, line) {
        Ok(text) => format!("ok\n{text}"),
        Err(error) => format!("error\n{}\n", error.chain()),
    }
}

fn perform(testbed: &Testbed, line: &str) -> Result<String, TestbedError> {
    let unknown = || TestbedError::UnknownRequest { request: line.to_owned(), known: VERBS };
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["cut", host] => testbed.cut(host)?,
        ["black-hole", host] => testbed.black_hole(host)?,
        ["slow", host, ms] => {
            let ms = ms.parse().map_err(|_| unknown())?;
            testbed.delay(host, Duration::from_millis(ms))?;
        }
        ["kill", host] => testbed.kill_host(host)?,
        ["power-off", host] => testbed.power_off(host)?,
        ["heal", host] => testbed.heal(host)?,
        ["stop-sshd", host] => testbed.stop_sshd(host)?,
        ["start-sshd", host] => testbed.start_sshd(host, Sshd::Willing)?,
        ["mute-sshd", host] => testbed.mute_sshd(host)?,
        ["clog-sshd", host] => testbed.clog_sshd(host)?,
        ["hosts"] => return Ok(testbed.host_list() + "\n"),
        ["ps"] => return process_table(testbed),
        ["pid", host] => return Ok(format!("{}\n", testbed.pid(host)?)),
        ["down"] => {}
        _ => return Err(unknown()),
    }
    Ok(String::new())
}

fn process_table(testbed: &Testbed) -> Result<String, TestbedError> {
    let row = |(host, process): (String, crate::HostProcess)| {
        format!("{host}\t{}\t{}\t{}\n", process.pid, process.state, process.command)
    };
    Ok(testbed.find("")?.into_iter().map(row).collect())
}
