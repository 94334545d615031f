//! `toolctl notify`: notifications about requests that wait for an answer.

use std::io::Write;

use anyhow::ensure;
use clap::{Args, Subcommand};
use toold_proto::daemon::NoParams;
use toold_proto::method::NotifyTest;

use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, GOOD, one_line, print_json};

/// Try out how you are notified of requests that wait for your answer
///
/// The section notify of the configuration sets the ways: a command, the desktop, or a server such as ntfy.
#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    action: NotifyAction,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum NotifyAction {
    /// Send a test notification in each configured way, and show how each went
    Test,
}

pub(crate) async fn run(args: NotifyArgs, globals: &Globals) -> anyhow::Result<u8> {
    let NotifyAction::Test = args.action;
    let client = connection::open(globals).await?;
    let report = client.call::<NotifyTest>(NoParams {}).await?;
    if args.json {
        print_json(&report)?;
    } else {
        ensure!(
            !report.results.is_empty(),
            "no notifications are configured: set command, desktop or post in the section [notify] of the configuration"
        );
        let mut out = output::stdout();
        for result in &report.results {
            let way = result.way.as_str();
            match &result.error {
                None => writeln!(out, "{way}: {GOOD}sent{GOOD:#}")?,
                Some(error) => writeln!(out, "{way}: {BAD}not sent{BAD:#}: {}", one_line(error))?,
            }
        }
        out.flush()?;
    }
    let all_sent = report.results.iter().all(|result| result.error.is_none());
    Ok(if all_sent && !report.results.is_empty() { OK } else { NOT_RUN })
}
