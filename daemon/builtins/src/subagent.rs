//! `subagent`: gives a piece of work to an agent of a frontend.

use std::sync::Arc;

use anyhow::{bail, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::provide::Role;
use toold_proto::tool::{Annotations, Category};

use crate::builtin::{Builtin, Facts};
use crate::shared::Shared;

/// What `subagent` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Which kind of sub-agent.
    r#type: String,
    /// The work in a few words, for people.
    description: String,
    /// The whole of the work: the sub-agent knows nothing else of this conversation.
    prompt: String,
}

pub(crate) struct Subagent;

impl Builtin for Subagent {
    type Input = Input;

    const NAME: &'static str = "subagent";
    const FACTS: Facts = Facts {
        label: "Give work to a sub-agent",
        description: "Gives a piece of work to a sub-agent and waits for its answer. Several may run at once.",
        parallelizable: true,
        permissions: &[Category::Agent],
        timeout: None,
        annotations: Annotations { read_only: false, destructive: true, idempotent: false, open_world: true },
    };

    fn new(_: Arc<Shared>) -> Self {
        Self
    }

    async fn needs(&self, input: &Input, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(vec![Need::new(Category::Agent, &input.r#type).because(&input.description)])
    }

    async fn run(&self, input: Input, cx: &Cx) -> anyhow::Result<ToolOutput> {
        ensure!(!input.prompt.trim().is_empty(), "the prompt says nothing: a sub-agent knows nothing else");
        match cx.run_role(Role::Agent, serde_json::to_value(&input)?).await {
            Some(output) => Ok(output?),
            None => bail!("no frontend is connected that runs sub-agents: do the work here"),
        }
    }
}
