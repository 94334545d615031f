//! `remember`: stores a fact for later conversations, or for this one.

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
use crate::memories::{MemoryScope, PlannedMemory, keep, plan};
use crate::paths;
use crate::toolkit::Toolkit;

/// Arguments of `remember`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RememberInput {
    /// The fact, understandable without context; at most 8 KiB.
    content: String,
    /// `session` for this conversation, `project` for all who work in this project, `global` for all of the
    /// user's agents.
    #[serde(default)]
    scope: MemoryScope,
}

pub(crate) struct RememberTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for RememberTool {
    type Input = RememberInput;

    const NAME: &'static str = "remember";
    const FACTS: ToolFacts = ToolFacts {
        label: "Remember a fact",
        description: "Keeps a fact, for this conversation, for the project or for all of the user's agents. Not for \
                      secrets. Returns the memory_id for `forget`.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: Annotations {
            read_only: Some(false),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
            task: None,
        },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &RememberInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let plan = plan(&self.toolkit, &cx.session, &input.content, input.scope)?;
        Ok(need(&plan, input.scope, cx).into_iter().collect())
    }

    async fn run(&self, input: RememberInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let plan = plan(&self.toolkit, &cx.session, &input.content, input.scope)?;
        // Checked again: a link on the way may lead elsewhere by now.
        if let Some(need) = need(&plan, input.scope, cx) {
            cx.require(need).await?;
        }
        blocking(cx, move |_| {
            let words = if keep(&plan)? { "remembered as" } else { "known already as" };
            Ok(ToolOutput::text(format!("{words} {}", plan.id))
                .with("memory_id", plan.id.as_str())
                .with("path", plan.file.to_string_lossy().as_ref()))
        })
        .await
    }
}

/// A session's own memories are files of the daemon, so no permission is needed.
fn need(plan: &PlannedMemory, scope: MemoryScope, cx: &Cx) -> Option<Need> {
    if scope == MemoryScope::Session {
        return None;
    }
    let diff = diff(None, Some(&plan.text), &paths::shown(&plan.file, &cx.cwd)).text;
    Some(file_needs::write_need(&plan.file, &mut Exclusions::default()).with_file(|file| file.diff = Some(diff)))
}
