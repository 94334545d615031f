//! `apply_patch`: changes several files at once by a patch.

use std::sync::Arc;

use anyhow::{Context, bail};
use serde::Deserialize;
use toold_adapters::patch::{self, PatchChunk, PatchOperation};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::document::Document;
use crate::placement::apply;
use crate::toolkit::Toolkit;

/// Arguments of `apply_patch`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatchInput {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    input: String,
}

pub(crate) struct ApplyPatchTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for ApplyPatchTool {
    type Input = ApplyPatchInput;

    const NAME: &'static str = "apply_patch";
    const FACTS: ToolFacts = ToolFacts {
        label: "Apply a patch",
        description: "Changes one or several files by a patch, all or none. The patch begins with `*** Begin Patch` and \
                      ends with `*** End Patch`. Between them is, for each file, `*** Add File: PATH` and its lines, \
                      each after a `+`; or `*** Delete File: PATH`; or `*** Update File: PATH`, then perhaps \
                      `*** Move to: PATH`, and the parts that change: their lines as they are now, each after a space \
                      or, if it goes, after `-`, and new lines after `+`. Give a few lines around each change. Where \
                      these occur more than once, put `@@ LINE` before them: a line above them, such as that of their \
                      function. Files to update or delete must have been read in this session.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: CHANGES,
    };
    const GRAMMAR: Option<&'static str> = Some(patch::GRAMMAR);

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &ApplyPatchInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        change::needs(self.change(&input.input, cx)?, cx).await
    }

    async fn run(&self, input: ApplyPatchInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        change::make(self.change(&input.input, cx)?, cx).await
    }
}

/// A section of the patch, with places in the list of targets instead of paths.
struct PatchStep {
    target: usize,
    move_to: Option<usize>,
    action: PatchAction,
}

enum PatchAction {
    Add(String),
    Delete,
    Update(Vec<PatchChunk>),
}

impl ApplyPatchTool {
    fn change(&self, input: &str, cx: &Cx) -> anyhow::Result<Change> {
        let mut targets: Vec<(ChangeTarget, Basis)> = Vec::new();
        let mut place = |path: &str, basis: Basis| -> anyhow::Result<usize> {
            change::check_names_file(path)?;
            let target = ChangeTarget::new(&self.toolkit, path, cx)?;
            let known = targets.iter().position(|(other, _)| other.path == target.path);
            let at = known.unwrap_or(targets.len());
            match known {
                Some(at) if basis == Basis::OldText => targets[at].1 = basis,
                Some(_) => {}
                None => targets.push((target, basis)),
            }
            Ok(at)
        };
        let mut steps = Vec::new();
        for section in patch::parse(input)? {
            let (basis, action, move_to) = match section.operation {
                PatchOperation::Add { content } => (Basis::NewText, PatchAction::Add(content), None),
                PatchOperation::Delete => (Basis::NewText, PatchAction::Delete, None),
                PatchOperation::Update { move_to, chunks } => (Basis::OldText, PatchAction::Update(chunks), move_to),
            };
            let target = place(&section.path, basis)?;
            let move_to = move_to.map(|path| place(&path, Basis::NewText)).transpose()?;
            steps.push(PatchStep { target, move_to: move_to.filter(|to| *to != target), action });
        }
        Ok(Change::new(
            targets,
            Arc::new(move |targets: &[ChangeTarget], before: &[Option<Before>]| {
                after(&steps, targets, before).context("nothing was changed")
            }),
        ))
    }
}

/// The contents of the files after all steps, one after another.
fn after(steps: &[PatchStep], targets: &[ChangeTarget], before: &[Option<Before>]) -> anyhow::Result<Vec<NewState>> {
    let unchanged = |before: &Option<Before>| NewState {
        content: before.as_ref().map(|before| before.bytes.clone()),
        mode: before.as_ref().map(|before| before.mode),
        ..NewState::default()
    };
    let mut states: Vec<NewState> = before.iter().map(unchanged).collect();
    for PatchStep { target: at, move_to, action } in steps {
        let target = &targets[*at];
        if matches!(action, PatchAction::Delete) || move_to.is_some() {
            target.check_is_no_link()?;
        }
        // Checked first: otherwise an error could show a text that the session has not seen.
        if let (Some(before), PatchAction::Delete | PatchAction::Update(_)) = (&before[*at], action) {
            target.check_stamp(before)?;
        }
        match (action, states[*at].content.take()) {
            (PatchAction::Add(content), None) => states[*at].content = Some(content.clone().into_bytes()),
            (PatchAction::Add(_), Some(_)) => {
                bail!("{0} already exists: change it with *** Update File: {0}", target.shown)
            }
            (PatchAction::Delete, Some(_)) => {}
            (PatchAction::Update(chunks), Some(content)) => {
                let content = updated(&content, chunks).with_context(|| target.shown.clone())?;
                states[*at].content = Some(content);
            }
            (PatchAction::Delete | PatchAction::Update(_), None) if before[*at].is_some() => {
                bail!("{} is removed or moved by an earlier part of the patch", target.shown)
            }
            (PatchAction::Delete | PatchAction::Update(_), None) => bail!("{}", target.missing("")),
        }
        if let Some(to) = *move_to {
            if states[to].content.is_some() {
                bail!("can't move {} to {}, which already exists", target.shown, targets[to].shown);
            }
            states[to] = std::mem::take(&mut states[*at]);
            states[to].moved_from.get_or_insert_with(|| target.path.clone());
        }
    }
    Ok(states)
}

fn updated(content: &[u8], chunks: &[PatchChunk]) -> anyhow::Result<Vec<u8>> {
    let document = Document::decode(content)?;
    document.encode(&apply(&document.text, chunks)?)
}
