//! The encoding of every message, pinned byte by byte.
//!
//! `UPDATE_GOLDEN=1 cargo test -p wire --test golden` writes the files anew. Whoever does that
//! after a release counts `wire::VERSION` up, and keeps the old version's folder.
#![expect(clippy::unwrap_used, reason = "tests")]

mod samples;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use model::AgentId;
use wire::{
    BuildHash, Decoder, Ephemeral, Expected, FrameError, Handshake, Message, Preamble, Secret,
    SessionId,
};

#[test]
fn every_message_is_encoded_as_its_golden_frame() {
    for (name, message) in named_messages() {
        let mut encoded = Vec::new();
        wire::encode(&message, &mut encoded).unwrap();
        assert_golden(&name, &encoded);
        assert_eq!(decode(&encoded), Ok(Some(message)), "{name}");
    }
}

#[test]
fn there_is_a_golden_frame_for_every_message_and_no_other() {
    let names: BTreeSet<String> =
        named_messages().map(|(name, _)| name).chain(["handshake".into()]).collect();
    assert_eq!(names, files_in(&golden_dir()).iter().map(|path| stem(path)).collect());
}

#[test]
fn the_samples_leave_no_variant_out() {
    let variants: Vec<u8> = samples::messages()
        .iter()
        .map(|message| postcard::to_allocvec(message).unwrap()[0])
        .collect();
    let expected: Vec<u8> = (0..variants.len() as u8).collect();
    assert_eq!(variants, expected);
    let beyond = postcard::from_bytes::<Message>(&[variants.len() as u8; 1_000]);
    assert_eq!(beyond, Err(postcard::Error::SerdeDeCustom));
}

#[test]
fn the_handshake_says_what_it_said_before() {
    let secret = Secret::new([1; 32]);
    let expected =
        Expected { build: BuildHash([2; 8]), session: SessionId([3; 16]), own: AgentId(4) };
    let Expected { build, session, own } = expected;
    let preamble = Preamble { build, session, from: AgentId(5), to: own, attempt: 6 };
    let mut child = Handshake::initiator(&secret, preamble, Ephemeral::new([7; 32]));
    let mut parent = Handshake::responder(&secret, expected, Ephemeral::new([8; 32]));
    let mut said = child.poll_send().unwrap();
    parent.on_bytes(&said).unwrap();
    let answer = parent.poll_send().unwrap();
    child.on_bytes(&answer).unwrap();
    said.extend(answer);
    said.extend(child.poll_send().unwrap());
    assert_golden("handshake", &said);
}

#[test]
fn invalid_frames_are_errors_and_stay_errors() {
    for path in files_in(&golden_dir().with_file_name("invalid")) {
        let mut decoder = Decoder::new();
        decoder.push(&fs::read(&path).unwrap());
        let error = decoder.next_message().expect_err(&stem(&path));
        assert_eq!(decoder.next_message(), Err(error), "{}", stem(&path));
    }
}

#[test]
fn there_is_an_invalid_frame_for_every_error() {
    let found: BTreeSet<&str> = files_in(&golden_dir().with_file_name("invalid"))
        .iter()
        .map(|path| match decode(&fs::read(path).unwrap()).unwrap_err() {
            FrameError::Kind(_) => "kind",
            FrameError::TooLong { .. } => "too long",
            FrameError::TooShort(_) => "too short",
            FrameError::Control(_) => "control",
            FrameError::Trailing(_) => "trailing",
            FrameError::DataAsControl => "data as control",
        })
        .collect();
    let all = ["kind", "too long", "too short", "control", "trailing", "data as control"];
    assert_eq!(found, BTreeSet::from(all));
}

fn named_messages() -> impl Iterator<Item = (String, Message)> {
    let plain = samples::messages().into_iter().map(|it| (samples::name(&it).to_string(), it));
    plain.chain(samples::further_messages().into_iter().map(|(name, it)| (name.to_string(), it)))
}

fn decode(bytes: &[u8]) -> Result<Option<Message>, FrameError> {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    decoder.next_message()
}

fn assert_golden(name: &str, bytes: &[u8]) {
    let path = golden_dir().join(name).with_extension("bin");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden_dir()).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(bytes, fs::read(&path).unwrap(), "{name}");
}

fn golden_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{}", wire::VERSION))
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}
