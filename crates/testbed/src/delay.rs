//! A link that takes its time: frames are carried by a thread, one direction after a delay.
//!
//! `tc netem` would do, but many kernels are built without it. A frame passes with its
//! segmentation header, so that large segments stay whole and checksums stay valid; a delayed
//! host carries some hundred MB/s.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::{TestbedError, clock, network, sys};

/// The largest frame: 64 KiB of segment, Ethernet header and segmentation header.
const FRAME_BYTES_MAX: usize = 65_536 + 14 + 10 + 256;

/// Frames taken from one side before the other has its turn.
const FRAMES_PER_TURN: usize = 64;

/// A delay in front of one host. Dropping it stops the thread; the link has to be mended then.
#[derive(Debug)]
pub(crate) struct DelayLine {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The two ends between which a delay line carries frames.
#[derive(Debug)]
pub(crate) struct Sockets {
    host_side: OwnedFd,
    bridge_side: OwnedFd,
}

impl DelayLine {
    /// `ip -batch` text that takes the host's port off the bridge and puts a second pair between.
    pub(crate) fn insertion_batch(index: usize) -> String {
        let port = network::port(index);
        format!(
            "link set {port} nomaster\n\
             link add late{index} type veth peer name out{index}\n\
             link set late{index} addrgenmode none up\n\
             link set out{index} addrgenmode none master bridge up\n"
        )
    }

    /// `ip -batch` text that undoes the above.
    pub(crate) fn removal_batch(index: usize) -> String {
        let port = network::port(index);
        format!("link del late{index}\nlink set {port} master bridge\n")
    }

    /// Opens both ends. Must run in the switch's network namespace.
    pub(crate) fn open(index: usize) -> Result<Sockets, TestbedError> {
        let open = |name: &str| {
            sys::packet_socket(name).map_err(|source| TestbedError::System {
                doing: format!("open a packet socket on {name}"),
                source,
            })
        };
        let host_side = open(&network::port(index))?;
        let bridge_side = open(&format!("late{index}"))?;
        Ok(Sockets { host_side, bridge_side })
    }

    /// Carries frames until the line is dropped.
    pub(crate) fn start(sockets: Sockets, delay: Duration) -> Result<DelayLine, TestbedError> {
        let system =
            |source| TestbedError::System { doing: "start a delay line".to_owned(), source };
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|e| system(io::Error::from(e)))?;
        let thread = std::thread::Builder::new()
            .name("delay line".to_owned())
            .spawn(move || carry(&sockets, delay, &stopped))
            .map_err(system)?;
        Ok(DelayLine { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn carry(sockets: &Sockets, delay: Duration, stopped: &OwnedFd) {
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut frame = vec![0; FRAME_BYTES_MAX];
    while !wait(sockets, waiting.front().map(|(due, _)| *due), stopped) {
        for _ in 0..FRAMES_PER_TURN {
            let Ok(length) = rustix::io::read(&sockets.host_side, &mut frame) else { break };
            waiting.push_back((clock::now() + delay, frame[..length].to_vec()));
        }
        for _ in 0..FRAMES_PER_TURN {
            let Ok(length) = rustix::io::read(&sockets.bridge_side, &mut frame) else { break };
            send(&sockets.host_side, &frame[..length]);
        }
        while let Some((_, late)) = waiting.pop_front_if(|(due, _)| *due <= clock::now()) {
            send(&sockets.bridge_side, &late);
        }
    }
}

/// Waits for a frame, for `due`, or for the end. Returns whether it was the end.
fn wait(sockets: &Sockets, due: Option<Instant>, stopped: &OwnedFd) -> bool {
    let left = due.map(|due| due.saturating_duration_since(clock::now()));
    let timeout = left.map(|left| Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let mut ready = [
        PollFd::new(stopped, PollFlags::empty()),
        PollFd::new(&sockets.host_side, PollFlags::IN),
        PollFd::new(&sockets.bridge_side, PollFlags::IN),
    ];
    let result = rustix::event::poll(&mut ready, timeout.as_ref());
    result.is_ok() && !ready[0].revents().is_empty()
}

/// Sends a frame. One that the link does not take is lost, as on any link.
fn send(socket: &OwnedFd, frame: &[u8]) {
    rustix::io::write(socket, frame).unwrap_or_default();
}
