//! Steps that speak to the PMI server, well or badly.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testkit::PmiConnection;

use super::{no_such_step, number, write_all};

/// The connection, made by the first step that needs it.
#[derive(Default)]
pub(crate) struct Pmi {
    connection: Option<PmiConnection>,
    /// The name of the job's space, once it has initialised.
    space: String,
}

/// How many requests are on their way at once: no more than the kernel keeps for either side.
const BATCH: u32 = 256;

impl Pmi {
    pub(crate) fn perform(&mut self, name: &str, arg: &str) -> io::Result<()> {
        match name {
            "pmi-init" => {
                self.space = self.connection()?.init()?;
                Ok(())
            }
            "pmi-barrier" => self.connection()?.barrier(),
            "pmi-finalize" => self.connection()?.finalize(),
            "pmi-abort" => self.connection()?.send(&format!("cmd=abort exitcode={arg}\n")),
            "pmi-send" => self.connection()?.send(&arg.replace("\\n", "\n")),
            "pmi-ask" => self.ask(&arg.replace("SPACE", &self.space)),
            "pmi-put" => self.put(arg),
            "pmi-value" => self.send_value(arg),
            "pmi-frame" => self.connection()?.send(&format!("{:<6}{arg}", arg.len())),
            "pmi-noise" => self.send_noise(arg),
            "pmi-puts" => self.put_many(number(arg)?),
            "pmi-gets" => self.get_many(number(arg)?),
            "pmi-late" => self.read_late(number(arg)?),
            "pmi-close" => {
                self.connection = None;
                Ok(())
            }
            "pmi-stranger" => call(arg),
            _ => Err(no_such_step()),
        }
    }

    fn connection(&mut self) -> io::Result<&mut PmiConnection> {
        if self.connection.is_none() {
            self.connection = Some(PmiConnection::from_env()?);
        }
        self.connection.as_mut().ok_or_else(|| io::Error::other("no PMI connection"))
    }

    fn ask(&mut self, request: &str) -> io::Result<()> {
        let answer = self.connection()?.ask(request)?.to_owned();
        write_all(io::stdout(), &format!("{answer}\n"))
    }

    fn put(&mut self, arg: &str) -> io::Result<()> {
        let (key, bytes) = pair(arg)?;
        let value = "x".repeat(number(bytes)?);
        self.ask(&format!("cmd=put kvsname={} key={key} value={value}", self.space))
    }

    fn send_value(&mut self, arg: &str) -> io::Result<()> {
        let (key, mebibytes) = pair(arg)?;
        let front = format!("cmd=put kvsname={} key={key} value=", self.space);
        let pmi = self.connection()?;
        pmi.send(&front)?;
        let piece = "x".repeat(1 << 20);
        (0..number::<u32>(mebibytes)?).try_for_each(|_| pmi.send(&piece))
    }

    fn send_noise(&mut self, arg: &str) -> io::Result<()> {
        let (seed, bytes) = pair(arg)?;
        let mut state: u64 = number(seed)?;
        let mut noise = Vec::new();
        for _ in 0..number::<usize>(bytes)? {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            noise.push(state.to_be_bytes()[0]);
        }
        self.connection()?.send_bytes(&noise)
    }

    fn put_many(&mut self, count: u32) -> io::Result<()> {
        let (rank, space) = (self.connection()?.rank, self.space.clone());
        let put = |number| {
            let (key, value) = (key(rank, number), value(rank, number));
            format!("cmd=put kvsname={space} key={key} value={value}\n")
        };
        self.ask_many(count, put, |_, answer| answer.starts_with("cmd=put_result rc=0"))
    }

    fn get_many(&mut self, count: u32) -> io::Result<()> {
        let space = self.space.clone();
        let pmi = self.connection()?;
        let next = (pmi.rank + 1) % pmi.size;
        let get = |number| format!("cmd=get kvsname={space} key={}\n", key(next, number));
        self.ask_many(count, get, |number, answer| {
            answer == format!("cmd=get_result rc=0 value={}", value(next, number))
        })
    }

    /// Asks what `request` says for each number, in batches, and checks each answer.
    fn ask_many(
        &mut self,
        count: u32,
        request: impl Fn(u32) -> String,
        is_right: impl Fn(u32, &str) -> bool,
    ) -> io::Result<()> {
        let pmi = self.connection()?;
        for first in (0..count).step_by(BATCH as usize) {
            let batch = first..count.min(first + BATCH);
            pmi.send(&batch.clone().map(&request).collect::<String>())?;
            for number in batch {
                let answer = pmi.receive()?;
                if !is_right(number, answer) {
                    return Err(io::Error::other(format!("unexpected: `{answer}`")));
                }
            }
        }
        Ok(())
    }

    /// Puts a value and asks for it `count` times, from a thread of its own. Reads answers when the server has not taken
    /// a request for a while, or all are sent.
    fn read_late(&mut self, count: u32) -> io::Result<()> {
        const QUIET: Duration = Duration::from_millis(500);
        let space = self.space.clone();
        let pmi = self.connection()?;
        pmi.put(&space, "long", &"x".repeat(1000))?;
        let mut writer = pmi.writer()?;
        let (sent, progress) = std::sync::mpsc::channel();
        let line = format!("cmd=get kvsname={space} key=long\n");
        let thread = std::thread::spawn(move || -> io::Result<()> {
            for _ in 0..count {
                writer.write_all(line.as_bytes())?;
                let _ = sent.send(()); // who waits no more reads
            }
            Ok(())
        });
        let taken = std::iter::from_fn(|| progress.recv_timeout(QUIET).ok()).count();
        write_all(io::stdout(), &format!("late {taken}\n"))?;
        for _ in 0..count {
            let answer = pmi.receive()?;
            if answer.len() < 1000 {
                return Err(io::Error::other(format!("unexpected: `{answer}`")));
            }
        }
        thread.join().map_err(|_| io::Error::other("the writer panicked"))?
    }
}

fn key(rank: u32, number: u32) -> String {
    format!("key-{rank}-{number}")
}

fn value(rank: u32, number: u32) -> String {
    format!("value-of-{rank}-{number:032}")
}

fn pair(arg: &str) -> io::Result<(&str, &str)> {
    arg.split_once(':').ok_or_else(|| io::Error::other("needs two words with a colon between"))
}

/// What comes before the end, which may be a reset, is nothing.
fn call(words: &str) -> io::Result<()> {
    let address = std::env::var("PMI_PORT").map_err(io::Error::other)?;
    let mut stranger = TcpStream::connect(address)?;
    stranger.write_all(words.replace("\\n", "\n").as_bytes())?;
    let _ = stranger.read_to_end(&mut Vec::new());
    Ok(())
}
