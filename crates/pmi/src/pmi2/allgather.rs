//! How a client hears of an allgather: the values of all tasks in order of rank, in as many messages as they take.
//!
//! `cmd=allgather-response;[thrid=…;]rc=0;first=RANK;count=N;more=TRUE|FALSE;values=LENGTH:BYTES…;`, where `first` is
//! the rank of the first of these values, and `more` says that another message follows. As in every field, a
//! semicolon is written twice.
//!
//! A client of our library gets many values at once instead, by `cmd=allgather-response;[thrid=…;]rc=0;snapshot=BYTES;`:
//! the same messages in memory that all clients of a node share, with no thread.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::fields::Fields;
use super::reply::{Reply, ReturnCode};
use crate::Values;

/// The name of the command.
pub(crate) const NAME: &[u8] = b"allgather";

/// A message takes no further value once it has so many bytes of them: that is how much clients read at once.
const VALUES_BYTES: usize = 1 << 16;

/// Writes all messages for one thread of a client.
pub(crate) fn write(out: &mut BytesMut, thread: Option<&[u8]>, values: &Values) {
    let mut piece = Piece { first: 0, count: 0, text: Vec::new() };
    for value in values.iter() {
        let length = format!("{}:", value.len());
        if piece.count > 0 && piece.text.len() + length.len() + value.len() > VALUES_BYTES {
            piece.write(out, thread, true);
        }
        piece.text.extend_from_slice(length.as_bytes());
        piece.text.extend_from_slice(value);
        piece.count += 1;
    }
    piece.write(out, thread, false);
}

/// The message that says how long those in memory are together.
pub(crate) fn in_memory(thread: Option<&[u8]>, bytes: usize) -> Bytes {
    let mut out = BytesMut::new();
    Reply::to(&mut out, NAME, thread, ReturnCode::Success).field("snapshot", bytes).end();
    out.freeze()
}

/// The values that the next message has.
struct Piece {
    first: u32,
    count: u32,
    text: Vec<u8>,
}

impl Piece {
    fn write(&mut self, out: &mut BytesMut, thread: Option<&[u8]>, more: bool) {
        Reply::to(out, NAME, thread, ReturnCode::Success)
            .field("first", self.first)
            .field("count", self.count)
            .field("more", if more { "TRUE" } else { "FALSE" })
            .bytes("values", &self.text)
            .end();
        self.first += self.count;
        self.count = 0;
        self.text.clear();
    }
}

/// One message of an allgather as a client gets it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllgatherPiece<'a> {
    /// The rank of the first value.
    pub first: u32,
    /// Whether another message follows.
    pub more: bool,
    text: Cow<'a, [u8]>,
}

impl<'a> AllgatherPiece<'a> {
    /// Understands the body of a frame; `None` when it is not such a message, or not whole.
    pub fn parse(body: &'a [u8]) -> Option<AllgatherPiece<'a>> {
        let fields = Fields::of(body);
        let text = fields.get("values")?;
        let piece =
            AllgatherPiece { first: fields.number("first")?, more: fields.is_true("more"), text };
        let bytes: usize =
            piece.values().map(|value| decimals(value.len()) + 1 + value.len()).sum();
        let is_whole =
            bytes == piece.text.len() && Some(piece.values().count()) == fields.number("count");
        is_whole.then_some(piece)
    }

    /// The values, one a rank.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.text[..];
        core::iter::from_fn(move || {
            let (length, behind) = rest.split_at_checked(memchr::memchr(b':', rest)?)?;
            let length = str::from_utf8(length).ok()?.parse().ok()?;
            let (value, next) = behind[1..].split_at_checked(length)?;
            rest = next;
            Some(value)
        })
    }
}

fn decimals(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;
    use core::ops::ControlFlow;

    use model::Rank;

    use super::*;
    use crate::{Message, MessageBuffer};

    /// What a client reads, and in how many messages.
    fn read(values: &Values, thread: Option<&[u8]>) -> (Vec<Vec<u8>>, u32) {
        let mut out = BytesMut::new();
        write(&mut out, thread, values);
        let (mut heard, mut pieces, mut is_over) = (Vec::new(), 0, false);
        MessageBuffer::default().feed(&out, |message| {
            let Ok(Message::Frame(body)) = message else { panic!("{message:?}") };
            let piece = AllgatherPiece::parse(body).expect("a piece");
            assert_eq!(Fields::of(body).get("thrid").as_deref(), thread);
            assert_eq!((piece.first as usize, is_over), (heard.len(), false));
            heard.extend(piece.values().map(<[u8]>::to_vec));
            (pieces, is_over) = (pieces + 1, !piece.more);
            ControlFlow::Continue(())
        });
        assert!(is_over, "more is announced than comes");
        (heard, pieces)
    }

    #[test]
    fn clients_read_what_was_brought_whatever_its_bytes_and_its_size() {
        let semicolons = vec![b';'; 65_536];
        let text = b"7:a;thrid=b;\0".to_vec();
        for (brought, pieces) in [
            (vec![vec![]], 1),
            (vec![text.clone(), vec![], text.clone(), vec![]], 1),
            (vec![semicolons.clone(), semicolons, text], 3),
            ((0..3000_u32).map(|rank| vec![b'v'; 50 + rank as usize % 2]).collect(), 3),
        ] {
            let mut values = Values::of(u32::try_from(brought.len()).unwrap());
            for (rank, value) in (0..).zip(&brought) {
                values.insert(Rank(rank), Bytes::from(value.clone())).unwrap();
            }
            assert_eq!(read(&values, None), (brought.clone(), pieces));
            assert_eq!(read(&values, Some(b"0x1;")).0, brought);
        }
    }

    #[test]
    fn what_is_cut_or_counts_wrongly_is_no_piece() {
        let whole = "cmd=allgather-response;rc=0;first=3;count=2;more=FALSE;values=1:a2:bc";
        let parsed = AllgatherPiece::parse(whole.as_bytes()).expect("a piece");
        assert_eq!(parsed.values().collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        for (from, to) in [
            ("count=2", "count=3"),
            ("2:bc", "2:b"),
            ("2:bc", "2:bcd"),
            ("2:bc", "+2:bc"),
            ("1:a", "1a"),
            ("first=3", "first=x"),
            ("values", "value"),
        ] {
            let wrong: String = whole.replace(from, to);
            assert_eq!(AllgatherPiece::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
