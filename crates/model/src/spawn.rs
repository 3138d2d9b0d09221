//! Programs that a task has started while it runs (`MPI_Comm_spawn_multiple`).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// A name and a value.
pub type NameValue = (Vec<u8>, Vec<u8>);

/// Programs that are to run as a job of their own.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// The programs, in the order of their ranks.
    pub programs: Vec<SpawnProgram>,
    /// What the job's key-value space holds before anybody puts anything.
    pub preput: Vec<NameValue>,
}

/// One of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SpawnProgram {
    /// How many tasks run it, at most where `info` has a `soft`.
    pub tasks: u32,
    /// The program and its arguments; never empty.
    pub argv: Vec<Vec<u8>>,
    /// What else the task says about it (MPI-4.1 §11.8.4); what nobody knows is ignored.
    pub info: Vec<NameValue>,
}

/// What has become of it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum SpawnReply {
    /// All tasks of the job were created.
    Started {
        /// The name of its key-value space.
        kvsname: String,
        /// How many tasks there are of each program.
        programs: Vec<SpawnedTasks>,
    },
    /// None of them runs: why not.
    Refused(String),
}

/// The tasks of one program.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SpawnedTasks {
    /// How many were asked for.
    pub asked: u32,
    /// How many there are, which `soft` lets be fewer.
    pub created: u32,
}

/// What MPICH and its kin take for `MPI_ERR_SPAWN`.
const NOT_CREATED: u32 = 42;

impl SpawnedTasks {
    /// An error code for each task that was asked for: 0 for those that were created.
    pub fn codes(programs: &[SpawnedTasks]) -> impl Iterator<Item = u32> {
        let code = |program: &SpawnedTasks| {
            let SpawnedTasks { asked, created } = *program;
            (0..asked).map(move |index| if index < created { 0 } else { NOT_CREATED })
        };
        programs.iter().flat_map(code)
    }

    /// How many were asked for.
    pub fn asked(programs: &[SpawnedTasks]) -> u64 {
        programs.iter().map(|program| u64::from(program.asked)).sum()
    }

    /// How many of these were not created.
    pub fn missing(programs: &[SpawnedTasks]) -> u64 {
        programs.iter().map(|it| u64::from(it.asked.saturating_sub(it.created))).sum()
    }
}

impl SpawnRequest {
    /// How many tasks there are to be.
    pub fn tasks(&self) -> u64 {
        self.programs.iter().map(|program| u64::from(program.tasks)).sum()
    }
}

impl SpawnProgram {
    /// What the task says under this name; the first of several counts.
    pub fn info(&self, name: &str) -> Option<&[u8]> {
        let mut info = self.info.iter();
        info.find(|(key, _)| key == name.as_bytes()).map(|(_, value)| value.as_slice())
    }
}
