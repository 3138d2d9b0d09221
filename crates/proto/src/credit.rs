//! Credit: how many bytes of a stream may be on their way, so that a slow reader costs memory
//! nowhere and stops the writer instead.
//!
//! A receiver grants credit and grants it again as it passes bytes on. A sender sends as long as it
//! has any credit left, so it may overdraw by one piece; what a receiver must be ready to hold is
//! its grant and one piece.

/// A sender's account.
#[derive(Debug, Default)]
pub struct Credit(i64);

impl Credit {
    /// Handles a grant.
    pub fn on_grant(&mut self, bytes: u32) {
        self.0 = self.0.saturating_add(i64::from(bytes));
    }

    /// Whether a piece may be sent.
    pub fn is_open(&self) -> bool {
        self.0 > 0
    }

    /// Handles that a piece was sent.
    pub fn on_sent(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// A receiver's account of bytes that it has passed on and not granted again.
///
/// Grants are bundled, half of the window each, so that they cost one small message for many pieces;
/// the other half stays with the sender, so bundling never stops it.
#[derive(Debug)]
pub struct Grants {
    window: u32,
    owed: u32,
}

impl Grants {
    /// An account over a window of so many bytes, all of it granted already.
    pub fn new(window: u32) -> Grants {
        Grants { window, owed: 0 }
    }

    /// Handles that bytes were passed on; returns what to grant, if it is worth a message.
    pub fn on_passed(&mut self, bytes: usize) -> Option<u32> {
        self.owed = self.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        (self.owed >= self.window / 2 && self.owed > 0).then(|| core::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_stops_when_its_credit_is_used_up_and_overdraws_by_one_piece_at_the_most() {
        let mut credit = Credit::default();
        assert!(!credit.is_open());
        credit.on_grant(100);
        credit.on_sent(99);
        assert!(credit.is_open());
        credit.on_sent(64);
        assert!(!credit.is_open());
        credit.on_grant(63);
        assert!(!credit.is_open());
        credit.on_grant(1);
        assert!(credit.is_open());
    }

    #[test]
    fn for_every_window_and_piece_the_sender_never_starves_while_the_receiver_passes_all_on() {
        for window in (1..5000_u32).step_by(37) {
            for piece in [1, 7, 100, 4096] {
                let mut credit = Credit::default();
                let mut grants = Grants::new(window);
                credit.on_grant(window);
                for _ in 0..200 {
                    assert!(credit.is_open(), "window {window}, piece {piece}");
                    credit.on_sent(piece);
                    if let Some(bytes) = grants.on_passed(piece) {
                        credit.on_grant(bytes);
                    }
                }
            }
        }
    }
}
