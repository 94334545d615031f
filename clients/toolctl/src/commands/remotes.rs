//! `toolctl remotes`: mounted remote daemons, whose tools this daemon offers too.

use std::io::Write;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use toold_proto::daemon::NoParams;
use toold_proto::method::{RemotesList, RemotesReconnect};
use toold_proto::remote::{ReconnectRemote, Remote, RemoteList, RemoteState};

use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, one_line, print_answer};
use crate::views::sources::remote_state;
use crate::{connection, table};

/// List, diagnose or reconnect mounted remote daemons
#[derive(Debug, Args)]
pub(crate) struct RemotesArgs {
    #[command(subcommand)]
    action: Option<RemotesAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum RemotesAction {
    /// List the mounted remote daemons, with the errors of those that are away
    List,
    /// Show why remotes are away and what may help; exit status 3 if any is
    Doctor,
    /// Reconnect to a remote, however often it failed; exit status 3 if it stays away
    Reconnect {
        /// The name of the remote
        name: String,
    },
}

pub(crate) async fn run(args: RemotesArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let (list, diagnose) = match args.action {
        Some(RemotesAction::Reconnect { name }) => {
            (client.call::<RemotesReconnect>(ReconnectRemote { name }).await?, true)
        }
        Some(RemotesAction::Doctor) => (client.call::<RemotesList>(NoParams {}).await?, true),
        Some(RemotesAction::List) | None => (client.call::<RemotesList>(NoParams {}).await?, false),
    };
    let diagnosis = if diagnose { diagnosis(&list) } else { String::new() };
    print_answer(args.json, &list, |list, width| render(list, width) + &diagnosis)?;
    if list.remotes.is_empty() && !args.json {
        writeln!(output::stderr(), "no remotes are mounted; add one as [remotes.NAME] in the configuration")?;
    }
    let is_well = |remote: &Remote| matches!(remote.state, RemoteState::Connected | RemoteState::Disabled);
    Ok(if diagnose && !list.remotes.iter().all(is_well) { NOT_RUN } else { OK })
}

fn render(list: &RemoteList, width: Option<u16>) -> String {
    if list.remotes.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["REMOTE", "STATE", "TOOLS", "CALLS", "FAILED", "ASKS", "VERSION", "VIA"]));
    for remote in &list.remotes {
        rows.add_row([
            table::name(&one_line(&remote.name)),
            remote_state(remote).into(),
            Cell::new(remote.tools.len()),
            Cell::new(remote.calls),
            Cell::new(remote.bad_calls),
            Cell::new(if remote.relays_asks { "here" } else { "there" }),
            Cell::new(one_line(remote.version.as_deref().unwrap_or_default())),
            Cell::new(one_line(&remote.transport)),
        ]);
    }
    let mut text = table::render(&rows);
    for remote in &list.remotes {
        let name = one_line(&remote.name);
        if let Some(error) = &remote.error {
            text.push_str(&format!("{BAD}{name}{BAD:#}: {}\n", one_line(error)));
        }
        for problem in &remote.problems {
            text.push_str(&format!("{DIM}{name}: {}{DIM:#}\n", one_line(problem)));
        }
    }
    text
}

fn diagnosis(list: &RemoteList) -> String {
    let mut text = String::new();
    for remote in &list.remotes {
        let name = one_line(&remote.name);
        match remote.state {
            RemoteState::Connected if !remote.relays_asks => text.push_str(&format!(
                "{name}: its permission prompts are shown there, because the token is not an administrator token\n"
            )),
            RemoteState::Connected | RemoteState::Disabled | RemoteState::Connecting => {}
            RemoteState::Away => {
                for line in &remote.stderr {
                    text.push_str(&format!("{DIM}{name}: | {}{DIM:#}\n", one_line(line)));
                }
                let hint = match remote.transport.as_str() {
                    "command" => {
                        "run its command in a terminal: it must not prompt for anything, and then wait for requests"
                    }
                    "websocket" => {
                        "is `mcp.listen` set there, and is the token the one that `toolctl mcp token` shows there?"
                    }
                    _ => "its section in the configuration does not say how to reach it",
                };
                text.push_str(&format!("{name}: {hint}\n"));
                if let Some(ms) = remote.retry_ms {
                    text.push_str(&format!("{name}: the next attempt is in {} s\n", ms.div_ceil(1000)));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_remote_that_is_away_shows_its_error() {
        let remote = |own: serde_json::Value| {
            let mut remote = json!({"relays_asks": false, "instances": [], "tools": [], "problems": [], "calls": 0,
                "bad_calls": 0, "running": 0, "connects": 1, "stderr": []});
            remote.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            remote
        };
        let list: RemoteList = serde_json::from_value(json!({"remotes": [
            remote(json!({"name": "build", "state": "connected", "transport": "command", "version": "0.1.0",
                "relays_asks": true, "calls": 3, "tools": ["build_bash"], "problems": ["2 tools are left out"]})),
            remote(json!({"name": "web", "state": "away", "transport": "websocket", "error": "can't connect",
                "retry_ms": 1500})),
        ]}))
        .unwrap();
        let text = render(&list, None) + &diagnosis(&list);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
         REMOTE  STATE      TOOLS  CALLS  FAILED  ASKS   VERSION  VIA
         build   connected  1      3      0       here   0.1.0    command
         web     away       0      0      0       there           websocket
        build: 2 tools are left out
        web: can't connect
        web: is `mcp.listen` set there, and is the token the one that `toolctl mcp token` shows there?
        web: the next attempt is in 2 s
        ");
    }
}
