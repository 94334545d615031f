//! The progress of a call.

use std::sync::Mutex;

use toold_engine::progress::ProgressSink;
use toold_proto::call::Progress;

/// Records the progress of a call.
#[derive(Default)]
pub struct ProgressRecord(Mutex<Vec<Progress>>);

impl ProgressRecord {
    /// Everything so far.
    pub fn all(&self) -> Vec<Progress> {
        self.0.lock().unwrap().clone()
    }
}

impl ProgressSink for ProgressRecord {
    fn send(&self, _: u64, progress: &Progress) {
        self.0.lock().unwrap().push(progress.clone());
    }
}
