//! The boot payload.

use model::{AgentId, IdSet};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{BootError, BootPayload, BuildHash, Secret, SessionId, VERSION};

proptest! {
    #[test]
    fn a_payload_comes_back(
        secret in any::<[u8; 32]>(),
        ids in vec(any::<u32>(), 1..10),
        numbers in any::<[u32; 3]>(),
        shell_link in any::<bool>(),
        addresses in vec(any::<std::net::SocketAddr>(), 0..5),
    ) {
        let [parent, attempt, welcome_timeout_ms] = numbers;
        let addresses: Vec<_> =
            addresses.into_iter().map(|it| (it.ip(), it.port()).into()).collect();
        let payload = BootPayload {
            secret: Secret::new(secret),
            agents: ids.into_iter().collect(),
            parent: AgentId(parent),
            attempt,
            addresses,
            shell_link,
            welcome_timeout_ms,
            ..payload()
        };
        let bytes = payload.encode().unwrap();
        prop_assert_eq!(BootPayload::decode(&bytes, BUILD), Ok(payload));
    }

    #[test]
    fn arbitrary_bytes_are_an_error(body in vec(any::<u8>(), 0..200)) {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(body);
        prop_assert!(BootPayload::decode(&bytes, BUILD).is_err());
    }
}

#[test]
fn each_agent_of_a_bulk_start_finds_itself_by_its_index() {
    let agents = IdSet::range(4, 5).union(&IdSet::range(9, 9));
    let payload = BootPayload { agents, ..payload() };
    let found: Vec<_> = (0..4).map(|index| payload.agent(index)).collect();
    assert_eq!(found, [Some(AgentId(4)), Some(AgentId(5)), Some(AgentId(9)), None]);
}

#[test]
fn a_payload_cut_short_anywhere_is_an_error() {
    let bytes = payload().encode().unwrap();
    for len in 0..bytes.len() {
        assert!(BootPayload::decode(&bytes[..len], BUILD).is_err(), "{len} bytes");
    }
}

#[test]
fn another_version_is_named_whatever_follows_it() {
    let error = BootError::Version { ours: VERSION, theirs: VERSION + 1 };
    let bytes = (VERSION + 1).to_le_bytes();
    assert_eq!(BootPayload::decode(&bytes, BUILD), Err(error));
}

#[test]
fn another_build_is_named() {
    let bytes = payload().encode().unwrap();
    let ours = BuildHash([9; 8]);
    let error = BootError::Build { ours, theirs: BUILD };
    assert_eq!(BootPayload::decode(&bytes, ours), Err(error));
}

#[test]
fn a_payload_for_nobody_or_with_a_tail_is_an_error() {
    let nobody = BootPayload { agents: IdSet::new(), ..payload() }.encode().unwrap();
    assert_eq!(BootPayload::decode(&nobody, BUILD), Err(BootError::NoAgent));
    let mut tail = payload().encode().unwrap().to_vec();
    tail.push(0);
    assert_eq!(BootPayload::decode(&tail, BUILD), Err(BootError::Trailing(1)));
}

#[test]
fn the_secret_is_not_printed_with_its_payload() {
    assert!(format!("{:?}", payload()).contains("Secret(..)"));
}

const BUILD: BuildHash = BuildHash([1; 8]);

fn payload() -> BootPayload {
    BootPayload {
        build: BUILD,
        session: SessionId([2; 16]),
        secret: Secret::new([3; 32]),
        agents: IdSet::range(7, 7),
        parent: AgentId(0),
        attempt: 0,
        addresses: vec![([127, 0, 0, 1], 4_000).into()],
        shell_link: true,
        welcome_timeout_ms: 30_000,
    }
}
