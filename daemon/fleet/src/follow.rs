//! Follows the buckets of daemons and tools, and fills the [directory](crate::directory). [`records`] verifies their entries.
//!
//! A daemon is away when its record was deleted or has not been renewed for a while. It stays in the directory, and so do its
//! tools.

mod records;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::kv::{Entry, Operation, Store, Watch};
use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use tokio::time::{Instant, interval, sleep};

use crate::broker::DAEMON_LIFETIME;
use crate::directory::KnownDaemon;
use crate::follow::records::{EntryGuard, EntryReader, ToolChange};
use crate::member::Member;
use crate::messages::MemberRecord;
use crate::names::FleetName;
use crate::signed::{Message, MessageRefusal, now_ms};
use crate::subjects;

/// Entries that are verified and applied at once.
const CHUNK: usize = 256;
/// How often the directory is searched for silent daemons.
const TICK: Duration = Duration::from_secs(1);
/// How long nothing arrives before the first entries of a bucket are counted.
const QUIET: Duration = Duration::from_secs(5);
/// How often they are counted in vain before they are read again.
const MAX_QUIET: u32 = 6;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let mut settings = member.settings_changes();
    loop {
        let roster = member.verifier.roster().daemons.clone();
        forget_strangers(member);
        let changed = async {
            // Fails only when the sender is gone, which the member holds.
            while settings.changed().await.is_ok() && member.verifier.roster().daemons == roster {}
        };
        tokio::select! {
            biased;
            () = changed => {}
            ended = follow(member) => return ended.map(|never| match never {}),
        }
    }
}

/// Marks silent daemons and saves the directory, until the member leaves the fleet.
pub(crate) async fn keep_time(member: Arc<Member>) {
    let directory = &member.directory;
    let began = Instant::now();
    let mut tick = interval(TICK);
    let mut saved = None;
    loop {
        let is_over = tokio::select! {
            biased;
            () = member.stop.cancelled() => true,
            _ = tick.tick() => false,
        };
        if began.elapsed() >= DAEMON_LIFETIME {
            directory.settle();
        }
        let is_silent = |known: &KnownDaemon| !known.is_away && known.heard.elapsed() >= DAEMON_LIFETIME;
        if directory.read(|daemons| daemons.values().any(is_silent)) {
            directory.change(|daemons| {
                daemons.values_mut().filter(|known| is_silent(known)).for_each(|known| known.is_away = true);
            });
        }
        // The time at which each was last heard of is not worth a write every ten seconds.
        let state: Vec<_> = directory.read(|daemons| {
            daemons
                .iter()
                .map(|(name, known)| (name.clone(), known.record.clone().map(identity), known.is_away))
                .collect()
        });
        if is_over || saved.as_ref() != Some(&state) {
            saved = Some(state);
            let member = member.clone();
            let save = move || member.directory.save(&member.connection.state_dir);
            if let Err(error) = tokio::task::spawn_blocking(save).await {
                tracing::warn!(%error, "can't save the daemons of the fleet");
            }
        }
        if is_over {
            return;
        }
    }
}

/// The part of a record that stays while the daemon runs.
fn identity(record: MemberRecord) -> (String, Vec<FleetName>, String) {
    (record.instance, record.labels, record.version)
}

/// Removes the daemons that the configuration does not name any more, or names with another key.
fn forget_strangers(member: &Member) {
    let roster = member.verifier.roster();
    let is_known = |name: &FleetName| roster.daemons.contains_key(name);
    if !member.directory.read(|daemons| daemons.keys().all(is_known)) {
        member.directory.change(|daemons| daemons.retain(|name, _| is_known(name)));
    }
}

async fn follow(member: &Arc<Member>) -> Result<Infallible, String> {
    let reader = Arc::new(EntryReader::new(&member.name, member.key()));
    // The state of this connection alone, whatever was known before.
    member.directory.set_synced(false);
    let daemons = follow_daemons(member, &reader);
    let tools = follow_tools(member, &reader);
    let (never, _) = tokio::try_join!(daemons, tools)?;
    Ok(never)
}

fn guard(member: &Member) -> EntryGuard<'_> {
    EntryGuard { verifier: &member.verifier, counts: &member.counts }
}

/// The entries of a bucket: first those that it has, then every change.
struct BucketEntries {
    name: &'static str,
    store: Store,
    entries: ReadyChunks<Watch>,
    /// Whether those that were there at the beginning have all arrived.
    is_complete: bool,
    /// The keys that have arrived until then.
    keys: HashSet<String>,
}

impl BucketEntries {
    async fn open(member: &Member, name: &'static str) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("can't watch the bucket {name}: {error}");
        let store = member.broker.jetstream.get_key_value(name).await.map_err(|error| failed(&error))?;
        let entries = store.watch_with_history(">").await.map_err(|error| failed(&error))?.ready_chunks(CHUNK);
        let is_complete = size(&store, name).await? == 0;
        Ok(Self { name, store, entries, is_complete, keys: HashSet::new() })
    }

    /// The next entries; none of them when it is only now known that the first ones have all arrived.
    async fn next(&mut self) -> Result<Vec<Entry>, String> {
        let name = self.name;
        if self.is_complete {
            self.keys = HashSet::new();
        }
        for _ in 0..MAX_QUIET {
            tokio::select! {
                biased;
                chunk = self.entries.next() => {
                    let chunk = chunk.ok_or_else(|| format!("the watch of the bucket {name} ended"))?;
                    let mut entries = Vec::with_capacity(chunk.len());
                    for entry in chunk {
                        let entry = entry.map_err(|error| format!("the watch of the bucket {name} failed: {error}"))?;
                        if !self.is_complete {
                            self.keys.insert(entry.key.clone());
                        }
                        self.is_complete |= entry.seen_current;
                        entries.push(entry);
                    }
                    return Ok(entries);
                }
                () = sleep(QUIET), if !self.is_complete => {
                    // The last one of them does not arrive when it has expired. Each key has one entry.
                    if self.keys.len() as u64 >= size(&self.store, name).await? {
                        self.is_complete = true;
                        return Ok(Vec::new());
                    }
                }
            }
        }
        Err(format!("the broker did not show all entries of the bucket {name}"))
    }
}

/// How many entries the bucket has now. `Store::status` returns the number of the time when it was opened.
async fn size(store: &Store, name: &str) -> Result<u64, String> {
    let info = store.stream.get_info().await;
    Ok(info.map_err(|error| format!("can't read the state of the bucket {name}: {error}"))?.state.messages)
}

async fn follow_daemons(member: &Arc<Member>, reader: &EntryReader) -> Result<Infallible, String> {
    let mut bucket = BucketEntries::open(member, subjects::DAEMONS).await?;
    let directory = &member.directory;
    let mut seen = Some(HashSet::new());
    loop {
        if bucket.is_complete
            && let Some(seen) = seen.take()
        {
            // Records that expired while the broker was not connected.
            directory.change(|daemons| {
                let gone = daemons.iter_mut().filter(|(name, _)| !seen.contains(*name));
                gone.for_each(|(_, known)| known.is_away = true);
            });
            directory.settle();
        }
        for entry in bucket.next().await? {
            let Some(name) = reader.daemon_of(&entry.key) else { continue };
            match entry.operation {
                Operation::Put => {
                    if let Some(message) = reader.daemon(guard(member), &name, &entry.value) {
                        hear(member, &name, message, seen.is_none());
                        seen.iter_mut().for_each(|seen| _ = seen.insert(name.clone()));
                    }
                }
                // Nobody signs this, so it is no more than a hint, and the next record takes it back.
                Operation::Delete | Operation::Purge => {
                    directory.change(|daemons| {
                        if let Some(known) = daemons.get_mut(&name).filter(|known| !known.is_away) {
                            known.is_away = true;
                            known.heard_at = Some(SystemTime::now());
                        }
                    });
                }
            }
        }
    }
}

/// Takes over a record, unless it is an old one. `is_fresh` if it did not wait on the broker.
fn hear(member: &Member, name: &FleetName, message: Message<MemberRecord>, is_fresh: bool) {
    let is_replayed = member.directory.change(|daemons| {
        let known = daemons.entry(name.clone()).or_insert_with(KnownDaemon::unheard);
        let is_older =
            |before: &MemberRecord| before.instance == message.body.instance && message.body.revision < before.revision;
        if message.at < known.signed_at || known.record.as_ref().is_some_and(is_older) {
            return true;
        }
        // The same message again says nothing about now, unless it has only been read from the file since the start.
        if message.at > known.signed_at || known.record.is_none() || known.is_from_file {
            known.is_from_file = false;
            if known.labels() != message.body.labels {
                known.list += 1;
            }
            known.signed_at = message.at;
            known.clock_ms = is_fresh.then(|| message.at.cast_signed().wrapping_sub(now_ms().cast_signed()));
            known.heard = Instant::now();
            known.heard_at = Some(SystemTime::now());
            known.is_away = false;
            known.record = Some(message.body);
        }
        false
    });
    if is_replayed {
        refuse_replayed(member, name, "record");
    }
}

fn refuse_replayed(member: &Member, name: &FleetName, what: &str) {
    let sentence = format!("a {what} of {name} is older than the one that is known");
    member.counts.refuse(MessageRefusal::Replayed, sentence);
}

async fn follow_tools(member: &Arc<Member>, reader: &Arc<EntryReader>) -> Result<Infallible, String> {
    let mut bucket = BucketEntries::open(member, subjects::TOOLS).await?;
    let mut seen: Option<BTreeMap<FleetName, HashSet<String>>> = Some(BTreeMap::new());
    loop {
        if bucket.is_complete
            && let Some(seen) = seen.take()
        {
            remove_unseen(member, &seen);
            member.directory.set_synced(true);
        }
        let entries = bucket.next().await?;
        let (reader, receiver) = (reader.clone(), member.clone());
        // Signatures take time.
        let read = move || {
            let read = |entry: &Entry| reader.tool(guard(&receiver), &entry.key, &entry.operation, &entry.value);
            entries.iter().filter_map(read).collect::<Vec<_>>()
        };
        let changes = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
        if let Some(seen) = &mut seen {
            for change in changes.iter().filter(|change| change.is_put()) {
                seen.entry(change.daemon.clone()).or_default().insert(change.tool.clone());
            }
        }
        if !changes.is_empty() {
            apply(member, changes, seen.is_some());
        }
    }
}

/// `is_first_read` while the entries are those that the bucket had when it was opened.
fn apply(member: &Member, changes: Vec<ToolChange>, is_first_read: bool) {
    let directory = &member.directory;
    let (own, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.daemon == member.name);
    for change in own {
        let (tool, entry) = change.into_own_entry();
        directory.note_own_tool(&tool, entry);
    }
    if others.is_empty() {
        return;
    }
    let replayed: Vec<FleetName> = directory.change(|daemons| {
        let mut replayed = Vec::new();
        for change in others {
            let known = daemons.entry(change.daemon.clone()).or_insert_with(KnownDaemon::unheard);
            if change.apply(known, is_first_read).is_err() {
                replayed.push(change.daemon);
            }
        }
        replayed
    });
    for name in replayed {
        refuse_replayed(member, &name, "tool");
    }
}

/// Removes the tools that the bucket does not have any more. Those of a daemon that is away stay: it cannot say that they
/// are gone.
fn remove_unseen(member: &Member, seen: &BTreeMap<FleetName, HashSet<String>>) {
    let none = HashSet::new();
    member.directory.retain_own_tools(seen.get(&member.name).unwrap_or(&none));
    member.directory.change(|daemons| {
        for (name, known) in daemons.iter_mut().filter(|(_, known)| !known.is_away) {
            let seen = seen.get(name).unwrap_or(&none);
            let gone: Vec<String> = known.tools.keys().filter(|tool| !seen.contains(*tool)).cloned().collect();
            gone.iter().for_each(|tool| known.remove_tool(tool));
        }
    });
}
