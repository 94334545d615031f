//! `toolctl list`: the available tools.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use comfy_table::{ColumnConstraint, Width};
use toold_client::Client;
use toold_proto::call::{ListTools, ToolList};
use toold_proto::method::{PluginsList, ToolsList};
use toold_proto::plugin::{ListPlugins, Plugin, PluginStatus};
use toold_proto::tool::{Source, SourceKind, Tool};

use crate::commands::plugins;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, one_line, print_answer};
use crate::views::tools;
use crate::{connection, sources, table};

/// List the tools
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only tools with these words in their name, label or description
    #[arg(long, short, value_name = "WORDS")]
    query: Option<String>,
    /// Only tools of this source: builtin, plugin, frontend, mcp, or a name
    #[arg(long, short)]
    source: Option<String>,
    /// Print JSON, as the daemon returns it
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: ListArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    if let Some(source) = &args.source {
        sources::check(&client, std::slice::from_ref(source)).await?;
    }
    let filtered = args.query.is_some() || args.source.is_some();
    let (by_words, source) = (args.query.is_some(), args.source.clone());
    let params = ListTools { query: args.query, source: args.source, ..ListTools::default() };
    let list = listed(&client, params).await?;
    let tools = list.tools.as_deref().unwrap_or_default();
    print_answer(args.json, &list, |_, width| render(tools, width))?;
    if args.json {
        return Ok(OK);
    }
    if tools.is_empty() {
        writeln!(output::stderr(), "{}", if filtered { "no matching tools" } else { "no tools" })?;
    }
    if !by_words {
        show_rejected(&client, source.as_deref()).await?;
    }
    Ok(OK)
}

/// How often, and how many times, a list is asked for that still has a plugin whose file is gone: the daemon waits a moment,
/// since an editor may be saving it.
const AGAIN: Duration = Duration::from_millis(50);
const TIMES: usize = 10;

async fn listed(client: &Client, params: ListTools) -> anyhow::Result<ToolList> {
    let is_gone = |tool: &Tool| {
        let path = tool.source.path.as_deref().filter(|_| tool.source.kind == SourceKind::Plugin);
        path.is_some_and(|path| Path::new(path).symlink_metadata().is_err())
    };
    let mut list = client.call::<ToolsList>(params.clone()).await?;
    for _ in 0..TIMES {
        if !list.tools.iter().flatten().any(is_gone) {
            break;
        }
        tokio::time::sleep(AGAIN).await;
        list = client.call::<ToolsList>(params.clone()).await?;
    }
    Ok(list)
}

/// The plugins of this source that have no tools here, or older ones, since they failed.
async fn show_rejected(client: &Client, source: Option<&str>) -> anyhow::Result<()> {
    let Ok(list) = client.call::<PluginsList>(ListPlugins::default()).await else { return Ok(()) };
    let is_of = |plugin: &&Plugin| {
        source.is_none_or(|source| source == SourceKind::Plugin.as_str() || source == plugin.name)
            && plugin.status == PluginStatus::Failed
    };
    for plugin in list.plugins.iter().filter(is_of) {
        writeln!(output::stderr(), "{BAD}failed{BAD:#} {}", one_line(&plugins::rejected(plugin)))?;
    }
    Ok(())
}

/// One table per source, all with the same columns.
fn render(tools: &[Tool], width: Option<u16>) -> String {
    let name_width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
    let needs_width = tools.iter().map(|tool| tools::needs(tool).text.len()).max().unwrap_or(0);
    let mut text = String::new();
    let description = if width.is_some() { 400 } else { usize::MAX };
    for (source, of_source) in by_source(tools) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&heading(source));
        let mut rows = table::new(width);
        for tool in of_source {
            rows.add_row([tools::name(tool), tools::needs(tool), tools::description(tool, description)]);
        }
        // Two of padding beside the text.
        let fixed =
            |width: usize| ColumnConstraint::LowerBoundary(Width::Fixed(u16::try_from(width + 2).unwrap_or(80)));
        for (column, width) in [(0, name_width), (1, needs_width)] {
            if let Some(column) = rows.column_mut(column) {
                column.set_constraint(fixed(width));
            }
        }
        text.push_str(&table::render(&rows));
    }
    text
}

/// The sources in the order of their kinds, each with its tools.
fn by_source(tools: &[Tool]) -> Vec<(&Source, Vec<&Tool>)> {
    let mut groups: Vec<(&Source, Vec<&Tool>)> = Vec::new();
    for tool in tools {
        match groups.iter_mut().find(|(source, _)| **source == tool.source) {
            Some((_, group)) => group.push(tool),
            None => groups.push((&tool.source, vec![tool])),
        }
    }
    groups.sort_by_key(|(source, _)| (source.kind, &source.name));
    groups
}

fn heading(source: &Source) -> String {
    let kind = source.kind.as_str();
    let name = one_line(&source.name);
    let name = if name == kind { String::new() } else { format!(" {name}") };
    let path = source.path.as_deref().map(|path| format!("  {DIM}{}{DIM:#}", one_line(path))).unwrap_or_default();
    format!("{BOLD}{kind}{name}{BOLD:#}{path}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toold_proto::tool::{Annotations, Category, SourceKind, ToolName};

    fn tool(name: &str, kind: SourceKind, source: &str, permissions: &[Category], description: &str) -> Tool {
        let path = (kind == SourceKind::Plugin).then(|| format!("/plugins/{source}.lua"));
        Tool {
            name: ToolName::parse(name).unwrap(),
            label: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            source: Source { kind, name: source.to_owned(), path },
            parallelizable: true,
            permissions: permissions.to_vec(),
            cacheable: false,
            timeout_ms: None,
            annotations: Annotations::default(),
            version: None,
            grammar: None,
        }
    }

    fn tools() -> Vec<Tool> {
        vec![
            tool("bash", SourceKind::Builtin, "builtin", &[Category::Shell], "Runs a command. Much more follows."),
            tool(
                "git_summary",
                SourceKind::Plugin,
                "git",
                &[Category::Shell, Category::FileRead],
                "Sums up\x1b[2J a repository, its branches and what changed",
            ),
            tool("read", SourceKind::Builtin, "builtin", &[Category::FileRead], "Reads a file"),
        ]
    }

    fn without_styles(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn tools_stand_under_their_source() {
        insta::assert_snapshot!(without_styles(&render(&tools(), None)), @r"
        builtin
         bash         shell            Runs a command
         read         file.read        Reads a file

        plugin git  /plugins/git.lua
         git_summary  shell file.read  Sums up\u{1b}[2J a repository, its branches and what changed
        ");
    }

    #[test]
    fn long_descriptions_wrap_on_a_terminal() {
        insta::assert_snapshot!(without_styles(&render(&tools(), Some(60))), @r"
        builtin
         bash         shell            Runs a command
         read         file.read        Reads a file

        plugin git  /plugins/git.lua
         git_summary  shell file.read  Sums up\u{1b}[2J a
                                       repository, its branches and
                                       what changed
        ");
    }
}
