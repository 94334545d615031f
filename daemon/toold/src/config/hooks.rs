//! Hooks of the configuration: command lines that get JSON on stdin and answer with JSON on stdout.
//!
//! With exit status 0, stdout is the answer and may be empty; 2 denies, with stderr as the reason;
//! any other is a failure of the hook.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::hooks::{Hook, HookAnswer, HookEvent, HookHealth, HookInput, HookSpec};
use toold_engine::policy::ToolGlobs;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_host::environment::Environment;
use toold_host::process::{ProcessCommand, ProcessEnding, run};
use toold_host::process_registry::StartedFor;
use toold_proto::hook::HookDecision;
use toold_proto::tool::SourceKind;

/// One `[[hooks]]` of the configuration.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// When the hook runs: before or after a call, or before or after a message of a client.
    #[cfg_attr(test, schemars(extend("enum" = ["pre_tool", "post_tool", "pre_message", "post_message"])))]
    pub event: String,
    /// The program and its arguments; no shell.
    pub command: Vec<String>,
    /// The hook's name in messages; the program when absent.
    pub name: Option<String>,
    /// Names or globs of tools; all when absent.
    pub tools: Option<Vec<String>>,
    /// Hooks with a lower priority run first.
    #[serde(default)]
    pub priority: i64,
    /// An `async` hook never delays a call, and its answer is ignored.
    #[serde(default)]
    pub mode: HookMode,
    /// The hook's timeout, in milliseconds.
    #[serde(default = "default_timeout")]
    pub timeout_ms: u64,
    /// What happens to a call when the hook fails.
    #[serde(default)]
    pub fail: OnFailure,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookMode {
    #[default]
    Sync,
    Async,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The call continues.
    #[default]
    Open,
    /// The call fails.
    Closed,
}

fn default_timeout() -> u64 {
    10_000
}

/// The identity of a configuration as a source of hooks: the user's, or a project's.
pub fn source(scope: SourceScope) -> SourceKey {
    SourceKey { kind: SourceKind::Builtin, name: "configuration".into(), scope }
}

struct CommandHook {
    spec: HookSpec,
    command: Vec<String>,
    environment: Environment,
}

/// Makes a hook from its configuration.
///
/// # Errors
/// An unknown event, no command, or a glob that is invalid or matches no tool.
pub fn read(config: &HookConfig, scope: SourceScope, environment: &Environment) -> anyhow::Result<Arc<dyn Hook>> {
    let event = HookEvent::parse(&config.event).with_context(|| {
        format!("{:?} is no event: expected pre_tool, post_tool, pre_message or post_message", config.event)
    })?;
    let Some(program) = config.command.first() else { bail!("command is empty: expected a program and its arguments") };
    let tools = config.tools.as_deref().map(ToolGlobs::new).transpose();
    let tools = tools.map_err(anyhow::Error::msg).context("tools")?;
    let spec = HookSpec {
        name: config.name.clone().unwrap_or_else(|| program.clone()),
        source: source(scope),
        event,
        priority: config.priority,
        asynchronous: config.mode == HookMode::Async,
        timeout: Duration::from_millis(config.timeout_ms),
        fail_closed: config.fail == OnFailure::Closed,
        tools: tools.map(ToolGlobs::into_set),
        health: HookHealth::default(),
    };
    Ok(Arc::new(CommandHook { spec, command: config.command.clone(), environment: environment.clone() }))
}

/// Every problem with a hook, where [`read`] reports the first. An event that does not exist is none of them: it is named
/// with its place in the text.
pub fn mistakes(config: &HookConfig) -> Vec<String> {
    let environment = Environment::inherited([]);
    let harmless =
        HookConfig { event: "pre_tool".to_owned(), command: vec!["true".to_owned()], tools: None, ..config.clone() };
    let alone = [
        HookConfig { command: config.command.clone(), ..harmless.clone() },
        HookConfig { tools: config.tools.clone(), ..harmless },
    ];
    let problem = |hook: &HookConfig| Some(format!("{:#}", read(hook, SourceScope::Global, &environment).err()?));
    alone.iter().filter_map(problem).collect()
}

impl Hook for CommandHook {
    fn spec(&self) -> &HookSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: HookInput, cx: Option<Arc<Cx>>) -> BoxFuture<'a, Result<HookAnswer, String>> {
        self.run_command(input, cx).boxed()
    }
}

impl CommandHook {
    async fn run_command(&self, input: HookInput, cx: Option<Arc<Cx>>) -> Result<HookAnswer, String> {
        let stdin = serde_json::to_vec(&input).map_err(|error| error.to_string())?;
        let mut command =
            ProcessCommand::new(&self.command[0], &input.pwd, self.environment.clone()).args(&self.command[1..]);
        command.stdin = Some(stdin);
        command.timeout = Some(self.spec.timeout);
        command.started_for = cx.map(|cx| StartedFor::call(&cx, &cx.chain));
        let finished = run(command, &CancellationToken::new(), |_, _| {}).await.map_err(|error| error.to_string())?;
        let (out, err) = (finished.stdout.to_text(), finished.stderr.to_text());
        match (finished.ending, finished.code) {
            (ProcessEnding::TimedOut, _) => Err(format!("it took longer than {} ms", self.spec.timeout.as_millis())),
            (ProcessEnding::Exited, Some(0)) if out.trim().is_empty() => Ok(HookAnswer::default()),
            (ProcessEnding::Exited, Some(0)) => {
                serde_json::from_str(&out).map_err(|error| format!("can't use its answer: {error}"))
            }
            (ProcessEnding::Exited, Some(2)) => Ok(HookAnswer {
                decision: Some(HookDecision::Deny),
                reason: Some(err.trim().to_owned()).filter(|reason| !reason.is_empty()),
                ..HookAnswer::default()
            }),
            (ProcessEnding::Exited | ProcessEnding::Cancelled, code) => {
                let ended = code.map_or("by a signal".to_owned(), |code| format!("with status {code}"));
                Err(format!("it ended {ended}: {}", err.trim()))
            }
        }
    }
}
