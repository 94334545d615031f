//! Everything about one item, in a pane that scrolls.

use serde_json::Value;
use toold_client::{Client, ClientError};
use toold_proto::file::{FileHistory, UndoFiles};
use toold_proto::method::{CallsGet, CallsList, FilesHistory, FilesUndo, PluginsLogs, PluginsShow};
use toold_proto::plugin::NamePlugin;
use toold_proto::plugin_log::LogsOfPlugin;
use toold_proto::provide::{CallState, CallWait, GetCall, ListCalls};
use toold_proto::tool::{Block, CallId, SessionId, ToolResult};

use super::panels::changes;
use super::text::{PaneLine, diff_lines, text_lines};
use crate::clock::{Zone, time_of_day_in};
use crate::event_line;
use crate::output;
use crate::views::{self, Tone};

/// Diffs of more files would take long to fetch.
const MAX_DIFFS: usize = 20;

/// The details of an item.
pub(super) struct Details {
    pub(super) title: String,
    pub(super) lines: Vec<PaneLine>,
    /// More lines, which only the daemon knows.
    pub(super) query: Option<DetailsQuery>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum DetailsQuery {
    Call(CallId, SessionId),
    Plugin(String, Zone),
    Session(SessionId, Zone),
    Change(UndoFiles),
}

/// `name      value`.
pub(super) fn field(name: &str, value: &str) -> PaneLine {
    PaneLine::new(Tone::Plain, format!("{name:<12} {value}"))
}

pub(super) fn heading(text: &str) -> PaneLine {
    PaneLine::new(Tone::Heading, text)
}

pub(super) fn json_lines(value: &Value) -> Vec<PaneLine> {
    text_lines(Tone::Plain, &serde_json::to_string_pretty(value).unwrap_or_default())
}

pub(super) fn result_lines(result: &ToolResult) -> Vec<PaneLine> {
    let tone = if result.is_error { Tone::Bad } else { Tone::Plain };
    let took = format!("took {}", output::duration(result.duration_ms));
    let mut lines = vec![PaneLine::new(Tone::Dim, took)];
    for block in &result.content {
        match block {
            Block::Text { text } => lines.extend(text_lines(tone, text)),
            Block::Image { mime_type, data } | Block::Audio { mime_type, data } => {
                let size = output::bytes(data.len() as u64 / 4 * 3);
                lines.push(PaneLine::new(Tone::Dim, format!("[{mime_type}, {size}]")));
            }
            Block::Resource { uri, text, .. } => {
                lines.push(PaneLine::new(Tone::Name, uri));
                lines.extend(text.iter().flat_map(|text| text_lines(tone, text)));
            }
        }
    }
    if let Some(structured) = &result.structured {
        lines.push(heading("Structured"));
        lines.extend(json_lines(structured));
    }
    lines
}

pub(super) async fn fetch(client: &Client, query: &DetailsQuery) -> Result<Vec<PaneLine>, ClientError> {
    match query {
        DetailsQuery::Call(call_id, session_id) => call(client, call_id, session_id).await,
        DetailsQuery::Plugin(name, zone) => plugin(client, name, *zone).await,
        DetailsQuery::Session(session_id, zone) => session(client, session_id, *zone).await,
        DetailsQuery::Change(undo) => {
            let mut lines = vec![heading("Undoing the call would change")];
            lines.extend(planned(client, undo.clone()).await);
            Ok(lines)
        }
    }
}

async fn call(client: &Client, call_id: &CallId, session_id: &SessionId) -> Result<Vec<PaneLine>, ClientError> {
    let params = GetCall { call_id: call_id.clone(), session_id: Some(session_id.clone()) };
    let info = match client.call::<CallsGet>(params).await {
        Ok(info) => info,
        // The daemon remembers few calls that have ended.
        Err(ClientError::Rpc(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    let waits = info.waits_for.map(|wait| match wait {
        CallWait::Lane => "for another call of its session",
        CallWait::Turn => "for its turn in the plugin, or for an identical call",
        CallWait::Permission => "for permission",
        CallWait::Answer => "for an answer to its question",
    });
    lines.extend(waits.map(|waits| field("waits", waits)));
    if let Some(output) = info.output.as_deref().filter(|output| !output.is_empty()) {
        lines.push(heading("Output"));
        lines.extend(text_lines(Tone::Plain, output));
    }
    if let Some(result) = &info.result {
        lines.push(heading("Result"));
        lines.extend(result_lines(result));
    }
    if let Some(error) = &info.error {
        lines.push(heading("Error"));
        lines.extend(text_lines(Tone::Bad, error["message"].as_str().unwrap_or_default()));
    }
    Ok(lines)
}

async fn plugin(client: &Client, name: &str, zone: Zone) -> Result<Vec<PaneLine>, ClientError> {
    let shown = client.call::<PluginsShow>(NamePlugin { name: name.to_owned() }).await?;
    let mut lines = Vec::new();
    if !shown.files.is_empty() {
        lines.push(heading("Files"));
        let size = |bytes| output::bytes(bytes);
        lines.extend(
            shown
                .files
                .iter()
                .map(|file| PaneLine::new(Tone::Plain, format!("{:>10}  {}", size(file.bytes), file.path))),
        );
    }
    if !shown.refused.is_empty() {
        lines.push(heading("Refused"));
    }
    for refused in &shown.refused {
        let line = format!("{} {}, {}", refused.category, refused.target, output::counted(refused.times, "time"));
        lines.push(PaneLine::new(Tone::Bad, line));
        lines.push(PaneLine::new(Tone::Dim, format!("      by {}", refused.rule)));
    }
    let logs = client.call::<PluginsLogs>(LogsOfPlugin { name: Some(name.to_owned()) }).await?;
    if !logs.events.is_empty() {
        lines.push(heading("Log"));
    }
    for event in &logs.events {
        let (_, text) = event_line::describe(&event.body);
        let text = anstream::adapter::strip_str(&text).to_string();
        lines.push(PaneLine::new(Tone::Plain, format!("{} {text}", time_of_day_in(&event.at, zone))));
    }
    Ok(lines)
}

async fn session(client: &Client, session_id: &SessionId, zone: Zone) -> Result<Vec<PaneLine>, ClientError> {
    let calls = client.call::<CallsList>(ListCalls { session_id: Some(session_id.clone()) }).await?.calls;
    let mut lines = Vec::new();
    if !calls.is_empty() {
        lines.push(heading("Calls"));
    }
    for call in &calls {
        let (tone, state) = match (call.state, &call.error) {
            (CallState::Running, _) => (Tone::Good, "running"),
            (CallState::Finished, None) => (Tone::Plain, "finished"),
            (CallState::Finished, Some(_)) => (Tone::Bad, "failed"),
        };
        let line = format!("{} {} {state} {}", time_of_day_in(&call.started_at, zone), call.tool, call.call_id);
        lines.push(PaneLine::new(tone, line));
    }
    let history = FileHistory { session_id: Some(session_id.clone()), all: true, ..FileHistory::default() };
    let changes = client.call::<FilesHistory>(history).await?.changes;
    if !changes.is_empty() {
        lines.push(heading("Changed files, with the diffs that undoing would make"));
    }
    let mut calls_with_diff = Vec::new();
    for change in changes.iter().rev() {
        let state = views::changes::state(change);
        let line = format!("{} {} {}", time_of_day_in(&change.at, zone), state.text, change.path);
        lines.push(PaneLine::new(state.tone, line));
        // The diff of a call has all files that it changed.
        if !change.undone && !calls_with_diff.contains(&&change.call_id) && calls_with_diff.len() < MAX_DIFFS {
            calls_with_diff.push(&change.call_id);
            lines.extend(planned(client, changes::undo(change)).await);
        }
    }
    Ok(lines)
}

/// The diff of an undo, or why there is none.
async fn planned(client: &Client, undo: UndoFiles) -> Vec<PaneLine> {
    match client.call::<FilesUndo>(UndoFiles { dry_run: true, ..undo }).await {
        Ok(plan) => {
            let mut lines = diff_lines(plan.diff.as_deref().unwrap_or_default());
            lines.extend(plan.notes.into_iter().map(|note| PaneLine::new(Tone::Warn, note)));
            lines
        }
        Err(error) => vec![PaneLine::new(Tone::Warn, error.to_string())],
    }
}
