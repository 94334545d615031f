//! Grants of persons that are valid in the whole fleet. [`make`] makes and revokes them, and [`run`] follows
//! the bucket; [`grant_book`](crate::grant_book) holds them.

pub mod make;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::stream::Info;
use futures_util::StreamExt;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::grant_book::FleetGrantBook;
use crate::grant_book::term::boot_time;
use crate::member::Member;
use crate::subjects;

/// How long the broker may take to show all grants.
const READ_ALL: Duration = Duration::from_secs(30);
/// For so long the bucket may differ from what it has shown, as while a change is on its way, before it is read again.
const MAX_DIFFERENCE: Duration = Duration::from_secs(2);

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let _contact = Contact(&member.grants);
    loop {
        follow(member).await?;
    }
}

/// The lease runs from its last renewal on when this ends.
struct Contact<'b>(&'b FleetGrantBook);

impl Drop for Contact<'_> {
    fn drop(&mut self) {
        self.0.lease.lose_contact();
        self.0.progress.send_modify(|progress| progress.is_synced = false);
    }
}

/// Reads the whole bucket, and follows its changes until it has to be read again.
async fn follow(member: &Arc<Member>) -> Result<(), String> {
    let book = &member.grants;
    let mut reconfigured = book.reconfigured.subscribe();
    let store = member.broker.jetstream.get_key_value(subjects::GRANTS).await;
    let store = store.map_err(|error| format!("can't open the bucket of grants: {error}"))?;
    let asked = boot_time();
    let first = info(&store).await?;
    let entries = store.watch_with_history(">").await;
    let mut entries = entries.map_err(|error| format!("can't follow the bucket of grants: {error}"))?;
    book.begin_reading();
    let mut revision = first.state.last_sequence;
    // Each has one message in the stream.
    let mut keys = HashSet::new();
    if first.state.messages > 0 {
        let read_all = async {
            while let Some(entry) = entries.next().await {
                let entry = entry.map_err(|error| lost(&error))?;
                take_over(member, &entry);
                revision = revision.max(entry.revision);
                let is_last = entry.seen_current;
                keys.insert(entry.key);
                if is_last {
                    return Ok(());
                }
            }
            Err("the broker ended the list of grants".to_owned())
        };
        let read = timeout(READ_ALL, read_all).await;
        read.map_err(|_| format!("the broker did not show all grants in {} s", READ_ALL.as_secs()))??;
    }
    book.end_reading(&member.counts);
    save(member).await;
    book.lease.renew(asked);
    book.progress.send_modify(|progress| *progress = crate::grant_book::ReadProgress { is_synced: true, revision });
    let mut renewals = interval(book.lease.interval());
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut differs_since = None;
    loop {
        tokio::select! {
            changed = reconfigured.changed() => {
                return changed.map_err(|_| "the daemon stops".to_owned());
            }
            entry = entries.next() => {
                let entry = entry.ok_or("the broker ended the list of grants")?.map_err(|error| lost(&error))?;
                take_over(member, &entry);
                save(member).await;
                revision = revision.max(entry.revision);
                keys.insert(entry.key);
                book.progress.send_modify(|progress| progress.revision = revision);
            }
            _ = renewals.tick() => {
                let asked = boot_time();
                let now = info(&store).await?;
                if now.created != first.created {
                    tracing::warn!("the bucket of grants was deleted and made again");
                    return Ok(());
                }
                let is_same = now.state.last_sequence == revision && now.state.messages >= keys.len() as u64;
                match differs_since {
                    _ if is_same => {
                        book.lease.renew(asked);
                        differs_since = None;
                    }
                    None => differs_since = Some(asked),
                    Some(since) if asked.saturating_sub(since) < MAX_DIFFERENCE => {}
                    Some(_) => {
                        tracing::warn!("entries of the bucket of grants are missing");
                        return Ok(());
                    }
                }
                if book.is_dirty() {
                    save(member).await;
                }
                for (key, revocation) in book.unsent() {
                    // Shown again by the server once it has stored it; if it refuses, it is tried at the next renewal.
                    if store.put(&key, revocation.into()).await.is_ok() {
                        book.was_sent(&key);
                    }
                }
            }
        }
    }
}

fn lost(error: &dyn std::error::Error) -> String {
    format!("the broker stopped showing the grants: {error}")
}

/// The state of the bucket now. `Store::status` returns that of the time when it was opened.
async fn info(store: &kv::Store) -> Result<Info, String> {
    let info = store.stream.get_info().await;
    info.map_err(|error| format!("can't read the state of the bucket of grants: {error}"))
}

fn take_over(member: &Member, entry: &kv::Entry) {
    match entry.operation {
        kv::Operation::Put => member.grants.take_over(&entry.key, &entry.value, &member.counts),
        kv::Operation::Delete | kv::Operation::Purge => member.grants.note_deleted(&entry.key, &member.counts),
    }
}

/// The change has taken effect already; it must also outlive the process.
pub(crate) async fn save(member: &Member) {
    let book = member.grants.clone();
    let saved = match book.is_dirty() {
        true => spawn_blocking(move || book.save()).await.unwrap_or_else(|error| Err(error.to_string())),
        false => Ok(()),
    };
    let problem = saved.err().or_else(|| member.grants.problem());
    member.note_problem("grants on disk", problem);
}
