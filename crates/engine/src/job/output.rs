//! Output of tasks: cut into lines here, passed up the tree within the credit.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;

use bytes::Bytes;
use model::{AgentId, Rank, Time};
use proto::Lines;
use wire::{JobFault, JobSpec, Message, Output, Stream};

use super::Job;
use crate::Effect;
use crate::engine::Engine;

/// Unfinished lines that one member holds, in bytes, before it gives them out as they are.
const HELD_BYTES_MAX: usize = 4 << 20;

/// Where the output of this node's tasks leaves: to files here, up the tree, or both.
struct Door<'a> {
    spec: &'a JobSpec,
    up: &'a mut VecDeque<(Option<AgentId>, Output)>,
    effects: &'a mut VecDeque<Effect>,
}

impl Door<'_> {
    fn take(&mut self, rank: Rank, stream: Stream, offset: u64, lead: Bytes, data: Bytes) {
        let piece = Output { job: self.spec.job, rank, stream, offset, lead, data };
        let spec = &self.spec.io.output;
        if spec.is_written_there(stream) {
            let data = piece.clone().into_bytes();
            self.effects.push_back(Effect::WriteFile { rank, stream, data });
        }
        if !spec.is_written_there(stream) || spec.tee {
            self.up.push_back((None, piece));
        }
    }
}

impl Job {
    pub(super) fn resume_lines(&mut self, now: Time) {
        for stream in self.tasks.values_mut().flat_map(|task| &mut task.streams) {
            stream.lines.on_resumed(now);
        }
        let streams = self.tasks.values().flat_map(|task| &task.streams);
        self.flush_at = streams.filter_map(|stream| stream.lines.flush_at()).min();
    }
}

impl Engine {
    pub(crate) fn on_task_output(&mut self, rank: Rank, stream: Stream, data: Bytes) {
        let now = self.now;
        let Some(job) = &mut self.job else { return };
        let Some(task) = job.tasks.get_mut(&rank) else { return };
        if stream == Stream::Stderr || job.spec.io.output.merged {
            task.keep_words(&data);
        }
        let lines = &mut task.streams[stream as usize].lines;
        let (spec, up, effects) = (&*job.spec, &mut job.output, &mut self.effects);
        let mut door = Door { spec, up, effects };
        lines.on_data(now, data, |offset, lead, data| door.take(rank, stream, offset, lead, data));
        job.flush_at = [job.flush_at, lines.flush_at()].into_iter().flatten().min();
        if lines.held() > 0 && job.tasks.len() * 2 * proto::PIECE_BYTES_MAX > HELD_BYTES_MAX {
            self.bound_held_lines();
        }
        self.send_output();
    }

    /// Gives unfinished lines out when too much is held.
    fn bound_held_lines(&mut self) {
        let Some(job) = &self.job else { return };
        let streams = job.tasks.values().flat_map(|task| &task.streams);
        if streams.map(|stream| stream.lines.held()).sum::<usize>() > HELD_BYTES_MAX {
            self.flush_lines(|_| true);
        }
    }

    pub(super) fn flush_lines(&mut self, is_due: impl Fn(&Lines) -> bool) {
        let Some(job) = &mut self.job else { return };
        let (spec, up, effects) = (&*job.spec, &mut job.output, &mut self.effects);
        let mut door = Door { spec, up, effects };
        for (rank, task) in &mut job.tasks {
            for (stream, state) in
                [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut task.streams)
            {
                if is_due(&state.lines) {
                    state.lines.flush(|offset, lead, data| {
                        door.take(*rank, stream, offset, lead, data);
                    });
                }
            }
        }
        let streams = job.tasks.values().flat_map(|task| &task.streams);
        job.flush_at = streams.filter_map(|stream| stream.lines.flush_at()).min();
    }

    pub(crate) fn on_task_output_end(&mut self, rank: Rank, stream: Stream) {
        let Some(job) = &mut self.job else { return };
        let Some(task) = job.tasks.get_mut(&rank) else { return };
        let state = &mut task.streams[stream as usize];
        state.ended = true;
        let (spec, up, effects) = (&*job.spec, &mut job.output, &mut self.effects);
        let mut door = Door { spec, up, effects };
        state.lines.flush(|offset, lead, data| door.take(rank, stream, offset, lead, data));
        self.send_output();
    }

    pub(crate) fn on_child_output(&mut self, agent: AgentId, output: Output) {
        if let Some(job) = &mut self.job {
            job.output.push_back((Some(agent), output));
            self.send_output();
        }
    }

    /// Sends what the credit allows; reads on from the tasks only when nothing waits.
    pub(crate) fn send_output(&mut self) {
        let is_orphan = self.is_orphan();
        while let Some(job) = &mut self.job
            && (self.credit.is_open() || is_orphan)
            && let Some((from, output)) = job.output.pop_front()
        {
            let bytes = output.len();
            self.credit.on_sent(bytes);
            if self.is_head() {
                self.deliver(output);
            } else {
                self.up_job(Message::Output(output));
            }
            self.grant_output(from, bytes);
        }
        let Some(job) = &mut self.job else { return };
        let reading = job.output.is_empty();
        if reading != job.reading && job.has_tasks() {
            job.reading = reading;
            if reading {
                job.resume_lines(self.now);
            }
            self.effects.push_back(Effect::ReadTasks(reading));
        }
    }

    /// Gives the user's output out. Files take it at once; the user's reader says when it has.
    fn deliver(&mut self, output: Output) {
        let Some(job) = &self.job else { return };
        let spec = &job.spec.io.output;
        let (rank, stream, data) = (output.rank, output.stream, output.into_bytes());
        if !spec.local && spec.file(stream).is_some() {
            self.effects.push_back(Effect::WriteFile { rank, stream, data: data.clone() });
        }
        if spec.goes_to_user(stream) {
            self.effects.push_back(Effect::WriteOutput { rank, stream, data });
        } else {
            self.credit.on_grant(u32::try_from(data.len()).unwrap_or(u32::MAX));
        }
    }

    /// Handles output that could not be written, here on this node or at the head.
    pub(crate) fn on_not_written(&mut self, errno: i32, words: String) {
        if let Some(job) = self.job.as_ref().map(Job::id) {
            self.fault(job, JobFault::Output { agent: self.id, errno, words });
        }
    }

    /// Lets a child send more, once what it sent is out of this member's hands.
    fn grant_output(&mut self, from: Option<AgentId>, bytes: usize) {
        let Some(from) = from else { return };
        if let Some(edge) = self.edge_mut(from) {
            if let Some(grant) = edge.grants.on_passed(bytes) {
                self.send_to([from], Message::OutputCredit(grant));
            }
        } else if self.place.is_none()
            && let Some(child) = self.children.get_mut(&from)
            && let (Some(grant), Some(link)) = (child.grants.on_passed(bytes), child.link)
        {
            self.send(vec![link], Message::OutputCredit(grant));
        }
    }
}
