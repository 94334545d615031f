//! The calls that have ended, the newest first.

use toold_proto::audit::AuditEntry;
use toold_proto::event::Outcome;

use crate::audit_needs::needs;
use crate::clock::{date_and_time_in, time_of_day_in};
use crate::output;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, DetailsQuery, field, heading};
use crate::screen::panel::{Column, FILL, PanelCell, PanelRow, column, time_column};
use crate::screen::text::PaneLine;
use crate::screen::theme::Tone;
use crate::tool_title::entry_title;

pub(in crate::screen) const COLUMNS: &[Column] = &[
    time_column("BEGAN", 2),
    column("TOOL", 8, 28, 0),
    column("OUTCOME", 7, 12, 1),
    column("TOOK", 7, 12, 3),
    column("CLIENT", 8, 20, 5),
    column("NEEDED", 12, FILL, 4),
];

fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a AuditEntry> {
    data.audit.iter().find(|entry| entry.id.to_string() == wanted)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |entry: &AuditEntry| {
        let tone = if entry.outcome == Outcome::Ok { Tone::Good } else { Tone::Bad };
        PanelRow {
            key: entry.id.to_string(),
            cells: vec![
                // Sorted by the number: the clock begins again at midnight.
                PanelCell::new(Tone::Dim, time_of_day_in(&entry.at, data.zone)).number(entry.id as f64),
                PanelCell::name(entry_title(entry)),
                PanelCell::new(tone, entry.outcome.as_str()),
                PanelCell::plain(output::duration(entry.duration_ms)).number(entry.duration_ms as f64),
                PanelCell::plain(entry.client.as_deref().unwrap_or_default()),
                PanelCell::plain(needs(entry)),
            ],
        }
    };
    data.audit.iter().rev().map(row).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let entry = find(data, wanted)?;
    let mut lines = vec![
        field("outcome", entry.outcome.as_str()),
        field("began", &date_and_time_in(&entry.at, data.zone)),
        field("took", &output::duration(entry.duration_ms)),
        field("client", entry.client.as_deref().unwrap_or("unknown")),
        field("session", entry.session_id.as_str()),
        field("call", entry.call_id.as_ref()),
        field("source", &entry.source),
        field("input", &output::bytes(entry.input_bytes)),
        field("output", &output::bytes(entry.output_bytes)),
    ];
    lines.extend(entry.agent.as_deref().map(|agent| field("agent", agent)));
    lines.extend(entry.subagent.as_deref().map(|subagent| field("sub-agent", subagent)));
    if !entry.decisions.is_empty() {
        lines.push(heading("Decisions"));
    }
    for decision in &entry.decisions {
        let tone = match decision.verdict.as_str() {
            "allow" => Tone::Good,
            "ask" => Tone::Warn,
            _ => Tone::Bad,
        };
        let line = format!("{:<5} {} {}", decision.verdict, decision.category, decision.target);
        lines.push(PaneLine::new(tone, line));
        lines.push(PaneLine::new(Tone::Dim, format!("      by {}", decision.rule)));
    }
    let query = DetailsQuery::Call(entry.call_id.clone(), entry.session_id.clone());
    Some(Details { title: entry.tool.as_str().to_owned(), lines, query: Some(query) })
}
