//! Input for a background command, which needs permission as a command does. It runs like a tool, but no model sees it:
//! clients reach it through `shells.write`.

use std::sync::Arc;

use serde::Deserialize;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Category;

use crate::builtin::{Builtin, CHANGES, ToolFacts, make};
use crate::toolkit::Toolkit;

/// For `toold_engine::execute::execute_tool`: no registry contains it. Takes `{"shell_id", "text", "eof"}`.
pub fn tool(toolkit: &Arc<Toolkit>) -> Arc<dyn Callable> {
    make::<BashInputTool>(toolkit)
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TypedInput {
    shell_id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    eof: bool,
}

pub(crate) struct BashInputTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for BashInputTool {
    type Input = TypedInput;

    const NAME: &'static str = "bash_input";
    const FACTS: ToolFacts = ToolFacts {
        label: "Type into a background command",
        description: "Gives input to a command that `bash` started in the background.",
        // Input must reach a program while another command of the same session runs.
        parallelizable: true,
        permissions: &[Category::Shell],
        timeout: None,
        annotations: CHANGES,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    /// The effect of a line depends on the program that reads it, so no line has words that a pattern could match.
    async fn needs(&self, input: &TypedInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let shell = self.toolkit.shells.find_own(&cx.session.id, &input.shell_id)?;
        let reason = format!("typed into {}: {}", shell.id(), shell.command());
        let lines = input.text.lines().map(visible).filter(|line| !line.trim().is_empty());
        let needs = lines.map(|line| {
            let mut need = Need::new(Category::Shell, line.trim()).because(&reason);
            need.line = Some(visible(&input.text));
            need
        });
        let mut needs: Vec<Need> = needs.collect();
        // A line feed alone may start a command that was typed earlier.
        if needs.is_empty() && !input.text.is_empty() {
            needs.push(Need::new(Category::Shell, visible(&input.text)).because(reason));
        }
        needs.dedup();
        Ok(needs)
    }

    async fn run(&self, input: TypedInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let shell = self.toolkit.shells.find_own(&cx.session.id, &input.shell_id)?;
        if !input.text.is_empty() {
            shell.write(&input.text)?;
        }
        if input.eof {
            shell.close_input()?;
        }
        Ok(ToolOutput::text(format!("{} bytes for {}", input.text.len(), shell.id())))
    }
}

/// Shows control characters as escapes, so that a person sees what is asked.
fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' if text.trim().is_empty() => "\\n".to_owned(),
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}
