//! `hygge.exec`, and what `io.popen` and `os.execute` run through.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mlua::Value;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toold_engine::cx::Cx;
use toold_engine::tool::ToolError;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, ResolvedPath};
use toold_host::process::{ProcessCommand, ProcessEnding, ProcessOutput, run};
use toold_host::process_registry::StartedFor;
use toold_host::sandbox::Sandbox;
use toold_proto::call::Stream;
use toold_proto::shell_word::quoted;

use crate::api::{ApiTable, HostCall, HostReply};
use crate::plugin::PluginVersion;
use crate::plugin::needs::{command_needs, may_know};
use crate::vm::args::{Fields, text};
use crate::vm::script_run::ScriptRun;

/// Bytes of each stream that a script gets; longer output loses its middle.
const KEEP: usize = 8 << 20;
/// Bytes that wait for `on_output`; beyond that the oldest are dropped, but stay in the result.
const WAITING: usize = 1 << 20;

/// Output that `on_output` has not seen yet, and finally the result.
#[derive(Default)]
pub(crate) struct PendingOutput {
    state: Mutex<OutputQueue>,
    changed: Notify,
}

#[derive(Default)]
struct OutputQueue {
    pieces: VecDeque<(Stream, String)>,
    bytes: usize,
    result: Option<Result<HostReply, String>>,
}

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let raw = hygge.apart()?;
    let plain = raw.waiting("run", "hygge.exec", |host_call| {
        let program = Program::of(host_call)?;
        Ok(async move { program.run(|_, _| {}).await })
    })?;
    let begin = raw.waiting("begin", "hygge.exec", |host_call| {
        let program = Program::of(host_call)?;
        let following = Arc::<PendingOutput>::default();
        let id = host_call.context.follow(following.clone());
        host_call.call.begin(async move {
            let result = program.run(|stream, text| following.hear(stream, text)).await;
            following.end(result);
        });
        Ok(async move { Ok(HostReply::Json(id.into())) })
    })?;
    let next = raw.waiting("next", "hygge.exec", |host_call| {
        let id = text(host_call.args.value(1)).and_then(|id| id.parse().ok()).unwrap_or(u64::MAX);
        let context = host_call.context.clone();
        Ok(async move {
            let following = context.following(id).ok_or("hygge.exec: the program has ended")?;
            let reply = following.next().await;
            if !matches!(&reply, Ok(HostReply::Fields(fields)) if fields.iter().any(|(name, _)| *name == "stream")) {
                context.forget(id);
            }
            reply
        })
    })?;
    let shell = raw.waiting("shell", "io.popen", |host_call| {
        let program = Program::of_line(host_call)?;
        Ok(async move { program.run(|_, _| {}).await })
    })?;
    let exec: mlua::Function = hygge.prelude.table.raw_get::<mlua::Function>("exec")?.call((plain, begin, next))?;
    hygge.table.raw_set("exec", exec)?;
    hygge.prelude.table.raw_set("shell", shell)
}

/// A program that a script wants to run.
struct Program {
    call: Arc<ScriptRun>,
    plugin: Arc<PluginVersion>,
    cx: Arc<Cx>,
    command: ProcessCommand,
    /// The command line as the shell's grammar reads it.
    line: String,
    /// The folder that the script chose to run it in.
    dir: Option<ResolvedPath>,
    sandbox: Arc<Sandbox>,
}

impl Program {
    /// From the arguments `command, args?, opts?`.
    fn of(host_call: &HostCall) -> Result<Self, String> {
        let args = host_call.args;
        host_call.context.plugin.requires("exec", |can| can.exec)?;
        let cx = host_call.call.authority()?.clone();
        let name = args.text(1, "command")?;
        let mut words = Vec::new();
        if let Some(list) = args.optional_fields(2, "args")? {
            for place in 1..=list.table.raw_len() {
                let word: Value = list.table.raw_get(place).map_err(|error| error.to_string())?;
                words.push(text(&word).ok_or_else(|| args.mistake(2, "args", "a list of strings"))?);
            }
        }
        let environment = host_call.context.plugin.shared.environment.clone().with(&cx.session.env);
        let mut command = ProcessCommand::new(&name, &cx.cwd, environment).args(&words);
        command.keep = KEEP;
        let mut assigned = Vec::new();
        let mut chosen = None;
        if let Some(options) = args.optional_fields(3, "opts")? {
            command.timeout = options.optional_duration("timeout")?;
            if let Some(dir) = options.optional_text("dir")? {
                let (call, plugin) = (host_call.call, &host_call.context.plugin);
                let found = files::resolve_for(dir.as_ref(), &cx.cwd, &mut |place| may_know(call, plugin, place));
                let found = found.map_err(|error| options.wrong("dir", error))?;
                command.cwd.clone_from(&found.path);
                chosen = Some(found);
            }
            if let Some(stdin) = options.optional_text("stdin")? {
                command.stdin = Some(stdin.into_bytes());
            }
            if let Some(env) = options.optional_fields("env")? {
                assigned = set_variables(&mut command, &env).map_err(|why| options.wrong("env", why))?;
            }
        }
        // Variables decide what a program does as much as its arguments do, so they are checked as in a shell command:
        // in front of the command.
        let words = std::iter::once(&name).chain(&words).map(|word| quoted(word));
        let line: Vec<String> = assigned.into_iter().chain(words).collect();
        Ok(Self::new(host_call, cx, command, line.join(" "), chosen))
    }

    /// From one command line for the shell.
    fn of_line(host_call: &HostCall) -> Result<Self, String> {
        host_call.context.plugin.requires("exec", |can| can.exec)?;
        let cx = host_call.call.authority()?.clone();
        let line = host_call.args.text(1, "command")?;
        let environment = host_call.context.plugin.shared.environment.clone().with(&cx.session.env);
        let mut command = ProcessCommand::shell(&line, &cx.cwd, environment);
        command.keep = KEEP;
        Ok(Self::new(host_call, cx, command, line, None))
    }

    fn new(
        host_call: &HostCall,
        cx: Arc<Cx>,
        command: ProcessCommand,
        line: String,
        dir: Option<ResolvedPath>,
    ) -> Self {
        let plugin = host_call.context.plugin.clone();
        let sandbox = plugin.shared.sandbox.clone();
        Self { call: host_call.call.clone(), plugin, cx, command, line, dir, sandbox }
    }

    /// Checks the folder before anything else: whether it exists, and where it leads, is only for those who may read
    /// it.
    async fn require(&self) -> Result<(), ToolError> {
        if let Some(ResolvedPath { path, veil }) = &self.dir {
            for place in veil.iter().chain([path]).filter(|place| !self.plugin.owns(place)) {
                self.call.require(file_needs::read_need(place, &mut Exclusions::default())).await?;
            }
        }
        let (cwd, environment) = (&self.command.cwd, &self.command.environment);
        let needs = command_needs(&self.line, cwd, environment, &self.call, &self.plugin).map_err(ToolError::Failed)?;
        for need in needs {
            self.call.require(need).await?;
        }
        Ok(())
    }

    /// A refused permission is a result with code 1; a program that cannot be started is an error.
    async fn run(self, on_output: impl FnMut(Stream, &str) + Send) -> Result<HostReply, String> {
        match self.require().await {
            Ok(()) => {}
            Err(ToolError::Denied(denial)) => return Ok(result("", &denial.message, 1, false)),
            Err(other) => return Err(other.to_string()),
        }
        let Self { call, cx, mut command, sandbox, .. } = self;
        command.confinement =
            sandbox.confine(&cx, &command.environment).map_err(|error| format!("hygge.exec: {error}"))?;
        command.started_for = Some(StartedFor::call(&cx, &call.chain));
        // The call's own limit stops the script; this shorter one leaves it time to return the output so far.
        let remaining = call.interrupt.remaining().saturating_sub(Duration::from_millis(50));
        command.timeout = Some(command.timeout.unwrap_or(remaining));
        let finished = run(command, &cx.cancel, on_output).await.map_err(|error| format!("hygge.exec: {error}"))?;
        let ProcessOutput { ending, code, signal, stdout, stderr, .. } = finished;
        let code = code.or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
        Ok(result(&stdout.to_text(), &stderr.to_text(), code, ending == ProcessEnding::TimedOut))
    }
}

fn result(stdout: &str, stderr: &str, code: i32, timed_out: bool) -> HostReply {
    let mut fields = vec![
        ("stdout", HostReply::Bytes(stdout.into())),
        ("stderr", HostReply::Bytes(stderr.into())),
        ("code", HostReply::Json(code.into())),
        // Some other hosts use this name.
        ("exit_code", HostReply::Json(code.into())),
    ];
    if timed_out {
        fields.push(("timed_out", HostReply::Json(true.into())));
    }
    HostReply::Fields(fields)
}

/// Sets these variables for the command. Returns those that change something, as assignments of the shell, sorted by
/// name.
fn set_variables(command: &mut ProcessCommand, env: &Fields) -> Result<Vec<String>, String> {
    let mut more = BTreeMap::new();
    for pair in env.table.pairs::<Value, Value>() {
        let (name, value) = pair.map_err(|error| error.to_string())?;
        let (Some(name), Some(value)) = (text(&name), text(&value)) else {
            return Err("expected a table of strings with string keys".to_owned());
        };
        // The shell's grammar would read any other name as a command.
        if !is_name(&name) {
            return Err(format!("expected variable names of letters, digits and _, such as LANG, got {name:?}"));
        }
        more.insert(name, value);
    }
    let changed = command.environment.clone().with(&more);
    // Without variables that the environment refuses, and those that the program gets anyway.
    more.retain(|name, _| changed.get(name) != command.environment.get(name));
    command.environment = changed;
    Ok(more.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl PendingOutput {
    fn hear(&self, stream: Stream, text: &str) {
        let mut state = self.state.lock();
        state.bytes += text.len();
        state.pieces.push_back((stream, text.to_owned()));
        while state.bytes > WAITING
            && let Some((_, dropped)) = state.pieces.pop_front()
        {
            state.bytes -= dropped.len();
        }
        drop(state);
        self.changed.notify_one();
    }

    fn end(&self, result: Result<HostReply, String>) {
        self.state.lock().result = Some(result);
        self.changed.notify_one();
    }

    /// A piece as `{stream, text}`, or the result after the last one.
    async fn next(&self) -> Result<HostReply, String> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some((stream, text)) = state.pieces.pop_front() {
                    state.bytes -= text.len();
                    let stream = match stream {
                        Stream::Stdout => "stdout",
                        Stream::Stderr => "stderr",
                    };
                    let stream = ("stream", HostReply::Json(stream.into()));
                    return Ok(HostReply::Fields(vec![stream, ("text", HostReply::Bytes(text.into_bytes()))]));
                }
                if let Some(result) = state.result.take() {
                    return result;
                }
            }
            self.changed.notified().await;
        }
    }
}
