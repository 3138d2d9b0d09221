//! The front end is stopped by its user, or goes on.

use model::{AgentId, Signal};

use crate::Effect;
use crate::engine::{Above, Engine};

impl Engine {
    /// Stops or goes on with the front end. A head that is stopped hears nothing and says nothing, so
    /// neither it nor its children may take the other's silence for its end, nor its kernel's window
    /// that stays full. All other agents run, and watch each other as ever.
    pub(crate) fn suspend(&mut self, on: bool) {
        match &mut self.above {
            Above::Parent { parent: AgentId::HEAD, link, silence } => {
                let link = *link;
                if on {
                    silence.on_suspended();
                }
                let timeout_ms = (!on).then(|| self.session().link_timeout_ms);
                self.effects.push_back(Effect::SetLinkTimeout(link, timeout_ms));
            }
            Above::Head(head) => {
                // Ours are the kernel's affair while we are stopped: it answers probes for us.
                self.children.values_mut().for_each(|child| child.silence.on_suspended());
                if on {
                    head.on_stopped(self.now);
                } else if let Some(pause) = head.on_going_on(self.now) {
                    self.resume_starts(pause);
                }
            }
            Above::Parent { .. } | Above::Unwelcomed { .. } => {}
        }
        for (&link, _) in self.links.iter().filter(|(_, peer)| **peer == AgentId::HEAD) {
            let timeout_ms = (!on).then(|| self.session().link_timeout_ms);
            self.effects.push_back(Effect::SetLinkTimeout(link, timeout_ms));
        }
        let signal = if on { Signal::STOP } else { Signal::CONT };
        self.jobs.ids().into_iter().for_each(|job| self.signal_tasks(job, signal));
        if self.is_head() && on {
            self.effects.push_back(Effect::SuspendSelf);
        }
    }
}
