//! `toolctl parse`: the tool calls in a model's answer.

use std::io::{BufRead, Write};

use anyhow::Context;
use clap::Args;
use toold_adapters::parse::collect::collect;
use toold_proto::prompt::ParsedPrompt;

use crate::connection;
use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, NAME, one_line, plain, print_json};

/// Find the tool calls in a model's answer on stdin
///
/// The exit status is 1 if something looks like a call but cannot be parsed for certain.
#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// The known tools; calls of any other are errors
    #[arg(value_name = "NAME")]
    tools: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ParseArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let mut parser = client.parser((!args.tools.is_empty()).then_some(args.tools.as_slice())).await?;
    let mut pieces = Vec::new();
    // Line by line: an answer may be a long stream.
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.context("can't read stdin")?;
        pieces.extend(parser.push(&String::from_utf8_lossy(&line)));
        pieces.extend(parser.push("\n"));
    }
    pieces.extend(parser.finish());
    let parsed = collect(pieces);
    if args.json {
        print_json(&parsed)?;
    } else {
        let mut out = output::stdout();
        show(&parsed, &mut out)?;
        out.flush()?;
    }
    Ok(if parsed.errors.is_empty() { OK } else { TOOL_ERROR })
}

fn show(parsed: &ParsedPrompt, out: &mut impl Write) -> std::io::Result<()> {
    for call in &parsed.calls {
        writeln!(out, "{NAME}{}{NAME:#} {}", one_line(&call.name), plain(&call.arguments.to_string()))?;
    }
    for error in &parsed.errors {
        writeln!(out, "{BAD}error{BAD:#} {}", plain(error))?;
    }
    for (name, text) in [("text", &parsed.text), ("thinking", &parsed.thinking)] {
        if !text.trim().is_empty() {
            writeln!(out, "{DIM}{name}:{DIM:#}\n{}", plain(text.trim()))?;
        }
    }
    Ok(())
}
