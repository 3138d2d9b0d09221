//! What a simulated task does, step by step.
//!
//! One script serves every rank: the steps that depend on the rank (its card, its neighbours)
//! are worked out when they are done.

use std::rc::Rc;
use std::time::Duration;

use model::{Rank, Signal};
use wire::Stream;

/// One step of a task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Write so many bytes. Waits while the pipe is full.
    Output(Stream, u64),
    /// Take time.
    Wait(Duration),
    /// Read standard input to its end.
    ReadStdin,
    /// Send this line over PMI and wait for a line that starts with the second text. Without a
    /// second text, wait for nothing.
    Pmi(String, Option<String>),
    /// Say `init` over PMI.
    PmiInit,
    /// Put one's own card into the KVS.
    PutCard,
    /// Put one's page of this number: a long value.
    PutPage(u32),
    /// Publish where one can be reached under one's own name.
    Publish,
    /// Look up where the task so many ranks on (modulo the number of tasks) can be reached, and check
    /// it.
    LookUp(u32),
    /// Take back what one has published.
    Unpublish,
    /// Stand in a ring of all tasks, and learn who is on either side.
    Ring,
    /// Bring a value between so many bytes long into an allgather, how long depending on the rank, and check those of
    /// all tasks.
    Allgather {
        /// The shortest.
        least: u32,
        /// The longest.
        most: u32,
    },
    /// Bring such a value and go on; the next [`Step::Allgather`], which must be alike, waits for those of all.
    BeginAllgather {
        /// The shortest.
        least: u32,
        /// The longest.
        most: u32,
    },
    /// Ask for the number of one's own program, and check it.
    CheckProgram,
    /// Get the card of the task so many ranks on (modulo the number of tasks) and check it.
    CheckCard(u32),
    /// Get that task's page of this number and check it.
    CheckPage(u32, u32),
    /// Enter PMI's barrier and wait for its release.
    Fence,
    /// Enter it and go on; the next [`Step::Fence`] waits for the release.
    BeginFence,
    /// Enter the barriers of one's groups under these tags, which differ, all at once, and wait for
    /// the end of all. One who would be alone in a group enters none.
    Meet(Vec<(Grouping, i32)>),
    /// Get the card of the next in one's group and check it.
    CheckMember(Grouping),
    /// Have so many tasks started as a job of their own, if one's rank is 0, and wait until they were created. A program
    /// that cannot run is that of the last of them, and the answer must be so.
    Spawn(Spawned, u32),
    /// Get the card that task 0 of the job has put that has spawned one's own, and check it.
    CheckParentCard,
    /// Say `finalize` over PMI.
    PmiFinalize,
    /// Call PMI's abort with this code, then wait for the end.
    Abort(i32),
    /// Leave a process behind that holds this task's streams open.
    LeaveStray,
    /// Survive every signal but SIGKILL from here on.
    IgnoreTerm,
    /// Exit with this status.
    Exit(u8),
    /// Die of this signal.
    Die(Signal),
    /// Do nothing until somebody ends it.
    Hang,
}

/// What the tasks of a spawned job do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spawned {
    /// What the script of this number says, of [`Session::spawned`](crate::Session::spawned).
    Script(usize),
    /// Nothing, since the program of the last is not there.
    Missing,
    /// Nothing, since the last of them cannot be created.
    Uncreatable,
}

/// How ranks are put into groups.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Grouping {
    /// Those that are equal modulo this number.
    Modulo(u32),
    /// So many in a row.
    Rows(u32),
}

impl Grouping {
    /// The group of `rank` in a job of so many tasks, in ascending order.
    pub fn members(self, rank: Rank, n_tasks: u32) -> Vec<u32> {
        match self {
            Grouping::Modulo(number) => {
                (rank.0 % number..n_tasks).step_by(number as usize).collect()
            }
            Grouping::Rows(length) => {
                let first = rank.0 / length * length;
                (first..n_tasks.min(first.saturating_add(length))).collect()
            }
        }
    }
}

/// The steps of a task. A script that runs out exits with status 0.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// A task that does nothing and exits with 0.
    pub fn new() -> Script {
        Script::default()
    }

    /// What an MPI program does: init, put, fence, get the neighbours' cards, fence, finalize.
    pub fn mpi() -> Script {
        Script::new()
            .then(Step::PmiInit)
            .then(Step::PutCard)
            .then(Step::Fence)
            .then(Step::CheckCard(1))
            .then(Step::CheckCard(2))
            .then(Step::Fence)
            .then(Step::PmiFinalize)
    }

    /// Init, publish, fence, look the neighbours up, fence, unpublish, finalize.
    pub fn names() -> Script {
        Script::new()
            .then(Step::PmiInit)
            .then(Step::Publish)
            .then(Step::Fence)
            .then(Step::LookUp(1))
            .then(Step::LookUp(2))
            .then(Step::Fence)
            .then(Step::Unpublish)
            .then(Step::PmiFinalize)
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Script {
        self.steps.push(step);
        self
    }

    /// Adds writing `bytes` to standard output.
    #[must_use]
    pub fn output(self, bytes: u64) -> Script {
        self.then(Step::Output(Stream::Stdout, bytes))
    }

    /// Adds waiting.
    #[must_use]
    pub fn wait(self, time: Duration) -> Script {
        self.then(Step::Wait(time))
    }

    /// Adds exiting with `status`.
    #[must_use]
    pub fn exit(self, status: u8) -> Script {
        self.then(Step::Exit(status))
    }

    /// Whether tasks meet in another way than in fences.
    pub(crate) fn meets(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Meet(_) | Step::Ring | Step::Allgather { .. }))
    }

    pub(crate) fn steps(&self) -> Rc<[Step]> {
        self.steps.as_slice().into()
    }
}
