//! Places where the system does not report all changes, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use toold_host::file_systems;

use crate::reload::watch::changes::WatchTarget;

/// Why a place is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// Configured.
    Asked,
    /// The system reports no events at all.
    NoEvents(String),
    /// The system's limit of watches is reached.
    Limit,
    /// Other computers may change files there.
    FileSystem(&'static str),
    /// This place cannot be watched.
    Refused(String),
}

/// All places that are polled.
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
                write!(out, "the system reports no file events ({error}); see the limit fs.inotify.max_user_instances")
            }
            Self::Limit => out.write_str(
                "the limit of file watches is reached; raise fs.inotify.max_user_watches and restart the daemon",
            ),
            Self::FileSystem(kind) => write!(out, "a file system of the kind {kind} does not report all changes"),
            Self::Refused(error) => write!(out, "can't watch it: {error}"),
        }
    }
}
