//! `kill_shell`: ends a background command.

use std::sync::Arc;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::{JudgedCommand, Need, Word};
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, ToolFacts};
use crate::toolkit::Toolkit;

/// Arguments of `kill_shell`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct KillShellInput {
    /// The shell_id that `bash` returned.
    shell_id: String,
}

pub(crate) struct KillShellTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for KillShellTool {
    type Input = KillShellInput;

    const NAME: &'static str = "kill_shell";
    const FACTS: ToolFacts = ToolFacts {
        label: "Stop a background command",
        description: "Stops a background command of `bash`, with all its processes.",
        parallelizable: false,
        permissions: &[Category::Shell],
        timeout: None,
        annotations: CHANGES,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &KillShellInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let shell = self.toolkit.shells.find_own(&cx.session.id, &input.shell_id)?;
        let words = ["kill_shell".to_owned(), shell.id()];
        let target = words.join(" ");
        let words = Some(words.map(|text| Word { text, literal: true }).into());
        let need = Need::of_command(target, JudgedCommand { words, signals_own: true, ..JudgedCommand::default() });
        Ok(vec![need.because(format!("ends: {}", shell.command()))])
    }

    async fn run(&self, input: KillShellInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let shell = self.toolkit.shells.find_own(&cx.session.id, &input.shell_id)?;
        if !shell.is_running() {
            return Ok(ToolOutput::text(format!("{} has ended already: {}", shell.id(), shell.ended().await)));
        }
        shell.kill();
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(ToolError::Cancelled.into()),
            ended = shell.ended() => Ok(ToolOutput::text(format!("{}: {ended}", shell.id()))),
        }
    }
}
