//! Verifies entries of the buckets, and applies them within bounds.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_nats::jetstream::kv::Operation;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use toold_proto::tool::ToolName;

use crate::counts::FleetCounts;
use crate::directory::{KnownDaemon, ToolMessage};
use crate::keys::PublicKey;
use crate::messages::{MemberRecord, ToolRecord};
use crate::names::FleetName;
use crate::settings::{DaemonMember, Roster};
use crate::signed::{Message, MessageRefusal, SignedKind, Verifier};

/// Limit of the tools of one daemon.
const MAX_TOOLS: usize = 4_096;
/// Limit of all its tools together, as JSON.
const MAX_BYTES: usize = 16 << 20;
const MAX_PROBLEMS: usize = 20;
/// Tools whose newest message is remembered, those that are gone among them.
const MAX_MESSAGES: usize = 2 * MAX_TOOLS;
/// Labels or persons of a daemon.
const MAX_NAMES: usize = 64;
/// Daemons outside the configuration whose entries have been refused once; others are ignored.
const MAX_STRANGERS: usize = 1_000;

pub(super) struct EntryReader {
    /// The name of this daemon.
    name: FleetName,
    /// Knows the key of this daemon only.
    own: Verifier,
    strangers: Mutex<HashSet<String>>,
}

/// Decides about entries of others.
#[derive(Clone, Copy)]
pub(super) struct EntryGuard<'m> {
    pub(super) verifier: &'m Verifier,
    pub(super) counts: &'m FleetCounts,
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
    /// An entry of this daemon's tools that it did not write.
    Foreign,
}

/// The message is older than the one that is known.
pub(super) struct ReplayedTool;

impl EntryReader {
    pub(super) fn new(name: &FleetName, key: &PublicKey) -> Self {
        let own = DaemonMember { key: key.clone(), may_call: false, shows_asks: false };
        let roster = Roster { daemons: BTreeMap::from([(name.clone(), own)]), people: BTreeMap::new() };
        Self { name: name.clone(), own: Verifier::new(roster), strangers: Mutex::default() }
    }

    /// The other daemon whose record has this key.
    pub(super) fn daemon_of(&self, key: &str) -> Option<FleetName> {
        FleetName::parse(key).ok().filter(|name| *name != self.name)
    }

    pub(super) fn daemon(
        &self,
        guard: EntryGuard<'_>,
        name: &FleetName,
        bytes: &[u8],
    ) -> Option<Message<MemberRecord>> {
        let message = self.verified::<MemberRecord>(guard, name, SignedKind::Daemon, name.as_str(), bytes)?;
        let record = &message.body;
        let is_bounded = record.labels.len() <= MAX_NAMES
            && record.people.len() <= MAX_NAMES
            && record.version.len() <= MAX_NAMES
            && record.instance.len() <= MAX_NAMES;
        if !is_bounded {
            let why = format!("the record of {name} is too long");
            guard.counts.refuse(MessageRefusal::Malformed, why);
        }
        is_bounded.then_some(message)
    }

    pub(super) fn tool(
        &self,
        guard: EntryGuard<'_>,
        key: &str,
        operation: &Operation,
        bytes: &[u8],
    ) -> Option<ToolChange> {
        let (daemon, tool) = key.split_once('.')?;
        let (daemon, tool) = (FleetName::parse(daemon).ok()?, ToolName::parse(tool).ok()?);
        let kind = match operation {
            Operation::Delete | Operation::Purge => ToolChangeKind::Removed,
            Operation::Put if daemon == self.name => {
                // Its own refusals count nowhere: this is no message to this daemon.
                let nowhere = FleetCounts::default();
                match self.own.verify::<ToolRecord>(bytes, SignedKind::Tool, key, &nowhere) {
                    Ok(message) => put(message, bytes.len()),
                    Err(_) => ToolChangeKind::Foreign,
                }
            }
            Operation::Put => put(self.verified(guard, &daemon, SignedKind::Tool, key, bytes)?, bytes.len()),
        };
        Some(ToolChange { daemon, tool: tool.as_str().to_owned(), kind })
    }

    /// A message that the daemon itself has signed.
    fn verified<B: DeserializeOwned>(
        &self,
        guard: EntryGuard<'_>,
        name: &FleetName,
        kind: SignedKind,
        key: &str,
        bytes: &[u8],
    ) -> Option<Message<B>> {
        if !guard.verifier.roster().daemons.contains_key(name) {
            // Its record comes every ten seconds, which would hide all other refusals.
            let mut strangers = self.strangers.lock();
            if strangers.len() >= MAX_STRANGERS || !strangers.insert(name.to_string()) {
                return None;
            }
        }
        let message = guard.verifier.verify::<B>(bytes, kind, key, guard.counts).ok()?;
        if message.from != *name {
            let why = format!("{} signed the entry {key}, which only {name} may write", message.from);
            guard.counts.refuse(MessageRefusal::NotPermitted, why);
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

    /// In the first read of the bucket, a message counts again whose tool has been removed since: a broker that lost its last
    /// changes has it again, and its daemon does not write what is there already. Later, that is a replay.
    ///
    /// # Errors
    /// The message is an old one.
    pub(super) fn apply(&self, known: &mut KnownDaemon, is_first_read: bool) -> Result<(), ReplayedTool> {
        let (record, message) = match &self.kind {
            ToolChangeKind::Put { record, message } => (record, *message),
            ToolChangeKind::Removed | ToolChangeKind::Foreign => {
                known.remove_tool(&self.tool);
                return Ok(());
            }
        };
        let listed = known.tools.get(&self.tool);
        let is_stale = |before: &ToolMessage| {
            let may_repeat = is_first_read || listed.is_some();
            message.signed_at < before.signed_at || (message.signed_at == before.signed_at && !may_repeat)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toold_proto::tool::Annotations;

    use super::*;
    use crate::keys::{KeyOwner, SigningKey};
    use crate::signed::{now_ms, random_id, seal, sign};

    /// What the daemon `laptop` knows of `build`.
    struct Watched {
        reader: EntryReader,
        verifier: Verifier,
        counts: FleetCounts,
        build_key: SigningKey,
        farm_key: SigningKey,
        build: KnownDaemon,
        is_first_read: bool,
    }

    fn name(text: &str) -> FleetName {
        FleetName::parse(text).unwrap()
    }

    fn record(description: &str) -> ToolRecord {
        ToolRecord {
            label: String::new(),
            description: description.to_owned(),
            schema: json!({"type": "object"}),
            output_schema: None,
            fingerprint: String::new(),
            annotations: Annotations::default(),
            parallelizable: false,
            timeout_ms: None,
            version: None,
            grammar: None,
        }
    }

    impl Watched {
        fn new() -> Self {
            let key = || SigningKey::generate(KeyOwner::Daemon);
            let (own_key, build_key, farm_key) = (key(), key(), key());
            let member =
                |key: &SigningKey| DaemonMember { key: key.public().clone(), may_call: true, shows_asks: true };
            let daemons = BTreeMap::from([(name("build"), member(&build_key)), (name("farm"), member(&farm_key))]);
            Self {
                reader: EntryReader::new(&name("laptop"), own_key.public()),
                verifier: Verifier::new(Roster { daemons, people: BTreeMap::new() }),
                counts: FleetCounts::default(),
                build_key,
                farm_key,
                build: KnownDaemon::unheard(),
                is_first_read: false,
            }
        }

        fn put(&mut self, key: &str, bytes: &[u8]) {
            self.receive(key, &Operation::Put, bytes);
        }

        fn receive(&mut self, key: &str, operation: &Operation, bytes: &[u8]) {
            let guard = EntryGuard { verifier: &self.verifier, counts: &self.counts };
            let Some(change) = self.reader.tool(guard, key, operation, bytes) else { return };
            if change.apply(&mut self.build, self.is_first_read).is_err() {
                self.counts.refuse(MessageRefusal::Replayed, String::new());
            }
        }

        fn message(&self, tool: &str, at: u64, description: &str) -> Vec<u8> {
            let (kind, from, to) = (SignedKind::Tool, name("build"), format!("build.{tool}"));
            let nonce = random_id();
            seal(&self.build_key, &Message { kind, from, to, at, until: None, nonce, body: record(description) })
        }

        fn refused(&self) -> Vec<(MessageRefusal, u64)> {
            self.counts.refused().filter(|(_, number)| *number > 0).collect()
        }

        fn descriptions(&self) -> Vec<&str> {
            self.build.tools.values().map(|record| record.description.as_str()).collect()
        }
    }

    #[test]
    fn forged_and_foreign_tools_are_refused() {
        let mut watched = Watched::new();
        let (kind, stranger) = (SignedKind::Tool, SigningKey::generate(KeyOwner::Daemon));
        watched.put("build.a", &sign(&stranger, kind, &name("build"), "build.a", record("forged")));
        assert_eq!(watched.refused(), [(MessageRefusal::BadSignature, 1)]);
        let of_another = sign(&watched.farm_key, kind, &name("farm"), "build.a", record("of another daemon"));
        watched.put("build.a", &of_another);
        assert_eq!(watched.refused(), [(MessageRefusal::BadSignature, 1), (MessageRefusal::NotPermitted, 1)]);
        let moved = watched.message("b", now_ms(), "under another name");
        watched.put("build.a", &moved);
        assert_eq!(watched.counts.refused().map(|(_, number)| number).sum::<u64>(), 3);
        // One entry counts for all strangers: their daemons renew their records all the time.
        for _ in 0..2 {
            watched.put("mallory.a", &sign(&stranger, kind, &name("mallory"), "mallory.a", record("unknown")));
        }
        assert_eq!(watched.counts.refused().map(|(_, number)| number).sum::<u64>(), 4);
        assert_eq!(watched.descriptions(), Vec::<&str>::new());
    }

    #[test]
    fn old_tools_are_refused_also_when_the_tool_is_gone() {
        let mut watched = Watched::new();
        let (old, new) = (watched.message("a", 1_000, "old"), watched.message("a", 2_000, "new"));
        watched.put("build.a", &old);
        watched.put("build.a", &new);
        assert_eq!(watched.descriptions(), ["new"]);
        watched.put("build.a", &old);
        assert_eq!((watched.descriptions(), watched.refused()), (vec!["new"], vec![(MessageRefusal::Replayed, 1)]));
        // The broker delivers what it has after each connection.
        watched.put("build.a", &new);
        assert_eq!(watched.refused(), [(MessageRefusal::Replayed, 1)]);
        watched.receive("build.a", &Operation::Delete, &[]);
        assert_eq!(watched.descriptions(), Vec::<&str>::new());
        watched.put("build.a", &new);
        assert_eq!((watched.descriptions(), watched.refused()), (vec![], vec![(MessageRefusal::Replayed, 2)]));
        watched.is_first_read = true;
        watched.put("build.a", &old);
        assert_eq!((watched.descriptions(), watched.refused()), (vec![], vec![(MessageRefusal::Replayed, 3)]));
        watched.put("build.a", &new);
        assert_eq!(watched.descriptions(), ["new"]);
        watched.is_first_read = false;
        let again = watched.message("a", 3_000, "again");
        watched.put("build.a", &again);
        assert_eq!(watched.descriptions(), ["again"]);
    }

    #[test]
    fn lists_are_bounded_and_omissions_are_reported() {
        let mut watched = Watched::new();
        let message = ToolMessage { signed_at: 1, bytes: 100 };
        let change = |tool: String, record: ToolRecord, message: ToolMessage| ToolChange {
            daemon: name("build"),
            tool,
            kind: ToolChangeKind::Put { record: Arc::new(record), message },
        };
        let broken = ToolRecord { schema: Value::Bool(true), ..record("") };
        assert!(change("broken".into(), broken, message).apply(&mut watched.build, false).is_ok());
        let large = ToolMessage { bytes: MAX_BYTES + 1, ..message };
        assert!(change("large".into(), record(""), large).apply(&mut watched.build, false).is_ok());
        assert_eq!(watched.build.tools.len(), 0);
        for n in 0..=MAX_TOOLS {
            assert!(change(format!("t{n}"), record(""), message).apply(&mut watched.build, false).is_ok());
        }
        assert_eq!(watched.build.tools.len(), MAX_TOOLS);
        let problems = watched.build.problems.join("\n");
        let expected = ["broken is left out", "large and others are left out", "t4096 and others are left out"];
        assert!(expected.iter().all(|text| problems.contains(text)), "{problems}");
    }
}
