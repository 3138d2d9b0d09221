//! A stranger on the wire: all that agents and their parents say to each other passes through the
//! test.
//!
//! A shell between the two hands each boot line to the test, which puts its own address into it, or
//! takes the agent's place. A stranger never sees a boot line, but whoever owns a router has the
//! same connections, and an agent with a bug the same secret.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bootstrap::boot::{self, BootReader};
use model::AgentId;
use wire::{
    BootError, BootPayload, BuildHash, Channel, Ephemeral, Established, Handshake, Hello, Message,
    Preamble,
};

use super::convoke::Convoke;

/// Takes the boot line to the test, and starts the agent with what comes back.
const SHELL: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT && read -r line && \
                     echo \"$line\" >&3 && read -r line <&3 && exec 3>&- && \
                     CONVOKE_BOOT=$line CONVOKE_BULK_INDEX=0 exec sh -c \"$1\"' {host} {cmd}";

/// Where bytes are going.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Way {
    /// From an agent to its parent.
    Up,
    /// From its parent to an agent.
    Down,
}

/// What becomes of bytes on their way.
type Meddle = Arc<dyn Fn(AgentId, Way, Vec<u8>) -> Vec<u8> + Send + Sync>;

/// The wire, held by the test.
pub(crate) struct Tap {
    port: u16,
    /// Where the parent of each agent listens.
    parents: Arc<Mutex<BTreeMap<AgentId, SocketAddr>>>,
}

impl Tap {
    /// Everything that each agent sends and is sent goes through `meddle`, as it comes.
    pub(crate) fn new(
        meddle: impl Fn(AgentId, Way, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Tap {
        let meddle: Meddle = Arc::new(meddle);
        Tap::on_boots(move |boot| {
            let address = listen_for(boot.agent, boot.parent, Arc::clone(&meddle));
            boot.answer(address);
        })
    }

    /// `false_one` is never started: somebody who knows its secret speaks in its place. All others
    /// are left alone.
    pub(crate) fn with_impostor(
        false_one: AgentId,
        play: impl Fn(Impostor) + Send + 'static,
    ) -> Tap {
        Tap::on_boots(move |boot| {
            let parent = boot.parent;
            if boot.agent == false_one { play(Impostor::join(boot)) } else { boot.answer(parent) }
        })
    }

    fn on_boots(handle: impl Fn(Boot) + Send + 'static) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let parents: Arc<Mutex<BTreeMap<_, _>>> = Arc::default();
        let seen = Arc::clone(&parents);
        std::thread::spawn(move || {
            for boot in listener.incoming().flatten().map(Boot::read) {
                seen.lock().unwrap().insert(boot.agent, boot.parent);
                handle(boot);
            }
        });
        Tap { port, parents }
    }

    /// `convoke run` on these hosts, whose agents are all started through here.
    pub(crate) fn run(&self, test: &str, hosts: &str) -> Convoke {
        let shell = SHELL.replace("PORT", &self.port.to_string());
        Convoke::new(test).args(["--deliver", "never", "--hosts", hosts, "--shell", &shell])
    }

    /// Where the parent of `agent` listens, once its start is under way.
    pub(crate) fn parent_of(&self, agent: AgentId) -> SocketAddr {
        self.parents.lock().unwrap()[&agent]
    }
}

/// A shell that waits for its boot line.
struct Boot {
    shell: TcpStream,
    payload: BootPayload,
    agent: AgentId,
    parent: SocketAddr,
}

impl Boot {
    fn read(shell: TcpStream) -> Boot {
        let mut line = String::new();
        BufReader::new(&shell).read_line(&mut line).unwrap();
        let bytes = BootReader::new().push(line.as_bytes()).unwrap().unwrap().payload;
        let payload = read_payload(&bytes);
        let agent = payload.agent(0).unwrap();
        let is_near = |address: &&SocketAddr| address.is_ipv4() && address.ip().is_loopback();
        let parent = *payload.addresses.iter().find(is_near).unwrap();
        Boot { shell, payload, agent, parent }
    }

    /// Has the agent look for its parent at `address`.
    fn answer(mut self, address: SocketAddr) {
        self.payload.addresses = vec![address];
        let line = boot::line(&self.payload.encode().unwrap());
        self.shell.write_all(&line).unwrap();
    }
}

/// A member of the session that is not what it seems.
pub(crate) struct Impostor {
    link: TcpStream,
    channel: Channel,
    /// Waits for a boot line that never comes.
    _shell: TcpStream,
}

impl Impostor {
    /// Proves itself to the parent, and greets it.
    fn join(boot: Boot) -> Impostor {
        let BootPayload { build, session, ref secret, parent: to, attempt, .. } = boot.payload;
        let preamble = Preamble { build, session, from: boot.agent, to, attempt };
        let mut handshake = Handshake::initiator(secret, preamble, Ephemeral::new([7; 32]));
        let mut link = TcpStream::connect(boot.parent).unwrap();
        let mut buffer = [0; 4096];
        loop {
            while let Some(bytes) = handshake.poll_send() {
                link.write_all(&bytes).unwrap();
            }
            if let Some(Established { channel, .. }) = handshake.poll_established() {
                let mut impostor = Impostor { link, channel, _shell: boot.shell };
                impostor.say(&Message::Hello(Hello { attempt, pid: 1 }));
                return impostor;
            }
            let bytes = link.read(&mut buffer).unwrap();
            handshake.on_bytes(&buffer[..bytes]).unwrap();
        }
    }

    /// Sends a message.
    pub(crate) fn say(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        wire::encode(message, &mut bytes).unwrap();
        self.babble(&bytes);
    }

    /// Sends bytes, sealed.
    pub(crate) fn babble(&mut self, bytes: &[u8]) {
        let mut sealed = Vec::new();
        self.channel.seal(bytes, &mut sealed).unwrap();
        self.link.write_all(&sealed).unwrap();
    }

    /// Waits until the parent has hung up.
    pub(crate) fn listen(mut self) {
        let _ = self.link.read_to_end(&mut Vec::new()); // in whichever way
    }
}

/// Whatever build it is of.
fn read_payload(bytes: &[u8]) -> BootPayload {
    match BootPayload::decode(bytes, BuildHash([0; 8])) {
        Err(BootError::Build { theirs, .. }) => BootPayload::decode(bytes, theirs).unwrap(),
        other => other.unwrap(),
    }
}

/// A place that stands for `parent`.
fn listen_for(agent: AgentId, parent: SocketAddr, meddle: Meddle) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for child in listener.incoming().flatten() {
            let parent = TcpStream::connect(parent).unwrap();
            let ways = [(Way::Up, &child, &parent), (Way::Down, &parent, &child)];
            for (way, from, to) in ways {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let meddle = Arc::clone(&meddle);
                std::thread::spawn(move || pass(from, to, |bytes| meddle(agent, way, bytes)));
            }
        }
    });
    address
}

/// Passes bytes on until one side has had enough.
fn pass(mut from: TcpStream, mut to: TcpStream, meddle: impl Fn(Vec<u8>) -> Vec<u8>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let bytes = from.read(&mut buffer).unwrap_or_default();
        if bytes == 0 || to.write_all(&meddle(buffer[..bytes].to_vec())).is_err() {
            let _ = to.shutdown(Shutdown::Write); // the other way may have ended it
            return;
        }
    }
}
