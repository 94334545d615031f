//! `toolctl mcp token`: what HTTP clients have to show.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::commands::mcp::install::home;
use crate::exit::OK;
use crate::output;

/// Print the token that MCP clients on HTTP have to show
///
/// They send it as the header `Authorization: Bearer TOKEN`. Whoever has it can call tools as you.
#[derive(Debug, Args)]
pub(crate) struct Token {}

pub(crate) fn run(_: &Token) -> anyhow::Result<u8> {
    let file = token_file()?;
    let token = std::fs::read_to_string(&file)
        .with_context(|| format!("can't read {}: the daemon makes it when mcp.listen is set", file.display()))?;
    writeln!(output::stdout(), "{}", token.trim())?;
    Ok(OK)
}

/// The daemon's file, by the XDG Base Directory Specification.
pub(super) fn token_file() -> anyhow::Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = match state {
        Some(state) => state,
        None => home()?.join(".local/state"),
    };
    Ok(state.join("toold/mcp-token"))
}
