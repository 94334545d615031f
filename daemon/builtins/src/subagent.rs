//! `subagent`: delegates a task to another agent, which a frontend or a program runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use serde::Deserialize;
use serde_json::json;
use toold_engine::call::Principal;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_host::process::{self, ProcessCommand, ProcessEnding, ProcessOutput};
use toold_host::process_registry::StartedFor;
use toold_proto::provide::Role;
use toold_proto::tool::{Annotations, Category};

use crate::agents::{AgentType, option_mistake, with_command};
use crate::blocking::{blocking, with_heartbeat};
use crate::builtin::{Builtin, ToolFacts};
use crate::toolkit::Toolkit;

/// The time limit of a program if the configuration sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// The nesting depth, in the environment of a sub-agent's program.
const DEPTH: &str = "TOOLD_AGENT_DEPTH";

/// Arguments of `subagent`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SubagentInput {
    /// Which kind of sub-agent.
    r#type: String,
    /// The work in a few words, for people.
    description: String,
    /// The complete task: the sub-agent knows nothing else about this conversation.
    prompt: String,
}

pub(crate) struct SubagentTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for SubagentTool {
    type Input = SubagentInput;

    const NAME: &'static str = "subagent";
    const FACTS: ToolFacts = ToolFacts {
        label: "Give work to a sub-agent",
        description: "Delegates work to a sub-agent and waits for its answer. Several may run at once.",
        parallelizable: true,
        permissions: &[Category::Agent],
        timeout: Some(MAX_TIMEOUT),
        annotations: Annotations {
            read_only: Some(false),
            destructive: Some(true),
            idempotent: Some(false),
            open_world: Some(true),
            task: None,
        },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &SubagentInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(vec![Need::new(Category::Agent, &input.r#type).because(&input.description)])
    }

    async fn run(&self, input: SubagentInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        ensure!(!input.prompt.trim().is_empty(), "the prompt is empty: a sub-agent knows nothing else");
        // The caller may itself be a sub-agent: a program that a tool started.
        ensure!(
            cx.caller.principal != Principal::ToolDescendant,
            "a sub-agent cannot start sub-agents: do the work here"
        );
        let (toolkit, project) = (self.toolkit.clone(), cx.session.project().to_owned());
        let types = blocking(cx, move |_| Ok(toolkit.agent_types(&project))).await?;
        let kind = with_command(&types, &input.r#type);
        if let Some(output) = cx.run_role(Role::Agent, for_frontend(&input, kind.as_ref())).await {
            return Ok(output?);
        }
        match kind {
            Some(AgentType { command: Some(command), .. }) if command.is_empty() => {
                bail!("the command of sub-agent {} is empty in the configuration", input.r#type)
            }
            Some(kind @ AgentType { command: Some(_), .. }) => self.run_program(&input, kind, cx).await,
            Some(_) => bail!(
                "no connected frontend runs sub-agents, and no program is configured \
                 ([subagents.default] command = [\"...\", \"{{prompt}}\"]): do the work here"
            ),
            None if types.is_empty() => {
                bail!("no connected frontend runs sub-agents, and none are configured: do the work here")
            }
            None => {
                let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
                bail!("there is no sub-agent {}; there are: {}", input.r#type, names.join(", "))
            }
        }
    }
}

impl SubagentTool {
    async fn run_program(&self, input: &SubagentInput, kind: AgentType, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let words = kind.command.clone().unwrap_or_default();
        let (program, arguments) = words.split_first().expect("an empty command was refused before");
        if let Some(mistake) = option_mistake(&words) {
            bail!("the command of sub-agent {} in the configuration cannot be used: {mistake}", kind.name);
        }
        let filled = FilledTemplate::new(input, &kind, cx);
        let ends = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        // The names of a type and of a model may come from a file of the project.
        let names = arguments.iter().take(ends).filter(|argument| argument.starts_with('{'));
        if let Some(name) = names.map(|argument| filled.word(argument)).find(|word| word.starts_with('-')) {
            bail!("the program of sub-agent {} could take {name} for an option", kind.name);
        }
        let environment = self.toolkit.environment.clone().with(&cx.session.env).with(&kind.env).with([(DEPTH, "1")]);
        let mut command = ProcessCommand::new(filled.word(program), &cx.cwd, environment)
            .args(arguments.iter().map(|argument| filled.word(argument)));
        if !words.iter().any(|word| word.contains("{prompt}")) {
            command.stdin = Some(filled.prompt.clone().into_bytes());
        }
        command.timeout = Some(kind.timeout.unwrap_or(DEFAULT_TIMEOUT));
        command.started_for = Some(StartedFor::call(cx, &cx.chain));
        command.keep = cx.engine.settings.load().max_result_text.saturating_sub(1024);
        let work = process::run(command, &cx.cancel, |stream, text| cx.output(stream, text));
        let finished = with_heartbeat(cx, work).await?;
        if finished.ending == ProcessEnding::Cancelled && !cx.timed_out() {
            return Err(ToolError::Cancelled.into());
        }
        Ok(answer(&finished, &kind.name))
    }
}

/// The request to a frontend: the task, and the definition of the sub-agent type.
fn for_frontend(input: &SubagentInput, kind: Option<&AgentType>) -> serde_json::Value {
    let mut value = json!({"type": input.r#type, "description": input.description, "prompt": input.prompt});
    if let Some(kind) = kind {
        value["system_prompt"] = json!(kind.system_prompt);
        value["tools"] = json!(kind.tools);
        value["model"] = json!(kind.model);
    }
    value
}

/// The values of the placeholders in braces.
struct FilledTemplate {
    values: [(&'static str, String); 6],
    /// The prompt. It includes the system prompt if no argument takes that.
    prompt: String,
}

impl FilledTemplate {
    fn new(input: &SubagentInput, kind: &AgentType, cx: &Cx) -> Self {
        let takes_system = kind.command.iter().flatten().any(|word| word.contains("{system_prompt}"));
        let prompt = match takes_system || kind.system_prompt.is_empty() {
            true => input.prompt.clone(),
            false => format!("{}\n\n{}", kind.system_prompt, input.prompt),
        };
        let values = [
            ("{prompt}", prompt.clone()),
            ("{system_prompt}", kind.system_prompt.clone()),
            ("{description}", input.description.clone()),
            ("{type}", kind.name.clone()),
            ("{model}", kind.model.clone().unwrap_or_default()),
            ("{session_id}", cx.session.id.to_string()),
        ];
        Self { values, prompt }
    }

    /// One argument of the command with its placeholders replaced. One pass from left to right, so that inserted values
    /// are not expanded again.
    fn word(&self, word: &str) -> String {
        let mut filled = String::new();
        let mut rest = word;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            match self.values.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled + rest
    }
}

fn answer(finished: &ProcessOutput, name: &str) -> ToolOutput {
    let said = finished.stdout.to_text();
    let mut text = said.trim_end().to_owned();
    let failed = finished.ending != ProcessEnding::Exited || finished.code != Some(0);
    if failed {
        let complaint = finished.stderr.to_text();
        let how = match (finished.ending, finished.code) {
            (ProcessEnding::TimedOut | ProcessEnding::Cancelled, _) => "timed out".to_owned(),
            (ProcessEnding::Exited, Some(code)) => format!("ended with exit code {code}"),
            (ProcessEnding::Exited, None) => "was killed by a signal".to_owned(),
        };
        let complaint = complaint.trim_end();
        let complaint = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}[sub-agent {name} {how}{complaint}]"));
    } else if text.is_empty() {
        text = format!("[sub-agent {name} printed nothing]");
    }
    let mut output = ToolOutput::text(text);
    output.is_error = failed;
    if finished.ending != ProcessEnding::Exited {
        output = output.with("timed_out", true);
    }
    output
}
