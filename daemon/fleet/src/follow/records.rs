//! Verifies entries of the buckets, and applies them within bounds.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_nats::jetstream::kv::{Entry, Operation};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use toold_proto::tool::ToolName;

use crate::counts::FleetCounts;
use crate::directory::{KnownDaemon, ToolMessage};
use crate::member::Member;
use crate::messages::{DaemonRecord, ToolRecord};
use crate::names::FleetName;
use crate::settings::{DaemonMember, Roster};
use crate::signed::{Message, MessageKind, Refusal, Verifier};

/// Of one daemon.
const MAX_TOOLS: usize = 4_096;
/// Of all its tools together, as JSON.
const MAX_BYTES: usize = 16 << 20;
const MAX_PROBLEMS: usize = 20;
/// Tools whose newest message is remembered, those that are gone among them.
const MAX_MESSAGES: usize = 2 * MAX_TOOLS;
/// Labels or persons of a daemon.
const MAX_NAMES: usize = 64;
/// Daemons outside the configuration whose entries have been refused once; others are ignored.
const MAX_STRANGERS: usize = 1_000;

pub(super) struct EntryReader {
    member: Arc<Member>,
    /// Knows the key of this daemon only.
    own: Verifier,
    strangers: Mutex<HashSet<String>>,
}

/// A verified entry of the bucket of tools.
pub(super) struct ToolChange {
    pub(super) daemon: FleetName,
    pub(super) tool: String,
    kind: ToolChangeKind,
}

enum ToolChangeKind {
    Put {
        record: Arc<ToolRecord>,
        message: ToolMessage,
    },
    Removed,
    /// Of this daemon's tools alone: an entry that it did not write.
    Foreign,
}

/// The message is older than the one that is known.
pub(super) struct ReplayedTool;

impl EntryReader {
    pub(super) fn new(member: &Arc<Member>) -> Self {
        let own = DaemonMember { key: member.key().clone(), may_call: false, shows_asks: false };
        let roster = Roster { daemons: BTreeMap::from([(member.name.clone(), own)]), people: BTreeMap::new() };
        Self { member: member.clone(), own: Verifier::new(roster), strangers: Mutex::default() }
    }

    /// The other daemon whose record has this key.
    pub(super) fn daemon_of(&self, key: &str) -> Option<FleetName> {
        FleetName::parse(key).ok().filter(|name| *name != self.member.name)
    }

    pub(super) fn daemon(&self, name: &FleetName, bytes: &[u8]) -> Option<Message<DaemonRecord>> {
        let message = self.verified::<DaemonRecord>(name, MessageKind::Daemon, name.as_str(), bytes)?;
        let record = &message.body;
        let is_bounded = record.labels.len() <= MAX_NAMES
            && record.people.len() <= MAX_NAMES
            && record.version.len() <= MAX_NAMES
            && record.instance.len() <= MAX_NAMES;
        if !is_bounded {
            let why = format!("the record of {name} is too long");
            self.member.counts.refuse(Refusal::Malformed, why);
        }
        is_bounded.then_some(message)
    }

    pub(super) fn tool(&self, entry: &Entry) -> Option<ToolChange> {
        let (daemon, tool) = entry.key.split_once('.')?;
        let (daemon, tool) = (FleetName::parse(daemon).ok()?, ToolName::parse(tool).ok()?);
        let kind = match entry.operation {
            Operation::Delete | Operation::Purge => ToolChangeKind::Removed,
            Operation::Put if daemon == self.member.name => {
                // Its own refusals count nowhere: this is no message to this daemon.
                let nowhere = FleetCounts::default();
                match self.own.verify::<ToolRecord>(&entry.value, MessageKind::Tool, &entry.key, &nowhere) {
                    Ok(message) => put(message, entry.value.len()),
                    Err(_) => ToolChangeKind::Foreign,
                }
            }
            Operation::Put => {
                put(self.verified(&daemon, MessageKind::Tool, &entry.key, &entry.value)?, entry.value.len())
            }
        };
        Some(ToolChange { daemon, tool: tool.as_str().to_owned(), kind })
    }

    /// A message that the daemon itself has signed.
    fn verified<B: DeserializeOwned>(
        &self,
        name: &FleetName,
        kind: MessageKind,
        key: &str,
        bytes: &[u8],
    ) -> Option<Message<B>> {
        if !self.member.verifier.roster().daemons.contains_key(name) {
            // Its record comes every ten seconds, which would hide all other refusals.
            let mut strangers = self.strangers.lock();
            if strangers.len() >= MAX_STRANGERS || !strangers.insert(name.to_string()) {
                return None;
            }
        }
        let message = self.member.verify::<B>(bytes, kind, key).ok()?;
        if message.from != *name {
            let why = format!("{} signed the entry {key}, which only {name} may write", message.from);
            self.member.counts.refuse(Refusal::NotPermitted, why);
            return None;
        }
        Some(message)
    }
}

fn put(message: Message<ToolRecord>, bytes: usize) -> ToolChangeKind {
    let signed_at = message.at;
    ToolChangeKind::Put { record: Arc::new(message.body), message: ToolMessage { signed_at, bytes } }
}

impl ToolChange {
    pub(super) fn is_put(&self) -> bool {
        !matches!(self.kind, ToolChangeKind::Removed)
    }

    /// As [`Directory::note_own_tool`](crate::directory::Directory::note_own_tool) takes it.
    pub(super) fn into_own_entry(self) -> (String, Option<Option<ToolRecord>>) {
        let entry = match self.kind {
            ToolChangeKind::Put { record, .. } => Some(Some(Arc::unwrap_or_clone(record))),
            ToolChangeKind::Foreign => Some(None),
            ToolChangeKind::Removed => None,
        };
        (self.tool, entry)
    }

    pub(super) fn apply(&self, known: &mut KnownDaemon) -> Result<(), ReplayedTool> {
        let (record, message) = match &self.kind {
            ToolChangeKind::Put { record, message } => (record, *message),
            ToolChangeKind::Removed | ToolChangeKind::Foreign => {
                known.remove_tool(&self.tool);
                return Ok(());
            }
        };
        let listed = known.tools.get(&self.tool);
        let is_stale = |before: &ToolMessage| {
            message.signed_at < before.signed_at || (message.signed_at == before.signed_at && listed.is_none())
        };
        if known.tool_messages.get(&self.tool).is_some_and(is_stale) {
            return Err(ReplayedTool);
        }
        let is_same = listed == Some(record);
        match self.problem(known, record, message.bytes) {
            Some(problem) => {
                known.remove_tool(&self.tool);
                if known.problems.len() < MAX_PROBLEMS && !known.problems.contains(&problem) {
                    known.problems.push(problem);
                }
            }
            None if is_same => _ = known.tool_messages.insert(self.tool.clone(), message),
            None => known.put_tool(&self.tool, record.clone(), message),
        }
        Ok(())
    }

    /// Why the tool is left out, as a sentence for the user.
    fn problem(&self, known: &KnownDaemon, record: &ToolRecord, bytes: usize) -> Option<String> {
        let tool = &self.tool;
        let is_new = !known.tools.contains_key(tool);
        let is_too_many = is_new && known.tools.len() >= MAX_TOOLS
            || !known.tool_messages.contains_key(tool) && known.tool_messages.len() >= MAX_MESSAGES;
        if is_too_many {
            Some(format!("it lists more than {MAX_TOOLS} tools: {tool} and others are left out"))
        } else if known.list_bytes_without(tool) + bytes > MAX_BYTES {
            Some(format!("its list is longer than {MAX_BYTES} bytes: {tool} and others are left out"))
        } else if record.schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            Some(format!("{tool} is left out: its input schema does not describe an object"))
        } else {
            None
        }
    }
}
