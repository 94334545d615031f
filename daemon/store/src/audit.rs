//! The audit log: a row for each call, written in batches on a separate thread, so that calls never
//! wait for it.

use std::collections::HashSet;
use std::sync::mpsc::TrySendError;
use std::time::SystemTime;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use toold_engine::audit::{AuditLog, AuditRow, DecisionRecord, OF_AGENT};
use toold_engine::time::{read_since, rfc3339};
use toold_proto::audit::{AuditEntry, AuditList, AuditQuery};
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::columns::{from_count, from_time, to_count, to_time};
use crate::journal::Recorded;
use crate::writer::WriterMessage;
use crate::{Store, StoreError};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1_000;
/// An answer that would exceed this has fewer entries.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Rows that are examined in one piece: some milliseconds.
const PIECE: i64 = 2_000;
/// Rows in which calls are looked up: some tens of milliseconds.
const LOOKED_UP: i64 = 100_000;
/// Rows that one query may examine without a match.
const MAX_EXAMINED: i64 = 5_000_000;

/// Begins and ends survive the end of the process once these functions return: they are in the journal then. A row is in
/// the database after a tenth of a second or 4,096 rows.
impl AuditLog for Store {
    fn begin(&self, row: &AuditRow) -> Result<u64, String> {
        let begun = self.journal.begin(row);
        self.health.set_unjournaled(begun.as_ref().err().cloned());
        begun
    }

    fn record(&self, row: &AuditRow) -> Result<(), String> {
        let Recorded { unwritten, wake, lost } = self.journal.end(row);
        if lost {
            self.health.lose(1);
        }
        if let (true, Some(sender)) = (wake, self.sender.get()) {
            match sender.try_send(WriterMessage::Rows) {
                Ok(()) => {}
                // The writer is busy, and reaches the rows afterwards.
                Err(TrySendError::Full(_)) => {}
                // It moves what is in the journal at the next start.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        self.health.set_unjournaled(unwritten.clone());
        unwritten.map_or(Ok(()), Err)
    }
}

impl Store {
    /// Past calls, including those that have just ended. `is_cancelled` is checked now and then;
    /// once it is true, the query stops.
    ///
    /// Reads in pieces, between which calls and other queries proceed, and returns at most 1,000
    /// entries and 8 MiB.
    ///
    /// # Errors
    /// An invalid query, more than [`MAX_EXAMINED`] rows to examine, or an error of the database.
    pub fn query_audit(&self, query: &AuditQuery, is_cancelled: &dyn Fn() -> bool) -> Result<AuditList, StoreError> {
        let since = query.since.as_deref().map(|text| read_since(text, SystemTime::now())).transpose();
        let since = since.map_err(StoreError::BadQuery)?;
        self.flush();
        let Some(mut left) = self.scan(|connection| numbers(connection, query, since))? else {
            return Ok(AuditList { lost: self.lost_since(since)?, ..AuditList::default() });
        };
        let mut search = AuditSearch::new(query, since);
        let mut examined = 0;
        while let Some(piece) = left.take(query.after.is_some()) {
            if is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            examined += PIECE;
            if examined > MAX_EXAMINED {
                return Err(StoreError::BadQuery(format!(
                    "the audit log has more than {MAX_EXAMINED} rows that may match: narrow the query with since, \
                     session_id or after"
                )));
            }
            if self.scan(|connection| search.look_at(connection, piece))? {
                break;
            }
        }
        let mut list = search.list;
        if query.after.is_none() {
            list.entries.reverse();
        }
        list.lost = self.lost_since(since)?;
        Ok(list)
    }

    /// The decisions of past calls, the oldest first, for trying rules on them. `is_cancelled`: as in
    /// [`Store::query_audit`].
    ///
    /// # Errors
    /// An invalid time, more than [`MAX_EXAMINED`] rows, or an error of the database.
    pub fn past_decisions(
        &self,
        since: &str,
        is_cancelled: &dyn Fn() -> bool,
        mut each: impl FnMut(DecidedCall),
    ) -> Result<(), StoreError> {
        let since = read_since(since, SystemTime::now()).map_err(StoreError::BadQuery)?;
        self.flush();
        let query = AuditQuery::default();
        let Some(mut left) = self.scan(|connection| numbers(connection, &query, Some(since)))? else { return Ok(()) };
        let mut examined = 0;
        while let Some(piece) = left.take(true) {
            examined += PIECE;
            if is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            if examined > MAX_EXAMINED {
                return Err(StoreError::BadQuery(format!("more than {MAX_EXAMINED} rows: choose a later time")));
            }
            self.scan(|connection| {
                let select = "SELECT at, session_id, tool, source, decisions FROM audit WHERE id BETWEEN ? AND ?";
                let mut select = connection.prepare_cached(select)?;
                let mut rows = select.query([piece.first, piece.last])?;
                while let Some(row) = rows.next()? {
                    let text = |column: usize| row.get::<_, String>(column);
                    let ids = (SessionId::parse(&text(1)?), ToolName::parse(&text(2)?));
                    let at = to_time(row.get(0)?);
                    if let (Ok(session_id), Ok(tool)) = ids
                        && at >= since
                    {
                        let decisions = serde_json::from_str(&text(4)?).unwrap_or_default();
                        each(DecidedCall {
                            at,
                            session_id,
                            tool,
                            agent: agent_of(&text(3)?).map(str::to_owned),
                            decisions,
                        });
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Whether calls are recorded before they act, as of the last attempt.
    pub fn journals_calls(&self) -> bool {
        self.journal.problem().is_none()
    }

    /// The calls among `call_ids` that have a row among the last ones of the log.
    ///
    /// # Errors
    /// An error of the database.
    pub fn recorded_calls(&self, call_ids: &[CallId]) -> Result<Vec<CallId>, StoreError> {
        self.flush();
        let wanted: HashSet<&str> = call_ids.iter().map(CallId::as_str).collect();
        let found = self.scan(|connection| {
            let mut select = connection.prepare_cached("SELECT call_id FROM audit ORDER BY id DESC LIMIT ?1")?;
            let mut rows = select.query([LOOKED_UP])?;
            let mut found = HashSet::new();
            while let Some(row) = rows.next()? {
                if let Some(call_id) = row.get_ref(0)?.as_str().ok().and_then(|id| wanted.get(id)) {
                    found.insert(*call_id);
                }
            }
            Ok(found)
        })?;
        Ok(call_ids.iter().filter(|id| found.contains(id.as_str())).cloned().collect())
    }

    fn lost_since(&self, since: Option<SystemTime>) -> Result<u64, StoreError> {
        self.scan(|connection| {
            let lost = "SELECT coalesce(sum(rows), 0) FROM audit_lost WHERE at >= ?1";
            Ok(connection.query_row(lost, [since.map_or(0, from_time)], |row| row.get(0)).map(to_count)?)
        })
    }
}

/// The decisions of one call of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct DecidedCall {
    pub at: SystemTime,
    pub session_id: SessionId,
    pub tool: ToolName,
    /// The agent that used a tool of its own.
    pub agent: Option<String>,
    pub decisions: Vec<DecisionRecord>,
}

/// The agent of a source such as `agent:codex/explorer 1`.
fn agent_of(source: &str) -> Option<&str> {
    source.strip_prefix(OF_AGENT)?.split('/').next()
}

/// The row numbers that are still to be examined: from `first` up to `last`.
struct Numbers {
    first: i64,
    last: i64,
}

impl Numbers {
    /// The next piece, from below or from above; `None` when none are left.
    fn take(&mut self, from_below: bool) -> Option<Numbers> {
        if self.first > self.last {
            return None;
        }
        if from_below {
            let first = self.first;
            let last = self.last.min(first.saturating_add(PIECE - 1));
            self.first = last.saturating_add(1);
            return Some(Numbers { first, last });
        }
        let last = self.last;
        let first = self.first.max(last.saturating_sub(PIECE - 1));
        self.last = first.saturating_sub(1);
        Some(Numbers { first, last })
    }
}

/// The range of row numbers that contains all possible matches.
fn numbers(
    connection: &Connection,
    query: &AuditQuery,
    since: Option<SystemTime>,
) -> Result<Option<Numbers>, StoreError> {
    let one = |sql: &str, value: &dyn ToSql| -> Result<Option<i64>, StoreError> {
        Ok(connection.prepare_cached(sql)?.query_row([value], |row| row.get(0))?)
    };
    // Each is answered by an index alone.
    let (first, last) = match &query.session_id {
        Some(id) => (
            one("SELECT min(id) FROM audit WHERE session_id = ?1", &id.as_str())?,
            one("SELECT max(id) FROM audit WHERE session_id = ?1", &id.as_str())?,
        ),
        None => (one("SELECT min(id) FROM audit WHERE ?1", &true)?, one("SELECT max(id) FROM audit WHERE ?1", &true)?),
    };
    let (Some(mut first), Some(last)) = (first, last) else { return Ok(None) };
    if let Some(since) = since {
        let Some(since) = one("SELECT min(id) FROM audit WHERE at >= ?1", &from_time(since))? else { return Ok(None) };
        first = first.max(since);
    }
    if let Some(after) = query.after {
        first = first.max(from_count(after).saturating_add(1));
    }
    Ok(Some(Numbers { first, last }))
}

/// The query, and the entries found so far.
struct AuditSearch {
    select: String,
    values: Vec<Sql>,
    limit: u64,
    bytes: usize,
    list: AuditList,
}

impl AuditSearch {
    fn new(query: &AuditQuery, since: Option<SystemTime>) -> Self {
        let (filter, values) = conditions(query, since);
        let order = if query.after.is_some() { "ASC" } else { "DESC" };
        let select = format!(
            "SELECT id, at, call_id, session_id, tool, source, client, connection, decisions, outcome, duration_ms, \
             input_bytes, output_bytes, original_ms FROM audit WHERE {filter} id BETWEEN ? AND ? ORDER BY id {order}"
        );
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        Self { select, values, limit, bytes: 0, list: AuditList::default() }
    }

    /// True when no further rows need to be examined.
    fn look_at(&mut self, connection: &Connection, piece: Numbers) -> Result<bool, StoreError> {
        let mut select = connection.prepare_cached(&self.select)?;
        let between = [Sql::Integer(piece.first), Sql::Integer(piece.last)];
        let mut rows = select.query(params_from_iter(self.values.iter().chain(&between)))?;
        while let Some(row) = rows.next()? {
            self.bytes += 512 + row.get_ref(8)?.as_bytes().map_or(0, <[u8]>::len);
            let full = self.bytes > MAX_ANSWER && !self.list.entries.is_empty();
            if self.list.entries.len() as u64 == self.limit || full {
                self.list.more = true;
                return Ok(true);
            }
            self.list.entries.extend(read_entry(row)?);
        }
        Ok(false)
    }
}

fn conditions(query: &AuditQuery, since: Option<SystemTime>) -> (String, Vec<Sql>) {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    let mut add = |condition: &'static str, value: Option<Sql>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    };
    let text = |text: &str| Sql::Text(text.to_owned());
    // Not by the index over it: rows are examined in the order of their numbers.
    add("+at >= ?", since.map(|since| Sql::Integer(from_time(since))));
    add("session_id = ?", query.session_id.as_ref().map(|session| text(session.as_str())));
    add("tool = ?", query.tool.as_ref().map(|tool| text(tool.as_str())));
    // A source such as `agent:codex/explorer 1`: the name is between the colon and the slash.
    let is_of_agent =
        "? IN (client, CASE WHEN source LIKE 'agent:%' THEN substr(source, 7, instr(source || '/', '/') - 7) END)";
    add(is_of_agent, query.agent.as_deref().map(text));
    add("outcome = ?", query.outcome.map(|outcome| text(outcome.as_str())));
    (conditions.iter().map(|condition| format!("{condition} AND ")).collect(), values)
}

/// `None` for a row of another version that this one does not understand.
fn read_entry(row: &Row) -> rusqlite::Result<Option<AuditEntry>> {
    let text = |column: usize| row.get::<_, String>(column);
    let count = |column: usize| row.get(column).map(to_count);
    let (call_id, session_id, tool) =
        (CallId::parse(&text(2)?), SessionId::parse(&text(3)?), ToolName::parse(&text(4)?));
    let outcome = serde_json::from_value(text(9)?.into());
    let original_ms = row.get::<_, Option<i64>>(13)?.map(to_count);
    let (Ok(call_id), Ok(session_id), Ok(tool), Ok(outcome)) = (call_id, session_id, tool, outcome) else {
        return Ok(None);
    };
    let source = text(5)?;
    let (agent, subagent) = match source.strip_prefix(OF_AGENT) {
        Some(named) => named.split_once('/').map_or((Some(named), None), |(agent, sub)| (Some(agent), Some(sub))),
        None => (None, None),
    };
    Ok(Some(AuditEntry {
        id: count(0)?,
        at: rfc3339(to_time(row.get(1)?)),
        call_id,
        session_id,
        tool,
        agent: agent.map(str::to_owned),
        subagent: subagent.map(str::to_owned),
        source,
        client: row.get(6)?,
        connection: count(7)?,
        decisions: serde_json::from_str(&text(8)?).unwrap_or_default(),
        outcome,
        duration_ms: count(10)?,
        cached: original_ms.is_some(),
        original_ms,
        input_bytes: count(11)?,
        output_bytes: count(12)?,
    }))
}
