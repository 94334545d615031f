//! Rows of the audit log as they are stored: redacted, and within bounds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};
use toold_engine::audit::{AuditRow, DecisionRecord};
use toold_engine::judged_need::JudgedNeed;
use toold_engine::policy::grants::described_id;
use toold_engine::redact::redact;
use toold_proto::agent_request::DecidedBy;
use toold_proto::cut::cut_bytes;

use crate::StoreError;
use crate::audit_chain::{ChainHash, NewLinks};
use crate::columns::{from_count, from_time};

/// Bytes of one target, rule or id, and how many of the first two, that a row stores.
const MAX_TEXT: usize = 4 * 1024;
const MAX_DECISIONS: usize = 64;
/// Bytes of a judgement that a row stores.
const MAX_JUDGEMENT: usize = 16 * 1024;

/// The columns of a row, and its place in the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredRow {
    /// The number of the event that has the row, if it is in the journal.
    #[serde(skip)]
    pub(crate) number: Option<u64>,
    pub(crate) at: i64,
    pub(crate) call_id: String,
    pub(crate) session_id: String,
    pub(crate) tool: String,
    pub(crate) source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<Arc<str>>,
    pub(crate) connection: i64,
    /// As JSON.
    pub(crate) decisions: Arc<str>,
    /// The grants that decided.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) grants: Arc<[String]>,
    pub(crate) outcome: Cow<'static, str>,
    pub(crate) duration_ms: i64,
    pub(crate) input_bytes: i64,
    pub(crate) output_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original_ms: Option<i64>,
}

fn is_empty(grants: &Arc<[String]>) -> bool {
    grants.is_empty()
}

/// The decisions of a row, and what is stored of them.
#[derive(Clone, Debug)]
pub(crate) struct RowDecisions {
    decisions: Arc<[DecisionRecord]>,
    json: Arc<str>,
    grants: Arc<[String]>,
}

impl Default for RowDecisions {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl RowDecisions {
    pub(crate) fn new(decisions: &[DecisionRecord]) -> Self {
        let grants = decisions.iter().filter_map(|decision| described_id(&decision.rule)).map(str::to_owned).collect();
        Self { decisions: decisions.into(), json: self::decisions(decisions).into(), grants }
    }

    pub(crate) fn are(&self, decisions: &[DecisionRecord]) -> bool {
        *self.decisions == *decisions
    }
}

/// The client of a row, and what is stored of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowClient {
    client: Option<Arc<str>>,
    shown: Option<Arc<str>>,
}

impl RowClient {
    pub(crate) fn new(client: Option<&str>) -> Self {
        Self { client: client.map(Arc::from), shown: client.map(|client| shown(client).into()) }
    }

    pub(crate) fn is(&self, client: Option<&str>) -> bool {
        self.client.as_deref() == client
    }
}

impl StoredRow {
    pub(crate) fn new(row: &AuditRow, decisions: &RowDecisions, client: RowClient) -> Self {
        let call_id = match row.call_id.as_str() {
            long if long.len() > MAX_TEXT => row.call_id.to_string(),
            id => id.to_owned(),
        };
        Self {
            number: None,
            at: from_time(row.at),
            call_id,
            session_id: row.session_id.as_str().to_owned(),
            tool: row.tool.as_str().to_owned(),
            source: row.source.clone(),
            client: client.shown,
            connection: from_count(row.connection),
            decisions: decisions.json.clone(),
            grants: decisions.grants.clone(),
            outcome: row.outcome.as_str().into(),
            duration_ms: from_count(row.duration_ms),
            input_bytes: from_count(row.input_bytes),
            output_bytes: from_count(row.output_bytes),
            original_ms: row.original.map(|original| from_count(original.as_millis() as u64)),
        }
    }

    /// What the chain of the audit log holds of a row: all columns, each with its length.
    pub(crate) fn link(&self, before: ChainHash) -> ChainHash {
        let [connection, duration, input, output] =
            [self.connection, self.duration_ms, self.input_bytes, self.output_bytes].map(i64::to_le_bytes);
        before.after(&[
            &self.at.to_le_bytes(),
            self.call_id.as_bytes(),
            self.session_id.as_bytes(),
            self.tool.as_bytes(),
            self.source.as_bytes(),
            self.client.as_deref().unwrap_or_default().as_bytes(),
            &connection,
            self.decisions.as_bytes(),
            self.outcome.as_bytes(),
            &duration,
            &input,
            &output,
            &self.original_ms.unwrap_or(-1).to_le_bytes(),
        ])
    }
}

/// Writes a batch, and how many rows were lost before it.
pub(crate) fn insert(transaction: &Transaction, rows: &[StoredRow], lost: u64) -> Result<(), StoreError> {
    let mut links = NewLinks::begin(transaction)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, \
         duration_ms, input_bytes, output_bytes, original_ms, chain) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let mut used = transaction.prepare_cached("UPDATE sessions SET used_at = max(used_at, ?2) WHERE id = ?1")?;
    let mut by_grant: HashMap<&str, (i64, i64)> = HashMap::new();
    let mut last: Option<&StoredRow> = None;
    for row in rows {
        for grant in &*row.grants {
            let (uses, used_at) = by_grant.entry(grant).or_default();
            (*uses, *used_at) = (*uses + 1, row.at.max(*used_at));
        }
        let link = row.link(links.last);
        insert.execute(params![
            row.at,
            row.call_id,
            row.session_id,
            row.tool,
            row.source,
            row.client,
            row.connection,
            row.decisions,
            row.outcome,
            row.duration_ms,
            row.input_bytes,
            row.output_bytes,
            row.original_ms,
            link.as_bytes(),
        ])?;
        links.add(transaction.last_insert_rowid(), link);
        // Rows of one session come in runs; only the last of a run counts.
        if let Some(last) = last.filter(|last| last.session_id != row.session_id) {
            used.execute(params![last.session_id, last.at])?;
        }
        last = Some(row);
    }
    if let Some(last) = last {
        used.execute(params![last.session_id, last.at])?;
    }
    links.end(transaction)?;
    let mut count = transaction
        .prepare_cached("UPDATE grants SET uses = uses + ?2, used_at = max(coalesce(used_at, 0), ?3) WHERE id = ?1")?;
    for (grant, (uses, used_at)) in by_grant {
        count.execute(params![grant, uses, used_at])?;
    }
    if lost > 0 {
        // Losses come in bursts: those of a minute are one row.
        let (now, lost) = (from_time(SystemTime::now()), from_count(lost));
        let sum =
            "UPDATE audit_lost SET rows = rows + ?2 WHERE rowid = (SELECT max(rowid) FROM audit_lost) AND at > ?1";
        if transaction.execute(sum, [now.saturating_sub(60_000), lost])? == 0 {
            transaction.execute("INSERT INTO audit_lost VALUES (?1, ?2)", [now, lost])?;
        }
    }
    Ok(())
}

/// The decisions as JSON, redacted and bounded.
fn decisions(decisions: &[DecisionRecord]) -> String {
    let kept = decisions.iter().take(MAX_DECISIONS).map(|decision| DecisionRecord {
        category: decision.category.clone(),
        target: shown(&decision.target),
        verdict: decision.verdict.clone(),
        rule: shown(&decision.rule),
        by: decision.by,
        operation: shown(&decision.operation),
        effects: decision.effects.clone(),
        traffic: decision.traffic,
        judged: decision.judged.as_ref().map(kept_judgement),
    });
    let mut kept: Vec<DecisionRecord> = kept.collect();
    let left_out = decisions.len().saturating_sub(MAX_DECISIONS);
    if left_out > 0 {
        let denied = decisions[MAX_DECISIONS..].iter().any(|decision| decision.verdict != "allow");
        kept.push(DecisionRecord {
            category: "more".into(),
            target: format!("{left_out} more"),
            verdict: if denied { "deny" } else { "allow" }.into(),
            rule: String::new(),
            by: DecidedBy::default(),
            ..DecisionRecord::default()
        });
    }
    serde_json::to_string(&kept).expect("texts have a form in JSON")
}

/// The judgement whole or without its texts: half a command would be another one.
fn kept_judgement(judged: &JudgedNeed) -> JudgedNeed {
    let text = serde_json::to_string(judged).expect("texts have a form in JSON");
    let is_kept = text.len() <= MAX_JUDGEMENT && matches!(redact(&text), Cow::Borrowed(_));
    if is_kept { judged.clone() } else { judged.without_texts() }
}

/// Redacted before it is cut: half of a secret is still secret.
fn shown(text: &str) -> String {
    cut_bytes(&redact(text), MAX_TEXT, "…").into_owned()
}
