//! Files that tasks' output goes to: a file for each task, or fewer, of each job.
//!
//! They are made, and emptied, before anything runs, as a shell does it for `> file`: a directory that
//! cannot be written is told of before the first task, and nothing of an older run is left under a
//! task that writes nothing. However many there are, few are open at once; those that were written
//! longest ago are closed first, and opened again to append.
//!
//! A write waits for the file system, and everything else waits for it: what a slow disk does not take
//! stays with the tasks. Regular files do not make us wait long enough to matter.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{FileOwner, FilePattern, JobId, NodeId, Rank};
use rustix::io::Errno;
use wire::{JobSpec, Stream};

/// How many are open at once.
const OPEN_MAX: usize = 64;

/// The files of the jobs' tasks, or of those of one node.
#[derive(Debug)]
pub struct OutputFiles {
    hosts: Hosts,
    /// Jobs that are not over.
    jobs: BTreeMap<JobId, Arc<JobSpec>>,
    open: BTreeMap<PathBuf, OpenFile>,
    /// Counts writes, to know which file was written longest ago.
    writes: u64,
    /// Set after a write that failed: the session ends, and what comes until then is dropped.
    has_failed: bool,
}

/// The names of hosts.
#[derive(Debug)]
pub enum Hosts {
    /// Of all nodes, in order.
    All(Vec<String>),
    /// Of the only node whose tasks are written.
    Own(NodeId, String),
}

/// A file that cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[error("write `{}`", path.display())]
pub struct OutputFileError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl OutputFileError {
    /// The error number, and where to.
    pub(crate) fn into_parts(self) -> (i32, String) {
        let errno = self.source.raw_os_error().unwrap_or_default();
        (errno, format!("`{}`", self.path.display()))
    }
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The number of its last write.
    written: u64,
}

impl OutputFiles {
    /// No files yet.
    pub fn new(hosts: Hosts) -> OutputFiles {
        let (jobs, open) = (BTreeMap::new(), BTreeMap::new());
        OutputFiles { hosts, jobs, open, writes: 0, has_failed: false }
    }

    /// Makes and empties the files of all tasks of a job on the hosts, and the directories that they are in.
    ///
    /// # Errors
    /// The first file that cannot be made.
    pub fn create(&mut self, job: Arc<JobSpec>) -> Result<(), OutputFileError> {
        let mut last = PathBuf::new();
        for rank in self.ranks(&job) {
            for stream in [Stream::Stdout, Stream::Stderr] {
                let path = self.path(&job, rank, stream).filter(|path| *path != last);
                if let Some(path) = path {
                    make(&path, is_others(&job, stream))
                        .map_err(|source| OutputFileError { path: path.clone(), source })?;
                    last = path;
                }
            }
        }
        self.jobs.insert(job.job, job);
        Ok(())
    }

    /// Forgets a job: nothing more is written to its files.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// Writes a piece behind all that its file has.
    ///
    /// # Errors
    /// Once: after that, all is dropped.
    pub(crate) fn write(
        &mut self,
        (job, rank): (JobId, Rank),
        stream: Stream,
        data: &[u8],
    ) -> Result<(), OutputFileError> {
        let Some(job) = self.jobs.get(&job).filter(|_| !self.has_failed) else { return Ok(()) };
        let Some(path) = self.path(job, rank, stream) else { return Ok(()) };
        let written = self.file(&path).and_then(|file| file.write_all(data));
        written.map_err(|source| {
            self.has_failed = true;
            OutputFileError { path, source }
        })
    }

    fn ranks(&self, job: &JobSpec) -> Box<dyn Iterator<Item = Rank>> {
        let map = &job.map;
        match &self.hosts {
            Hosts::All(_) => Box::new((0..map.len()).map(Rank)),
            Hosts::Own(node, _) => {
                let ranks: Vec<u32> = map.ranks_on(*node).iter().collect();
                Box::new(ranks.into_iter().map(Rank))
            }
        }
    }

    fn path(&self, job: &JobSpec, rank: Rank, stream: Stream) -> Option<PathBuf> {
        let pattern = pattern(job, stream)?;
        let map = &job.map;
        let node = map.node_of(rank)?;
        let host = match &self.hosts {
            Hosts::All(names) => names.get(node.0 as usize).map_or("", String::as_str),
            Hosts::Own(_, name) => name,
        };
        let (job, n_tasks, n_nodes) = (job.job, map.len(), map.node_count());
        let name = pattern.expand(&FileOwner { job, rank, n_tasks, node, n_nodes, host });
        Some(OsString::from_vec(name).into())
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut File> {
        self.writes += 1;
        if !self.open.contains_key(path) {
            if self.open.len() >= OPEN_MAX {
                self.close_oldest();
            }
            let file = self.open(path)?;
            self.open.insert(path.to_owned(), OpenFile { file, written: 0 });
        }
        let open = self.open.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        open.written = self.writes;
        Ok(&mut open.file)
    }

    /// Opens a file to append, at the cost of another where descriptors have run out.
    fn open(&mut self, path: &Path) -> io::Result<File> {
        loop {
            match OpenOptions::new().append(true).create(true).open(path) {
                Err(error) if is_out_of_descriptors(&error) && !self.open.is_empty() => {
                    self.close_oldest();
                }
                opened => return opened,
            }
        }
    }

    fn close_oldest(&mut self) {
        let oldest = self.open.iter().min_by_key(|(_, open)| open.written);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.open.remove(&path);
        }
    }
}

fn pattern(job: &JobSpec, stream: Stream) -> Option<&FilePattern> {
    job.io.output.file(stream)
}

/// Whether tasks of an earlier job may have written to this file.
fn is_others(job: &JobSpec, stream: Stream) -> bool {
    job.job != JobId::FIRST && pattern(job, stream).is_some_and(FilePattern::is_shared)
}

/// Makes a file, or empties it unless it `is_kept`.
fn make(path: &Path, is_kept: bool) -> io::Result<()> {
    let make = || OpenOptions::new().write(true).create(true).truncate(!is_kept).open(path);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
            make().map(drop)
        }
        made => made.map(drop),
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::TaskMap;
    use wire::{IoSpec, OutputSpec};

    use super::*;

    const FIRST: JobId = JobId::FIRST;

    fn job(id: JobId, tasks: u32, stdout: &Path) -> Arc<JobSpec> {
        let stdout = stdout.as_os_str().as_encoded_bytes();
        let stdout = Some(FilePattern::new(stdout).unwrap());
        let output = OutputSpec { stdout, ..OutputSpec::default() };
        let io = IoSpec { output, ..IoSpec::default() };
        let map = TaskMap::from_counts([tasks]).unwrap();
        Arc::new(JobSpec { io, ..JobSpec::new(id, vec![], map) })
    }

    /// Those of a first job with so many tasks.
    fn create(tasks: u32, stdout: &Path) -> Result<OutputFiles, OutputFileError> {
        let mut files = OutputFiles::new(Hosts::All(vec!["a".to_owned()]));
        files.create(job(FIRST, tasks, stdout))?;
        Ok(files)
    }

    #[test]
    fn many_files_are_written_with_few_that_are_open() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = create(1000, &dir.path().join("deep/%h/%0r.out")).unwrap();
        for piece in ["one\n", "two\n"] {
            for rank in (0..1000).map(Rank) {
                files.write((FIRST, rank), Stream::Stdout, piece.as_bytes()).unwrap();
                files.write((FIRST, rank), Stream::Stderr, b"no file").unwrap();
                assert!(files.open.len() <= OPEN_MAX);
            }
        }
        for rank in 0..1000 {
            let path = dir.path().join(format!("deep/a/{rank:03}.out"));
            assert_eq!(fs::read_to_string(path).unwrap(), "one\ntwo\n");
        }
    }

    #[test]
    fn what_an_older_run_has_left_is_gone_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("0");
        fs::write(&old, "of before").unwrap();
        let files = create(2, &dir.path().join("%r")).unwrap();
        assert_eq!(fs::read_to_string(old).unwrap(), "");
        assert!(dir.path().join("1").exists(), "its task has written nothing yet");
        drop(files);
    }

    #[test]
    fn jobs_write_to_files_of_their_own_or_behind_each_other_and_one_that_is_over_to_none() {
        let dir = tempfile::tempdir().unwrap();
        for (pattern, all) in [
            ("%r", &[("0", "of 0\n"), ("job1.0", "of 1\n"), ("job2.0", "of 2\n")][..]),
            ("all", &[("all", "of 0\nof 1\nof 2\n")][..]),
        ] {
            let pattern = dir.path().join(pattern);
            let mut files = create(1, &pattern).unwrap();
            for number in 0..=2 {
                if number > 0 {
                    files.create(job(JobId(number), 1, &pattern)).unwrap();
                }
                let text = format!("of {number}\n");
                let of = (JobId(number), Rank(0));
                files.write(of, Stream::Stdout, text.as_bytes()).unwrap();
            }
            files.forget(JobId(1));
            files.write((JobId(1), Rank(0)), Stream::Stdout, b"late").unwrap();
            for (name, text) in all {
                assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), *text, "{name}");
            }
        }
    }

    #[test]
    fn a_full_disk_is_told_of_once_and_by_name() {
        let mut files = create(1, Path::new("/dev/full")).unwrap();
        let error = files.write((FIRST, Rank(0)), Stream::Stdout, b"x").unwrap_err();
        assert_eq!(
            (error.path.as_path(), error.source.raw_os_error()),
            (Path::new("/dev/full"), Some(28))
        );
        assert!(files.write((FIRST, Rank(0)), Stream::Stdout, b"x").is_ok());
    }

    #[test]
    fn a_directory_that_is_none_is_told_of_before_anything_runs() {
        let error = create(1, Path::new("/dev/null/x/%r")).unwrap_err();
        assert_eq!(error.to_string(), "write `/dev/null/x/0`");
    }
}
