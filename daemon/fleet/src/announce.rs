//! Announces this daemon and its tools in the buckets, and renews its record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::kv::Store;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, timeout_at};
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;

use crate::member::Member;
use crate::messages::{MemberRecord, ToolRecord};
use crate::offered::{self, OfferFilter};
use crate::signed::SignedKind;
use crate::subjects;

/// How often the record is renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// Changes that come together are announced together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Tools that are written at the same time: each waits for the broker.
const PARALLEL: usize = 32;
/// Bytes of a message beside the tool, such as the subject.
const HEADROOM: usize = 1_024;

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    // Before the list is made, so that no change is missed.
    let mut changes = AnnouncedChanges::new(member);
    member.directory.wait_until_synced().await;
    let store = async |name| {
        let bucket = member.broker.jetstream.get_key_value(name).await;
        bucket.map_err(|error| format!("can't open the bucket {name}: {error}"))
    };
    let (daemons, tools) = (store(subjects::DAEMONS).await?, store(subjects::TOOLS).await?);
    let mut announced: Option<MemberRecord> = None;
    let mut renewed = Instant::now();
    loop {
        // The tools come first, so that the record never promises tools that are not there.
        let written = put_tools(member, &tools).await?;
        if written > 0 {
            member.revision.fetch_add(1, Ordering::Relaxed);
        }
        let mut record = record(member);
        let is_new = announced.as_ref() != Some(&record);
        if is_new && announced.is_some() && written == 0 {
            record.revision = member.revision.fetch_add(1, Ordering::Relaxed) + 1;
        }
        if is_new || renewed.elapsed() >= RENEWAL {
            renewed = Instant::now();
            put(&daemons, member.name.as_str(), member.sign(SignedKind::Daemon, member.name.as_str(), &record)).await?;
            announced = Some(record);
        }
        if timeout_at(renewed + RENEWAL, changes.next()).await.is_ok() {
            sleep(DEBOUNCE).await;
        }
    }
}

/// Tells the fleet that this daemon leaves. It stays listed as away.
pub(crate) async fn leave(member: &Arc<Member>) {
    let gone = async {
        let daemons =
            member.broker.jetstream.get_key_value(subjects::DAEMONS).await.map_err(|error| error.to_string())?;
        daemons.delete(member.name.as_str()).await.map_err(|error| error.to_string())
    };
    if let Err(error) = gone.await {
        tracing::debug!(error, "the fleet was not told that this daemon leaves");
    }
}

/// Writes the tools that the bucket does not have yet as they are, and removes those that are not offered any more. Returns
/// how many that were.
async fn put_tools(member: &Arc<Member>, bucket: &Store) -> Result<usize, String> {
    let directory = &member.directory;
    let present = directory.own_tools();
    let offered = offered_tools(member);
    member.offered.store(offered.len() as u64, Ordering::Relaxed);
    let is_outdated = |(tool, record): &(&String, &ToolRecord)| present.get(*tool) != Some(&Some((*record).clone()));
    let max_message = member.broker.client.server_info().max_payload;
    let (mut puts, mut too_large) = (Vec::new(), Vec::new());
    for (tool, record) in offered.iter().filter(is_outdated) {
        let key = subjects::tool_key(&member.name, tool);
        let message = member.sign(SignedKind::Tool, &key, record);
        match message.len() + HEADROOM <= max_message {
            true => puts.push((tool, record, key, message)),
            false => too_large.push(tool.as_str()),
        }
    }
    let problem =
        || format!("larger than a message of the NATS server may be ({max_message} bytes): {}", too_large.join(", "));
    member.note_problem("tools", (!too_large.is_empty()).then(problem));
    let gone: Vec<&String> = present.keys().filter(|tool| !offered.contains_key(*tool)).collect();
    let number = puts.len() + gone.len();
    let put_one = async |(tool, record, key, message): (&String, &ToolRecord, String, Vec<u8>)| {
        put(bucket, &key, message).await?;
        directory.note_own_tool(tool, Some(Some(record.clone())));
        Ok::<(), String>(())
    };
    stream::iter(puts).map(put_one).buffer_unordered(PARALLEL).try_collect::<()>().await?;
    let delete_one = async |tool: &String| {
        let deleted = bucket.delete(subjects::tool_key(&member.name, tool)).await;
        deleted.map_err(|error| format!("can't remove the tool {tool} from its bucket: {error}"))?;
        directory.note_own_tool(tool, None);
        Ok::<(), String>(())
    };
    stream::iter(gone).map(delete_one).buffer_unordered(PARALLEL).try_collect::<()>().await?;
    Ok(number)
}

async fn put(bucket: &Store, key: &str, message: Vec<u8>) -> Result<(), String> {
    let put = bucket.put(key, message.into()).await;
    put.map(drop).map_err(|error| format!("can't write {key} into its bucket: {error}"))
}

fn offered_tools(member: &Member) -> BTreeMap<String, ToolRecord> {
    let filter = OfferFilter::new(&member.settings.load());
    let snapshot = member.engine.registry.snapshot();
    let offered = snapshot.global().iter().filter(|tool| filter.takes(tool.as_ref()));
    offered.map(|tool| (tool.spec().name.as_str().to_owned(), offered::record(tool.spec()))).collect()
}

fn record(member: &Member) -> MemberRecord {
    let settings = member.settings.load();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    // A set, since a label may be configured twice.
    let labels: BTreeSet<_> = settings.labels.iter().cloned().collect();
    let roster = member.verifier.roster();
    let trusts = roster.daemons.iter().map(|(name, member)| (name.clone(), member.key.as_str().to_owned())).collect();
    MemberRecord {
        instance: member.instance.clone(),
        labels: labels.into_iter().collect(),
        revision: count(&member.revision),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tools: count(&member.offered),
        running: count(&member.counts.running),
        max_calls: settings.max_calls as u64,
        people: member.person().filter(|_| member.engine.asks.can_all_be_answered()).cloned().into_iter().collect(),
        audit_waiting: count(&member.counts.audit_waiting),
        trusts,
    }
}

/// Everything that may change what is announced.
struct AnnouncedChanges {
    settings: watch::Receiver<()>,
    asks: watch::Receiver<()>,
    /// The load.
    served: watch::Receiver<()>,
    /// The registry's among them.
    events: broadcast::Receiver<Arc<Emitted>>,
}

impl AnnouncedChanges {
    fn new(member: &Member) -> Self {
        Self {
            settings: member.settings_changes(),
            asks: member.engine.asks.changes(),
            served: member.served.changes(),
            events: member.engine.events.subscribe(EventSelection::NoCalls, None).receiver,
        }
    }

    /// Returns when something may have changed. Cancel-safe.
    async fn next(&mut self) {
        let tools_changed = async {
            loop {
                match self.events.recv().await {
                    Ok(event) if matches!(event.body, EventBody::ToolsChanged { .. }) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    // Only when the daemon ends.
                    Err(RecvError::Closed) => return std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = tools_changed => {}
            _ = self.served.changed() => {}
            _ = self.settings.changed() => {}
            _ = self.asks.changed() => {}
        }
    }
}
