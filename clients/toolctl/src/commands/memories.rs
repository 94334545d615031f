//! `toolctl memories`: notes that agents keep across sessions.

use std::io::Write;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use toold_proto::method::MemoriesList;
use toold_proto::skill::{MemoryList, OfSession};
use toold_proto::tool::SessionId;

use crate::commands::call::session_id;
use crate::exit::{OK, not_found};
use crate::globals::Globals;
use crate::output::{self, one_line, print_answer, print_json};
use crate::{clock, connection, table};

/// List the memories of the current project, and your own
///
/// A project's memories are files in its .toold/memories folder; your own are in the daemon's configuration folder.
/// You can edit and remove them.
#[derive(Debug, Args)]
pub(crate) struct MemoriesArgs {
    #[command(subcommand)]
    action: Option<MemoriesAction>,
    /// Include the memories of this session
    #[arg(long, global = true, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum MemoriesAction {
    /// List the memories, the oldest first
    List,
    /// Print one memory
    Show {
        /// The id of the memory; `toolctl memories` lists them
        id: String,
    },
}

pub(crate) async fn run(args: MemoriesArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let session = connection::open_session(&client, None, args.session.clone()).await?;
    let list = client.call::<MemoriesList>(OfSession::default()).await;
    session.close(&client).await;
    let list = list?;
    match args.action.unwrap_or(MemoriesAction::List) {
        MemoriesAction::List if args.json => print_json(&list)?,
        MemoriesAction::List => show_list(&list)?,
        MemoriesAction::Show { id } => {
            let memory = list.memories.iter().find(|memory| memory.memory_id == id);
            let memory = memory.ok_or_else(|| {
                not_found(format!("there is no memory {id}: `toolctl memories` lists those that there are"))
            })?;
            print_answer(args.json, memory, |memory, _| format!("{}\n", output::plain(&memory.content)))?;
        }
    }
    Ok(OK)
}

fn show_list(list: &MemoryList) -> anyhow::Result<()> {
    let mut rows = table::new(output::terminal_width());
    for memory in &list.memories {
        rows.add_row([
            table::name(&memory.memory_id),
            Cell::new(one_line(&memory.scope)),
            Cell::new(clock::date(&memory.created_at)),
            Cell::new(output::shorten(&one_line(&memory.content), 200)),
        ]);
    }
    output::print(&table::render(&rows))?;
    if list.memories.is_empty() {
        writeln!(output::stderr(), "there are no memories here")?;
    }
    Ok(())
}
