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
    /// How many tasks run it.
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
        /// How many tasks it has.
        tasks: u32,
    },
    /// None of them runs: why not.
    Refused(String),
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
