//! The daemons of the fleet and their tools, as this daemon knows them.

use std::collections::BTreeMap;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::messages::{DaemonRecord, ToolRecord};
use crate::names::FleetName;

/// What is known of a daemon. It stays here when the daemon has gone.
#[derive(Clone, Debug)]
pub struct KnownDaemon {
    pub record: DaemonRecord,
    /// When its record last arrived.
    pub heard: Instant,
    pub heard_at: SystemTime,
    pub is_away: bool,
    /// By their names there.
    pub tools: BTreeMap<String, ToolRecord>,
}

/// All but this daemon.
pub struct Directory {
    daemons: Mutex<BTreeMap<FleetName, KnownDaemon>>,
    changed: watch::Sender<()>,
}

impl Default for Directory {
    fn default() -> Self {
        Self { daemons: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Directory {
    pub fn find<T>(&self, name: &FleetName, read: impl FnOnce(&KnownDaemon) -> T) -> Option<T> {
        self.daemons.lock().get(name).map(read)
    }

    /// Reads all, sorted by name.
    pub fn read<T>(&self, read: impl FnOnce(&BTreeMap<FleetName, KnownDaemon>) -> T) -> T {
        read(&self.daemons.lock())
    }

    /// Changes it, and reports that.
    pub fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<FleetName, KnownDaemon>) -> T) -> T {
        let changed = change(&mut self.daemons.lock());
        self.changed.send_replace(());
        changed
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
