//! Jobs that tasks have spawned.

use engine::{Input, Spawn};
use model::{JobId, Rank};
use wire::{App, JobFault, JobSpec};

use super::World;
use crate::pmi_words::{MISSING, SCRIPTED, UNCREATABLE};
use crate::process::ProcessId;
use crate::task::Task;

/// There is no such file.
const ENOENT: i32 = 2;

impl World<'_> {
    /// Looks the programs of a spawned job up, of which only those are asked for that have tasks here.
    pub(super) fn prepare_spawned(&mut self, id: ProcessId, job: &JobSpec, apps: &[u32]) {
        let agent = self.processes[id.0].agent;
        self.checker.set_tasks(job.job, job.map.len());
        let output = &job.io.output;
        if output.has_files() && output.local == agent.node().is_some() {
            self.processes[id.0].files.insert(job.job);
        }
        if job.apps.iter().any(|app| program(app) != SCRIPTED.as_bytes()) {
            self.failing_jobs.insert(job.job);
        }
        let ranks = agent.node().map(|node| job.map.ranks_on(node)).unwrap_or_default();
        let mut expected: Vec<u32> = ranks.iter().map(|rank| job.app_of(Rank(rank))).collect();
        expected.dedup();
        if apps != expected {
            self.checker.violate(format!("agent {agent} looks up {apps:?} of job {}", job.job.0));
        }
        let is_missing =
            |app: &&u32| job.app(**app).is_some_and(|app| program(app) == MISSING.as_bytes());
        let fault = apps.iter().find(is_missing).map(|&app| {
            let words = MISSING.into();
            JobFault::Program { agent, app, errno: ENOENT, words }
        });
        let pmi_port = self.pmi_port();
        self.tell_soon(id, Input::Prepared { job: job.job, fault, pmi_port, open_mpi: vec![] });
    }

    /// The error number of a task that cannot be created.
    pub(super) fn failing_spawn(&self, spawn: &Spawn) -> Option<i32> {
        if spawn.job.job == JobId::FIRST {
            return self.session.failing_spawns.get(&spawn.rank).copied();
        }
        let app = spawn.job.app(spawn.app)?;
        (program(app) == UNCREATABLE.as_bytes()).then_some(ENOENT)
    }

    /// A task of a spawned job, whose script its program's argument names.
    pub(super) fn spawned_task(&mut self, spawn: &Spawn) -> Task {
        let (job, rank) = (&*spawn.job, spawn.rank);
        let argument = job.app(spawn.app).and_then(|app| app.argv.get(1));
        let number = argument.and_then(|word| str::from_utf8(word).ok()?.parse().ok());
        let script = self.session.spawned_script(number.unwrap_or_default()).steps();
        let (n_tasks, dialect) = (job.map.len(), self.session.dialect_of(rank));
        let kvsname = job.kvsname.as_str().into();
        let task = Task::new(rank, n_tasks, spawn.app, dialect, kvsname, script, spawn.stdin);
        task.spawned_by(job.origin.as_ref().map(|origin| &*origin.kvsname).unwrap_or_default())
    }
}

fn program(app: &App) -> &[u8] {
    app.argv.first().map(|name| &name[..]).unwrap_or_default()
}
