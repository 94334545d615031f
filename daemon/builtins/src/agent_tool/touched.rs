//! The files that an agent's own tool reads and changes: for undoing the changes, and for the check of stale reads.

use std::sync::Arc;

use toold_adapters::agents::AgentAction;
use toold_engine::cx::Cx;
use toold_engine::dependencies::FileStamp;
use toold_host::files::{self, OpenError};
use toold_host::stamps;

use super::needs::change_of;
use crate::change::ChangeTarget;
use crate::document::MAX_BYTES;
use crate::journal::draft::Draft;
use crate::journal::{ChangingCall, PathChange};
use crate::paths::Located;
use crate::toolkit::Toolkit;

/// The files, as they are before the tool touches them.
#[derive(Default)]
pub(super) struct TouchedFiles {
    changed: Vec<Draft>,
    read: Vec<FileStamp>,
}

/// How far the agent's tool came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolEnd {
    Done,
    Failed,
    /// The agent did not say.
    Unknown,
}

impl TouchedFiles {
    /// Looks at the files that the actions read and change. Files that cannot be read are left out: their changes cannot
    /// be undone. Blocks for as long as it takes to copy them, if there are changes.
    pub(super) async fn look(toolkit: &Arc<Toolkit>, actions: &[AgentAction], cx: &Cx) -> Self {
        let mut touched = Self::default();
        let mut targets: Vec<ChangeTarget> = Vec::new();
        for action in actions {
            if let AgentAction::Read { path } = action
                && let Ok(located) = Located::new(path, cx)
            {
                touched.read.extend(stamps::of_facts(&located.path));
            }
            let Ok(Some(change)) = change_of(toolkit, action, cx) else { continue };
            for target in change.targets() {
                if !targets.iter().any(|known| known.path == target.path) {
                    targets.push(target.clone());
                }
            }
        }
        if targets.is_empty() {
            return touched;
        }
        let drafts = tokio::task::spawn_blocking(move || targets.iter().filter_map(draft).collect());
        touched.changed = drafts.await.unwrap_or_default();
        touched
    }

    /// Records the changes that were made until now. Those of the other files are still to come, if the tool goes on.
    pub(super) async fn record_until_now(&mut self, toolkit: &Arc<Toolkit>, cx: &Cx) {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return;
        }
        let (toolkit, cx) = (toolkit.clone(), cx.shared());
        let work = tokio::task::spawn_blocking(move || {
            let change = |draft: &Draft| change_since(&toolkit, &cx, draft, ToolEnd::Unknown);
            let (made, left): (Vec<_>, Vec<_>) =
                changed.into_iter().map(|draft| (change(&draft), draft)).partition(|(change, _)| change.is_some());
            record_changes(&toolkit, &cx, made.into_iter().filter_map(|(change, _)| change).collect());
            left.into_iter().map(|(_, draft)| draft).collect()
        });
        // Fails only when the runtime stops.
        self.changed = work.await.unwrap_or_default();
    }

    /// Records the changes, so that they can be undone, and what the session has seen. Goes on when the call is
    /// cancelled.
    pub(super) async fn record(self, toolkit: &Arc<Toolkit>, cx: &Cx, end: ToolEnd) {
        if end == ToolEnd::Failed || self.changed.is_empty() && self.read.is_empty() {
            return;
        }
        let (toolkit, cx) = (toolkit.clone(), cx.shared());
        let work = tokio::task::spawn_blocking(move || {
            let changes: Vec<PathChange> =
                self.changed.iter().filter_map(|draft| change_since(&toolkit, &cx, draft, end)).collect();
            toolkit.command_changes.expect_others(self.changed.iter().map(|draft| &draft.path));
            record_changes(&toolkit, &cx, changes);
            for stamp in self.read.iter().filter(|_| end == ToolEnd::Done) {
                record_read(&toolkit, &cx, stamp);
            }
        });
        // Fails only when the runtime stops.
        let _ = work.await;
    }
}

fn record_changes(toolkit: &Toolkit, cx: &Cx, changes: Vec<PathChange>) {
    toolkit.command_changes.expect_others(changes.iter().map(|change| &change.path.0));
    if let Err(error) = toolkit.journal.record(&ChangingCall::of(cx), changes, Vec::new()) {
        cx.message(format!("this cannot be undone: {error}"));
    }
}

fn draft(target: &ChangeTarget) -> Option<Draft> {
    let before = target.open_file().ok()?;
    let before = before.as_ref().map(|before| (before.bytes.as_slice(), before.mode, before.identity));
    target.toolkit.journal.draft(&target.path, before).ok()
}

fn change_since(toolkit: &Toolkit, cx: &Cx, draft: &Draft, end: ToolEnd) -> Option<PathChange> {
    // No longer one that can be undone, if it cannot be read.
    let after = match files::read_whole(&draft.path, MAX_BYTES) {
        Ok(content) => Some((blake3::hash(&content), content.len() as u64)),
        Err(OpenError::NotFound(_)) => None,
        Err(_) => return None,
    };
    if end == ToolEnd::Done {
        match after {
            Some((after, _)) => toolkit.stamps.wrote(&cx.session, &draft.path, after),
            None => toolkit.stamps.forget(&cx.session, &draft.path),
        }
    }
    draft.change_to(after)
}

/// Only a file that has not changed since the tool was about to read it has certainly been seen as it is.
fn record_read(toolkit: &Toolkit, cx: &Cx, stamp: &FileStamp) {
    let same = || stamps::of_facts(&stamp.path).is_some_and(|now| now.facts == stamp.facts);
    if let Ok(content) = files::read_whole(&stamp.path, MAX_BYTES)
        && same()
    {
        toolkit.stamps.saw(&cx.session, &stamp.path, blake3::hash(&content));
    }
}
