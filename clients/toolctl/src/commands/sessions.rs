//! `toolctl sessions`: the sessions that conversations work in.

use std::io::Write;

use clap::{Args, Subcommand};
use toold_proto::daemon::NoParams;
use toold_proto::method::{SessionClose, SessionShare, SessionsList};
use toold_proto::session::CloseSession;
use toold_proto::tool::SessionId;
use toold_proto::workspace::ShareSession;

use crate::commands::call::session_id;
use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, print_answer, print_json};
use crate::views::{self, sessions};

/// List, share or close sessions
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    action: Option<SessionsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SessionsAction {
    /// List the sessions, the oldest first
    List,
    /// Print a one-time code by which an agent may join a session
    ///
    /// The agent passes the code in place of the session id, within ten minutes. Agents cannot join a session in yolo
    /// mode.
    Share {
        /// The id of the session; `toolctl sessions` lists them
        #[arg(value_name = "ID", value_parser = session_id)]
        id: SessionId,
    },
    /// End a session and cancel its calls
    Close {
        /// The id of the session; `toolctl sessions` lists them
        #[arg(value_name = "ID", value_parser = session_id)]
        id: SessionId,
    },
}

pub(crate) async fn run(args: SessionsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    match args.action.unwrap_or(SessionsAction::List) {
        SessionsAction::List => {
            let list = client.call::<SessionsList>(NoParams {}).await?;
            print_answer(args.json, &list, |list, width| match list.sessions.is_empty() {
                true => String::new(),
                false => views::render(sessions::COLUMNS, list.sessions.iter().map(sessions::cells), width),
            })?;
            if list.sessions.is_empty() && !args.json {
                writeln!(output::stderr(), "no session is open")?;
            }
        }
        SessionsAction::Share { id } => {
            let shared = client.call::<SessionShare>(ShareSession { session_id: Some(id) }).await?;
            if args.json {
                print_json(&shared)?;
            } else {
                let mut out = output::stdout();
                writeln!(out, "{}", shared.code)?;
                out.flush()?;
                writeln!(output::stderr(), "valid once, for {} minutes", shared.expires_in / 60)?;
            }
        }
        SessionsAction::Close { id } => {
            let closed = client.call::<SessionClose>(CloseSession { session_id: id }).await?;
            if args.json {
                print_json(&closed)?;
            } else if closed.cancelled > 0 {
                writeln!(output::stderr(), "cancelled {}", output::counted(closed.cancelled, "call"))?;
            }
        }
    }
    Ok(OK)
}
