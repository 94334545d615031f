//! Writes rows of the audit log: redacted, and within bounds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::SystemTime;

use rusqlite::{Transaction, params};
use toold_engine::audit::{AuditRow, DecisionRecord};
use toold_engine::judged_need::JudgedNeed;
use toold_engine::policy::grants::described_id;
use toold_engine::redact::redact;
use toold_proto::agent_request::DecidedBy;
use toold_proto::cut::cut_bytes;

use crate::StoreError;
use crate::columns::{from_count, from_time};

/// Bytes of one target, rule or id, and how many of the first two, that a row stores.
const MAX_TEXT: usize = 4 * 1024;
const MAX_DECISIONS: usize = 64;
/// Bytes of a judgement that a row stores.
const MAX_JUDGEMENT: usize = 16 * 1024;

/// Writes a batch, and how many rows were lost before it.
pub(crate) fn insert(transaction: &Transaction, rows: &[AuditRow], lost: u64) -> Result<(), StoreError> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, \
         duration_ms, input_bytes, output_bytes, original_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    let mut used = transaction.prepare_cached("UPDATE sessions SET used_at = max(used_at, ?2) WHERE id = ?1")?;
    let mut by_grant: HashMap<&str, (i64, i64)> = HashMap::new();
    let mut last: Option<&AuditRow> = None;
    let mut decided = decisions(&[]);
    for row in rows {
        // Calls come in runs of one kind, and looking for secrets takes longer than all else of a row.
        if row.decisions != last.map_or(&[][..], |last| &last.decisions) {
            decided = decisions(&row.decisions);
        }
        for grant in row.decisions.iter().filter_map(|decision| described_id(&decision.rule)) {
            let (uses, used_at) = by_grant.entry(grant).or_default();
            (*uses, *used_at) = (*uses + 1, from_time(row.at).max(*used_at));
        }
        let call_id = match row.call_id.as_str() {
            long if long.len() > MAX_TEXT => row.call_id.to_string().into(),
            id => std::borrow::Cow::Borrowed(id),
        };
        insert.execute(params![
            from_time(row.at),
            call_id,
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
            row.original.map(|original| from_count(original.as_millis() as u64)),
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
