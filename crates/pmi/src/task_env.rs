//! The environment of a task that may speak PMI (`reference/pmi1.md` §2).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use model::Rank;

/// What the variables of one task are made of.
#[derive(Clone, Copy, Debug)]
pub struct TaskEnv<'a> {
    /// How it finds its connection.
    pub transport: Transport,
    /// Its rank.
    pub rank: Rank,
    /// Tasks in the job.
    pub size: u32,
    /// Its number among the job's tasks on this node.
    pub local_rank: u32,
    /// The job's tasks on this node.
    pub local_size: u32,
    /// Whether a task has spawned its job.
    pub is_spawned: bool,
    /// The name by which the other nodes reach this one, if it has any: MPICH puts it into its cards.
    pub host_name: Option<&'a str>,
}

/// How a task finds its connection with us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// It is this descriptor, which it inherits.
    Descriptor(i32),
    /// It connects to this port of the loopback address, and says who it is.
    Port(u16),
    /// It finds none, and is not told of the others.
    None,
}

impl Transport {
    fn variables(self, rank: Rank, size: u32) -> Vec<(&'static str, String)> {
        let place = [("PMI_RANK", rank.to_string()), ("PMI_SIZE", size.to_string())];
        let mut variables = match self {
            Transport::Descriptor(fd) => vec![("PMI_FD", fd.to_string())],
            // By number: IPv6 does not fit, since the host ends at the first colon, and a name may mean something else.
            Transport::Port(port) => {
                vec![("PMI_PORT", format!("127.0.0.1:{port}")), ("PMI_ID", rank.to_string())]
            }
            Transport::None => return vec![],
        };
        variables.extend(place);
        variables
    }
}

impl TaskEnv<'_> {
    /// The variables to set, after those of an outer job are gone.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let numbers = [
            ("MPI_LOCALRANKID", self.local_rank.to_string()),
            ("MPI_LOCALNRANKS", self.local_size.to_string()),
        ];
        let spawned = self.is_spawned.then(|| ("PMI_SPAWNED", "1".to_string()));
        let host_name = self.host_name.map(|name| ("PMI_HOSTNAME", name.to_string()));
        let transport = self.transport.variables(self.rank, self.size).into_iter();
        transport.chain(numbers).chain(spawned).chain(host_name).collect()
    }
}

/// Whether the variable called `name` would tell a task that it belongs to the job in which the front
/// end itself was started. MCA parameters are the user's settings, and stay.
pub fn is_of_outer_job(name: &[u8]) -> bool {
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p.as_bytes()));
    has_prefix(OUTER_PREFIXES) && (!has_prefix(USER_PREFIXES) || has_prefix(OUTER_MCA_PREFIXES))
}

const USER_PREFIXES: &[&str] = &["OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_"];

/// Parameters that Open MPI's launchers set themselves (`reference/frameworks-env.md`).
const OUTER_MCA_PREFIXES: &[&str] =
    &["OMPI_MCA_orte_", "OMPI_MCA_ess_base_", "OMPI_MCA_initial_wdir", "OMPI_MCA_num_procs"];

/// Prefixes, of which some are whole names.
const OUTER_PREFIXES: &[&str] = &[
    "PMI_",
    "PMI2_",
    "PMIX_",
    "PRTE_",
    "OMPI_",
    "HYDI_CONTROL_FD",
    "HYDRA_BSTRAP_",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "I_MPI_HYDRA_UUID",
    "I_MPI_INFO_",
    "I_MPI_PIN_INFO",
    "I_MPI_PIN_MAPPING",
    "MPIRUN_",
    "MPISPAWN_",
    "MV2_COMM_WORLD_",
    "MV2_NODE_ID",
    "MV2_NUM_NODES_IN_JOB",
    "PALS_",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_its_descriptor_or_a_port_and_its_place() {
        let mut env = TaskEnv {
            transport: Transport::Descriptor(7),
            rank: Rank(5),
            size: 8,
            local_rank: 1,
            local_size: 4,
            is_spawned: false,
            host_name: Some("n002"),
        };
        let lines = |env: TaskEnv<'_>| -> Vec<String> {
            env.variables().iter().map(|(name, value)| [name, "=", value].concat()).collect()
        };
        let expected = [
            "PMI_FD=7",
            "PMI_RANK=5",
            "PMI_SIZE=8",
            "MPI_LOCALRANKID=1",
            "MPI_LOCALNRANKS=4",
            "PMI_HOSTNAME=n002",
        ];
        assert_eq!(lines(env), expected);
        env.transport = Transport::Port(4000);
        assert_eq!(lines(env)[..2], ["PMI_PORT=127.0.0.1:4000", "PMI_ID=5"]);
        assert_eq!(lines(env)[2..], expected[1..]);
        env.transport = Transport::None;
        assert_eq!(lines(env), expected[3..]);
        env.is_spawned = true;
        assert!(lines(env).contains(&"PMI_SPAWNED=1".to_string()));
    }

    #[test]
    fn what_an_outer_job_set_goes_and_what_the_user_set_stays() {
        let outer = ["PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_hnp_uri"];
        let users = ["PATH", "OMPI_MCA_btl", "PMIX_MCA_gds", "I_MPI_PIN", "MPIR_CVAR_NOLOCAL"];
        assert!(outer.iter().all(|name| is_of_outer_job(name.as_bytes())));
        assert!(!users.iter().any(|name| is_of_outer_job(name.as_bytes())));
    }
}
