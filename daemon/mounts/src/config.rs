//! How a source is mounted.

use std::time::Duration;

use toold_engine::registry::SourceScope;
use toold_proto::mcp::InstanceScope;

/// The identity of a mount: one name may stand for different sources in different projects.
pub type MountKey = (SourceScope, String);

/// `E` is the kind's own description of where the source is and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountConfig<E> {
    /// Its tools are called `NAME_tool`, as far as that fits.
    pub name: String,
    /// The sessions that see its tools.
    pub scope: SourceScope,
    pub endpoint: E,
    pub enabled: bool,
    /// Which sessions share a process or a connection.
    pub instances: InstanceScope,
    /// So many run at most, unless they are shared.
    pub max_instances: usize,
    /// Whether its calls run at the same time, whatever it says of its tools; as it says when `None`.
    pub parallel: Option<bool>,
    /// A person trusts what it says of its tools: that one only reads.
    pub trusts_hints: bool,
    /// The revision of the protocol that is spoken with it; the newest that it knows when `None`.
    pub revision: Option<String>,
    /// An instance is stopped after this time without a call; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// Time limit of a call; `None` for the tool's own, or the daemon's default.
    pub timeout: Option<Duration>,
    /// Until it is connected and has listed its tools.
    pub start_timeout: Duration,
    /// Globs over its own names of tools; `None` for all.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

impl<E> MountConfig<E> {
    pub fn key(&self) -> MountKey {
        (self.scope.clone(), self.name.clone())
    }
}
