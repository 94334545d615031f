//! `toolctl prompt`: a prompt that teaches the tools to a model.

use clap::{Args, ValueEnum};
use toold_proto::method::PromptRender;
use toold_proto::prompt::{Detail, RenderPrompt};

use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{print_foreign, print_json};
use crate::{connection, tool_names};

/// Print a prompt that teaches the tools to a model without native tool calls
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The text protocol; an unknown name gives an error that lists all
    #[arg(long, short)]
    format: Option<String>,
    /// How much to include about each tool's arguments
    #[arg(long, short, value_enum, default_value_t)]
    detail: DetailArg,
    /// Only these tools
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DetailArg {
    #[default]
    Names,
    Types,
    Schema,
}

pub(crate) async fn run(args: PromptArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    tool_names::check(&client, &args.names).await?;
    let params = RenderPrompt {
        format: args.format,
        detail: match args.detail {
            DetailArg::Names => Detail::Names,
            DetailArg::Types => Detail::Types,
            DetailArg::Schema => Detail::Schema,
        },
        names: (!args.names.is_empty()).then_some(args.names),
        mode: None,
        session_id: None,
    };
    let prompt = client.call::<PromptRender>(params).await?;
    if args.json {
        print_json(&prompt)?;
        return Ok(OK);
    }
    print_foreign(&prompt.text)?;
    Ok(OK)
}
