//! Where inputs run: in the daemon, or in a `toold` of their own with fakes.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toold_client::start::find_program;
use toold_client::{Client, ClientError, RpcError};
use toold_proto::error::CANCELLED;
use toold_proto::method::PluginsShow;
use toold_proto::plugin::{EvaluateInPlugin, Evaluation, NamePlugin, PromptLine};

use crate::follow::follow;
use crate::keys;
use crate::live::{LiveOutput, Stdout};
use crate::output::{self, one_line};
use crate::prompts::{Prompter, ShownPrompts};

pub(super) enum Evaluators {
    Daemon(DaemonPlugin),
    Faked(FakedPlugin),
}

impl Evaluators {
    pub(super) fn output(&self) -> LiveOutput {
        LiveOutput::new(Stdout::AllOutput, false)
    }

    /// `None` when the user cancelled it.
    pub(super) async fn evaluate(&mut self, source: &str, live: &mut LiveOutput) -> anyhow::Result<Option<Evaluation>> {
        match self {
            Self::Daemon(plugin) => plugin.evaluate(source, live).await,
            Self::Faked(plugin) => plugin.evaluate(source, live).await,
        }
    }

    /// Waits until nothing of it is left.
    pub(super) async fn end(self) {
        match self {
            Self::Daemon(_) => (),
            Self::Faked(plugin) => plugin.end().await,
        }
    }
}

/// A plugin of the daemon. Its prompts are shown here.
pub(super) struct DaemonPlugin {
    client: Client,
    name: String,
    prompter: Option<Prompter>,
}

impl DaemonPlugin {
    /// # Errors
    /// There is no plugin of this name.
    pub(super) async fn open(client: &Client, name: String) -> anyhow::Result<Self> {
        client.call::<PluginsShow>(NamePlugin { name: name.clone() }).await?;
        let prompter =
            if keys::has_terminal() { Prompter::subscribe(client, ShownPrompts::OfCall(None)).await? } else { None };
        Ok(Self { client: client.clone(), name, prompter })
    }

    async fn evaluate(&mut self, source: &str, live: &mut LiveOutput) -> anyhow::Result<Option<Evaluation>> {
        let evaluate = EvaluateInPlugin {
            name: self.name.clone(),
            source: source.to_owned(),
            progress: true,
            ..EvaluateInPlugin::default()
        };
        let call = self.client.evaluate(evaluate)?;
        match follow(&self.client, call, &self.name, live, &mut self.prompter).await? {
            Some(Ok(evaluation)) => Ok(Some(evaluation)),
            None => Ok(None),
            Some(Err(ClientError::Rpc(RpcError { code: CANCELLED, message, .. }))) => {
                writeln!(output::stderr(), "{}", one_line(&message))?;
                Ok(None)
            }
            Some(Err(error)) => Err(error.into()),
        }
    }
}

/// How long a `toold` with fakes may take to end, before it is killed and leaves its folder.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A plugin in a `toold` of its own, which reads inputs and writes [`PromptLine`]s.
pub(super) struct FakedPlugin {
    program: Child,
    inputs: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Received so that Ctrl-C does not end this program; the other one receives it too.
    _interrupts: Signal,
}

impl FakedPlugin {
    pub(super) fn start(path: &str) -> anyhow::Result<Self> {
        let interrupts = signal(SignalKind::interrupt()).context("can't catch Ctrl-C")?;
        let toold = find_program()?;
        let mut command = Command::new(&toold);
        command.args(["plugin", "repl"]).arg(Path::new(path)).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().with_context(|| format!("can't run {}", toold.display()))?;
        let inputs = program.stdin.take().context("it has no stdin")?;
        let answers = BufReader::new(program.stdout.take().context("it has no stdout")?).lines();
        Ok(Self { program, inputs, answers, _interrupts: interrupts })
    }

    async fn end(mut self) {
        // It ends with its input, and removes the folder that the plugin worked in.
        drop(self.inputs);
        let _ = tokio::time::timeout(END_PATIENCE, self.program.wait()).await;
    }

    async fn evaluate(&mut self, source: &str, live: &mut LiveOutput) -> anyhow::Result<Option<Evaluation>> {
        let line = format!("{}\n", serde_json::to_string(source)?);
        // Fails when it has ended, and then it gives no answer.
        let _ = self.inputs.write_all(line.as_bytes()).await;
        loop {
            let Some(line) = self.answers.next_line().await.context("can't read its answer")? else {
                self.program.wait().await?;
                bail!("the plugin could not be loaded");
            };
            match serde_json::from_str(&line).with_context(|| format!("expected an answer, got {line:?}"))? {
                PromptLine::Progress(progress) => live.show(progress)?,
                PromptLine::Answer(evaluation) => {
                    live.finish()?;
                    return Ok(Some(*evaluation));
                }
                PromptLine::Cancelled(message) => {
                    live.finish()?;
                    writeln!(output::stderr(), "{}", one_line(&message))?;
                    return Ok(None);
                }
            }
        }
    }
}
