//! `toolctl call`: calls a tool, shows its progress, and asks for permissions and answers that it needs.

mod picker;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use toold_client::{Client, ClientError, RpcError};
use toold_proto::call::{Execute, ListTools, ToolSchema};
use toold_proto::error::{ArgumentError, CANCELLED, INVALID_PARAMS};
use toold_proto::method::{PluginsList, ToolsList, ToolsSchema};
use toold_proto::plugin::{ListPlugins, Plugin, PluginStatus};
use toold_proto::shell_word::quoted_unless;
use toold_proto::tool::{Block, SessionId, Tool, ToolResult};

use crate::clock::with_times;
use crate::commands::plugins;
use crate::exit::{self, INTERRUPTED, STATUS_HELP, usage};
use crate::follow::{CallLimit, follow};
use crate::form::{self, ArgumentProblem};
use crate::globals::Globals;
use crate::live::{LiveOutput, Stdout};
use crate::output::{self, BAD, DIM, WARN, one_line, print_foreign, print_json, shorten};
use crate::prompts::{Prompter, ShownPrompts};
use crate::{arguments, connection, keys};

/// How long a daemon may take to say why it ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Call a tool
///
/// Arguments are key=value pairs, and the tool's schema gives their types. Write lists with commas, with a repeated
/// key, or as JSON; write objects as JSON. @file stands for the content of a file, @- for stdin, and @@x for the text
/// @x. You can also pass all arguments as one JSON object.
///
/// The result goes to stdout, messages and progress go to stderr. On a terminal, the tool's output appears while it
/// runs and is not repeated at the end. When both are redirected, output that is a part of the result is written to
/// stdout alone. Ctrl-C cancels the call; a second Ctrl-C exits at once.
#[derive(Debug, Args)]
#[command(after_help = STATUS_HELP)]
pub(crate) struct CallArgs {
    /// The name of the tool; without it, a terminal shows a search over the tools, then asks for the arguments
    name: Option<String>,
    /// key=value, or - for a JSON object on stdin
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// All arguments as a JSON object, as @file, or as - for stdin; pairs override its members
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// Prompt for the arguments that are not given, one by one
    #[arg(long)]
    form: bool,
    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    output: OutputFormat,
    /// Give up after this many seconds, also while a person is asked; the tool's own time limit still applies
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<u64>,
    /// The folder the call works in; defaults to that of the session, for a new one the current folder
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Work in this session; it is created if it does not exist
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Do not use a cached result
    #[arg(long)]
    no_cache: bool,
    /// Print only the result
    #[arg(long, short)]
    quiet: bool,
    /// Do not show permission prompts and questions here; other clients may still show them
    #[arg(long)]
    no_ask: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The result's text
    #[default]
    Text,
    /// The whole answer, or the error, as one JSON document
    Json,
}

impl CallArgs {
    /// The arguments of `toolctl call NAME KEY=VALUE...`.
    pub(crate) fn of(name: String, arguments: Vec<String>) -> Self {
        Self {
            name: Some(name),
            arguments,
            json: None,
            form: false,
            output: OutputFormat::default(),
            timeout: None,
            cwd: None,
            session: None,
            no_cache: false,
            quiet: false,
            no_ask: false,
        }
    }
}

pub(crate) async fn run(args: CallArgs, globals: &Globals) -> anyhow::Result<u8> {
    let format = args.output;
    let ended = find_and_call(args, globals).await;
    if let (Err(error), OutputFormat::Json) = (&ended, format) {
        // When stdout cannot be written, that is no better news than the error itself.
        let _ = print_json(&document_of(error));
    }
    ended
}

/// The error for a program. `code` is that of JSON-RPC, as far as there is one.
fn document_of(error: &anyhow::Error) -> Value {
    let rpc = error.chain().find_map(|cause| match cause.downcast_ref::<ClientError>() {
        Some(ClientError::Rpc(rpc)) => Some(rpc),
        _ => None,
    });
    match rpc {
        Some(rpc) => json!({"error": {"code": rpc.code, "message": rpc.message, "data": rpc.data}}),
        None if exit::status(error) == exit::USAGE => {
            json!({"error": {"code": INVALID_PARAMS, "message": format!("{error:#}")}})
        }
        None => json!({"error": {"message": format!("{error:#}")}}),
    }
}

async fn find_and_call(mut args: CallArgs, globals: &Globals) -> anyhow::Result<u8> {
    // No name of a tool has these characters.
    if let Some(pair) = args.name.take_if(|name| name.contains('=') || name == "-") {
        args.arguments.insert(0, pair);
    }
    let (base, pairs) = given(&args)?;
    if args.name.is_none() && (!keys::has_terminal() || output::presentation().plain) {
        return Err(usage("expected the name of a tool: `toolctl list` shows all"));
    }
    if let Some(text) = arguments::malformed(&pairs).first() {
        return Err(no_pair(text, args.name.as_deref(), &pairs, globals).await);
    }
    let mut client = connection::open(globals).await?;
    let name = match args.name.take() {
        Some(name) => name,
        None => {
            let tools = client.call::<ToolsList>(ListTools::default()).await?.tools.unwrap_or_default();
            let Some(tool) = picker::pick(tools).await? else { return nothing_called() };
            args.form = true;
            tool.name.to_string()
        }
    };
    let call = WantedCall { name, args, base, pairs };
    loop {
        match call_in_session(&client, &call).await {
            // The call was not carried out: repeat it at the daemon that serves now.
            Err(error) if connection::is_replaced(&error) => client = connection::successor(&client).await?,
            ended => return ended,
        }
    }
}

/// The error for a text that is no pair, with the pair that was probably meant. Starts no daemon.
async fn no_pair(text: &str, tool: Option<&str>, pairs: &[String], globals: &Globals) -> anyhow::Error {
    let words = format!("expected key=value, got {text:?}");
    let Some(name) = tool else { return usage(words) };
    let client = connection::open_running(globals).await.ok().flatten();
    let tool = match &client {
        Some(client) => client.call::<ToolsSchema>(ToolSchema { name: name.to_owned(), session_id: None }).await.ok(),
        None => None,
    };
    match tool.and_then(|tool| arguments::meant(text, pairs, &tool.input_schema)) {
        Some(meant) => usage(format!("{words}: did you mean {}?", in_shell(&meant))),
        None => usage(format!("{words}: `toolctl tools schema {name}` shows the keys")),
    }
}

/// A pair as it is typed.
fn in_shell(pair: &str) -> String {
    quoted_unless(pair, |c| c.is_ascii_alphanumeric() || "_@%+:,./-=".contains(c))
}

/// The call that the command line, and perhaps the search, ask for.
struct WantedCall {
    name: String,
    args: CallArgs,
    /// The JSON arguments, which the pairs override.
    base: Map<String, Value>,
    pairs: Vec<String>,
}

async fn call_in_session(client: &Client, wanted: &WantedCall) -> anyhow::Result<u8> {
    let args = &wanted.args;
    let session = match &args.session {
        // Only where a person may answer for the session.
        None if !args.no_ask => connection::open_terminal_session(client, args.cwd.clone()).await?,
        id => connection::open_session(client, args.cwd.clone(), id.clone()).await?,
    };
    let status = call(client, wanted, session.id()).await;
    session.close(client).await;
    status
}

async fn call(client: &Client, wanted: &WantedCall, session: Option<&SessionId>) -> anyhow::Result<u8> {
    let WantedCall { name, args, base, pairs } = wanted;
    let schema = || client.call::<ToolsSchema>(ToolSchema { name: name.clone(), session_id: None });
    if args.form {
        if !keys::has_terminal() {
            return Err(usage("--form needs a terminal"));
        }
        let tool = schema().await?;
        let given = arguments::read_given(base.clone(), pairs, &tool.input_schema)?;
        return call_by_form(client, wanted, session, tool, given).await;
    }
    let arguments = if base.is_empty() && pairs.is_empty() {
        Map::new()
    } else {
        let schema = schema().await?.input_schema;
        let arguments = arguments::read(base.clone(), pairs, &schema)
            .map_err(|error| usage(format!("invalid arguments for {name}: {error:#}")))?;
        for warning in arguments::unnamed(&arguments, &schema).iter().filter(|_| !args.quiet) {
            writeln!(output::stderr(), "{WARN}warning:{WARN:#} {warning}")?;
        }
        arguments
    };
    if !args.quiet && output::stderr_width().is_some() {
        warn_of_older_version(client, name).await?;
    }
    let outcome = call_once(client, wanted, session, arguments).await?;
    if let Some((Ok(result), _)) = &outcome
        && result.is_not_run()
        && let Ok(ClientError::Replaced) = timeout(FAREWELL, client.closed()).await
    {
        // The next daemon asks again.
        return Err(ClientError::Replaced.into());
    }
    match outcome {
        Some((outcome, live)) => print_outcome(outcome, &live, args),
        None => Ok(INTERRUPTED),
    }
}

/// Says that an earlier version of a plugin serves, because the newest one was rejected: its author waits for a change.
async fn warn_of_older_version(client: &Client, tool: &str) -> anyhow::Result<()> {
    let Ok(list) = client.call::<PluginsList>(ListPlugins::default()).await else { return Ok(()) };
    let serves = |plugin: &&Plugin| plugin.status == PluginStatus::Failed && plugin.tools.iter().any(|own| own == tool);
    if let Some(plugin) = list.plugins.iter().find(serves) {
        writeln!(output::stderr(), "{WARN}warning:{WARN:#} {}", one_line(&plugins::rejected(plugin)))?;
    }
    Ok(())
}

fn nothing_called() -> anyhow::Result<u8> {
    writeln!(output::stderr(), "nothing was called")?;
    Ok(INTERRUPTED)
}

/// Asks until the arguments match the schema, or the user cancels.
async fn call_by_form(
    client: &Client,
    wanted: &WantedCall,
    session: Option<&SessionId>,
    tool: Tool,
    given: Map<String, Value>,
) -> anyhow::Result<u8> {
    let (mut arguments, mut problems) = (given, Vec::new());
    let tool = Arc::new(tool);
    loop {
        let form = {
            let tool = tool.clone();
            move || form::fill(&tool, &arguments, &problems)
        };
        let filled = tokio::task::spawn_blocking(form).await??;
        let Some(filled) = filled else { return nothing_called() };
        let called = call_once(client, wanted, session, filled.clone()).await?;
        let Some((outcome, live)) = called else { return Ok(INTERRUPTED) };
        let found = match &outcome {
            Err(ClientError::Rpc(error)) => problems_in(error),
            Ok(_) | Err(_) => Vec::new(),
        };
        if found.is_empty() {
            return print_outcome(outcome, &live, &wanted.args);
        }
        (arguments, problems) = (filled, found);
    }
}

/// The arguments that the daemon refused, and why.
fn problems_in(error: &RpcError) -> Vec<ArgumentProblem> {
    let errors = error.data.iter().flat_map(|data| &data.errors);
    let problem = |error: &ArgumentError| {
        let key = error.path.split('/').nth(1)?.replace("~1", "/").replace("~0", "~");
        (!key.is_empty()).then(|| ArgumentProblem { key, message: error.message.clone() })
    };
    let mut problems: Vec<ArgumentProblem> = errors.filter_map(problem).collect();
    problems.dedup_by(|one, other| one.key == other.key);
    problems
}

type CallOutcome = Result<ToolResult, ClientError>;

/// `None` when the user did not wait for the end.
async fn call_once(
    client: &Client,
    wanted: &WantedCall,
    session: Option<&SessionId>,
    arguments: Map<String, Value>,
) -> anyhow::Result<Option<(CallOutcome, LiveOutput)>> {
    let WantedCall { name, args, .. } = wanted;
    let execute = Execute {
        name: name.clone(),
        arguments: Value::Object(arguments),
        timeout_ms: args.timeout,
        progress: true,
        no_cache: args.no_cache,
        ..Execute::default()
    };
    let stdout = match args.output {
        OutputFormat::Text => Stdout::ForPeople,
        OutputFormat::Json => Stdout::ResultOnly,
    };
    let mut live = LiveOutput::new(stdout, args.quiet);
    let shows_prompts = !args.no_ask && keys::has_terminal();
    let mut prompter =
        if shows_prompts { Prompter::subscribe(client, ShownPrompts::OfCall(session.cloned())).await? } else { None };
    let call = client.execute(execute)?;
    let limit = args.timeout.map(|limit| CallLimit::start(client, call.id(), Duration::from_millis(limit)));
    let outcome = follow(client, call, name, &mut live, &mut prompter).await?;
    if limit.is_some_and(|limit| limit.was_reached()) && matches!(outcome, Some(Err(_))) {
        bail!("gave up after {}: the call had not ended", output::duration(args.timeout.unwrap_or_default()));
    }
    Ok(outcome.map(|outcome| (outcome, live)))
}

/// Shows the outcome of the call; returns the exit status.
fn print_outcome(outcome: CallOutcome, live: &LiveOutput, args: &CallArgs) -> anyhow::Result<u8> {
    match (outcome, args.output) {
        (Ok(result), OutputFormat::Json) => {
            live.write_output_without(&texts(&result))?;
            print_json(&result)?;
            Ok(exit::of_result(&result))
        }
        (Ok(result), OutputFormat::Text) => {
            print_result(&result, live, args.quiet)?;
            Ok(exit::of_result(&result))
        }
        (Err(ClientError::Rpc(RpcError { code: CANCELLED, message, .. })), OutputFormat::Text) => {
            print_foreign(live.without_result()?)?;
            writeln!(output::stderr(), "{}", one_line(&message))?;
            Ok(INTERRUPTED)
        }
        (Err(error), _) => Err(error.into()),
    }
}

fn texts(result: &ToolResult) -> Vec<&str> {
    result.content.iter().filter_map(Block::as_text).collect()
}

fn print_result(result: &ToolResult, live: &LiveOutput, quiet: bool) -> anyhow::Result<()> {
    let on_terminal = output::stdout_is_terminal();
    let is_denied = exit::of_result(result) == exit::DENIED;
    live.write_output_without(&texts(result))?;
    // The lines are the tool's: a terminal folds them, and a copy of them is whole.
    let mut out = output::unfolded_stdout();
    for block in &result.content {
        match block {
            Block::Text { text } => {
                out.flush()?;
                let text = live.unseen(text);
                // A denial has the daemon's words, and so its times.
                print_foreign(&if is_denied { with_times(&text) } else { text })?;
            }
            Block::Image { data, mime_type } => not_shown(&mut out, "image", mime_type, data.len())?,
            Block::Audio { data, mime_type } => not_shown(&mut out, "audio", mime_type, data.len())?,
            Block::Resource { uri, text: Some(text), .. } => {
                writeln!(out, "{DIM}{}{DIM:#}", one_line(uri))?;
                out.flush()?;
                print_foreign(text)?;
            }
            Block::Resource { uri, name, description, .. } => {
                let words: Vec<&str> = [Some(uri), name.as_ref(), description.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    .collect();
                writeln!(out, "{DIM}{}{DIM:#}", one_line(&words.join("  ")))?;
            }
        }
    }
    out.flush()?;
    if on_terminal && !quiet {
        let took = output::duration(result.duration_ms);
        let mut err = output::stderr();
        match (result.is_error, result.cached) {
            // The text says what is not allowed, and why.
            (true, _) if is_denied => {}
            (true, _) => writeln!(err, "{BAD}the tool reported an error{BAD:#} {DIM}after {took}{DIM:#}")?,
            (false, true) => writeln!(err, "{DIM}from the cache{DIM:#}")?,
            (false, false) if result.duration_ms >= 1000 => writeln!(err, "{DIM}{took}{DIM:#}")?,
            (false, false) => {}
        }
    }
    Ok(())
}

fn not_shown(out: &mut impl Write, what: &str, mime_type: &str, base64_length: usize) -> std::io::Result<()> {
    let size = output::bytes(base64_length as u64 * 3 / 4);
    writeln!(out, "{DIM}[{what}, {}, {size}; use --output json to get it]{DIM:#}", one_line(mime_type))
}

/// The JSON arguments, and the pairs that override them.
fn given(args: &CallArgs) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
    let dashes = args.arguments.iter().filter(|argument| *argument == "-").count();
    let pairs: Vec<String> = args.arguments.iter().filter(|argument| *argument != "-").cloned().collect();
    let text = match (&args.json, dashes) {
        (None, 0) => return Ok((Map::new(), pairs)),
        (Some(json), 0) => match json.strip_prefix('@') {
            _ if json == "-" => stdin()?,
            Some("-") => stdin()?,
            Some(path) => {
                std::fs::read_to_string(path).map_err(|error| usage(format!("can't read {path}: {error}")))?
            }
            None => json.clone(),
        },
        (None, 1) => stdin()?,
        _ => return Err(usage("the arguments are given as JSON more than once: use either --json or -")),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(base)) => Ok((base, pairs)),
        Ok(_) => Err(usage("the arguments must be a JSON object")),
        // Other commands have a switch of this name, which makes their output JSON.
        Err(_) if args.json.is_some() && !text.trim_start().starts_with(['{', '[', '"']) => Err(usage(format!(
            "--json takes the arguments as a JSON object, got {}; for output as JSON, use --output json",
            shorten(&one_line(&text), 80)
        ))),
        Err(error) => Err(usage(format!("the arguments are not valid JSON: {error}"))),
    }
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("can't read stdin")?;
    Ok(text)
}

pub(crate) fn session_id(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text).map_err(|error| error.to_string())
}

/// Seconds with a fraction, in milliseconds.
fn seconds(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok((seconds * 1000.0).ceil() as u64),
        _ => Err("expected seconds, such as 1.5".to_owned()),
    }
}
