//! `toolctl plugins repl`: a prompt in a plugin.

mod completion;
mod evaluators;
mod lines;

use std::io::Write;

use toold_proto::plugin::Evaluation;
use toold_proto::tool::{SessionId, ToolResult};

use self::evaluators::{DaemonPlugin, Evaluators, FakedPlugin};
use self::lines::{Input, Lines};
use crate::commands::call::session_id;
use crate::connection;
use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::live::LiveOutput;
use crate::output::{self, BAD, DIM, plain};

/// Run Lua in a plugin, line by line
///
/// Each input runs in the plugin's Lua state in the daemon, as a call: `ctx` is real, you are asked for permissions, and
/// Ctrl-C cancels it. Expressions print their values. Input sees the plugin's globals, but not the `local` variables of
/// its files. A global that you set stays until the plugin is reloaded; a `local` ends with its input. Ctrl-D exits.
///
/// Without a terminal, the lines of stdin run; exit status 1 if one fails.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplArgs {
    /// The plugin; with --fake, its file or folder
    name: String,
    /// Load the plugin outside the daemon, as `plugins test` does, with `fake` and `call`, in an empty folder
    #[arg(long)]
    fake: bool,
    /// Work in this session; it is created if it does not exist
    #[arg(long, value_name = "ID", value_parser = session_id, conflicts_with = "fake")]
    session: Option<SessionId>,
}

pub(crate) async fn run(args: ReplArgs, globals: &Globals) -> anyhow::Result<u8> {
    if args.fake {
        let mut plugin = Evaluators::Faked(FakedPlugin::start(&args.name)?);
        let status = read_and_run(&mut plugin).await;
        plugin.end().await;
        return status;
    }
    let client = connection::open(globals).await?;
    let session = connection::open_session(&client, None, args.session).await?;
    let mut plugin = Evaluators::Daemon(DaemonPlugin::open(&client, args.name).await?);
    let status = read_and_run(&mut plugin).await;
    session.close(&client).await;
    status
}

async fn read_and_run(plugin: &mut Evaluators) -> anyhow::Result<u8> {
    let mut lines = Lines::open()?;
    let (mut source, mut status) = (String::new(), OK);
    loop {
        let line = match lines.next(source.is_empty()).await? {
            Input::Line(line) => line,
            Input::Abandoned => {
                source.clear();
                continue;
            }
            Input::End => break,
        };
        if source.is_empty() && line.trim().is_empty() {
            continue;
        }
        source.push_str(&line);
        let mut live = plugin.output();
        let outcome = plugin.evaluate(&source, &mut live).await?;
        if let Some(Evaluation { incomplete: true, .. }) = &outcome {
            source.push('\n');
            continue;
        }
        lines.remember(&source);
        source.clear();
        match outcome.and_then(|evaluation| evaluation.result) {
            Some(result) if result.is_error => {
                show_error(&result, &live)?;
                status = TOOL_ERROR;
            }
            Some(result) => show(&result)?,
            // Cancelled.
            None => status = TOOL_ERROR,
        }
    }
    if !source.is_empty() {
        writeln!(output::stderr(), "{BAD}the input ends early{BAD:#}: expected more lines")?;
        status = TOOL_ERROR;
    }
    // A status that was seen at the terminal is not reported again.
    Ok(if lines.is_terminal() { OK } else { status })
}

fn show(result: &ToolResult) -> anyhow::Result<()> {
    let text = result.text();
    if !text.is_empty() {
        let mut out = output::stdout();
        writeln!(out, "{}", plain(&text))?;
        out.flush()?;
    }
    Ok(())
}

fn show_error(result: &ToolResult, live: &LiveOutput) -> anyhow::Result<()> {
    let mut err = output::stderr();
    writeln!(err, "{BAD}error:{BAD:#} {}", plain(live.unseen(&result.text()).trim_end()))?;
    let frames = result.metadata.get("traceback").and_then(|traceback| traceback.as_str());
    // One frame is the place that the message names.
    for frame in frames.into_iter().flat_map(str::lines).filter(|_| frames.is_some_and(|text| text.contains('\n'))) {
        writeln!(err, "  {DIM}{}{DIM:#}", plain(frame))?;
    }
    Ok(())
}
