//! The nouns of Convoke: identities, host lists, placements. Parse, format, map; no policy.
#![no_std]

extern crate alloc;

mod id_set;
mod ids;
mod time;

mod ring;
mod route;
mod tree;

mod host_list;
mod host_name;
pub mod hostfile;
mod tokens;

mod muster;
mod name_service;
mod pair_name;
mod placement;
mod pmi;
mod rank_group;
pub mod rankfile;
mod rankmap;
mod task_map;

mod file_pattern;

mod soft_counts;
mod spawn;

mod status;
mod status_runs;
mod usage;

pub use file_pattern::{FileOwner, FilePattern, FilePatternError};
pub use host_list::{
    HOST_NAME_BYTES_MAX, HOSTS_MAX, HostList, HostListError, HostProblem, Node, SLOTS_MAX,
    fold_names,
};
pub use host_name::HostName;
pub use id_set::{IdSet, IdSetError, Parts};
pub use ids::{AgentId, JobId, NodeId, Rank};
pub use muster::Muster;
pub use name_service::{NameReply, NameRequest};
pub use pair_name::PairName;
pub use placement::{Order, Placement, PlacementError, Request, Slots, place};
pub use pmi::{PmiDialect, PmiOffer, PmiOfferError};
pub use rank_group::RankGroup;
pub use rankmap::{RankMap, RankMapError, RankMapMisfit, RankMapProblem};
pub use ring::{RingPlace, RingStretch};
pub use route::{Route, RouteError};
pub use soft_counts::{SoftCounts, SoftCountsError};
pub use spawn::{NameValue, SpawnProgram, SpawnReply, SpawnRequest, SpawnedTasks};
pub use status::{ExitStatus, Signal, SignalError};
pub use status_runs::{StatusRun, StatusRuns};
pub use task_map::{TASKS_MAX, TaskMap, TaskMapError, TaskRun};
pub use time::Time;
pub use tree::{Tree, TreeError};
pub use usage::Usage;
