//! The agent's program on its way to hosts that lack it, piece after piece.

use engine::{Delivery, Input, StartId};

use super::{Happening, World};
use crate::fault::ShellPlan;
use crate::link::transfer_time;
use crate::process::ProcessId;
use crate::shell::{CALL_AGAIN, Shell, ShellId, ShellProgram};

/// What a pipe holds, which a driver writes at once.
const PIECE_BYTES: u64 = 65_536;

impl World<'_> {
    /// Whether a shell finds no program on its host; it asks for it then.
    pub(super) fn asks_for_program(&mut self, id: ShellId) -> bool {
        let shell = &mut self.shells[id.0];
        let lacks = |agent: &model::AgentId| {
            self.session.lacking.contains(agent.0) && !self.stored.contains(agent.0)
        };
        if !shell.agents.iter().any(lacks) {
            return false;
        }
        if shell.program == ShellProgram::Unasked {
            shell.program = ShellProgram::Asked;
            let (by, wanted) = (shell.by, Input::Delivery(shell.start, Delivery::Wanted));
            self.tell(by, wanted);
        }
        true
    }

    /// An engine has a program sent. That its shell has ended may be on its way.
    pub(super) fn send_program(&mut self, id: ProcessId, start: StartId) {
        let Some(&shell) = self.processes[id.0].shells.get(&start) else {
            return self.checker.violate(format!("a program for {start:?}, which is not there"));
        };
        if self.shells[shell.0].program != ShellProgram::Asked {
            self.checker.violate(format!("a program for {start:?}, which does not wait for it"));
        }
        self.shells[shell.0].program = ShellProgram::Sending(self.session.program_bytes);
        self.send_piece(shell);
    }

    /// The pieces of all transfers of a host share its way out.
    fn send_piece(&mut self, id: ShellId) {
        let Shell { by, program: ShellProgram::Sending(left), .. } = self.shells[id.0] else {
            return;
        };
        let time = transfer_time(left.min(PIECE_BYTES), self.session.upload);
        let process = &mut self.processes[by.0];
        process.sends_free_at = process.sends_free_at.max(self.now) + time;
        self.queue.push(process.sends_free_at, Happening::ProgramPiece(id));
    }

    /// A host has taken a piece of the program.
    pub(super) fn take_piece(&mut self, id: ShellId) {
        let Shell {
            by, start, program: ShellProgram::Sending(left), is_over, is_cut, plan, ..
        } = self.shells[id.0]
        else {
            return;
        };
        let process = &self.processes[by.0];
        if is_over || !process.is_running() || plan == ShellPlan::Hangs {
            return;
        }
        if let Some(until) = process.paused_until(self.now) {
            return self.queue.push(until, Happening::ProgramPiece(id));
        }
        if is_cut {
            return self.after(CALL_AGAIN, Happening::ProgramPiece(id));
        }
        let left = left - left.min(PIECE_BYTES);
        self.shells[id.0].program = ShellProgram::Sending(left);
        self.tell(by, Input::Delivery(start, Delivery::Moved));
        if left > 0 {
            return self.send_piece(id);
        }
        self.tell(by, Input::Delivery(start, Delivery::Sent));
        let shell = &mut self.shells[id.0];
        shell.program = ShellProgram::Stored;
        for agent in &shell.agents {
            self.stored.insert(agent.0);
        }
        let link = self.machines.link_latency(shell.agents[0]);
        self.after(link, Happening::ShellReady(id));
    }
}
