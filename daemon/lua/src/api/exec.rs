//! `hygge.exec`, and what `io.popen` and `os.execute` run through.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mlua::Value;
use parking_lot::Mutex;
use tokio::sync::Notify;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, ResolvedPath};
use toold_host::process::{OutputTap, ProcessCommand, ProcessEnding, ProcessOutput, run};
use toold_host::process_registry::StartedFor;
use toold_host::sandbox::control_watch::SetAside;
use toold_host::sandbox::{CommandToConfine, Sandbox};
use toold_proto::call::Stream;
use toold_proto::shell_word::quoted;

use crate::api::{ApiTable, HostCall, HostReply};
use crate::plugin::PluginVersion;
use crate::plugin::needs::{command_needs, may_know};
use crate::vm::args::{Fields, shown, text};
use crate::vm::script_run::ScriptRun;

/// Bytes of each stream that a script gets; longer output loses its middle.
const KEEP: usize = 8 << 20;
/// The limit of hygge for a program whose `timeout` is a number without a unit.
const BARE_TIMEOUT: Duration = Duration::from_secs(30);
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
    pieces: VecDeque<(Stream, Vec<u8>)>,
    /// The first bytes of a character of each stream whose last ones have not come.
    incomplete: [Vec<u8>; 2],
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
            let hearing = following.clone();
            let result = program.run(move |stream, bytes| hearing.hear(stream, bytes)).await;
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
    /// The script gave it as one line for the shell.
    is_line: bool,
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
        let words = match args.optional_fields(2, "args")? {
            Some(list) => words_of(&list).map_err(|why| format!("hygge.exec: argument 2 'args': {why}"))?,
            None => Vec::new(),
        };
        let environment = host_call.context.plugin.shared.environment.clone().with(&cx.session.env);
        let mut command = ProcessCommand::new(&name, &cx.cwd, environment).args(&words);
        command.keep = KEEP;
        let mut assigned = Vec::new();
        let mut chosen = None;
        if let Some(options) = args.optional_fields(3, "opts")? {
            command.timeout = match options.get("timeout")? {
                Value::String(bare) if is_bare_number(&bare.as_bytes()) => Some(BARE_TIMEOUT),
                _ => options.optional_duration("timeout")?,
            };
            if let Some(dir) = options.optional_text("dir")? {
                let (call, plugin) = (host_call.call, &host_call.context.plugin);
                let found = files::resolve_for(dir.as_ref(), &cx.cwd, &mut |place| may_know(call, plugin, place));
                let found = found.map_err(|error| options.wrong("dir", error))?;
                command.cwd.clone_from(&found.path);
                chosen = Some(found);
            }
            command.stdin = match options.get("stdin")? {
                Value::String(bytes) => Some(bytes.as_bytes().to_vec()),
                _ => options.optional_text("stdin")?.map(String::into_bytes),
            };
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
        Ok(Self { is_line: true, ..Self::new(host_call, cx, command, line, None) })
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
        Self { call: host_call.call.clone(), plugin, cx, command, line, is_line: false, dir, sandbox }
    }

    /// Checks the folder before anything else: whether it exists, and where it leads, is only for those who may read
    /// it.
    async fn require(&self) -> Result<Vec<Need>, ToolError> {
        if let Some(ResolvedPath { path, judged_as, .. }) = &self.dir {
            for place in judged_as.iter().chain([path]).filter(|place| !self.plugin.owns(place)) {
                self.call.require(file_needs::read_need(place, &mut Exclusions::default())).await?;
            }
        }
        let (cwd, environment) = (&self.command.cwd, &self.command.environment);
        let needs = command_needs(&self.line, cwd, environment, &self.call, &self.plugin).map_err(ToolError::Failed)?;
        for need in &needs {
            self.call.require(need.clone()).await?;
        }
        Ok(needs)
    }

    /// A refused permission is a result with code 1; a program that cannot be started is an error.
    async fn run(self, on_output: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Result<HostReply, String> {
        let needs = match self.require().await {
            Ok(needs) => needs,
            Err(ToolError::Denied(denial)) => {
                return Ok(result(Vec::new(), denial.message.clone().into_bytes(), 1, false));
            }
            Err(other) => return Err(other.to_string()),
        };
        let Self { call, cx, mut command, line, sandbox, is_line, plugin, .. } = self;
        let raw = Arc::<RawOutput>::default();
        let heard = raw.clone();
        command.tap = Some(OutputTap::new(move |stream, bytes| {
            heard.keep(stream, bytes);
            on_output(stream, bytes);
        }));
        let to_confine = CommandToConfine {
            needs: &needs,
            cwd: &command.cwd,
            environment: &command.environment,
            seen: &[plugin.real_dir().to_owned()],
            opens_network: true,
            secrets: None,
        };
        command.confinement = sandbox.confine(&cx, &to_confine).map_err(|error| format!("hygge.exec: {error}"))?;
        let watch = sandbox.watch_control(|| cx.guarded_files(), command.confinement.as_ref());
        let network = sandbox.open_network(&cx, &mut command.confinement, &line, Vec::new(), false).await;
        if let Some(network) = network.map_err(|error| format!("hygge.exec: {error}"))? {
            command.environment = network.in_environment(command.environment);
            command.network = Some(network);
        }
        command.started_for = Some(StartedFor::call(&cx, &call.chain));
        // The call's own limit stops the script; this shorter one leaves it time to return the output so far.
        let remaining = call.interrupt.remaining().saturating_sub(Duration::from_millis(50));
        command.timeout = Some(command.timeout.unwrap_or(remaining));
        let finished = run(command, &cx.cancel, |_, _| {}).await.map_err(|error| format!("hygge.exec: {error}"))?;
        let made = match watch {
            Some(watch) => tokio::task::spawn_blocking(move || watch.settle()).await.unwrap_or_else(|_| Ok(Vec::new())),
            None => Ok(Vec::new()),
        };
        let ProcessOutput { ending, code, signal, stdout, stderr, .. } = finished;
        let code = match is_line {
            true => code.or(signal.map(|signal| 128 + signal)).unwrap_or(-1),
            // As in hygge: a program that a signal or the time limit ended has no code.
            false => code.unwrap_or(-1),
        };
        let (raw_stdout, raw_stderr) = raw.take();
        let stdout = raw_stdout.unwrap_or_else(|| stdout.to_text().into_bytes());
        let mut stderr = raw_stderr.unwrap_or_else(|| stderr.to_text().into_bytes());
        let words = made.map_or_else(|why| vec![why], |aside| aside.iter().map(SetAside::words).collect());
        words.iter().for_each(|words| stderr.extend(format!("toold: {words}\n").into_bytes()));
        Ok(result(stdout, stderr, code, ending == ProcessEnding::TimedOut))
    }
}

fn result(stdout: Vec<u8>, stderr: Vec<u8>, code: i32, timed_out: bool) -> HostReply {
    let mut fields = vec![
        ("stdout", HostReply::Bytes(stdout)),
        ("stderr", HostReply::Bytes(stderr)),
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

impl OutputQueue {
    fn add(&mut self, stream: Stream, piece: Vec<u8>) {
        self.bytes += piece.len();
        self.pieces.push_back((stream, piece));
        while self.bytes > WAITING
            && let Some((_, dropped)) = self.pieces.pop_front()
        {
            self.bytes -= dropped.len();
        }
    }
}

/// The bytes of both streams as the program wrote them, each until it is too long.
struct RawOutput(Mutex<StreamBytes>);

/// The bytes of stdout and of stderr; `None` for a stream that is too long.
type StreamBytes = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Default for RawOutput {
    fn default() -> Self {
        Self(Mutex::new((Some(Vec::new()), Some(Vec::new()))))
    }
}

impl RawOutput {
    fn keep(&self, stream: Stream, bytes: &[u8]) {
        let mut both = self.0.lock();
        let kept = match stream {
            Stream::Stdout => &mut both.0,
            Stream::Stderr => &mut both.1,
        };
        match kept {
            Some(kept) if kept.len() + bytes.len() <= KEEP => kept.extend_from_slice(bytes),
            // The text without its middle is the result then.
            Some(_) | None => *kept = None,
        }
    }

    fn take(&self) -> StreamBytes {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The arguments in a list, as hygge takes them: absent elements are skipped, and booleans are texts.
fn words_of(list: &Fields) -> Result<Vec<String>, String> {
    let mut places = Vec::new();
    for pair in list.table.pairs::<Value, Value>() {
        let (place, word) = pair.map_err(|error| error.to_string())?;
        let place = match place {
            Value::Integer(place) => place as f64,
            Value::Number(place) => place,
            other => {
                return Err(format!("expected a list of strings, got the key {}", shown(&other)));
            }
        };
        places.push((place, word));
    }
    places.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let word = |(place, word): (f64, Value)| match &word {
        Value::Boolean(flag) => Ok(flag.to_string()),
        Value::String(bytes) if bytes.to_str().is_err() => Err(format!(
            "element {place} is not UTF-8, so no rule can judge it: give such bytes with the option stdin, or in a file"
        )),
        word => text(word).ok_or_else(|| format!("expected a list of strings, got {} at {place}", shown(word))),
    };
    places.into_iter().map(word).collect()
}

/// A text such as "30": hygge takes it for no duration and keeps its own limit.
fn is_bare_number(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

impl PendingOutput {
    /// Pieces are not cut inside a character. Bytes that are no text come as they are.
    fn hear(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state.lock();
        let mut piece = std::mem::take(&mut state.incomplete[stream as usize]);
        piece.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&piece)
            && error.error_len().is_none()
        {
            state.incomplete[stream as usize] = piece.split_off(error.valid_up_to());
        }
        if piece.is_empty() {
            return;
        }
        state.add(stream, piece);
        drop(state);
        self.changed.notify_one();
    }

    fn end(&self, result: Result<HostReply, String>) {
        let mut state = self.state.lock();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut state.incomplete[stream as usize]);
            if !rest.is_empty() {
                state.add(stream, rest);
            }
        }
        state.result = Some(result);
        drop(state);
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
                    return Ok(HostReply::Fields(vec![stream, ("text", HostReply::Bytes(text))]));
                }
                if let Some(result) = state.result.take() {
                    return result;
                }
            }
            self.changed.notified().await;
        }
    }
}
