//! The audit log: a row for each call, written in batches beside the calls, never in their way.

use std::sync::mpsc::TrySendError;
use std::time::SystemTime;

use rusqlite::types::Value as Sql;
use rusqlite::{Row, Transaction, params, params_from_iter};
use toold_engine::audit::{AuditDecision, AuditLog, AuditRow};
use toold_engine::time::rfc3339;
use toold_proto::audit::{AuditEntry, AuditList, AuditQuery};
use toold_proto::tool::{CallId, SessionId, ToolName};

use crate::columns::{from_count, from_time, to_count, to_time};
use crate::writer::{Message, Pushed};
use crate::{Retention, Store, StoreError};
use toold_engine::redact::redact;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1_000;
/// An answer has fewer entries rather than more bytes.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Bytes of one target or rule, and how many of them, that a row keeps.
const MAX_TEXT: usize = 4 * 1024;
const MAX_DECISIONS: usize = 64;

/// Survives the end of the process up to the last batch, which is a tenth of a second or 4,096 rows old.
impl AuditLog for Store {
    /// When the queue is full the row is lost, and the loss is written down.
    fn record(&self, row: AuditRow) {
        let Some(sender) = &self.sender else { return };
        match self.rows.push(row) {
            Pushed::Waits => {}
            Pushed::Lost => self.health.lose(1),
            Pushed::Wake => match sender.try_send(Message::Rows) {
                Ok(()) => {}
                // It has much to do, and looks at the rows when it comes to that.
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Disconnected(_)) => self.health.lose(1),
            },
        }
    }
}

impl Store {
    /// Calls of the past, those that ended just now too.
    pub fn query_audit(&self, query: &AuditQuery) -> Result<AuditList, StoreError> {
        let since = query.since.as_deref().map(|text| read_since(text, SystemTime::now())).transpose()?;
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let (filter, values) = conditions(query, since);
        let order = if query.after.is_some() { "ASC" } else { "DESC" };
        self.flush();
        self.read(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT id, at, call_id, session_id, tool, source, client, connection, decisions, outcome, \
                 duration_ms, input_bytes, output_bytes FROM audit {filter} ORDER BY id {order}"
            ))?;
            let mut rows = select.query(params_from_iter(values))?;
            let mut list = AuditList::default();
            let mut bytes = 0;
            while let Some(row) = rows.next()? {
                bytes += 512 + row.get_ref(8)?.as_bytes().map_or(0, <[u8]>::len);
                if list.entries.len() as u64 == limit || (bytes > MAX_ANSWER && !list.entries.is_empty()) {
                    list.more = true;
                    break;
                }
                list.entries.extend(read_entry(row)?);
            }
            if query.after.is_none() {
                list.entries.reverse();
            }
            let lost = "SELECT coalesce(sum(rows), 0) FROM audit_lost WHERE at >= ?1";
            list.lost = connection.query_row(lost, [since.map_or(0, from_time)], |row| row.get(0)).map(to_count)?;
            Ok(list)
        })
    }
}

/// A moment as RFC 3339, or as the time from it to now.
fn read_since(text: &str, now: SystemTime) -> Result<SystemTime, StoreError> {
    if let Ok(at) = humantime::parse_rfc3339_weak(text) {
        return Ok(at);
    }
    match humantime::parse_duration(text) {
        Ok(ago) => Ok(now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)),
        Err(_) => Err(StoreError::BadQuery(format!(
            "since: {text:?} is neither a time, such as 2026-01-31T12:00:00Z, nor how long ago, such as 15m"
        ))),
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
    add("at >= ?", since.map(|since| Sql::Integer(from_time(since))));
    add("id > ?", query.after.map(|after| Sql::Integer(from_count(after))));
    add("session_id = ?", query.session_id.as_ref().map(|session| text(session.as_str())));
    add("tool = ?", query.tool.as_ref().map(|tool| text(tool.as_str())));
    add("outcome = ?", query.outcome.map(|outcome| text(outcome.as_str())));
    let filter = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    (filter, values)
}

/// `None` for a row that another version wrote and this one does not understand.
fn read_entry(row: &Row) -> rusqlite::Result<Option<AuditEntry>> {
    let text = |column: usize| row.get::<_, String>(column);
    let count = |column: usize| row.get(column).map(to_count);
    let (call_id, session_id, tool) =
        (CallId::parse(&text(2)?), SessionId::parse(&text(3)?), ToolName::parse(&text(4)?));
    let outcome = serde_json::from_value(text(9)?.into());
    let (Ok(call_id), Ok(session_id), Ok(tool), Ok(outcome)) = (call_id, session_id, tool, outcome) else {
        return Ok(None);
    };
    Ok(Some(AuditEntry {
        id: count(0)?,
        at: rfc3339(to_time(row.get(1)?)),
        call_id,
        session_id,
        tool,
        source: text(5)?,
        client: row.get(6)?,
        connection: count(7)?,
        decisions: serde_json::from_str(&text(8)?).unwrap_or_default(),
        outcome,
        duration_ms: count(10)?,
        input_bytes: count(11)?,
        output_bytes: count(12)?,
    }))
}

/// Writes a batch, and how many rows were lost before it.
pub(crate) fn insert(transaction: &Transaction, rows: &[AuditRow], lost: u64) -> Result<(), StoreError> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, \
         duration_ms, input_bytes, output_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let mut used = transaction.prepare_cached("UPDATE sessions SET used_at = max(used_at, ?2) WHERE id = ?1")?;
    let mut last: Option<&AuditRow> = None;
    let mut decided = decisions(&[]);
    for row in rows {
        // Calls come in runs of one kind, and looking for secrets takes longer than all else of a row.
        if row.decisions != last.map_or(&[][..], |last| &last.decisions) {
            decided = decisions(&row.decisions);
        }
        insert.execute(params![
            from_time(row.at),
            row.call_id.as_str(),
            row.session_id.as_str(),
            row.tool.as_str(),
            row.source,
            row.client.as_deref().map(shown),
            from_count(row.connection),
            decided,
            row.outcome.as_str(),
            from_count(row.duration_ms),
            from_count(row.input_bytes),
            from_count(row.output_bytes),
        ])?;
        // Rows of one session come in runs; only the last of a run counts.
        if let Some(last) = last.filter(|last| last.session_id != row.session_id) {
            used.execute(params![last.session_id.as_str(), from_time(last.at)])?;
        }
        last = Some(row);
    }
    if let Some(last) = last {
        used.execute(params![last.session_id.as_str(), from_time(last.at)])?;
    }
    if lost > 0 {
        transaction
            .execute("INSERT INTO audit_lost VALUES (?1, ?2)", [from_time(SystemTime::now()), from_count(lost)])?;
    }
    Ok(())
}

/// What was decided, as JSON, without secrets and without end.
fn decisions(decisions: &[AuditDecision]) -> String {
    let kept = decisions.iter().take(MAX_DECISIONS).map(|decision| AuditDecision {
        category: decision.category.clone(),
        target: shown(&decision.target),
        verdict: decision.verdict.clone(),
        rule: shown(&decision.rule),
    });
    let mut kept: Vec<AuditDecision> = kept.collect();
    let left_out = decisions.len().saturating_sub(MAX_DECISIONS);
    if left_out > 0 {
        let denied = decisions[MAX_DECISIONS..].iter().any(|decision| decision.verdict != "allow");
        kept.push(AuditDecision {
            category: "more".into(),
            target: format!("{left_out} more"),
            verdict: if denied { "deny" } else { "allow" }.into(),
            rule: String::new(),
        });
    }
    serde_json::to_string(&kept).expect("texts have a form in JSON")
}

/// Redacted before it is cut: half of a secret is one too.
fn shown(text: &str) -> String {
    let text = redact(text);
    if text.len() <= MAX_TEXT {
        text.into_owned()
    } else {
        format!("{}…", &text[..text.floor_char_boundary(MAX_TEXT)])
    }
}

/// Removes the rows that are too old or too many.
pub(crate) fn prune(transaction: &Transaction, retention: &Retention) -> Result<(), StoreError> {
    let oldest = SystemTime::now().checked_sub(retention.max_age).unwrap_or(SystemTime::UNIX_EPOCH);
    transaction.execute("DELETE FROM audit WHERE at < ?1", [from_time(oldest)])?;
    transaction.execute("DELETE FROM audit_lost WHERE at < ?1", [from_time(oldest)])?;
    // By number, not by counting, which would read all that is kept each time. Numbers have gaps only where rows went for
    // their age, which are the oldest but for a clock that was set: then fewer are kept.
    let newest_kept = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?1";
    transaction.execute(newest_kept, [from_count(retention.max_rows)])?;
    Ok(())
}
