//! `edit`: replaces parts of a file, found by their text.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::document::Document;
use crate::edits::{EditedText, Replacement, apply};
use crate::toolkit::Toolkit;

/// Arguments of `edit`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EditInput {
    /// The file, relative to the working folder or absolute.
    path: String,
    /// Several replacements, made one after another: all or none.
    #[cfg_attr(test, schemars(length(min = 1, max = 1000)))]
    edits: Option<Vec<Edit>>,
    /// The text to replace, exactly as it is in the file, without the line numbers of `read`; for one
    /// replacement, instead of `edits`.
    old: Option<String>,
    /// The replacement; may be empty.
    new: Option<String>,
    /// Replace every occurrence; otherwise `old` must occur exactly once.
    #[serde(default)]
    replace_all: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The text to replace, exactly as it is in the file.
    old: String,
    /// The replacement; may be empty.
    new: String,
    /// Replace every occurrence; otherwise `old` must occur exactly once.
    #[serde(default)]
    replace_all: bool,
}

pub(crate) struct EditTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for EditTool {
    type Input = EditInput;

    const NAME: &'static str = "edit";
    const FACTS: ToolFacts = ToolFacts {
        label: "Edit a file",
        description: "Replaces text in a file that was read in this session: one replacement by `old` and `new`, or \
                      several by `edits`, all or none. `old` must occur exactly once, unless `replace_all` is set. \
                      Line ends, no-break spaces and encoding are kept, and need not be given as they are.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: CHANGES,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &EditInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        change::needs(self.change(input.clone(), cx)?, cx).await
    }

    async fn run(&self, input: EditInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        change::make(self.change(input, cx)?, cx).await
    }
}

impl EditTool {
    fn change(&self, input: EditInput, cx: &Cx) -> anyhow::Result<Change> {
        let target = ChangeTarget::new(&self.toolkit, &input.path, cx)?;
        let edits = edits(input)?;
        let given = edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum();
        let change = Change::of_file(target, Basis::OldText, move |target, before| edited(&edits, target, before));
        Ok(change.with_length(given))
    }
}

fn edits(input: EditInput) -> anyhow::Result<Vec<Edit>> {
    match (input.edits, input.old, input.new) {
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => bail!("give either `edits` or `old` and `new`, not both"),
        (Some(edits), None, None) => {
            ensure!(!input.replace_all, "replace_all belongs into each of the `edits`");
            Ok(edits)
        }
        (None, Some(old), Some(new)) => Ok(vec![Edit { old, new, replace_all: input.replace_all }]),
        (None, _, _) => bail!("give `old` and `new`, or `edits`"),
    }
}

fn edited(edits: &[Edit], target: &ChangeTarget, before: Option<&Before>) -> anyhow::Result<NewState> {
    let Some(before) = before else {
        bail!("{}", target.missing(", or make it with `write`"));
    };
    // Checked first: otherwise the help could show a text that the session has not seen.
    target.check_stamp(before)?;
    let document = Document::decode(&before.bytes).with_context(|| format!("can't edit {}", target.shown))?;
    let replacements: Vec<Replacement> = edits
        .iter()
        .map(|Edit { old, new, replace_all }| Replacement {
            old: document.adopt_part(old),
            new: document.adopt_part(new),
            all: *replace_all,
        })
        .collect();
    let not_changed = || format!("{} was not changed", target.shown);
    let EditedText { text, notes } = apply(&document.text, &replacements).with_context(not_changed)?;
    let content = document.encode(&text).with_context(not_changed)?;
    Ok(NewState { notes, ..NewState::of(content) })
}
