//! The nodes we were given, whoever gave them.

use std::path::{Path, PathBuf};

use model::hostfile::{self, HostFile, HostFileError};
use model::rankfile::{self, RankFile, RankFileError};
use model::{
    HostList, HostListError, Node, Placement, PlacementError, RankMap, RankMapMisfit, Request,
    fold_names,
};

use crate::text_file::{TextError, read_text};
use crate::this_host;

/// The nodes that a job may use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allocation {
    /// The nodes in order, each once.
    pub nodes: Vec<Node>,
    /// Where they come from.
    pub source: Source,
    /// What was read and does not matter, for the user to know.
    pub warnings: Vec<String>,
}

/// Where an allocation comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// The list given to `--hosts`.
    Hosts,
    /// The file given to `--hostfile`.
    HostFile(PathBuf),
    /// The file given to `--rankfile`, and nothing else.
    RankFile,
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
    #[error(transparent)]
    Text(TextError),
    /// What is to be left out is malformed.
    #[error("use the hosts given to `--exclude`")]
    Exclude(#[source] HostListError),
    /// Everything is left out.
    #[error("`--exclude {0}` leaves no host")]
    AllExcluded(String),
    /// The file says where ranks go, and that is malformed or not possible.
    #[error("use rank file `{}`", path.display())]
    RankFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        #[source]
        source: RankFileError,
    },
    /// The file has nothing but comments.
    #[error("rank file `{}` places no ranks", path.display())]
    NoRanks {
        /// The file.
        path: PathBuf,
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
        let file = read_host_file(path)?;
        if file.hosts.nodes().is_empty() {
            return Err(AllocError::NoHosts { path: path.into() });
        }
        let source = Source::HostFile(path.to_path_buf());
        let warnings = warnings_of(&file, path);
        Ok(Allocation { nodes: file.hosts.into_nodes(), source, warnings })
    }

    /// The hosts of a rank file.
    pub fn from_rank_file(file: &RankFile) -> Allocation {
        let nodes = file.hosts().to_vec();
        Allocation { nodes, source: Source::RankFile, warnings: Vec::new() }
    }

    /// Leaves the hosts of this list out, or those of the host file that it names behind `@`, which
    /// may be none. One that is not there is worth a warning only: such lists are kept for many
    /// allocations.
    ///
    /// # Errors
    /// When the list or the file is malformed, or nothing would be left.
    pub fn exclude(mut self, list: &str) -> Result<Allocation, AllocError> {
        let others = match list.strip_prefix('@').map(Path::new) {
            Some(path) => {
                let file = read_host_file(path)?;
                self.warnings.extend(warnings_of(&file, path));
                file.hosts
            }
            None => list.parse().map_err(AllocError::Exclude)?,
        };
        let mut hosts: HostList = self.nodes.into_iter().collect();
        let unused = hosts.exclude(&others);
        if !unused.is_empty() {
            let names = fold_names(unused.iter().map(String::as_str));
            self.warnings.push(format!("`--exclude`: not among the hosts: {names}"));
        }
        self.nodes = hosts.into_nodes();
        if self.nodes.is_empty() {
            return Err(AllocError::AllExcluded(list.to_owned()));
        }
        Ok(self)
    }

    /// This host, with a slot for each core that we may use.
    pub fn this_host() -> Allocation {
        let nodes = vec![this_host::node()];
        Allocation { nodes, source: Source::ThisHost, warnings: Vec::new() }
    }

    /// Places the tasks.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn place(&self, request: &Request) -> Result<Placement, PlacementError> {
        match request.tasks {
            Some(_) => Placement::of(&self.limited(), request),
            None => Placement::of(&self.nodes, request),
        }
    }

    /// Places each rank where the map says.
    ///
    /// # Errors
    /// See [`RankMapMisfit`].
    pub fn place_ranks(
        &self,
        map: &RankMap,
        oversubscribe: bool,
    ) -> Result<Placement, RankMapMisfit> {
        map.place(&self.limited(), oversubscribe)
    }

    /// The nodes with the limits that somebody set. The cores of this host say how many tasks to run
    /// where nothing else does: who says how many gets what is asked for.
    fn limited(&self) -> Vec<Node> {
        let slots = |node: &Node| match self.source {
            Source::ThisHost => None,
            Source::Hosts | Source::HostFile(_) | Source::RankFile => node.slots,
        };
        self.nodes.iter().map(|node| Node { slots: slots(node), ..node.clone() }).collect()
    }
}

fn read_host_file(path: &Path) -> Result<HostFile, AllocError> {
    let text = read_text("host file", path).map_err(AllocError::Text)?;
    hostfile::parse(&text).map_err(|source| AllocError::HostFile { path: path.into(), source })
}

fn warnings_of(file: &HostFile, path: &Path) -> Vec<String> {
    let warning = |warning| format!("host file `{}`, {warning}", path.display());
    file.warnings.iter().map(warning).collect()
}

/// Reads a rank file.
///
/// # Errors
/// When it cannot be read, is malformed, or places nothing.
pub fn rank_file(path: &Path) -> Result<RankFile, AllocError> {
    let text = read_text("rank file", path).map_err(AllocError::Text)?;
    let file = rankfile::parse(&text)
        .map_err(|source| AllocError::RankFile { path: path.into(), source })?;
    if file.is_empty() { Err(AllocError::NoRanks { path: path.into() }) } else { Ok(file) }
}
