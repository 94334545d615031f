//! `write`: replaces the whole content of a file.

use std::sync::Arc;

use anyhow::bail;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::bad_bytes;
use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::document::{Document, TextForm};
use crate::toolkit::Toolkit;

/// Arguments of `write`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteInput {
    /// The file, relative to the working folder or absolute. Missing folders are created.
    path: String,
    /// The text; at most 10 MiB.
    content: String,
    /// `overwrite` replaces an existing file, `create` fails if there is one, `append` adds to it.
    #[serde(default)]
    mode: WriteMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    #[default]
    Overwrite,
    Create,
    Append,
}

pub(crate) struct WriteTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for WriteTool {
    type Input = WriteInput;

    const NAME: &'static str = "write";
    const FACTS: ToolFacts = ToolFacts {
        label: "Write a file",
        description: "Writes a text file atomically. An existing file must have been read in this session and be \
                      unchanged since; it keeps its encoding, byte order mark and line ends. To change a part of a \
                      file use `edit`.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: CHANGES,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &WriteInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        change::needs(self.change(input.clone(), cx)?, cx).await
    }

    async fn run(&self, input: WriteInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        change::make(self.change(input, cx)?, cx).await
    }
}

impl WriteTool {
    fn change(&self, input: WriteInput, cx: &Cx) -> anyhow::Result<Change> {
        change::check_names_file(&input.path)?;
        let target = ChangeTarget::new(&self.toolkit, &input.path, cx)?;
        let given = input.content.len();
        let change = Change::of_file(target, Basis::NewText, move |target, before| {
            written(&input.content, input.mode, target, before)
        });
        Ok(change.with_length(given))
    }
}

/// The file after the change. An existing text keeps its encoding, byte order mark and line ends, which `read` does not
/// show.
fn written(content: &str, mode: WriteMode, target: &ChangeTarget, before: Option<&Before>) -> anyhow::Result<NewState> {
    let Some(before) = before else { return Ok(NewState::of(content.as_bytes().to_vec())) };
    let document = Document::decode(&before.bytes);
    let form = || document.as_ref().ok().cloned().or_else(|| Document::form_of(&before.bytes));
    match mode {
        WriteMode::Create => bail!("{} already exists: use mode overwrite to replace it", target.shown),
        WriteMode::Overwrite => {
            if let (Err(_), None) = (target.check_stamp(before), form()) {
                bail!("{} is a binary file, which `read` does not show: to replace it, remove it first", target.shown);
            }
            target.check_stamp(before)?;
            let Some(document) = form() else { return Ok(NewState::of(content.as_bytes().to_vec())) };
            let text = document.rewritten(content);
            // The diff says so, where the file's encoding does not have the characters.
            let bytes = document.encode(&text).unwrap_or_else(|_| document.encode_utf8(&text));
            Ok(NewState { notes: notes(before, &bytes, content, &text), ..NewState::of(bytes) })
        }
        // Appending loses nothing, so the session need not have read the file.
        WriteMode::Append => Ok(NewState::of(match document {
            Ok(document) => document.encode(&format!("{}{}", document.text, document.adopt_part(content)))?,
            Err(error) => bail!("can't append to {}: {error:#}", target.shown),
        })),
    }
}

/// Notes about what the new bytes keep of the old ones although the caller did not give it: encoding, line ends.
fn notes(before: &Before, bytes: &[u8], content: &str, text: &str) -> Vec<String> {
    if bytes == content.as_bytes() {
        return Vec::new();
    }
    let mut kept = TextForm::of(&before.bytes).map(|form| form.kept_in(bytes)).unwrap_or_default();
    kept.extend(bad_bytes::has_any(text).then(|| "bytes that are not valid UTF-8".to_owned()));
    (!kept.is_empty()).then(|| format!("the file keeps its {}", kept.join(" and "))).into_iter().collect()
}
