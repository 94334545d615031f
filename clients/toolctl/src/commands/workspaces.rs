//! `toolctl workspaces`: the folders that agents may work in.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueHint};
use comfy_table::Cell;
use toold_proto::daemon::NoParams;
use toold_proto::method::{WorkspacesAllow, WorkspacesForget, WorkspacesList};
use toold_proto::workspace::{NameWorkspace, WorkspaceList, WorkspaceSource};

use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::{clock, connection, table};

/// List, allow or forget the folders that agents may work in
///
/// An agent, an MCP client or a program with a token may read everything in its workspace. It may use folders that you
/// opened in an editor or with toolctl, those that you allow here or with workspaces.allow in the configuration, and the
/// folder that it was started in, unless that is /, your home folder or hidden. You are asked about any other folder.
#[derive(Debug, Args)]
pub(crate) struct WorkspacesArgs {
    #[command(subcommand)]
    action: Option<WorkspacesAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum WorkspacesAction {
    /// List the folders, by path
    List,
    /// Let every agent work in a folder and everything below it
    Allow {
        /// The folder
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Forget a folder, however you chose it; running sessions keep it
    Forget {
        /// The folder, as `toolctl workspaces` lists it
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

pub(crate) async fn run(args: WorkspacesArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let (list, done) = match args.action.unwrap_or(WorkspacesAction::List) {
        WorkspacesAction::List => (client.call::<WorkspacesList>(NoParams {}).await?, None),
        WorkspacesAction::Allow { folder } => {
            let path = absolute(&folder)?;
            let list = client.call::<WorkspacesAllow>(NameWorkspace { path: path.clone() }).await?;
            (list, Some(format!("agents may work in {path}")))
        }
        WorkspacesAction::Forget { folder } => {
            let path = absolute(&folder)?;
            let list = client.call::<WorkspacesForget>(NameWorkspace { path: path.clone() }).await?;
            (list, Some(format!("forgot {path}; agents that are not started there are asked about it")))
        }
    };
    match done {
        _ if args.json => print_json(&list)?,
        Some(done) => writeln!(output::stderr(), "{}", output::plain(&done))?,
        None => {
            output::print(&render(&list, output::terminal_width()))?;
            if list.workspaces.is_empty() {
                writeln!(output::stderr(), "no workspaces yet: toolctl workspaces allow DIR")?;
            }
        }
    }
    Ok(OK)
}

fn absolute(folder: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(folder).with_context(|| format!("can't find {}", folder.display()))?;
    path.into_os_string().into_string().ok().context("the folder's name is not UTF-8")
}

fn render(list: &WorkspaceList, width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&["FOLDER", "OPEN TO", "CHOSEN BY", "SINCE"]));
    for workspace in &list.workspaces {
        let client = workspace.client.as_deref().map_or("every agent".to_owned(), one_line);
        rows.add_row([
            table::name(&workspace.path),
            Cell::new(client),
            Cell::new(chosen_by(workspace.source)),
            Cell::new(workspace.at.as_deref().map(clock::date).unwrap_or_default()),
        ]);
    }
    table::render(&rows)
}

fn chosen_by(source: WorkspaceSource) -> &'static str {
    match source {
        WorkspaceSource::Config => "[workspaces] allow",
        WorkspaceSource::Allowed => "toolctl workspaces allow",
        WorkspaceSource::Opened => "opened by you",
        WorkspaceSource::Client => "approved when asked",
    }
}
