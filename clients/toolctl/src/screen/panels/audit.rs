//! The calls that have ended, the newest first.

use toold_proto::audit::AuditEntry;

use crate::clock::date_and_time_in;
use crate::output;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, DetailsQuery, field, heading};
use crate::screen::panel::PanelRow;
use crate::screen::text::PaneLine;
use crate::views::{Tone, audit};

fn find<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a AuditEntry> {
    data.audit.iter().find(|entry| entry.id.to_string() == wanted)
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |entry: &AuditEntry| PanelRow { key: entry.id.to_string(), cells: audit::cells(entry, data.zone) };
    data.audit.iter().rev().map(row).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let entry = find(data, wanted)?;
    let mut lines = vec![
        field("outcome", &audit::outcome(entry).text),
        field("began", &date_and_time_in(&entry.at, data.zone)),
        field("took", &audit::took(entry).text),
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
        let (tone, what, by) = audit::decision(decision);
        lines.push(PaneLine::new(tone, format!("{:<5} {what}", decision.verdict)));
        lines.push(PaneLine::new(Tone::Dim, format!("      {by}")));
    }
    let query = DetailsQuery::Call(entry.call_id.clone(), entry.session_id.clone());
    Some(Details { title: entry.tool.as_str().to_owned(), lines, query: Some(query) })
}
