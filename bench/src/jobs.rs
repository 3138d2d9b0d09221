//! The same job as a command line of each launcher.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use sim::Calibration;

use crate::plan;
use crate::tools::Tools;

/// Options of the modelled shell, for launchers that pass it a host and a command only.
const SHELL_OPTIONS: &str = "CONVOKE_TESTBED_SHELL";

/// Who starts the job.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Launcher {
    /// Us.
    Convoke,
    /// Debian's MPICH 4.
    Hydra4,
    /// PyPI's MPICH 5.
    Hydra5,
    /// Slurm's, on a cluster whose daemons run already.
    Srun,
    /// A program that does only what cannot be avoided.
    Floor,
}

/// What the modelled shell does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shell {
    /// How long the remote side takes to answer.
    pub(crate) latency: Duration,
    /// How long a start keeps its source host from the next.
    pub(crate) gap: Duration,
    /// The number of a host that answers later than the others, and by how much.
    pub(crate) slow: Option<(usize, Duration)>,
}

/// Tasks on hosts `h1`, `h2` and so on.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// How many hosts.
    pub(crate) hosts: usize,
    /// How many tasks on each.
    pub(crate) tasks_per_host: usize,
    /// How hosts are reached.
    pub(crate) shell: Shell,
    /// The program and its arguments.
    pub(crate) program: Vec<String>,
}

impl Shell {
    /// A shell with S2's two parameters, in milliseconds.
    pub(crate) fn costing(latency_ms: u64, gap_ms: u64) -> Shell {
        let (latency, gap) = (Duration::from_millis(latency_ms), Duration::from_millis(gap_ms));
        Shell { latency, gap, slow: None }
    }

    /// A shell as the simulator knows it: L = 1,028 ms and G = 28 ms, enlarged so that processors
    /// do not matter.
    pub(crate) fn modelled() -> Shell {
        let launch = Calibration::modelled_shell().launch;
        Shell { latency: launch.latency(), gap: launch.gap(), slow: None }
    }

    /// Its command line's options, with a directory for the locks of its source hosts.
    pub(crate) fn options(&self, dir: &str) -> String {
        let mut options = String::from("--latency-ms ");
        options += &self.latency.as_millis().to_string();
        if !self.gap.is_zero() {
            options += &format!(" --gap-ms {} --dir {dir}", self.gap.as_millis());
        }
        if let Some((host, by)) = self.slow {
            options += &format!(" --slow h{host}:{}", by.as_millis());
        }
        options
    }
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L={} ms, G={} ms", self.latency.as_millis(), self.gap.as_millis())
    }
}

impl Job {
    /// One task a host.
    pub(crate) fn one_each(hosts: usize, shell: Shell, program: &[&str]) -> Job {
        Job::new(hosts, 1, shell, program)
    }

    /// Some tasks a host.
    pub(crate) fn new(hosts: usize, tasks_per_host: usize, shell: Shell, program: &[&str]) -> Job {
        let program = program.iter().map(|&word| word.to_owned()).collect();
        Job { hosts, tasks_per_host, shell, program }
    }

    /// How many tasks in all.
    pub(crate) fn tasks(&self) -> usize {
        self.hosts * self.tasks_per_host
    }

    /// Hosts and tasks on each, for a title.
    pub(crate) fn shape(&self) -> String {
        format!("{}×{}", self.hosts, self.tasks_per_host)
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Convoke => "Convoke",
            Launcher::Hydra4 => "Hydra 4",
            Launcher::Hydra5 => "Hydra 5",
            Launcher::Srun => "srun",
            Launcher::Floor => "floor",
        })
    }
}

impl Tools {
    /// The command that runs `job`.
    pub(crate) fn command(&self, launcher: Launcher, job: &Job) -> anyhow::Result<Command> {
        match launcher {
            Launcher::Convoke => self.convoke_command(job, &[]),
            Launcher::Hydra4 => self.hydra_command(Command::new(&self.hydra4), job),
            Launcher::Hydra5 => self.hydra_command(Command::new(&self.hydra5), job),
            Launcher::Srun => bail!("srun needs a cluster"),
            Launcher::Floor => self.tree_command(job),
        }
    }

    /// The product's command, with more options of `convoke run`.
    pub(crate) fn convoke_command(&self, job: &Job, options: &[&str]) -> anyhow::Result<Command> {
        let Some(convoke) = &self.convoke else { bail!("Convoke cannot run a job yet") };
        let shell = format!("{} {{host}} {{cmd}}", self.shell_words(job));
        let mut command = Command::new(convoke);
        command
            .args(["run", "--hosts", &convoke_hosts(job), "-n", &job.tasks().to_string()])
            .args(["--shell", &shell])
            .args(options)
            .arg("--")
            .args(&job.program);
        Ok(command)
    }

    /// Hosts in a file, since Hydra takes no more than some hundred as an argument.
    fn hydra_command(&self, mut command: Command, job: &Job) -> anyhow::Result<Command> {
        let hosts: String = (1..=job.hosts).map(|number| format!("h{number}\n")).collect();
        let host_file = self.scratch.path().join(format!("hosts-{}", job.hosts));
        std::fs::write(&host_file, hosts)?;
        command
            .args(["-launcher", "ssh", "-launcher-exec"])
            .arg(&self.shell)
            .arg("-f")
            .arg(&host_file)
            .args(["-n", &job.tasks().to_string()])
            .args(["-ppn", &job.tasks_per_host.to_string()])
            .args(&job.program)
            .env(SHELL_OPTIONS, self.shell_options(job));
        Ok(command)
    }

    fn tree_command(&self, job: &Job) -> anyhow::Result<Command> {
        if job.tasks_per_host != 1 {
            bail!("the tree of the floor has one task a host");
        }
        let plan = self.file("plan");
        let tree = plan::floor_tree(job.hosts, job.shell.latency, job.shell.gap);
        plan::write(&plan, &tree, job.hosts)?;
        let mut command = Command::new(self.floor("tree"));
        command
            .arg(&plan)
            .args(["0", "0"])
            .args(&job.program)
            .env("TREE_SHELL", self.shell_words(job));
        Ok(command)
    }

    fn shell_words(&self, job: &Job) -> String {
        format!("{} {}", self.shell.display(), self.shell_options(job))
    }

    fn shell_options(&self, job: &Job) -> String {
        job.shell.options(&self.scratch.path().display().to_string())
    }
}

fn convoke_hosts(job: &Job) -> String {
    let slots = match job.tasks_per_host {
        1 => String::new(),
        more => format!(":{more}"),
    };
    match job.hosts {
        1 => format!("h1{slots}"),
        more => format!("h[1-{more}]{slots}"),
    }
}
