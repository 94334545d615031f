//! Searches the audit logs of all daemons in the stream that they send their rows to.
//!
//! Only its daemon can have written a row, but the broker can leave rows out and repeat them: a daemon numbers its rows, so
//! both are noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Info, Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::timeout;
use toold_engine::time::{from_rfc3339, read_since};
use toold_proto::audit::AuditEntry;
use toold_proto::fleet::{FleetAuditEntry, FleetAuditList, FleetAuditQuery};

use crate::audit::LOG;
use crate::broker::BrokerState;
use crate::counts::FleetCounts;
use crate::member::Member;
use crate::messages::AuditMessage;
use crate::names::FleetName;
use crate::signed::{Message, SignedKind, random_id, read_own};
use crate::subjects;

const DEFAULT_ENTRIES: u64 = 100;
const MAX_ENTRIES: u64 = 1_000;
/// Bytes of the rows of an answer, as messages.
const MAX_BYTES: usize = 8 << 20;
/// Rows that one search may look at.
const MAX_EXAMINED: usize = 100_000;
/// Numbers of messages that are read at once: the first time, and at most.
const FIRST_WINDOW: u64 = 500;
const MAX_WINDOW: u64 = 8_000;
/// How long the next message of a window may take.
const NEXT_MESSAGE: Duration = Duration::from_secs(10);
/// A call is older than its row, and the clocks of its daemon and of the broker differ.
const OLDER_THAN_ITS_ROW: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a search has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditSearchError {
    /// The query is wrong, or too wide.
    #[error("{0}")]
    Invalid(String),
    /// The broker does not answer.
    #[error("{0}")]
    Unavailable(String),
}

/// Finds rows of this daemon and of those in `[fleet]`, at most 1,000 and 8 MiB of them. Stops when it is dropped.
///
/// # Errors
/// When the query is invalid, when it would look at more than 100,000 rows, or when the broker does not answer.
pub async fn search(member: &Arc<Member>, query: FleetAuditQuery) -> Result<FleetAuditList, AuditSearchError> {
    let unavailable = |error: &dyn std::fmt::Display| {
        AuditSearchError::Unavailable(format!("can't read the stream {} on the broker: {error}", subjects::AUDIT))
    };
    let mut search = FleetAuditSearch::new(query)?;
    let BrokerState { connected, error, .. } = member.broker.state.borrow().clone();
    if !connected {
        return Err(unavailable(&error.unwrap_or_else(|| "the connection was lost".to_owned())));
    }
    let stream = match member.broker.jetstream.get_stream(subjects::AUDIT).await {
        Ok(stream) => stream,
        // The first daemon that sends a row makes it.
        Err(error) if is_missing(&error) => return Ok(search.finish()),
        Err(error) => return Err(unavailable(&error)),
    };
    let mut left = search.range(stream.cached_info());
    let mut size = FIRST_WINDOW;
    while let Some(window) = search.next_window(&mut left, size) {
        size = (size * 2).min(MAX_WINDOW);
        let rows = read(&stream, &search.subject, window).await.map_err(|error| unavailable(&error))?;
        let reader = member.clone();
        let verify = move || rows.into_iter().map(|row| row.verified(&reader)).collect::<Vec<_>>();
        let rows = tokio::task::spawn_blocking(verify).await.map_err(|error| unavailable(&error))?;
        if search.look_at(rows)? {
            break;
        }
    }
    Ok(search.finish())
}

fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// A message of the stream.
struct StreamMessage {
    sequence: u64,
    /// By the broker's clock.
    stored: SystemTime,
    subject: String,
    payload: Bytes,
}

struct StreamRow {
    sequence: u64,
    stored: SystemTime,
    bytes: usize,
    /// `None` if the daemon that it claims to be from did not sign it, or is not in `[fleet]`.
    row: Option<(FleetName, AuditMessage)>,
}

impl StreamMessage {
    fn verified(self, member: &Member) -> StreamRow {
        let Self { sequence, stored, subject, payload } = self;
        StreamRow { sequence, stored, bytes: payload.len(), row: read_row(member, &subject, &payload) }
    }
}

fn read_row(member: &Member, subject: &str, payload: &[u8]) -> Option<(FleetName, AuditMessage)> {
    let name = FleetName::parse(subject.strip_prefix(subjects::AUDIT_PREFIX)?).ok()?;
    let message: Message<AuditMessage> = match name == member.name {
        true => read_own(member.key(), payload, SignedKind::Audit, subject)?,
        // Rows of daemons that are not in [fleet] are no attack: they do not count as refused.
        false => {
            member.verifier.verify(payload, SignedKind::Audit, subject, &FleetCounts::default()).ok().filter(
                // Another daemon of the fleet may have signed it.
                |message: &Message<AuditMessage>| message.from == name,
            )?
        }
    };
    Some((name, message.body))
}

/// The messages with these numbers and this subject, the oldest first.
async fn read(stream: &Stream, subject: &str, window: std::ops::Range<u64>) -> Result<Vec<StreamMessage>, String> {
    let config = pull::OrderedConfig {
        // Named, so that the server sees in the subject of the request what is read.
        name: Some(random_id()),
        filter_subject: subject.to_owned(),
        // A stream that nothing was written to begins at 0, from which the server delivers nothing.
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: window.start.max(1) },
        ..pull::OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|error| error.to_string())?;
    let mut left = consumer.cached_info().num_pending;
    let mut messages = Vec::new();
    if left == 0 {
        return Ok(messages);
    }
    let mut arriving = consumer.messages().await.map_err(|error| error.to_string())?;
    while left > 0 {
        let message = match timeout(NEXT_MESSAGE, arriving.next()).await {
            Ok(Some(message)) => message.map_err(|error| error.to_string())?,
            Ok(None) => return Err("the broker ended the list".to_owned()),
            Err(_) => return Err(format!("no message arrived within {} s", NEXT_MESSAGE.as_secs())),
        };
        let info = message.info().map_err(|error| error.to_string())?;
        if info.stream_sequence >= window.end {
            break;
        }
        left = info.pending;
        messages.push(StreamMessage {
            sequence: info.stream_sequence,
            stored: info.published.into(),
            subject: message.subject.to_string(),
            payload: message.payload.clone(),
        });
    }
    Ok(messages)
}

struct FleetAuditSearch {
    query: FleetAuditQuery,
    since: Option<SystemTime>,
    subject: String,
    limit: usize,
    /// In the order in which they were found.
    found: Vec<FleetAuditEntry>,
    bytes: usize,
    examined: usize,
    /// The newest message that was looked at.
    last: u64,
    unverified: u64,
    more: bool,
    /// The rows that were looked at, by their daemon and its database.
    numbers: BTreeMap<(FleetName, String), BTreeSet<u64>>,
}

impl FleetAuditSearch {
    fn new(query: FleetAuditQuery) -> Result<Self, AuditSearchError> {
        let since = query.since.as_deref().map(|text| read_since(text, SystemTime::now())).transpose();
        let subject = match &query.daemon {
            Some(name) => FleetName::parse(name).map(|name| subjects::audit(&name)),
            None => Ok(format!("{}>", subjects::AUDIT_PREFIX)),
        };
        Ok(Self {
            since: since.map_err(AuditSearchError::Invalid)?,
            subject: subject.map_err(|error| AuditSearchError::Invalid(format!("daemon: {error}")))?,
            limit: query.limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES) as usize,
            last: query.after.unwrap_or_default(),
            query,
            found: Vec::new(),
            bytes: 0,
            examined: 0,
            unverified: 0,
            more: false,
            numbers: BTreeMap::new(),
        })
    }

    /// Whether the oldest rows are wanted, and not the newest.
    fn is_forward(&self) -> bool {
        self.query.after.is_some()
    }

    /// The numbers of all messages that may match.
    fn range(&self, stream: &Info) -> std::ops::Range<u64> {
        let start = self.query.after.map_or(0, |after| after.saturating_add(1)).max(stream.state.first_sequence);
        let end = stream.state.last_sequence.saturating_add(1);
        start..self.query.before.map_or(end, |before| before.min(end))
    }

    /// Takes a piece from the end that is looked at first; `None` when nothing is left.
    fn next_window(&self, left: &mut std::ops::Range<u64>, size: u64) -> Option<std::ops::Range<u64>> {
        if left.is_empty() {
            return None;
        }
        let window = match self.is_forward() {
            true => left.start..left.end.min(left.start + size),
            false => left.start.max(left.end.saturating_sub(size))..left.end,
        };
        match self.is_forward() {
            true => left.start = window.end,
            false => left.end = window.start,
        }
        Some(window)
    }

    /// True when nothing more is wanted.
    fn look_at(&mut self, mut rows: Vec<StreamRow>) -> Result<bool, AuditSearchError> {
        if !self.is_forward() {
            rows.reverse();
        }
        self.examined += rows.len();
        for StreamRow { sequence, stored, bytes, row } in rows {
            if !self.is_forward() && self.since.is_some_and(|since| stored + OLDER_THAN_ITS_ROW < since) {
                return Ok(true);
            }
            let Some((daemon, AuditMessage { row, notes })) = row else {
                self.unverified += 1;
                self.last = self.last.max(sequence);
                continue;
            };
            let log = notes.get(LOG).cloned().unwrap_or_default();
            let is_wanted = self.wants(&row);
            if is_wanted && (self.found.len() == self.limit || self.bytes + bytes > MAX_BYTES) {
                self.more = true;
                return Ok(true);
            }
            let is_new = self.numbers.entry((daemon.clone(), log)).or_default().insert(row.id);
            self.last = self.last.max(sequence);
            if is_wanted && is_new {
                self.bytes += bytes;
                self.found.push(FleetAuditEntry { sequence, daemon: daemon.to_string(), row });
            }
        }
        if self.examined > MAX_EXAMINED {
            return Err(AuditSearchError::Invalid(format!(
                "more than {MAX_EXAMINED} rows of the fleet's audit logs may match: narrow the query with since, daemon, \
                 before or after"
            )));
        }
        Ok(false)
    }

    fn wants(&self, row: &AuditEntry) -> bool {
        let FleetAuditQuery { session_id, tool, agent, outcome, .. } = &self.query;
        let is_of = |name: &Option<String>, wanted: &str| name.as_deref() == Some(wanted);
        session_id.as_ref().is_none_or(|wanted| *wanted == row.session_id)
            && tool.as_ref().is_none_or(|wanted| *wanted == row.tool)
            && agent.as_deref().is_none_or(|wanted| is_of(&row.agent, wanted) || is_of(&row.client, wanted))
            && outcome.is_none_or(|wanted| wanted == row.outcome)
            && self.since.is_none_or(|since| from_rfc3339(&row.at).is_some_and(|at| at >= since))
    }

    fn finish(mut self) -> FleetAuditList {
        if !self.is_forward() {
            self.found.reverse();
        }
        let mut missing = BTreeMap::new();
        for ((daemon, _), numbers) in &self.numbers {
            let span = numbers.last().zip(numbers.first()).map_or(0, |(last, first)| (last - first).saturating_add(1));
            let gaps = span.saturating_sub(numbers.len() as u64);
            if gaps > 0 {
                *missing.entry(daemon.to_string()).or_insert(0) += gaps;
            }
        }
        FleetAuditList { entries: self.found, more: self.more, last: self.last, unverified: self.unverified, missing }
    }
}
