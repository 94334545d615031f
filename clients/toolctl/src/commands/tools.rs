//! `toolctl tools`: the tools in the form that a provider's API takes.

use clap::{Args, ValueEnum};
use serde_json::Value;
use toold_proto::call::{ListTools, ToolFormat};
use toold_proto::method::ToolsList;

use crate::cli::Globals;
use crate::connection;
use crate::exit::OK;
use crate::output::print_json;

/// Print the tools as the array that a model's API takes
#[derive(Debug, Args)]
pub(crate) struct Tools {
    #[arg(long, short, value_enum, default_value_t)]
    format: Format,
    /// Only these tools
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
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

pub(crate) async fn run(args: Tools, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let format = match args.format {
        Format::Native => ToolFormat::Native,
        Format::Anthropic => ToolFormat::Anthropic,
        Format::Openai => ToolFormat::Openai,
        Format::OpenaiResponses => ToolFormat::OpenaiResponses,
        Format::Gemini => ToolFormat::Gemini,
        Format::Mcp => ToolFormat::Mcp,
    };
    let names = (!args.names.is_empty()).then_some(args.names);
    let params = ListTools { format: Some(format), names, ..ListTools::default() };
    // Each format has a form of its own.
    let mut list = client.call_as::<ToolsList, Value>(params).await?;
    print_json(&list["tools"].take())?;
    Ok(OK)
}
