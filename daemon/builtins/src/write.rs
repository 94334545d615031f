//! `write`: replaces the whole content of a file.

use std::sync::Arc;

use anyhow::bail;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::change::{self, Basis, Before, Change, ChangeTarget, NewState};
use crate::document::Document;
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
                      unchanged since. To change a part of a file use `edit`.",
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
        let target = ChangeTarget::new(&self.toolkit, &input.path, cx)?;
        Ok(Change::of_file(target, Basis::NewText, move |target, before| {
            written(&input.content, input.mode, target, before).map(NewState::of)
        }))
    }
}

fn written(content: &str, mode: WriteMode, target: &ChangeTarget, before: Option<&Before>) -> anyhow::Result<Vec<u8>> {
    let Some(before) = before else { return Ok(content.as_bytes().to_vec()) };
    match mode {
        WriteMode::Create => bail!("{} already exists: use mode overwrite to replace it", target.shown),
        WriteMode::Overwrite => {
            target.check_stamp(before)?;
            Ok(content.as_bytes().to_vec())
        }
        // Appending loses nothing, so the session need not have read the file.
        WriteMode::Append => match Document::decode(&before.bytes) {
            Ok(document) => document.encode(&format!("{}{}", document.text, document.adopt(content))),
            Err(_) => Ok([before.bytes.as_slice(), content.as_bytes()].concat()),
        },
    }
}
