//! `toolctl tools`: the tools in the format of a provider's API, a search, and what their lists cost.

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{Cell, CellAlignment};
use serde_json::Value;
use toold_proto::call::{FindTools, ListTools, ListingMode, ToolFormat};
use toold_proto::cost::{ListCost, MeasureTools, ToolCosts};
use toold_proto::method::{ToolsCost, ToolsList, ToolsSearch};

use crate::commands::{list, schema};
use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::output::{self, DIM, first_sentence, one_line, print_answer, print_json};
use crate::{connection, table, tool_names};

/// List, search and describe the tools, and show what they cost
///
/// Without arguments, all tools as a table; with names, these tools and their arguments; with --format, as the API of a model's
/// provider gets them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    action: Option<ToolsAction>,
    /// Print the definitions in this format
    #[arg(long, short, value_enum, conflicts_with_all = ["query", "source", "json"])]
    format: Option<ToolFormatArg>,
    /// Only these tools
    #[arg(value_name = "NAME", conflicts_with_all = ["query", "source"])]
    names: Vec<String>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToolFormatArg {
    /// toold's own
    Native,
    /// Messages API
    Anthropic,
    /// Chat completions
    Openai,
    /// Responses API
    OpenaiResponses,
    /// Function declarations
    Gemini,
    /// As an MCP server lists them
    Mcp,
}

impl From<ToolFormatArg> for ToolFormat {
    fn from(format: ToolFormatArg) -> Self {
        match format {
            ToolFormatArg::Native => Self::Native,
            ToolFormatArg::Anthropic => Self::Anthropic,
            ToolFormatArg::Openai => Self::Openai,
            ToolFormatArg::OpenaiResponses => Self::OpenaiResponses,
            ToolFormatArg::Gemini => Self::Gemini,
            ToolFormatArg::Mcp => Self::Mcp,
        }
    }
}

#[derive(Debug, Subcommand)]
enum ToolsAction {
    /// Search for tools by words, the best match first
    Search {
        /// What the tool should do, in words
        #[arg(required = true)]
        words: Vec<String>,
        /// Show at most this many
        #[arg(long, short = 'n', default_value_t = 10, value_parser = crate::amount::whole::<usize>)]
        limit: usize,
        /// Also show the schemas of their arguments
        #[arg(long)]
        schemas: bool,
        /// Print JSON, as the daemon returns it
        #[arg(long)]
        json: bool,
    },
    /// Show how many tokens the lists of tools take, by source and by client
    ///
    /// The short list is what clients with `listing = "deferred"` get: the pinned tools, tools_search and tools_call.
    Cost {
        /// The format in which a model gets the tools
        #[arg(long, short, value_enum, default_value = "anthropic")]
        format: ToolFormatArg,
        /// Print JSON, as the daemon returns it
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: ToolsArgs, globals: &Globals) -> anyhow::Result<u8> {
    match args.action {
        Some(ToolsAction::Search { words, limit, schemas, json }) => {
            let asked = FindTools { query: words.join(" "), limit: Some(limit), schemas, ..FindTools::default() };
            return search(asked, json, globals).await;
        }
        Some(ToolsAction::Cost { format, json }) => return cost(format.into(), json, globals).await,
        None => {}
    }
    let Some(format) = args.format.map(ToolFormat::from) else {
        if args.names.is_empty() {
            return list::run(args.list, globals).await;
        }
        for name in args.names {
            schema::run(schema::SchemaArgs { name, json: args.list.json }, globals).await?;
        }
        return Ok(OK);
    };
    let client = connection::open(globals).await?;
    tool_names::check(&client, &args.names).await?;
    let names = (!args.names.is_empty()).then_some(args.names);
    let params = ListTools { format: Some(format), names, ..ListTools::default() };
    // Each format has a form of its own.
    let mut list = client.call_as::<ToolsList, Value>(params).await?;
    print_json(&list["tools"].take())?;
    for warning in list["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        writeln!(output::stderr(), "warning: {warning}")?;
    }
    Ok(OK)
}

async fn search(asked: FindTools, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let schemas = asked.schemas;
    let found = client.call::<ToolsSearch>(asked).await?;
    if json {
        print_json(&found)?;
    } else {
        let mut rows = table::new(output::terminal_width());
        for tool in &found.tools {
            let source = format!("{} {}", tool.source.kind.as_str(), one_line(&tool.source.name));
            let description = first_sentence(&tool.description, 200);
            rows.add_row([table::name(tool.name.as_str()), Cell::new(source), Cell::new(description)]);
            if let Some(schema) = tool.input_schema.as_ref().filter(|_| schemas) {
                rows.add_row([Cell::new(""), Cell::new(""), Cell::new(one_line(&schema.to_string()))]);
            }
        }
        output::print(&table::render(&rows))?;
    }
    if found.tools.is_empty() {
        writeln!(output::stderr(), "no matching tools")?;
        return Ok(TOOL_ERROR);
    }
    if found.more > 0 {
        writeln!(output::stderr(), "{DIM}{} more: --limit shows more{DIM:#}", found.more)?;
    }
    Ok(OK)
}

async fn cost(format: ToolFormat, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let costs = client.call::<ToolsCost>(MeasureTools { format: Some(format), session_id: None }).await?;
    print_answer(json, &costs, render_costs)?;
    Ok(OK)
}

/// The longest bar.
const BAR: u64 = 30;

fn render_costs(costs: &ToolCosts, width: Option<u16>) -> String {
    let largest = costs.all.tokens.max(1);
    let row = |name: Cell, list: ListCost, note: &str| {
        let number = |n: u64| Cell::new(n).set_alignment(CellAlignment::Right);
        let length = if output::presentation().plain { 0 } else { (list.tokens * BAR).div_ceil(largest) };
        let bar = "█".repeat(length as usize);
        let note = if note.is_empty() { bar } else { format!("{bar} {note}").trim_start().to_owned() };
        [name, number(list.tools), number(list.tokens), Cell::new(note)]
    };
    let mut rows = table::new(width);
    rows.set_header(table::header(&["SOURCE", "TOOLS", "TOKENS", ""]));
    for source in &costs.sources {
        let name = format!("{} {}", source.source.kind.as_str(), one_line(&source.source.name));
        rows.add_row(row(table::name(&name), source.all, ""));
    }
    rows.add_row(row(Cell::new("all"), costs.all, ""));
    let saved = 100 - (costs.deferred.tokens * 100).div_ceil(largest).min(100);
    rows.add_row(row(Cell::new("deferred"), costs.deferred, &format!("{saved} % less")));
    let mut text = table::render(&rows);
    if !costs.clients.is_empty() {
        let mut rows = table::new(width);
        rows.set_header(table::header(&["CLIENT", "TOOLS", "TOKENS", "LISTING"]));
        for client in &costs.clients {
            let listing = match client.listing {
                ListingMode::All => "all",
                ListingMode::Deferred => "deferred",
            };
            rows.add_row(row(table::name(&one_line(&client.client)), client.list, listing));
        }
        text.push_str(&format!("\n{}", table::render(&rows)));
    }
    text.push_str(&format!(
        "\n{DIM}Tokens are estimated: 4 bytes each of the JSON that a model's provider is sent.{DIM:#}\n"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::cost::{ClientCost, SourceCost};
    use toold_proto::tool::{Source, SourceKind};

    #[test]
    fn costs_are_shown_by_source_and_client() {
        let list = |tools, tokens| ListCost { tools, tokens };
        let source = |kind, name: &str, all| SourceCost {
            source: Source { kind, name: name.to_owned(), path: None },
            all,
            deferred: list(0, 0),
        };
        let costs = ToolCosts {
            format: ToolFormat::Anthropic,
            all: list(40, 9_000),
            deferred: list(10, 2_700),
            sources: vec![
                source(SourceKind::Mcp, "github", list(23, 6_000)),
                source(SourceKind::Builtin, "toold", list(17, 3_000)),
            ],
            clients: vec![ClientCost {
                client: "zed".to_owned(),
                listing: ListingMode::Deferred,
                list: list(10, 2_700),
            }],
        };
        let shown = anstream::adapter::strip_str(&render_costs(&costs, None)).to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let bar = |length| "█".repeat(length);
        let expected = [
            "SOURCE TOOLS TOKENS".to_owned(),
            format!("mcp github 23 6000 {}", bar(20)),
            format!("builtin toold 17 3000 {}", bar(10)),
            format!("all 40 9000 {}", bar(30)),
            format!("deferred 10 2700 {} 70 % less", bar(9)),
            String::new(),
            "CLIENT TOOLS TOKENS LISTING".to_owned(),
            format!("zed 10 2700 {} deferred", bar(9)),
            String::new(),
            "Tokens are estimated: 4 bytes each of the JSON that a model's provider is sent.".to_owned(),
        ];
        assert_eq!(shown.lines().map(words).collect::<Vec<_>>(), expected);
    }
}
