//! Rules that were saved to a file a moment ago hold for the next call.

use std::path::Path;

use futures_util::future::BoxFuture;

/// Knows whether the rules of the engine are those of the files that they come from.
pub trait RuleFiles: Send + Sync + 'static {
    /// Whether the files that hold for sessions of a project are as they were when they were read. Reads their metadata.
    fn are_current(&self, project: &Path) -> bool;

    /// Waits until they are read, for a second at most: whoever saves a file may take a moment.
    fn until_current<'a>(&'a self, project: &'a Path) -> BoxFuture<'a, ()>;
}
