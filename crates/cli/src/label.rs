//! `--label`: the rank before every line; of a job that a task has spawned its number, too.
//!
//! A line that comes in pieces gets one label. Where another task's output comes between the
//! pieces, the open line is ended first, and its rest gets a label again: every line on the screen
//! is one task's.

use bytes::Bytes;
use model::{JobId, Rank};
use wire::Stream;

/// Labels the two streams of all tasks.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Whose line each of our outputs is in the middle of.
    open: [Option<(JobId, Rank)>; 2],
}

impl Labels {
    /// The piece with its labels.
    pub(crate) fn apply(&mut self, task: (JobId, Rank), stream: Stream, data: &[u8]) -> Bytes {
        if data.is_empty() {
            return Bytes::new();
        }
        let open = match stream {
            Stream::Stdout => &mut self.open[0],
            Stream::Stderr => &mut self.open[1],
        };
        let label = match task {
            (JobId::FIRST, rank) => format!("[{rank}] "),
            (JobId(job), rank) => format!("[{job}:{rank}] "),
        };
        let mut out = Vec::with_capacity(data.len() + 8 * label.len());
        let mut is_in_line = *open == Some(task);
        if open.is_some() && !is_in_line {
            out.push(b'\n');
        }
        for line in data.split_inclusive(|byte| *byte == b'\n') {
            if !is_in_line {
                out.extend_from_slice(label.as_bytes());
            }
            out.extend_from_slice(line);
            is_in_line = !line.ends_with(b"\n");
        }
        *open = is_in_line.then_some(task);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[(u32, &str)]) -> String {
        let mut labels = Labels::default();
        let apply = |&(rank, text): &(u32, &str)| {
            labels.apply((JobId::FIRST, Rank(rank)), Stream::Stdout, text.as_bytes()).to_vec()
        };
        String::from_utf8(pieces.iter().flat_map(apply).collect()).unwrap()
    }

    #[test]
    fn every_line_gets_one_label_even_in_pieces() {
        assert_eq!(text(&[(0, "a\nb\n"), (1, "c\n")]), "[0] a\n[0] b\n[1] c\n");
        assert_eq!(text(&[(0, "a"), (0, "b\nc"), (0, "\n")]), "[0] ab\n[0] c\n");
        assert_eq!(text(&[(0, "\n\n")]), "[0] \n[0] \n");
    }

    #[test]
    fn a_line_that_another_task_interrupts_is_labelled_again() {
        assert_eq!(text(&[(0, "a"), (1, "b\n"), (0, "c\n")]), "[0] a\n[1] b\n[0] c\n");
    }

    #[test]
    fn tasks_of_a_spawned_job_are_told_apart_by_its_number() {
        let mut labels = Labels::default();
        let mut apply = |job, text: &str| {
            labels.apply((JobId(job), Rank(0)), Stream::Stdout, text.as_bytes()).to_vec()
        };
        assert_eq!(apply(0, "a"), b"[0] a");
        assert_eq!(apply(2, "b\n"), b"\n[2:0] b\n");
    }
}
