//! `forget`: removes what was remembered.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::files;
use toold_proto::tool::{Annotations, Category};

use crate::blocking::blocking;
use crate::builtin::{Builtin, Facts};
use crate::diff::diff;
use crate::memories::{Memory, MemoryScope, drop_file, find};
use crate::paths;
use crate::shared::Shared;

/// What `forget` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// As `remember` gave it.
    memory_id: String,
}

pub(crate) struct Forget {
    shared: Arc<Shared>,
}

impl Builtin for Forget {
    type Input = Input;

    const NAME: &'static str = "forget";
    const FACTS: Facts = Facts {
        label: "Forget a fact",
        description: "Removes a memory: of this conversation, of the project, or of the user.",
        parallelizable: false,
        permissions: &[Category::FileWrite],
        timeout: None,
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: true,
            open_world: false,
            task: None,
        },
    };

    fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn needs(&self, input: &Input, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(need(&self.find(input, cx).await?, cx).into_iter().collect())
    }

    async fn run(&self, input: Input, cx: &Cx) -> anyhow::Result<ToolOutput> {
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

impl Forget {
    async fn find(&self, input: &Input, cx: &Cx) -> anyhow::Result<Memory> {
        let (shared, session, id) = (self.shared.clone(), cx.session.clone(), input.memory_id.clone());
        blocking(cx, move |_| find(&shared, &session, &id)).await
    }
}

fn need(memory: &Memory, cx: &Cx) -> Option<Need> {
    if memory.scope == MemoryScope::Session {
        return None;
    }
    let mut need = files::write_need(&memory.file, &mut Exclusions::default());
    need.diff = Some(diff(Some(&memory.content), "", &paths::shown(&memory.file, &cx.cwd)).text);
    Some(need)
}
