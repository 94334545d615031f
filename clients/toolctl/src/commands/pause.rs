//! `toolctl pause` and `toolctl resume`: stop everything, and let it go on.

use clap::Args;
use toold_proto::daemon::{NoParams, PauseDaemon, PausedDaemon};
use toold_proto::method::{DaemonPause, DaemonResume};

use crate::clock::with_times;
use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, WARN, counted, one_line, print_answer, print_json};

/// Pause everything: running commands stand still, and nothing is allowed
///
/// Time limits stand still. Agents that ask get the answer that everything is paused. A restart of the daemon does not
/// resume.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// End the calls and background commands, in place of letting them stand still
    #[arg(long)]
    kill: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Resume what was paused
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn pause(args: PauseArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let session = connection::open_session(&client, Some("/".into()), None).await?;
    let paused = client.call::<DaemonPause>(PauseDaemon { kill: args.kill }).await;
    session.close(&client).await;
    let paused = paused?;
    if args.json {
        print_json(&paused)?;
        return Ok(OK);
    }
    let what = match args.kill {
        true => match paused.processes {
            0 => "nothing was running that toold could end".to_owned(),
            1 => "1 call or background command ended".to_owned(),
            ended => format!("{ended} calls and background commands ended"),
        },
        false => format!("{} stopped", counted(paused.processes, "running program")),
    };
    output::print(&format!("{}: {what}\n{}", state(&paused), running(&paused)))?;
    Ok(OK)
}

pub(crate) async fn resume(args: ResumeArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let resumed = client.call::<DaemonResume>(NoParams {}).await?;
    let words = if resumed.resumed.is_some() { "resumed\n" } else { "nothing was paused\n" };
    print_answer(args.json, &resumed, |_, _| words.to_owned())?;
    Ok(OK)
}

fn state(paused: &PausedDaemon) -> String {
    with_times(&one_line(paused.paused.as_deref().unwrap_or("paused")))
}

/// An agent does not report that it refused a tool by itself.
fn running(paused: &PausedDaemon) -> String {
    let line = |tool: &String| {
        format!("{WARN}may still run{WARN:#} {} (the agent's own; toold cannot stop it)\n", one_line(tool))
    };
    paused.still_running.iter().map(line).collect()
}
