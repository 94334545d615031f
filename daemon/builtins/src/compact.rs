//! `compact`: asks the frontend to summarize the conversation.

use std::sync::Arc;

use anyhow::bail;
use serde::Deserialize;
use serde_json::json;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::provide::Role;
use toold_proto::tool::Annotations;

use crate::builtin::{Builtin, ToolFacts};
use crate::toolkit::Toolkit;

/// Arguments of `compact`: nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CompactInput {}

pub(crate) struct CompactTool;

impl Builtin for CompactTool {
    type Input = CompactInput;

    const NAME: &'static str = "compact";
    const FACTS: ToolFacts = ToolFacts {
        label: "Summarise the conversation",
        description: "Asks the frontend to replace the older part of this conversation with a summary, to free context.",
        parallelizable: false,
        permissions: &[],
        timeout: None,
        annotations: Annotations {
            read_only: Some(false),
            destructive: Some(false),
            idempotent: Some(false),
            open_world: Some(false),
            task: None,
        },
    };

    fn new(_: Arc<Toolkit>) -> Self {
        Self
    }

    async fn needs(&self, _: &CompactInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(Vec::new())
    }

    async fn run(&self, _: CompactInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        match cx.run_role(Role::Compact, json!({})).await {
            Some(output) => Ok(output?),
            None => bail!("no frontend of this conversation can summarise it: go on without"),
        }
    }
}
