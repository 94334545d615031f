//! The calls that have ended.

use toold_proto::audit::{AuditDecision, AuditEntry};
use toold_proto::event::Outcome;

use super::{Column, FILL, SPARE, Tone, ViewCell, column, time_column};
use crate::clock::Zone;
use crate::output::{self, one_line, shorten};
use crate::tool_title::entry_title;

pub(crate) const COLUMNS: &[Column] = &[
    time_column("BEGAN", 2),
    column("TOOL", 8, 28, 0),
    column("OUTCOME", 7, 12, 1),
    column("TOOK", 7, 12, 3),
    column("CLIENT", 8, 20, 5),
    column("SESSION", 10, 36, SPARE),
    column("NEEDED", 12, FILL, 2),
];

pub(crate) fn cells(entry: &AuditEntry, zone: Zone) -> Vec<ViewCell> {
    vec![
        // Sorted by the number: the clock of the screen begins again at midnight.
        ViewCell::time(&entry.at, zone).number(entry.id as f64),
        ViewCell::name(entry_title(entry)),
        outcome(entry),
        took(entry),
        ViewCell::plain(entry.client.as_deref().unwrap_or_default()),
        ViewCell::plain(entry.session_id.as_str()),
        ViewCell {
            is_path: entry.decisions.iter().all(|need| need.category.starts_with("file.")),
            ..ViewCell::plain(needs(entry))
        },
    ]
}

pub(crate) fn outcome(entry: &AuditEntry) -> ViewCell {
    let cell = ViewCell::new(outcome_tone(entry.outcome), entry.outcome.as_str());
    match entry.outcome {
        Outcome::Interrupted => {
            ViewCell { text: "interrupted, unknown whether done".to_owned(), short: Some(cell.text), ..cell }
        }
        _ => cell,
    }
}

pub(crate) fn outcome_tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Ok => Tone::Good,
        Outcome::Cancelled | Outcome::Skipped => Tone::Warn,
        Outcome::Error
        | Outcome::Denied
        | Outcome::TimedOut
        | Outcome::InvalidArgs
        | Outcome::Overloaded
        | Outcome::Failed
        | Outcome::Interrupted => Tone::Bad,
    }
}

/// How long the call took, and how much the cache saved.
pub(crate) fn took(entry: &AuditEntry) -> ViewCell {
    let took = output::duration(entry.duration_ms);
    let saved = entry.original_ms.map(|original| format!(", cached (saved {})", output::duration(original)));
    let cell = ViewCell::plain(format!("{took}{}", saved.unwrap_or_default()));
    cell.short(took).number(entry.duration_ms as f64)
}

/// The permissions that a call needed, on one line.
pub(crate) fn needs(entry: &AuditEntry) -> String {
    // A file that is judged again before it is written is named once.
    let mut needs: Vec<String> = Vec::new();
    for need in &entry.decisions {
        let need = format!("{} {}", need.category, need.target);
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    shorten(&one_line(&needs.join("; ")), 200)
}

/// A decision about a permission: its colour, the permission, and the rule that decided, each on one line.
pub(crate) fn decision(decision: &AuditDecision) -> (Tone, String, String) {
    let tone = match decision.verdict.as_str() {
        "allow" => Tone::Good,
        "ask" => Tone::Warn,
        _ => Tone::Bad,
    };
    let traffic = decision
        .traffic
        .map(|traffic| format!(", {} bytes sent, {} received", traffic.sent_bytes, traffic.received_bytes));
    let by = format!("by {}{}", one_line(&decision.rule), traffic.unwrap_or_default());
    (tone, one_line(&format!("{} {}", decision.category, decision.target)), by)
}
