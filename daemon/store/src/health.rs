//! The problems of a store: the operations that fail, and the rows that were lost.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::StoreError;

/// Further problems are not reported: they say the same.
const MAX_PROBLEMS: usize = 20;
/// How long a look at the file counts.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Shared by the store and its writing thread.
pub(crate) struct StoreHealth {
    path: PathBuf,
    /// Device and inode of the file that is written; `None` when none is.
    identity: Mutex<Option<(u64, u64)>>,
    /// Why nothing is written, once writing has stopped.
    refusal: Mutex<Option<String>>,
    /// Reads may miss rows that were written.
    damaged: AtomicBool,
    problems: Mutex<Vec<String>>,
    /// Why the last write to the audit log failed, as long as writes fail.
    unwritten: Mutex<Option<String>>,
    /// Why the last call could not be recorded before its answer.
    unjournaled: Mutex<Option<String>>,
    /// Whether there is such a reason: most of the time there is none, and each call asks.
    is_unjournaled: AtomicBool,
    /// Rows of the audit log that are lost, and whose loss is not recorded yet.
    lost: AtomicU64,
    lost_in_all: AtomicU64,
    /// When the file was last read again.
    looked: Mutex<Option<Instant>>,
}

impl StoreHealth {
    pub(crate) fn new(path: PathBuf, written: bool) -> Self {
        let identity = if written { identity(&path) } else { None };
        Self {
            path,
            identity: Mutex::new(identity),
            refusal: Mutex::default(),
            damaged: AtomicBool::new(false),
            problems: Mutex::default(),
            unwritten: Mutex::default(),
            unjournaled: Mutex::default(),
            is_unjournaled: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            lost_in_all: AtomicU64::new(0),
            looked: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    /// Stops writing to a file that was removed or replaced: rows written there would be gone at
    /// the next start.
    pub(crate) fn look(&self) {
        let written = *self.identity.lock();
        if written.is_some() && identity(&self.path) != written && self.refusal().is_none() {
            let problem = gone(&self.path);
            tracing::error!(%problem, "the database");
            self.refuse(problem);
        }
    }

    /// Looks with `look` whether the file that is written is still a database; once a second at most. Blocks.
    pub(crate) fn look_inside(&self, look: impl FnOnce(&Path) -> Result<(), StoreError>) {
        if self.identity.lock().is_none() || self.refusal().is_some() {
            return;
        }
        let mut looked = self.looked.lock();
        if looked.is_some_and(|looked| looked.elapsed() < LOOK_AGAIN) {
            return;
        }
        *looked = Some(Instant::now());
        drop(looked);
        if let Err(error) = look(&self.path) {
            self.heed(&error);
        }
    }

    /// From now on nothing is written. The first reason stays.
    pub(crate) fn refuse(&self, problem: String) {
        self.refusal.lock().get_or_insert_with(|| problem.clone());
        self.report_problem(problem);
    }

    /// From now on the file is written, since the problem that kept it from that has ended.
    pub(crate) fn accept(&self, problem: &str) {
        *self.identity.lock() = identity(&self.path);
        self.problems.lock().retain(|known| known != problem);
        self.refusal.lock().take();
    }

    /// Replaces the reason for which nothing is written.
    pub(crate) fn refuse_otherwise(&self, before: &str, problem: String) {
        self.problems.lock().retain(|known| known != before);
        *self.refusal.lock() = Some(problem.clone());
        self.report_problem(problem);
    }

    /// Adds a problem, once.
    pub(crate) fn report_problem(&self, problem: String) {
        let mut problems = self.problems.lock();
        if problems.len() < MAX_PROBLEMS && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Stops writing to a database that turned out to be damaged: more writes could destroy rows
    /// that can still be saved.
    pub(crate) fn heed(&self, error: &StoreError) {
        if let StoreError::Damaged(reason) = error {
            if self.damaged.swap(true, Ordering::Relaxed) {
                return;
            }
            tracing::error!(reason, path = %self.path.display(), "the database is damaged");
            self.refuse(damaged(&self.path, reason));
        }
    }

    pub(crate) fn set_damaged(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    pub(crate) fn lose(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
        self.lost_in_all.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn lost_in_all(&self) -> u64 {
        self.lost_in_all.load(Ordering::Relaxed)
    }

    /// Whether the audit log can be written, as of the last attempt.
    pub(crate) fn set_unwritten(&self, why: Option<String>) {
        *self.unwritten.lock() = why;
    }

    /// Whether the last call could be recorded in the journal.
    pub(crate) fn set_unjournaled(&self, why: Option<String>) {
        if why.is_none() && !self.is_unjournaled.load(Ordering::Relaxed) {
            return;
        }
        let mut unjournaled = self.unjournaled.lock();
        self.is_unjournaled.store(why.is_some(), Ordering::Relaxed);
        if why.is_some() && unjournaled.is_none() {
            tracing::error!(why, "calls are not recorded");
        }
        *unjournaled = why;
    }

    /// The rows lost since the last time, to be recorded.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Puts back the count of [`take_lost`](Self::take_lost), when it could not be recorded.
    pub(crate) fn give_back_lost(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.lock().clone();
        problems.extend(self.unwritten.lock().clone());
        problems.extend(self.unjournaled.lock().as_ref().map(|why| format!("calls are not recorded: {why}")));
        let lost = self.lost_in_all();
        // Where nothing is written at all, that is reported already.
        if lost > 0 && self.refusal().is_none() {
            problems.push(format!(
                "the audit log lacks {lost} rows of this run, because {} could not be written in time",
                self.path.display()
            ));
        }
        problems
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn gone(path: &Path) -> String {
    format!(
        "{} is gone, or another file is in its place. Nothing new is stored: grants, sessions and the audit log of \
         this run end with the daemon. Restart it to start with a new database.",
        path.display()
    )
}

pub(crate) fn damaged(path: &Path, reason: &str) -> String {
    format!(
        "{} is damaged, or is not a database ({reason}). It is left unchanged, and nothing new is stored: grants, \
         sessions and the audit log of this run are lost when the daemon stops. Refusals apply as far as \
         refusals.jsonl beside it lists them; everything else is asked about again. To start with a new database, \
         move the file away and restart the daemon.",
        path.display()
    )
}
