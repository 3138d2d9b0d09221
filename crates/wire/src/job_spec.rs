//! What every agent must know of a job before it is launched.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use model::{FilePattern, JobId, NameValue, PmiOffer, Rank, TaskMap};
use serde::{Deserialize, Serialize};

use crate::Stream;

/// A job, as every agent must know it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's number.
    pub job: JobId,
    /// Its programs, in the order of their ranks; never empty.
    pub apps: Vec<App>,
    /// The environment of all of them, `NAME=value` each.
    pub env: Vec<Bytes>,
    /// Which task runs where, if nobody is missing.
    pub map: TaskMap,
    /// Whether it may run elsewhere than the map says, so that every agent must be able to run it.
    pub is_movable: bool,
    /// The name of the job's key-value space, unique among all jobs.
    pub kvsname: String,
    /// The slots of the allocation, if the user wants them told as the universe size.
    pub universe_size: Option<u32>,
    /// What its tasks may speak.
    pub pmi: PmiOffer,
    /// Whether a task connects to `PMI_PORT` instead of inheriting its PMI connection.
    pub pmi_port: bool,
    /// Where it came from, if a task has asked for it.
    pub origin: Option<Origin>,
    /// What becomes of the tasks' streams, and what is kept of each task.
    pub io: IoSpec,
    /// Whether a task that fails ends the others.
    pub stop_on_failure: bool,
    /// Milliseconds between SIGTERM and SIGKILL.
    pub grace_ms: u32,
}

impl JobSpec {
    /// A job of which no more is said than what runs where: nobody reads input, the user gets all
    /// output, and a task that fails ends the others, which have 2 s for it.
    pub fn new(job: JobId, apps: Vec<App>, map: TaskMap) -> JobSpec {
        JobSpec {
            job,
            apps,
            env: Vec::new(),
            map,
            is_movable: false,
            kvsname: format!("kvs_{}", job.0),
            universe_size: None,
            pmi: PmiOffer::Auto,
            pmi_port: false,
            origin: None,
            io: IoSpec::default(),
            stop_on_failure: true,
            grace_ms: 2_000,
        }
    }

    /// The number of the app that `rank` belongs to, from 0: its `MPI_APPNUM`.
    pub fn app_of(&self, rank: Rank) -> u32 {
        app_of(&self.apps, rank)
    }

    /// The app of this number.
    pub fn app(&self, number: u32) -> Option<&App> {
        self.apps.get(usize::try_from(number).ok()?)
    }
}

/// The number of the app that `rank` belongs to, of those of its job.
pub fn app_of(apps: &[App], rank: Rank) -> u32 {
    let index = apps.partition_point(|app| app.first_rank <= rank).saturating_sub(1);
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Where a job came from that a task has asked for (`MPI_Comm_spawn`).
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of that task's key-value space.
    pub kvsname: String,
    /// What the job's own space begins with.
    pub preput: Vec<NameValue>,
}

/// One program of a job: a part of the command between two colons.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// Its first rank; it has all ranks up to the next app's first one, or to the last of all.
    pub first_rank: Rank,
    /// The program and its arguments; never empty.
    pub argv: Vec<Bytes>,
    /// Its own variables over the job's, `NAME=value` each.
    pub env: Vec<Bytes>,
    /// The working directory, absolute.
    pub dir: Bytes,
}

/// What becomes of the streams of a job's tasks, and what is kept of each task.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct IoSpec {
    /// Who reads standard input.
    pub stdin: Stdin,
    /// Where output goes.
    pub output: OutputSpec,
    /// Whether a record of each task is wanted, [`Message::Records`](crate::Message::Records).
    pub records: bool,
}

/// Which tasks read standard input; others read end-of-file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub enum Stdin {
    /// None: it is not read.
    #[default]
    Nobody,
    /// This one.
    Task(Rank),
    /// Each of them, every byte.
    All,
}

impl Stdin {
    /// Whether this task reads it.
    pub fn reaches(self, rank: Rank) -> bool {
        match self {
            Stdin::Nobody => false,
            Stdin::Task(reader) => reader == rank,
            Stdin::All => true,
        }
    }
}

/// Where the output of tasks goes.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputSpec {
    /// The files that standard output goes to, absolute; absent: it goes to the user.
    pub stdout: Option<FilePattern>,
    /// The same of standard error.
    pub stderr: Option<FilePattern>,
    /// Whether each node writes the files of its own tasks, and the head none.
    pub local: bool,
    /// Whether the user gets what goes to files, too.
    pub tee: bool,
    /// Whether tasks write standard error where they write standard output.
    pub merged: bool,
}

impl OutputSpec {
    /// The files of a stream, if it goes to files.
    pub fn file(&self, stream: Stream) -> Option<&FilePattern> {
        match stream {
            Stream::Stdout => self.stdout.as_ref(),
            Stream::Stderr => self.stderr.as_ref(),
        }
    }

    /// Whether something goes to files.
    pub fn has_files(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Whether the user gets a stream.
    pub fn goes_to_user(&self, stream: Stream) -> bool {
        self.tee || self.file(stream).is_none()
    }

    /// Whether the task's own node writes a stream to files.
    pub fn is_written_there(&self, stream: Stream) -> bool {
        self.local && self.file(stream).is_some()
    }
}
