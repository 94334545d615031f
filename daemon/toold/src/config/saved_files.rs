//! Which version of each configuration file was read last. A call that comes right after a file was saved waits for the new
//! one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use toold_engine::dependencies::FileFacts;
use toold_host::stamps::of_facts;

/// How long a call waits at most for a file that is being saved.
const PATIENCE: Duration = Duration::from_secs(1);

/// The version of a file that is being read. Dropping it says that this version holds now.
pub struct VersionRead<'a> {
    files: &'a SavedFiles,
    file: PathBuf,
    facts: Option<FileFacts>,
}

impl Drop for VersionRead<'_> {
    fn drop(&mut self) {
        let (file, facts) = (std::mem::take(&mut self.file), self.facts.take());
        self.files.read.send_modify(|read| {
            read.insert(file, facts);
        });
    }
}

/// `None` where the file did not exist.
type ReadVersions = HashMap<PathBuf, Option<FileFacts>>;

#[derive(Default)]
pub struct SavedFiles {
    read: watch::Sender<ReadVersions>,
}

impl SavedFiles {
    /// Call it before a file is read, and keep the value until what was read holds.
    pub fn reading(&self, file: &Path) -> VersionRead<'_> {
        VersionRead { files: self, file: file.to_owned(), facts: facts(file) }
    }

    pub fn forget(&self, file: &Path) {
        self.read.send_modify(|read| {
            read.remove(file);
        });
    }

    /// Whether the file is as it was when it was read last, or was never read.
    pub fn is_read(&self, file: &Path) -> bool {
        is_newest(&self.read.borrow(), file)
    }

    /// Waits until the newest version of each file is read, or for a second.
    pub async fn wait(&self, files: &[PathBuf]) {
        let mut changes = self.read.subscribe();
        let all = changes.wait_for(|read| files.iter().all(|file| is_newest(read, file)));
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!(?files, "a configuration file changes all the time: its last version that was read holds");
        }
    }
}

fn is_newest(read: &ReadVersions, file: &Path) -> bool {
    read.get(file).is_none_or(|read| *read == facts(file))
}

fn facts(file: &Path) -> Option<FileFacts> {
    of_facts(file).and_then(|stamp| stamp.facts)
}
