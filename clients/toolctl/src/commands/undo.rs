//! `toolctl undo`: the changes that tools made to files, and how to undo them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use toold_client::{Client, ClientError};
use toold_proto::file::{
    FileChange, FileChanges, FileHistory, UndoFiles, UndoneFiles, UnrecordedCall, UnrecordedPaths,
};
use toold_proto::method;
use toold_proto::shell::{ListShells, ShellInfo, ShellList};
use toold_proto::tool::{CallId, SessionId};

use crate::commands::call::session_id;
use crate::confirm::confirm;
use crate::exit::{OK, not_found};
use crate::globals::Globals;
use crate::output::{self, DIM, counted, one_line, plain_name, print_answer};
use crate::prompts::ask::show_diff;
use crate::views::{self, changes};
use crate::{clock, connection};

/// Undo changes that tools made to files
///
/// Without arguments, undoes the last call that changed something below the current folder, whichever session made it: an
/// edit, or a command of a tool or an agent. Shows a diff and asks for confirmation. A call is undone as a whole, and not
/// at all if one of its files has changed since. Whatever is saved in the session's folders while a command runs counts as
/// the command's. What others may have made too is undone only when it is named, with --call or by its path: changes while
/// several commands ran, or one in the background. With --since, --agent or --session, undoes all other calls that fit and
/// changed something below the current folder. Git's own folder is never changed: after `git checkout -- .` the files come
/// back, and the index and branches stay as they are. Files outside of the session's folders stay, too. It names both where it is
/// known that a command changed them.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Undo the call that changed this file last
    path: Option<PathBuf>,
    /// Undo all changes of this call
    #[arg(long, value_name = "ID", value_parser = call_id, conflicts_with = "path")]
    call: Option<CallId>,
    /// All calls of this session; with a path or --call, only if this session made the change
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// All calls since this time: 2026-01-31T12:00:00Z, or how long ago, such as 15m
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["path", "call", "list"])]
    since: Option<String>,
    /// All calls of this agent or client
    #[arg(long, value_name = "NAME", conflicts_with_all = ["path", "call", "list"])]
    agent: Option<String>,
    /// List the changes below the current folder, the oldest first; change nothing
    #[arg(long, short, conflicts_with_all = ["path", "call"])]
    list: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The most paths that are named once they are undone.
const MAX_NAMED: usize = 20;

fn call_id(text: &str) -> Result<CallId, String> {
    CallId::parse(text).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: UndoArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let cwd = std::env::current_dir().context("can't determine the current folder")?;
    if args.list {
        list(&recorded(&client, args.session, &cwd).await?, args.json)?;
        return Ok(OK);
    }
    let folder = Some(cwd.to_string_lossy().into_owned());
    let of_all = UndoFiles { session_id: args.session.clone(), all: true, folder, ..UndoFiles::default() };
    let is_of_many = args.session.is_some() || args.since.is_some() || args.agent.is_some();
    let selected = match (args.path, args.call) {
        (Some(path), _) => UndoFiles { path: Some(cwd.join(path).to_string_lossy().into_owned()), ..of_all },
        (None, Some(call)) => UndoFiles { call_id: Some(call), ..of_all },
        (None, None) if is_of_many => {
            UndoFiles { since: args.since.as_deref().map(clock::moment), agent: args.agent, every: true, ..of_all }
        }
        (None, None) => {
            let FileChanges { changes, unrecorded, .. } = recorded(&client, None, &cwd).await?;
            let last = changes.iter().rev().find(|change| !change.undone);
            // RFC 3339 sorts by time.
            let is_later = |call: &&UnrecordedCall| last.is_none_or(|last| call.at > last.at);
            let after = unrecorded.last().filter(is_later).map(unrecorded_by);
            let Some(last) = last else {
                let why = "there is no change below this folder to undo: what commands change in `.git`, in folders that Git \
                           ignores, and outside of their session's folders, is not kept";
                let mut lines = vec![why.to_owned()];
                lines.extend(after);
                let running = running(&client, &cwd).await?;
                lines.extend((!running.is_empty()).then(|| until_they_end(&running)));
                return Err(not_found(lines.join("\n")));
            };
            if let Some(after) = after {
                writeln!(output::stderr(), "{after}: this is the call before it")?;
            }
            if !last.shared_with.is_empty() {
                return Err(not_found(doubtful(last, &changes, &cwd)));
            }
            let last = last.clone();
            UndoFiles { call_id: Some(last.call_id), session_id: Some(last.session_id), ..of_all }
        }
    };
    if !args.yes {
        let plan = undo(&client, UndoFiles { dry_run: true, ..selected.clone() }, &cwd).await?;
        let mut err = output::stderr();
        show_diff(plan.diff.as_deref().unwrap_or_default(), &mut err)?;
        plan.notes.iter().try_for_each(|note| writeln!(err, "{}", one_line(note)))?;
        drop(err);
        if !confirm("Undo this?").await? {
            return Ok(OK);
        }
    }
    let undone = undo(&client, selected, &cwd).await?;
    let line = |path: &String| format!("undid the changes to {}\n", shown(path, &cwd));
    print_answer(args.json, &undone, |undone, _| {
        let named = undone.paths.iter().take(MAX_NAMED);
        let more = (undone.paths.len() - named.len()) as u64 + undone.more;
        let more = (more > 0).then(|| format!("undid the changes to {}\n", counted(more, "more path")));
        let stays = undone.notes.iter().map(|note| one_line(note) + "\n");
        named.map(line).chain(more).chain(stays).collect()
    })?;
    Ok(OK)
}

/// Undoes, or shows what that would do. Where nothing is recorded, a command that still runs may be why.
async fn undo(client: &Client, selected: UndoFiles, cwd: &Path) -> anyhow::Result<UndoneFiles> {
    let file = selected.path.clone().map(PathBuf::from);
    match client.call::<method::FilesUndo>(selected).await {
        Err(ClientError::Rpc(error)) if error.kind() == "nothing_to_undo" => {
            let folder = file.as_deref().and_then(Path::parent).unwrap_or(cwd);
            let running = running(client, folder).await?;
            match running.is_empty() {
                true => Err(ClientError::Rpc(error).into()),
                false => Err(not_found(format!("{}\n{}", error.message, until_they_end(&running)))),
            }
        }
        answer => Ok(answer?),
    }
}

/// Why the last change is not undone unless it is named, and how to go on.
fn doubtful(last: &FileChange, changes: &[FileChange], cwd: &Path) -> String {
    let FileChange { tool, call_id, session_id, path, shared_with, .. } = last;
    let is_open =
        |change: &&FileChange| change.call_id == *call_id && change.session_id == *session_id && !change.undone;
    // By its id, the certain part of a call comes first.
    let named = match changes.iter().filter(is_open).any(|change| change.shared_with != *shared_with) {
        true => {
            let below = Path::new(path).strip_prefix(cwd).unwrap_or(Path::new(path)).to_string_lossy();
            format!("-- {}", shlex::try_quote(&below).unwrap_or_default())
        }
        false => format!("--call {call_id}"),
    };
    let mut words = format!(
        "the last change, of {path}, was made by {tool} or by {}: see it with `toolctl changes`, and undo it with `toolctl undo \
         {named}`",
        shared_with.join(", ")
    );
    let certain = changes.iter().rev().find(|change| !change.undone && change.shared_with.is_empty());
    if let Some(FileChange { tool, call_id, path, .. }) = certain {
        words
            .push_str(&format!(", or the last certain one, of {path} by {tool}, with `toolctl undo --call {call_id}`"));
    }
    one_line(&words)
}

/// The changes below `cwd`, and the calls with others that are known there but not recorded.
async fn recorded(client: &Client, session: Option<SessionId>, cwd: &Path) -> anyhow::Result<FileChanges> {
    let folder = Some(cwd.to_string_lossy().into_owned());
    let history =
        FileHistory { session_id: session, all: true, below: folder.clone(), folder, ..FileHistory::default() };
    let mut known = client.call::<method::FilesHistory>(history).await?;
    let is_below = |path: &str| Path::new(path).starts_with(cwd);
    // The repository may be one around this folder, of which the files are below it.
    let concerns = |UnrecordedPaths { not_kept, repositories, ignored, .. }: &UnrecordedPaths| {
        let around = repositories.iter().filter_map(|git| Path::new(git).parent());
        not_kept.iter().chain(ignored).any(|path| is_below(path)) || around.into_iter().any(|top| cwd.starts_with(top))
    };
    known.unrecorded.retain(|call| concerns(&call.paths) || known.changes.iter().any(|change| is_of(change, call)));
    Ok(known)
}

fn is_of(change: &FileChange, call: &UnrecordedCall) -> bool {
    change.call_id == call.call_id && change.session_id == call.session_id
}

pub(crate) fn list(FileChanges { changes, older, .. }: &FileChanges, json: bool) -> anyhow::Result<()> {
    let rows = changes.iter().map(|change| changes::cells(change, clock::zone()));
    print_answer(json, changes, |changes, width| match changes.as_slice() {
        [] => format!("{DIM}no recorded changes below this folder{DIM:#}\n"),
        _ => views::render(changes::COLUMNS, rows, width),
    })?;
    if *older > 0 {
        writeln!(output::stderr(), "{DIM}not listed: {}{DIM:#}", counted(*older, "older change"))?;
    }
    Ok(())
}

/// A call after the last one that can be undone.
fn unrecorded_by(call: &UnrecordedCall) -> String {
    let UnrecordedCall { tool, call_id, command, notes, .. } = call;
    let command = command.as_deref().map(|line| format!(" ({line})")).unwrap_or_default();
    one_line(&format!("{tool} in call {call_id}{command} changed nothing that is recorded: {}", notes.join("; ")))
}

/// The commands in the background that still run in this folder, in one above it or in one below it.
pub(crate) async fn running(client: &Client, cwd: &Path) -> anyhow::Result<Vec<ShellInfo>> {
    let ShellList { shells } = client.call::<method::ShellsList>(ListShells { all: true, session_id: None }).await?;
    let is_here = |shell: &ShellInfo| {
        let folder = Path::new(&shell.cwd);
        shell.running && (folder.starts_with(cwd) || cwd.starts_with(folder))
    };
    Ok(shells.into_iter().filter(is_here).collect())
}

/// Says of a command in the background that its changes are not recorded yet.
pub(crate) fn not_recorded_yet(ShellInfo { shell_id, command, .. }: &ShellInfo) -> String {
    one_line(&format!("{shell_id} still runs in the background, and its changes are recorded when it ends: {command}"))
}

/// The same of some, and how to end them.
fn until_they_end(running: &[ShellInfo]) -> String {
    let ids: Vec<String> = running.iter().map(|shell| shell.shell_id.to_string()).collect();
    let lines: Vec<String> = running.iter().map(not_recorded_yet).collect();
    format!(
        "{}\nto undo these changes, end the command first: `toolctl shells kill {}`",
        lines.join("\n"),
        ids.join(" ")
    )
}

fn shown(path: &str, cwd: &Path) -> String {
    let path = Path::new(path);
    plain_name(&path.strip_prefix(cwd).unwrap_or(path).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(call: &str, path: &str, others: &[&str]) -> FileChange {
        FileChange {
            session_id: SessionId::parse("s1").unwrap(),
            call_id: CallId::parse(call).unwrap(),
            tool: "bash".to_owned(),
            path: path.to_owned(),
            at: "2026-01-31T12:00:00Z".to_owned(),
            created: false,
            removed: false,
            undone: false,
            agent: None,
            command: None,
            shared_with: others.iter().map(|other| (*other).to_owned()).collect(),
        }
    }

    #[test]
    fn a_doubtful_change_is_named_by_what_undoes_it_and_nothing_else() {
        let after_a_kill = change("c1", "/w/it's here/x", &["whoever"]);
        let by_several = change("c1", "/w/x", &["s1/c2"]);
        let certain = change("c1", "/w/a", &[]);
        let undone = FileChange { undone: true, ..certain.clone() };
        for (changes, doubtful_one, certain_one) in [
            (vec![certain.clone(), after_a_kill.clone()], "undo -- \"it's here/x\"`", Some("undo --call c1`")),
            (vec![by_several.clone(), after_a_kill.clone()], "undo -- \"it's here/x\"`", None),
            (vec![change("c0", "/w/b", &[]), undone, after_a_kill], "undo --call c1`", Some("undo --call c0`")),
            (vec![change("c2", "/w/b", &[]), by_several], "undo --call c1`", Some("undo --call c2`")),
        ] {
            let words = doubtful(changes.last().unwrap(), &changes, Path::new("/w"));
            let commands: Vec<&str> = words.split("`toolctl ").skip(2).collect();
            let expected: Vec<&str> = [doubtful_one].into_iter().chain(certain_one).collect();
            assert_eq!(commands.len(), expected.len(), "{words}");
            assert!(commands.iter().zip(expected).all(|(command, expected)| command.starts_with(expected)), "{words}");
        }
    }
}
