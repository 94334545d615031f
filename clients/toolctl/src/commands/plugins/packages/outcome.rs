//! How installing and updating ended, for each plugin: a table, or JSON.

use comfy_table::{Cell, Color};
use serde::Serialize;

use crate::exit::{NOT_RUN, OK};
use crate::output::{self, one_line, print_json};
use crate::table;

/// How it ended for one plugin.
#[derive(Debug, Serialize)]
pub(super) struct PackageOutcome {
    pub(super) name: String,
    pub(super) result: PackageResult,
    /// The revision that is installed now; absent when none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<String>,
    /// The revision that it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<String>,
    /// Why it failed, and other things to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PackageResult {
    Installed,
    Updated,
    UpToDate,
    Pinned,
    /// The user said no.
    Declined,
    Failed,
}

impl PackageOutcome {
    pub(super) fn new(name: &str, result: PackageResult) -> Self {
        Self { name: name.to_owned(), result, revision: None, previous: None, note: None }
    }

    pub(super) fn at(self, revision: &str) -> Self {
        Self { revision: Some(revision.to_owned()), ..self }
    }

    pub(super) fn with_note(self, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..self }
    }
}

/// Prints how it ended; the exit status is [`NOT_RUN`] if something failed or was declined.
pub(super) fn report(outcomes: &[PackageOutcome], json: bool) -> anyhow::Result<u8> {
    if json {
        print_json(&serde_json::json!({"plugins": outcomes}))?;
    } else if !outcomes.is_empty() {
        output::print(&render(outcomes, output::terminal_width()))?;
    }
    let done = |outcome: &PackageOutcome| !matches!(outcome.result, PackageResult::Failed | PackageResult::Declined);
    Ok(if outcomes.iter().all(done) { OK } else { NOT_RUN })
}

fn render(outcomes: &[PackageOutcome], width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&["PLUGIN", "RESULT", "REVISION", "NOTE"]));
    for outcome in outcomes {
        let (text, color) = match outcome.result {
            PackageResult::Installed => ("installed", Color::Green),
            PackageResult::Updated => ("updated", Color::Green),
            PackageResult::UpToDate => ("up to date", Color::Reset),
            PackageResult::Pinned => ("pinned", Color::Reset),
            PackageResult::Declined => ("declined", Color::Yellow),
            PackageResult::Failed => ("failed", Color::Red),
        };
        let revisions = match (&outcome.previous, &outcome.revision) {
            (Some(previous), Some(revision)) => format!("{} -> {}", short(previous), short(revision)),
            (None, Some(revision)) => short(revision).to_owned(),
            (_, None) => String::new(),
        };
        let note = outcome.note.as_deref().map(one_line).unwrap_or_default();
        rows.add_row([
            table::name(&one_line(&outcome.name)),
            Cell::new(text).fg(color),
            Cell::new(revisions),
            Cell::new(note),
        ]);
    }
    table::render(&rows)
}

/// As much of a revision as people compare.
pub(super) fn short(revision: &str) -> &str {
    revision.get(..10).unwrap_or(revision)
}
