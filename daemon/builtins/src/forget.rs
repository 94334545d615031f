//! `forget`: removes a memory.

use std::sync::Arc;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_proto::tool::{Annotations, Category};

use crate::blocking::blocking;
use crate::builtin::{Builtin, ToolFacts};
use crate::diff::diff;
use crate::memories::{MemoryScope, StoredMemory, drop_file, find};
use crate::paths;
use crate::toolkit::Toolkit;

/// Arguments of `forget`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetInput {
    /// The memory_id that `remember` returned.
    memory_id: String,
}

pub(crate) struct ForgetTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for ForgetTool {
    type Input = ForgetInput;

    const NAME: &'static str = "forget";
    const FACTS: ToolFacts = ToolFacts {
        label: "Forget a fact",
        description: "Removes a memory: of this conversation, of the project, or of the user.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: Annotations {
            read_only: Some(false),
            destructive: Some(true),
            idempotent: Some(true),
            open_world: Some(false),
            task: None,
        },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &ForgetInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(need(&self.find(input, cx).await?, cx).into_iter().collect())
    }

    async fn run(&self, input: ForgetInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let memory = self.find(&input, cx).await?;
        if let Some(need) = need(&memory, cx) {
            cx.require(need).await?;
        }
        blocking(cx, move |_| {
            drop_file(&memory)?;
            Ok(ToolOutput::text(format!("forgot: {}", memory.content)))
        })
        .await
    }
}

impl ForgetTool {
    async fn find(&self, input: &ForgetInput, cx: &Cx) -> anyhow::Result<StoredMemory> {
        let (toolkit, session, id) = (self.toolkit.clone(), cx.session.clone(), input.memory_id.clone());
        blocking(cx, move |_| find(&toolkit, &session, &id)).await
    }
}

fn need(memory: &StoredMemory, cx: &Cx) -> Option<Need> {
    if memory.scope == MemoryScope::Session {
        return None;
    }
    let diff = diff(Some(&memory.content), Some(""), &paths::shown(&memory.file, &cx.cwd)).text;
    Some(file_needs::write_need(&memory.file, &mut Exclusions::default()).with_file(|file| file.diff = Some(diff)))
}
