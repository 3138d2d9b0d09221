//! What the user does while a session runs: input, signals, and the end of who reads the output.

use alloc::string::ToString;
use core::time::Duration;

use bytes::Bytes;
use model::{JobId, Signal};
use wire::frame::DATA_BYTES_MAX;
use wire::{Message, Stream};

use super::{Head, State};
use crate::orders::Orders;
use crate::{Effect, exit_code};

impl Head {
    pub(crate) fn on_output_closed(&mut self, _stream: Stream, orders: &mut Orders) {
        if self.outcome.output_closed {
            return;
        }
        self.outcome.output_closed = true;
        match self.state {
            State::Joining { .. } | State::Routing | State::Running => {
                self.decide(exit_code::OUTPUT_CLOSED);
                self.interrupt(self.grace, orders);
            }
            State::Stopping { .. } | State::Leaving => {}
        }
    }

    /// A driver may have read more at once than a message takes.
    pub(crate) fn on_user_input(&mut self, mut data: Bytes, orders: &mut Orders) {
        while self.input_open && !data.is_empty() {
            let data = data.split_to(data.len().min(DATA_BYTES_MAX));
            let offset = self.input_offset;
            self.input_offset += data.len() as u64;
            orders.down.push(Message::Input { job: JobId::FIRST, offset, data });
        }
    }

    pub(crate) fn on_user_input_end(&mut self, orders: &mut Orders) {
        if self.input_open {
            self.input_open = false;
            orders.down.push(Message::InputEnd(JobId::FIRST));
        }
    }

    pub(super) fn close_input(&mut self, orders: &mut Orders) {
        if self.input_open {
            self.input_open = false;
            orders.effects.push_back(Effect::StopInput);
        }
    }

    /// Handles a signal to the front end. What means "end" to a program means it to the job: the
    /// first is passed on, the second kills. After SIGTERM and its like the tasks have the grace
    /// time; after ^C, which programs use to talk to their user, they have all the time they want.
    pub(crate) fn on_user_signal(&mut self, signal: Signal, orders: &mut Orders) {
        match signal {
            Signal::TSTP => orders.down.push(Message::Suspend(true)),
            Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                self.on_end_signal(signal, orders)
            }
            _ => {
                let is_told = signal == Signal::CONT || self.forward_signals.contains(&signal);
                if is_told && matches!(self.state, State::Running) {
                    self.signal(signal, orders);
                }
            }
        }
    }

    fn on_end_signal(&mut self, signal: Signal, orders: &mut Orders) {
        let first = self.outcome.signal.is_none();
        let code = 128 + self.outcome.signal.get_or_insert(signal).0;
        match self.state {
            State::Joining { .. } | State::Routing => {
                self.decide(code);
                self.end(orders);
            }
            State::Running if first => {
                self.signal(signal, orders);
                self.kill_at = (signal != Signal::INT).then(|| orders.now + self.grace);
            }
            State::Running | State::Stopping { .. } => {
                self.decide(code);
                self.stop(Duration::ZERO, orders);
            }
            State::Leaving if first => {}
            State::Leaving => {
                self.decide(code);
                orders.abandon = Some("interrupted again".to_string());
            }
        }
    }
}
