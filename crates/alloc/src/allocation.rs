//! The nodes we were given, whoever gave them.

use std::io;
use std::path::{Path, PathBuf};

use model::hostfile::{HostFileError, HostFileWarning};
use model::{HostList, HostListError, Node, Placement, PlacementError};

use crate::{host_file, this_host};

/// The nodes that a job may use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allocation {
    /// The nodes in order, each once.
    pub nodes: Vec<Node>,
    /// Where they come from.
    pub source: Source,
    /// What was read and does not matter, for the user to know.
    pub warnings: Vec<HostFileWarning>,
}

/// Where an allocation comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// The list given to `--hosts`.
    Hosts,
    /// The file given to `--hostfile`.
    HostFile(PathBuf),
    /// Nothing was given: this host, with as many slots as we may use cores.
    ThisHost,
}

/// No allocation could be made of what was given.
#[derive(Debug, thiserror::Error)]
pub enum AllocError {
    /// Two sources.
    #[error("use only one of `--hosts` and `--hostfile`")]
    TwoSources,
    /// The list is malformed.
    #[error("use the hosts given to `--hosts`")]
    Hosts(#[source] HostListError),
    /// The file cannot be read.
    #[error("read host file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file cannot be a host file.
    #[error("host file `{}` has more than {} MiB", path.display(), host_file::BYTES_MAX >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is no text.
    #[error("host file `{}`, line {line}: not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
    },
    /// The file is malformed.
    #[error("use host file `{}`", path.display())]
    HostFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        #[source]
        source: HostFileError,
    },
    /// The file has nothing but comments.
    #[error("host file `{}` names no hosts", path.display())]
    NoHosts {
        /// The file.
        path: PathBuf,
    },
}

/// Makes an allocation of what the user gave with `--hosts` or `--hostfile`, or of this host.
pub fn allocate(hosts: Option<&str>, host_file: Option<&Path>) -> Result<Allocation, AllocError> {
    match (hosts, host_file) {
        (Some(_), Some(_)) => Err(AllocError::TwoSources),
        (Some(hosts), None) => Allocation::from_hosts(hosts),
        (None, Some(path)) => Allocation::from_host_file(path),
        (None, None) => Ok(Allocation::this_host()),
    }
}

impl Allocation {
    /// The nodes of a host list.
    pub fn from_hosts(hosts: &str) -> Result<Allocation, AllocError> {
        let list: HostList = hosts.parse().map_err(AllocError::Hosts)?;
        let nodes = list.into_nodes();
        Ok(Allocation { nodes, source: Source::Hosts, warnings: Vec::new() })
    }

    /// The nodes of a host file.
    pub fn from_host_file(path: &Path) -> Result<Allocation, AllocError> {
        let file = host_file::read(path)?;
        let source = Source::HostFile(path.to_path_buf());
        Ok(Allocation { nodes: file.hosts.into_nodes(), source, warnings: file.warnings })
    }

    /// This host, with a slot for each core that we may use.
    pub fn this_host() -> Allocation {
        let nodes = vec![this_host::node()];
        Allocation { nodes, source: Source::ThisHost, warnings: Vec::new() }
    }

    /// Places `tasks` tasks (`-n`), `per_node` on a node (`--ppn`), in blocks.
    ///
    /// The cores of this host are a default for how many tasks to run, not a limit that anybody
    /// set: a larger `-n` gets what it asks for.
    pub fn place(
        &self,
        tasks: Option<u32>,
        per_node: Option<u32>,
    ) -> Result<Placement, PlacementError> {
        match (&self.source, tasks) {
            (Source::ThisHost, Some(_)) => {
                let unbounded = |node: &Node| Node { slots: None, ..node.clone() };
                let nodes: Vec<_> = self.nodes.iter().map(unbounded).collect();
                Placement::block(&nodes, tasks, per_node)
            }
            (Source::ThisHost, None) | (Source::Hosts | Source::HostFile(_), _) => {
                Placement::block(&self.nodes, tasks, per_node)
            }
        }
    }
}
