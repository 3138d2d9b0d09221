//! Output of tasks: cut into lines here, passed up the tree within the credit.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;

use bytes::Bytes;
use model::{AgentId, JobId, NodeId, Rank, Time};
use proto::Lines;
use wire::{JobFault, JobSpec, Message, Output, Stream};

use super::Job;
use crate::Effect;
use crate::engine::Engine;

/// Unfinished lines that one member holds, in bytes, before it gives them out as they are.
const HELD_BYTES_MAX: usize = 4 << 20;

/// Output on its way up, of all jobs: they share the credit.
#[derive(Debug)]
pub(crate) struct OutputQueue {
    /// Pieces, and the children that they came from.
    pieces: VecDeque<(Option<AgentId>, Output)>,
    /// Whether tasks are read, since nothing waits.
    pub(crate) is_read: bool,
}

impl Default for OutputQueue {
    fn default() -> OutputQueue {
        OutputQueue { pieces: VecDeque::new(), is_read: true }
    }
}

impl OutputQueue {
    /// Whose output of a job waits, once for each piece.
    pub(crate) fn ranks_of(&self, job: JobId) -> impl Iterator<Item = Rank> {
        self.pieces.iter().filter(move |(_, piece)| piece.job == job).map(|(_, piece)| piece.rank)
    }
}

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
            let job = self.spec.job;
            self.effects.push_back(Effect::WriteFile { job, rank, stream, data });
        }
        if !spec.is_written_there(stream) || spec.tee {
            self.up.push_back((None, piece));
        }
    }
}

impl Job {
    /// Whether a member writes files of its tasks: those on its node, or the head, which has none, all.
    pub(super) fn writes_files(&self, node: Option<NodeId>) -> bool {
        let (output, map) = (&self.spec.io.output, &self.spec.map);
        let has_some = |node| output.local && map.tasks_on(node) > 0;
        output.has_files() && node.map_or(!output.local, has_some)
    }

    pub(super) fn resume_lines(&mut self, now: Time) {
        for stream in self.tasks.values_mut().flat_map(|task| &mut task.streams) {
            stream.lines.on_resumed(now);
        }
        let streams = self.tasks.values().flat_map(|task| &task.streams);
        self.flush_at = streams.filter_map(|stream| stream.lines.flush_at()).min();
    }
}

impl Engine {
    pub(crate) fn on_task_output(&mut self, id: JobId, rank: Rank, stream: Stream, data: Bytes) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(task) = job.tasks.get_mut(&rank) else { return };
        if stream == Stream::Stderr || job.spec.io.output.merged {
            task.keep_words(&data);
        }
        let lines = &mut task.streams[stream as usize].lines;
        let (spec, up, effects) = (&*job.spec, &mut self.output.pieces, &mut self.effects);
        let mut door = Door { spec, up, effects };
        lines.on_data(now, data, |offset, lead, data| door.take(rank, stream, offset, lead, data));
        job.flush_at = [job.flush_at, lines.flush_at()].into_iter().flatten().min();
        if lines.held() > 0 && job.tasks.len() * 2 * proto::PIECE_BYTES_MAX > HELD_BYTES_MAX {
            self.bound_held_lines(id);
        }
        self.send_output();
    }

    /// Gives unfinished lines out when too much is held.
    fn bound_held_lines(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        let streams = job.tasks.values().flat_map(|task| &task.streams);
        if streams.map(|stream| stream.lines.held()).sum::<usize>() > HELD_BYTES_MAX {
            self.flush_lines(id, |_| true);
        }
    }

    pub(super) fn flush_lines(&mut self, id: JobId, is_due: impl Fn(&Lines) -> bool) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (spec, up, effects) = (&*job.spec, &mut self.output.pieces, &mut self.effects);
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

    pub(crate) fn on_task_output_end(&mut self, id: JobId, rank: Rank, stream: Stream) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(task) = job.tasks.get_mut(&rank) else { return };
        let state = &mut task.streams[stream as usize];
        state.ended = true;
        let (spec, up, effects) = (&*job.spec, &mut self.output.pieces, &mut self.effects);
        let mut door = Door { spec, up, effects };
        state.lines.flush(|offset, lead, data| door.take(rank, stream, offset, lead, data));
        self.send_output();
    }

    pub(crate) fn on_child_output(&mut self, agent: AgentId, output: Output) {
        if self.jobs.get(output.job).is_some() {
            self.output.pieces.push_back((Some(agent), output));
            self.send_output();
        }
    }

    /// Sends what the credit allows; reads on from the tasks only when nothing waits.
    pub(crate) fn send_output(&mut self) {
        let is_orphan = self.is_orphan();
        while (self.credit.is_open() || is_orphan)
            && let Some((from, output)) = self.output.pieces.pop_front()
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
        let is_read = self.output.pieces.is_empty();
        if is_read != self.output.is_read && self.jobs.iter().any(Job::has_tasks) {
            self.output.is_read = is_read;
            if is_read {
                self.jobs.iter_mut().for_each(|job| job.resume_lines(self.now));
            }
            self.effects.push_back(Effect::ReadTasks(is_read));
        }
    }

    /// Gives the user's output out. Files take it at once; the user's reader says when it has.
    fn deliver(&mut self, output: Output) {
        let Some(job) = self.jobs.get(output.job) else { return };
        let spec = &job.spec.io.output;
        let (job, rank, stream) = (output.job, output.rank, output.stream);
        let data = output.into_bytes();
        if !spec.local && spec.file(stream).is_some() {
            let data = data.clone();
            self.effects.push_back(Effect::WriteFile { job, rank, stream, data });
        }
        if spec.goes_to_user(stream) {
            self.effects.push_back(Effect::WriteOutput { job, rank, stream, data });
        } else {
            self.credit.on_grant(u32::try_from(data.len()).unwrap_or(u32::MAX));
        }
    }

    /// Handles output that could not be written, here on this node or at the head.
    pub(crate) fn on_not_written(&mut self, errno: i32, words: String) {
        self.fault(JobId::FIRST, JobFault::Output { agent: self.id, errno, words });
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
