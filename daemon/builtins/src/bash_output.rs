//! `bash_output`: the new output of a background command.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput};

use crate::blocking::with_heartbeat;
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::plain_output::plain;
use crate::toolkit::Toolkit;

/// Arguments of `bash_output`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct BashOutputInput {
    /// The shell_id that `bash` returned.
    shell_id: String,
    /// Return only lines that match this regular expression. Other lines remain available to other reads.
    filter: Option<String>,
    /// Wait up to this many milliseconds for new output or the end of the command; returns at once by default.
    #[cfg_attr(test, schemars(range(max = 110_000)))]
    wait_ms: Option<u64>,
}

pub(crate) struct BashOutputTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for BashOutputTool {
    type Input = BashOutputInput;

    const NAME: &'static str = "bash_output";
    const FACTS: ToolFacts = ToolFacts {
        label: "Output of a background command",
        description: "Returns the output that a background command of `bash` has written since the last call, and \
                      whether it is running or how it ended.",
        parallelizable: true,
        permissions: &[],
        timeout: None,
        annotations: READS,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, _: &BashOutputInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(Vec::new())
    }

    async fn run(&self, input: BashOutputInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let shell = self.toolkit.shells.find_own(&cx.session.id, &input.shell_id)?;
        let filter = input.filter.as_deref().map(regex::Regex::new).transpose().context("can't use the filter")?;
        if let Some(wait) = input.wait_ms {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
                () = with_heartbeat(cx, shell.wait_for_update(filter.as_ref(), Duration::from_millis(wait))) => {}
            }
        }
        let max = cx.engine.settings.load().max_result_text.saturating_sub(512);
        let update = shell.update(filter.as_ref(), max);
        let mut text = String::new();
        if update.lost > 0 {
            text.push_str(&format!("[{} bytes were overwritten before they were read]\n", update.lost));
        }
        text.push_str(&plain(&update.text));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let status = update.ended.as_ref().map_or_else(|| "running".to_owned(), ToString::to_string);
        text.push_str(&match (update.more, update.text.is_empty()) {
            (true, _) => format!("[{status}; there is more: call again]"),
            (false, true) => format!("[{status}; nothing new]"),
            (false, false) => format!("[{status}]"),
        });
        let mut output = ToolOutput::text(text)
            .with("shell_id", shell.id())
            .with("running", update.ended.is_none())
            .with("more", update.more)
            .with("lost_bytes", update.lost);
        if let Some(crate::shells::ShellEnding::Exited(code)) = update.ended {
            output = output.with("exit_code", code);
        }
        Ok(output)
    }
}
