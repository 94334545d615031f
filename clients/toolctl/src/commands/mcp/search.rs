//! `toolctl mcp search`: finds servers in the MCP registry.

use std::io::Write;

use clap::Args;
use comfy_table::Cell;
use toold_proto::mcp_registry::{RegistryServerList, SearchMcpRegistry};
use toold_proto::method::McpRegistrySearch;

use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::{connection, table};

/// Search the MCP registry for servers to mount
///
/// Lists the servers whose name, title or description contains the words; those that contain most of them first. The
/// registry is the official one, or that of `[mcp] registry`. Anyone can publish a server there: look at its source
/// before you add it.
#[derive(Debug, Args)]
pub(crate) struct McpSearchArgs {
    /// The words to search for
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// List at most so many servers
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
    limit: u8,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: McpSearchArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let search = SearchMcpRegistry { query: args.words.join(" "), limit: Some(args.limit.into()) };
    let found = client.call::<McpRegistrySearch>(search).await?;
    if args.json {
        print_json(&found)?;
        return Ok(OK);
    }
    output::print(&render(&found, output::terminal_width()))?;
    let mut err = output::stderr();
    if found.servers.is_empty() {
        writeln!(err, "{} lists no such server", one_line(&found.registry))?;
    } else if found.more {
        writeln!(err, "there are more: add a word, or pass --limit")?;
    }
    Ok(OK)
}

fn render(found: &RegistryServerList, width: Option<u16>) -> String {
    if found.servers.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["SERVER", "VERSION", "FROM", "DESCRIPTION"]));
    for server in &found.servers {
        let mut kinds: Vec<&str> = server.launches.iter().map(|launch| launch.kind.as_str()).collect();
        kinds.dedup();
        let deprecated = if server.deprecated { "deprecated: " } else { "" };
        rows.add_row([
            table::name(&one_line(&server.name)),
            Cell::new(one_line(&server.version)),
            Cell::new(one_line(&kinds.join(", "))),
            Cell::new(format!("{deprecated}{}", one_line(&server.description))),
        ]);
    }
    table::render(&rows)
}
