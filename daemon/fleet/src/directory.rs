//! The daemons of the fleet and their tools, as this daemon knows them. [`crate::follow`] fills it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use toold_host::state_file;

use crate::keys::PublicKey;
use crate::messages::{MemberRecord, ToolRecord};
use crate::names::FleetName;
use crate::target::CallTarget;

/// Bytes of the file of the directory.
const MAX_FILE: u64 = 4 << 20;
const FILE: &str = "directory.json";

/// A daemon, as far as it is known. It stays here when the daemon has gone.
#[derive(Clone, Debug)]
pub struct KnownDaemon {
    /// `None` if only its tools are known.
    pub record: Option<MemberRecord>,
    /// When its record last arrived: a record that was read from the file arrived at the start of this daemon.
    pub heard: Instant,
    /// The same, across restarts of this daemon; `None` if it was never heard of.
    pub heard_at: Option<SystemTime>,
    pub is_away: bool,
    /// By their names there.
    pub tools: BTreeMap<String, Arc<ToolRecord>>,
    /// Tools that were left out of its list, and why, as sentences.
    pub problems: Vec<String>,
    /// Whether its record is the one that was read from the file.
    pub(crate) is_from_file: bool,
    /// When its record was signed, by its own clock.
    pub(crate) signed_at: u64,
    /// How far that was ahead of the clock here when the record arrived, in milliseconds; `None` if it may have waited on the
    /// broker before.
    pub clock_ms: Option<i64>,
    /// The newest message about each tool, also of tools that are gone.
    pub(crate) tool_messages: HashMap<String, ToolMessage>,
    /// Bytes of `tools`, as messages.
    list_bytes: usize,
    /// Changes whenever its tools or labels do.
    pub(crate) list: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToolMessage {
    pub(crate) signed_at: u64,
    pub(crate) bytes: usize,
}

impl KnownDaemon {
    pub(crate) fn unheard() -> Self {
        Self {
            record: None,
            heard: Instant::now(),
            heard_at: None,
            is_away: true,
            tools: BTreeMap::new(),
            problems: Vec::new(),
            is_from_file: false,
            signed_at: 0,
            clock_ms: None,
            tool_messages: HashMap::new(),
            list_bytes: 0,
            list: 0,
        }
    }

    pub fn labels(&self) -> &[FleetName] {
        self.record.as_ref().map_or(&[], |record| &record.labels)
    }

    /// See [`MemberRecord::instance`].
    pub fn instance(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.instance.as_str())
    }

    /// Whether that daemon knows the name and the key of this one.
    pub fn trusts(&self, name: &FleetName, key: &PublicKey) -> Option<bool> {
        self.record.as_ref().map(|record| record.trusts.get(name).is_some_and(|known| known == key.as_str()))
    }

    /// How long the list is without this tool.
    pub(crate) fn list_bytes_without(&self, tool: &str) -> usize {
        let own = self.tool_messages.get(tool).filter(|_| self.tools.contains_key(tool));
        self.list_bytes - own.map_or(0, |message| message.bytes)
    }

    pub(crate) fn put_tool(&mut self, tool: &str, record: Arc<ToolRecord>, message: ToolMessage) {
        self.list_bytes = self.list_bytes_without(tool) + message.bytes;
        self.tool_messages.insert(tool.to_owned(), message);
        self.tools.insert(tool.to_owned(), record);
        self.list += 1;
    }

    /// Its newest message stays known, so that an old one does not bring it back.
    pub(crate) fn remove_tool(&mut self, tool: &str) {
        self.list_bytes = self.list_bytes_without(tool);
        self.list += u64::from(self.tools.remove(tool).is_some());
    }

    pub(crate) fn is_in(&self, name: &FleetName, target: &CallTarget) -> bool {
        match target {
            CallTarget::Daemon(daemon) => daemon == name,
            CallTarget::Label(label) => self.labels().contains(label),
        }
    }
}

type Daemons = BTreeMap<FleetName, KnownDaemon>;

/// All but this daemon.
pub struct Directory {
    daemons: Mutex<Daemons>,
    changed: watch::Sender<()>,
    /// Whether the bucket of tools is known, since the broker was connected last.
    synced: watch::Sender<bool>,
    /// Whether it was known at any time since the start: the lists of tools are complete, if not the newest.
    complete: AtomicBool,
    /// Whether the absence of a record means that a daemon is away: not in the first moments after a start.
    settled: watch::Sender<bool>,
    /// This daemon's own entries in the bucket of tools; `None` for one that it did not write.
    own_tools: Mutex<BTreeMap<String, Option<ToolRecord>>>,
}

/// A daemon in the file of the directory.
#[derive(Serialize, Deserialize)]
struct SavedDaemon {
    name: FleetName,
    record: MemberRecord,
    signed_at: u64,
    /// Milliseconds since 1970.
    heard_at: u64,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            daemons: Mutex::default(),
            changed: watch::Sender::new(()),
            synced: watch::Sender::new(false),
            complete: AtomicBool::new(false),
            settled: watch::Sender::new(false),
            own_tools: Mutex::default(),
        }
    }
}

impl Directory {
    /// The daemons that were known when it was saved, all of them away. Blocks.
    pub(crate) fn load(dir: &Path) -> Self {
        let saved: Vec<SavedDaemon> = state_file::load(&dir.join(FILE), MAX_FILE).unwrap_or_default();
        let known = saved.into_iter().map(|saved| {
            let known = KnownDaemon {
                record: Some(saved.record),
                heard_at: Some(UNIX_EPOCH + Duration::from_millis(saved.heard_at)),
                signed_at: saved.signed_at,
                is_from_file: true,
                ..KnownDaemon::unheard()
            };
            (saved.name, known)
        });
        Self { daemons: Mutex::new(known.collect()), ..Self::default() }
    }

    /// Blocks.
    pub(crate) fn save(&self, dir: &Path) {
        let saved: Vec<SavedDaemon> = self.read(|daemons| {
            let of_daemon = |(name, known): (&FleetName, &KnownDaemon)| {
                let heard_at = known.heard_at?.duration_since(UNIX_EPOCH).ok()?;
                Some(SavedDaemon {
                    name: name.clone(),
                    record: known.record.clone()?,
                    signed_at: known.signed_at,
                    heard_at: u64::try_from(heard_at.as_millis()).unwrap_or(u64::MAX),
                })
            };
            daemons.iter().filter_map(of_daemon).collect()
        });
        if let Err(error) = state_file::save(&dir.join(FILE), &saved) {
            tracing::warn!(%error, "can't save the daemons of the fleet");
        }
    }

    pub fn find<T>(&self, name: &FleetName, read: impl FnOnce(&KnownDaemon) -> T) -> Option<T> {
        self.daemons.lock().get(name).map(read)
    }

    /// Reads all, sorted by name.
    pub fn read<T>(&self, read: impl FnOnce(&Daemons) -> T) -> T {
        read(&self.daemons.lock())
    }

    /// Changes it, and reports that.
    pub fn change<T>(&self, change: impl FnOnce(&mut Daemons) -> T) -> T {
        let changed = change(&mut self.daemons.lock());
        self.changed.send_replace(());
        changed
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether a daemon of the target is there.
    pub(crate) fn is_online(&self, target: &CallTarget) -> bool {
        self.read(|daemons| daemons.iter().any(|(name, known)| !known.is_away && known.is_in(name, target)))
    }

    pub(crate) fn is_settled(&self) -> bool {
        *self.settled.borrow()
    }

    pub(crate) fn settle(&self) {
        if !self.settled.send_replace(true) {
            self.changed.send_replace(());
        }
    }

    /// Whether the lists of tools are complete: before, a tool that is not in them may exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    pub(crate) fn set_synced(&self, synced: bool) {
        self.synced.send_replace(synced);
        if synced && !self.complete.swap(true, Ordering::AcqRel) {
            self.changed.send_replace(());
        }
    }

    /// Returns once the bucket of tools is known.
    pub(crate) async fn wait_until_synced(&self) {
        // Fails only when the sender is gone, which `self` holds.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    pub(crate) fn own_tools(&self) -> BTreeMap<String, Option<ToolRecord>> {
        self.own_tools.lock().clone()
    }

    pub(crate) fn note_own_tool(&self, tool: &str, entry: Option<Option<ToolRecord>>) {
        let mut own = self.own_tools.lock();
        match entry {
            Some(record) => _ = own.insert(tool.to_owned(), record),
            None => _ = own.remove(tool),
        }
    }

    /// Forgets own entries that the bucket does not have.
    pub(crate) fn retain_own_tools(&self, seen: &HashSet<String>) {
        self.own_tools.lock().retain(|tool, _| seen.contains(tool));
    }
}
