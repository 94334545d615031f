//! Places where the system does not tell what changes, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use toold_host::file_systems;

use crate::reload::watch::changes::WatchTarget;

/// Why a place has to be looked at again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// The configuration wants it.
    Asked,
    /// The system gives no events at all.
    NoEvents(String),
    /// As many places are watched as the system allows.
    Limit,
    /// Others than this system may change files there.
    FileSystem(&'static str),
    /// This place cannot be watched.
    Refused(String),
}

/// All such places.
pub(crate) type PollReasons = BTreeMap<WatchTarget, PollReason>;

impl PollReason {
    pub(crate) fn of_file_system(path: &Path) -> Option<Self> {
        file_systems::silent(path).map(Self::FileSystem)
    }
}

impl fmt::Display for PollReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => out.write_str("the configuration says so"),
            Self::NoEvents(error) => {
                write!(out, "the system gives no events ({error}); see the limit fs.inotify.max_user_instances")
            }
            Self::Limit => out.write_str(
                "the system lets no more places be watched; raise the limit fs.inotify.max_user_watches, and restart",
            ),
            Self::FileSystem(kind) => write!(out, "a file system of the kind {kind} does not tell of all changes"),
            Self::Refused(error) => write!(out, "it can't be watched: {error}"),
        }
    }
}
