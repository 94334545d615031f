//! `toolctl tools`: the tools in the format of a provider's API, and a search.

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{Cell, Color};
use serde_json::Value;
use toold_proto::call::{ListTools, ToolFormat};
use toold_proto::method::ToolsList;
use toold_proto::tool::Tool;

use crate::commands::list::needs;
use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::output::{self, first_sentence, one_line, print_json};
use crate::{connection, table};

/// Print the tools in the format of a model API, or search for one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    action: Option<ToolsAction>,
    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    format: ToolFormatArg,
    /// Only these tools
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ToolFormatArg {
    /// toold's own
    #[default]
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

#[derive(Debug, Subcommand)]
enum ToolsAction {
    /// Search for tools by words, the best match first
    Search {
        #[arg(required = true)]
        words: Vec<String>,
        /// Show at most this many
        #[arg(long, short = 'n', default_value_t = 10)]
        limit: usize,
        /// Print JSON, as the daemon returns it
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: ToolsArgs, globals: &Globals) -> anyhow::Result<u8> {
    if let Some(ToolsAction::Search { words, limit, json }) = args.action {
        return search(&words, limit, json, globals).await;
    }
    let client = connection::open(globals).await?;
    let format = match args.format {
        ToolFormatArg::Native => ToolFormat::Native,
        ToolFormatArg::Anthropic => ToolFormat::Anthropic,
        ToolFormatArg::Openai => ToolFormat::Openai,
        ToolFormatArg::OpenaiResponses => ToolFormat::OpenaiResponses,
        ToolFormatArg::Gemini => ToolFormat::Gemini,
        ToolFormatArg::Mcp => ToolFormat::Mcp,
    };
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

async fn search(words: &[String], limit: usize, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let list = client.call::<ToolsList>(ListTools::default()).await?;
    let tools = list.tools.unwrap_or_default();
    let found: Vec<&Tool> = ranked(words, &tools).into_iter().take(limit).collect();
    if json {
        print_json(&found)?;
    } else {
        let mut rows = table::new(table::terminal_width());
        for tool in &found {
            rows.add_row([
                table::name(tool.name.as_str()),
                Cell::new(format!("{} {}", tool.source.kind.as_str(), one_line(&tool.source.name))),
                Cell::new(needs(tool)).fg(Color::Yellow),
                Cell::new(first_sentence(&tool.description, 200)),
            ]);
        }
        let mut out = output::stdout();
        out.write_all(table::render(&rows).as_bytes())?;
        out.flush()?;
    }
    if found.is_empty() {
        writeln!(output::stderr(), "no matching tool")?;
        return Ok(TOOL_ERROR);
    }
    Ok(OK)
}

/// The tools that match any word, the best first: a match in the name counts more than one in the label, an
/// argument's name or the description, and more matching words count more than fewer.
fn ranked<'a>(words: &[String], tools: &'a [Tool]) -> Vec<&'a Tool> {
    let words: Vec<String> = words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
    let mut found: Vec<(u32, &Tool)> =
        tools.iter().map(|tool| (score(&words, tool), tool)).filter(|(score, _)| *score > 0).collect();
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.name.cmp(&b.name)));
    found.into_iter().map(|(_, tool)| tool).collect()
}

fn score(words: &[String], tool: &Tool) -> u32 {
    let name = tool.name.as_str();
    let (label, description) = (tool.label.to_lowercase(), tool.description.to_lowercase());
    let arguments: Vec<String> =
        tool.input_schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.to_lowercase()).collect();
    let of_word = |word: &String| {
        let mut score = 0;
        if name == word {
            score += 64;
        } else if name.split('_').any(|part| part == word) {
            score += 32;
        } else if name.contains(word.as_str()) {
            score += 16;
        }
        score += if label.contains(word.as_str()) { 8 } else { 0 };
        score += if arguments.iter().any(|key| key.contains(word.as_str())) { 2 } else { 0 };
        score + if description.contains(word.as_str()) { 4 } else { 0 }
    };
    let scores: Vec<u32> = words.iter().map(of_word).collect();
    // A tool that matches all words is more likely meant than one that matches a single word well.
    let fitting = scores.iter().filter(|score| **score > 0).count() as u32;
    scores.iter().sum::<u32>() + fitting.saturating_sub(1) * 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> Tool {
        serde_json::from_value(json!({
            "name": name, "label": name, "description": description, "input_schema": {"type": "object"},
            "source": {"kind": "builtin", "name": "toold"}, "parallelizable": true, "permissions": [],
            "cacheable": false, "annotations": {},
        }))
        .unwrap()
    }

    #[test]
    fn the_best_fit_comes_first() {
        let tools = [
            tool("grep", "Searches files for a regular expression"),
            tool("web_search", "Searches the web"),
            tool("read", "Shows a file"),
        ];
        let names = |words: &[&str]| -> Vec<String> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            ranked(&words, &tools).iter().map(|tool| tool.name.to_string()).collect()
        };
        assert_eq!(names(&["search"]), ["web_search", "grep"]);
        assert_eq!(names(&["search files"]), ["grep", "web_search"]);
        assert_eq!(names(&["Read"]), ["read"]);
        assert_eq!(names(&["nothing"]), Vec::<String>::new());
    }
}
