//! The jobs of a session that one member takes part in.
//!
//! A session begins with one, [`JobId::FIRST`]: agents join with it, and the user's input, signals and time limit are
//! the session's, whatever jobs there are.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::JobId;

use crate::job::Job;

/// Jobs that are not over here.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// The one that every member has: apart, since there are many members.
    first: Option<Job>,
    others: BTreeMap<JobId, Box<Job>>,
}

impl Jobs {
    pub(crate) fn get(&self, id: JobId) -> Option<&Job> {
        if id == JobId::FIRST {
            self.first.as_ref()
        } else {
            self.others.get(&id).map(|job| &**job)
        }
    }

    pub(crate) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        if id == JobId::FIRST {
            self.first.as_mut()
        } else {
            self.others.get_mut(&id).map(|job| &mut **job)
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.first.iter().chain(self.others.values().map(|job| &**job))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.first.iter_mut().chain(self.others.values_mut().map(|job| &mut **job))
    }

    /// The numbers of all, for changes that concern the whole member.
    pub(crate) fn ids(&self) -> Vec<JobId> {
        self.iter().map(Job::id).collect()
    }

    /// The number of the first like that.
    pub(crate) fn find(&self, is_meant: impl Fn(&Job) -> bool) -> Option<JobId> {
        self.iter().find(|job| is_meant(job)).map(Job::id)
    }

    /// The one whose key-value space is called so.
    pub(crate) fn named(&mut self, kvsname: &[u8]) -> Option<&mut Job> {
        self.iter_mut().find(|job| job.spec.kvsname.as_bytes() == kvsname)
    }

    /// Forgets a job that is over; never the first.
    pub(crate) fn remove(&mut self, id: JobId) {
        self.others.remove(&id);
    }

    pub(crate) fn insert(&mut self, job: Job) {
        if job.id() == JobId::FIRST {
            self.first = Some(job);
        } else {
            self.others.insert(job.id(), Box::new(job));
        }
    }
}
