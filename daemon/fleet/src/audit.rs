//! Sends the audit log to the fleet: each row once, in order.
//!
//! The database is the spool: rows are read from it after the last one that is in the stream. Each message names the
//! sequence of the message before it on its subject, so that the server refuses a row that is already there or that
//! would leave a gap, whichever program was killed in between.

mod position;
pub mod search;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::DirectGetErrorKind;
use tokio::time::sleep;
use toold_proto::audit::AuditEntry;

use crate::audit::position::AuditPosition;
use crate::member::Member;
use crate::messages::AuditMessage;
use crate::signed::{MessageRefusal, SignedKind, random_id, read_own};
use crate::subjects;

/// How often to look for new rows.
const INTERVAL: Duration = Duration::from_secs(1);
/// Intervals without an event after which to look all the same.
const MAX_REST: u64 = 30;
/// Rows that are read at once.
const BATCH: u64 = 200;
/// Bytes of headers that are sent with a row, and a margin.
const HEADERS: usize = 1_024;
/// The note with the id of the database that a row is from: its ids count from 1 in each.
const LOG: &str = "log";

/// Notes where the log begins, if it does not know yet: rows from before this daemon joined its fleet are not sent.
pub(crate) async fn prepare(member: &Arc<Member>) {
    let begun = async {
        let position = match AuditPosition::load(member).await {
            Some(position) => position,
            None => AuditPosition { is_first: true, ..newest(member).await? },
        };
        save(member, &position).await
    };
    if let Err(why) = begun.await {
        member.note_problem("the audit log", Some(why));
    }
}

/// How many rows are not in the stream yet.
pub async fn waiting(member: &Arc<Member>) -> u64 {
    if !member.settings.load().audit {
        return 0;
    }
    let newest = member.host.newest_audit_row().await.unwrap_or_default();
    let waiting = newest.saturating_sub(member.counts.audit_row.load(Ordering::Relaxed));
    member.counts.audit_waiting.store(waiting, Ordering::Relaxed);
    waiting
}

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    loop {
        match member.settings.load().audit {
            true => AuditSender::find(member).await?.follow().await?,
            false => pause(member).await?,
        }
    }
}

/// Waits until the audit log is wanted. Rows of the meantime are never sent.
async fn pause(member: &Arc<Member>) -> Result<(), String> {
    save(member, &AuditPosition { is_off: true, ..newest(member).await? }).await?;
    while !member.settings.load().audit {
        sleep(INTERVAL).await;
    }
    save(member, &newest(member).await?).await
}

/// The newest row, as if everything up to it had been sent.
async fn newest(member: &Arc<Member>) -> Result<AuditPosition, String> {
    let row = member.host.newest_audit_row().await?;
    let (rows, _) = member.host.audit_after(Some(row.saturating_sub(1)), 1).await?;
    Ok(match rows.first() {
        Some(row) => AuditPosition::of(&random_id(), row),
        None => AuditPosition::start(&random_id()),
    })
}

async fn save(member: &Arc<Member>, position: &AuditPosition) -> Result<(), String> {
    position.save(member).await?;
    member.counts.audit_row.store(position.row, Ordering::Relaxed);
    Ok(())
}

/// The position of the last row in the stream, and the number of its message; 0 without one.
async fn last_in_stream(member: &Arc<Member>) -> Result<(Option<AuditPosition>, u64), String> {
    let failed = |error: &dyn std::fmt::Display| format!("can't read the stream {}: {error}", subjects::AUDIT);
    let subject = subjects::audit(&member.name);
    let stream = member.broker.jetstream.get_stream_no_info(subjects::AUDIT).await.map_err(|error| failed(&error))?;
    // Direct, since the subject of such a request names the one that is read.
    let last = match stream.direct_get_last_for_subject(&subject).await {
        Ok(last) => last,
        Err(error) if matches!(error.kind(), DirectGetErrorKind::NotFound) => return Ok((None, 0)),
        Err(error) => return Err(failed(&error)),
    };
    let Some(message) = read_own::<AuditMessage>(member.key(), &last.payload, SignedKind::Audit, &subject) else {
        let words = format!("the last message on {subject} is not signed with the key of this daemon");
        member.counts.refuse(MessageRefusal::BadSignature, words);
        return Ok((None, last.sequence));
    };
    let AuditMessage { row, notes } = message.body;
    let log = notes.get(LOG).map(String::as_str).unwrap_or_default();
    Ok((Some(AuditPosition::of(log, &row)), last.sequence))
}

/// Sends rows after the last one that was sent.
struct AuditSender<'m> {
    member: &'m Arc<Member>,
    subject: String,
    position: AuditPosition,
    /// The sequence number of the last message on the subject.
    sequence: u64,
}

impl<'m> AuditSender<'m> {
    /// Finds the last row that was sent: the stream knows it, and so does this daemon's own file, for the case that
    /// messages were deleted from the stream.
    async fn find(member: &'m Arc<Member>) -> Result<Self, String> {
        let (in_stream, sequence) = last_in_stream(member).await?;
        let own = match AuditPosition::load(member).await {
            Some(own) if own.is_off => Some(newest(member).await?),
            own => own,
        };
        let position = Self::choose(member, own, in_stream).await?;
        save(member, &position).await?;
        Ok(Self { member, subject: subjects::audit(&member.name), position, sequence })
    }

    async fn choose(
        member: &Arc<Member>,
        own: Option<AuditPosition>,
        in_stream: Option<AuditPosition>,
    ) -> Result<AuditPosition, String> {
        let mut valid = Vec::new();
        let mut last = String::new();
        for position in [in_stream, own].into_iter().flatten() {
            last = last.max(position.at.clone());
            // Nobody has sent anything from here: only the stream can know of more.
            let is_guess = position.is_first && !valid.is_empty();
            if !is_guess && is_in_database(member, &position).await? {
                valid.push(position);
            }
        }
        if let Some(mut position) = valid.into_iter().max_by_key(|position| position.row) {
            position.is_first = false;
            return Ok(position);
        }
        tracing::warn!("the audit log is another one than before: it is sent from the rows after {last} on");
        Ok(AuditPosition { at: last, ..AuditPosition::start(&random_id()) })
    }

    /// Sends new rows until the audit log is switched off, or somebody else has written to the subject.
    async fn follow(mut self) -> Result<(), String> {
        let mut looks = Looks::default();
        while self.member.settings.load().audit {
            if looks.is_due(self.member.engine.events.next()) && !self.send_new().await? {
                return Ok(());
            }
            sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// False when the subject was written to by somebody else.
    async fn send_new(&mut self) -> Result<bool, String> {
        loop {
            let (rows, more) = self.member.host.audit_after(Some(self.position.row), BATCH).await?;
            let before = self.position.row;
            self.member.counts.audit_waiting.store(rows.len() as u64, Ordering::Relaxed);
            for row in rows {
                // In a database that has taken the place of another, these are older than the last one that was sent.
                let is_old = self.position.call_id.is_none() && row.at <= self.position.at;
                if !is_old && !self.send(&row).await? {
                    return Ok(false);
                }
                let at = if is_old { self.position.at.clone() } else { row.at.clone() };
                let call_id = (!is_old).then(|| row.call_id.clone());
                self.position = AuditPosition { row: row.id, at, call_id, ..self.position.clone() };
                self.member.counts.audit_row.store(row.id, Ordering::Relaxed);
            }
            if self.position.row != before {
                save(self.member, &self.position).await?;
            }
            if !more {
                self.member.counts.audit_waiting.store(0, Ordering::Relaxed);
                return Ok(true);
            }
        }
    }

    /// Waits until the server has stored the row. False when the subject was written to by somebody else.
    async fn send(&mut self, row: &AuditEntry) -> Result<bool, String> {
        let failed = |error: PublishError| format!("can't send row {} of the audit log: {error}", row.id);
        let message = PublishMessage::build()
            .payload(self.signed(row).into())
            .message_id(format!("{}-{}-{}", self.member.name, self.position.log, row.id))
            .expected_stream(subjects::AUDIT)
            .expected_last_subject_sequence(self.sequence);
        let sent = self.member.broker.jetstream.send_publish(self.subject.clone(), message).await.map_err(failed)?;
        match sent.await {
            // It was stored before. Somebody may have deleted it since, so it need not be the last one.
            Ok(ack) if ack.duplicate => {
                self.sequence = last_in_stream(self.member).await?.1;
                Ok(true)
            }
            Ok(ack) => {
                self.sequence = ack.sequence;
                self.member.counts.audit_sent.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn signed(&self, row: &AuditEntry) -> Vec<u8> {
        let sign = |message: AuditMessage| self.member.sign(SignedKind::Audit, &self.subject, message);
        let notes = [(LOG.to_owned(), self.position.log.clone())].into();
        let mut message = AuditMessage { row: row.clone(), notes };
        let signed = sign(message.clone());
        let max = self.member.broker.client.server_info().max_payload.saturating_sub(HEADERS);
        if signed.len() <= max {
            return signed;
        }
        let decisions = std::mem::take(&mut message.row.decisions);
        message.notes.insert("left_out".to_owned(), format!("{} decisions: the row is too large", decisions.len()));
        sign(message)
    }
}

/// Decides when to look at the database: a daemon at rest leaves it alone.
#[derive(Default)]
struct Looks {
    /// The number of the daemon's next event, one interval ago.
    events: Option<u64>,
    /// Intervals without a look.
    rested: u64,
    looked_since_event: bool,
}

impl Looks {
    fn is_due(&mut self, events: u64) -> bool {
        let is_new = self.events.replace(events) != Some(events);
        // A row is written a moment after its event, so it is in the database one look later. Another daemon with the same
        // database has events of its own.
        let is_due = is_new || !self.looked_since_event || self.rested >= MAX_REST;
        self.looked_since_event = !is_new;
        self.rested = if is_due { 0 } else { self.rested + 1 };
        is_due
    }
}

/// Whether the row is in the database, or was there and has been deleted as too old.
async fn is_in_database(member: &Arc<Member>, position: &AuditPosition) -> Result<bool, String> {
    let Some(call_id) = &position.call_id else { return Ok(true) };
    let (rows, _) = member.host.audit_after(Some(position.row.saturating_sub(1)), 1).await?;
    Ok(rows.first().is_some_and(|row| row.id > position.row || row.call_id == *call_id))
}
