//! `toolctl changes`: what tools and agents changed, as one diff, with who did what.

use std::io::Write;

use anyhow::Context;
use clap::{Args, Subcommand};
use toold_proto::file::{FileHistory, ForgetChanges};
use toold_proto::method::{FilesForget, FilesHistory};
use toold_proto::tool::SessionId;

use crate::clock;
use crate::commands::call::session_id;
use crate::commands::undo;
use crate::confirm::confirm;
use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, DIM, counted, print_json};
use crate::prompts::ask::show_diff;

/// Show what tools and agents changed, as one diff
///
/// Lines that begin with # say which call changed the file, with its command line. Contents of secret and excluded files
/// are not shown. Written to a file or a pipe, it is a patch that `git apply` and `git apply -R` take in the current folder:
/// changes elsewhere, and others that a patch cannot hold, are named in lines that begin with #.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChangesArgs {
    #[command(subcommand)]
    command: Option<ChangesCommand>,
    /// Only changes since this time: 2026-01-31T12:00:00Z, or how long ago, such as 1h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only changes of this session
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Only changes of this agent or client
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// List them, the oldest first, without a diff
    #[arg(long, short)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ChangesCommand {
    /// Forget recorded changes, and what is kept to undo them
    Forget(ForgetChangesArgs),
}

#[derive(Debug, Args)]
#[group(required = true)]
struct ForgetChangesArgs {
    /// Forget the changes of this path and of all below it
    path: Option<std::path::PathBuf>,
    /// Forget all changes
    #[arg(long, conflicts_with = "path")]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: ChangesArgs, globals: &Globals) -> anyhow::Result<u8> {
    if let Some(ChangesCommand::Forget(forget)) = args.command {
        return self::forget(forget, globals).await;
    }
    let client = connection::open(globals).await?;
    let cwd = std::env::current_dir().context("can't determine the current folder")?;
    let is_patch = !args.json && !output::stdout_is_terminal();
    let history = FileHistory {
        session_id: args.session,
        all: true,
        since: args.since.as_deref().map(clock::moment),
        agent: args.agent,
        diff: !args.list,
        folder: Some(cwd.to_string_lossy().into_owned()),
        patch: is_patch,
        below: None,
    };
    let answer = client.call::<FilesHistory>(history).await?;
    if args.list {
        undo::list(&answer, args.json)?;
    } else if args.json {
        print_json(&answer)?;
    } else {
        let (mut out, diff) = (output::stdout(), answer.diff.unwrap_or_default());
        match is_patch {
            true => out.write_all(diff.as_bytes())?,
            false => show_diff(&diff, &mut out)?,
        }
        if answer.changes.is_empty() && answer.unrecorded.is_empty() {
            writeln!(out, "{DIM}# no recorded changes{DIM:#}")?;
        }
        for shell in undo::running(&client, &cwd).await? {
            writeln!(out, "{DIM}# {}{DIM:#}", undo::not_recorded_yet(&shell))?;
        }
        out.flush()?;
    }
    Ok(OK)
}

async fn forget(args: ForgetChangesArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let cwd = std::env::current_dir().context("can't determine the current folder")?;
    let path = args.path.map(|path| cwd.join(path).to_string_lossy().into_owned());
    let what = path.as_deref().map_or("all changes".to_owned(), |path| format!("the changes of {path}"));
    if !args.yes && !confirm(&format!("Forget {what}? They cannot be undone then.")).await? {
        return Ok(OK);
    }
    let answer = client.call::<FilesForget>(ForgetChanges { path, all: args.all }).await?;
    let mut out = output::stdout();
    writeln!(out, "forgot {}", counted(answer.forgotten, "change"))?;
    out.flush()?;
    Ok(OK)
}
