//! `write`: the whole content of a file.

use std::sync::Arc;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, Facts};
use crate::change::{self, Basis, Before, Change, Site};
use crate::document::Document;
use crate::shared::Shared;

/// What `write` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the working folder or absolute. Missing folders are made.
    path: String,
    /// The text; at most 10 MiB.
    content: String,
    /// `overwrite` replaces what is there, `create` refuses when there is something, `append` adds to it.
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Overwrite,
    Create,
    Append,
}

pub(crate) struct Write {
    shared: Arc<Shared>,
}

impl Builtin for Write {
    type Input = Input;

    const NAME: &'static str = "write";
    const FACTS: Facts = Facts {
        label: "Write a file",
        description: "Writes a text file, whole or not at all. A file that exists must have been read in this \
                      session, and not have changed since. To change a part of a file use `edit`.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: CHANGES,
    };

    fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn needs(&self, input: &Input, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let site = Site::new(&self.shared, &input.path, cx)?;
        change::needs(site, writing(input.content.clone(), input.mode), Basis::NewText, cx).await
    }

    async fn run(&self, input: Input, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let site = Site::new(&self.shared, &input.path, cx)?;
        change::make(site, writing(input.content, input.mode), Basis::NewText, cx).await
    }
}

fn writing(content: String, mode: Mode) -> Arc<Change> {
    Arc::new(move |site: &Site, before: Option<&Before>| {
        let Some(before) = before else { return Ok(content.clone().into_bytes()) };
        match mode {
            Mode::Create => bail!("{} is there already: to replace it use mode overwrite", site.shown),
            Mode::Overwrite => {
                site.check_stamp(before)?;
                Ok(content.clone().into_bytes())
            }
            // Nothing is lost, so it need not have been read.
            Mode::Append => match Document::decode(&before.bytes) {
                Ok(document) => document.encode(&format!("{}{}", document.text, document.adopt(&content))),
                Err(_) => Ok([before.bytes.as_slice(), content.as_bytes()].concat()),
            },
        }
    })
}
