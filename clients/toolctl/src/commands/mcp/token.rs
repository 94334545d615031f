//! `toolctl mcp token`: the bearer tokens of HTTP clients.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::commands::mcp::install::home;
use crate::exit::OK;
use crate::output;

/// Print the token for MCP clients over HTTP
///
/// Clients send it in the header `Authorization: Bearer TOKEN`. Anyone who has it can call tools as you.
#[derive(Debug, Args)]
pub(crate) struct McpTokenArgs {
    /// Print the administrator token, which also allows answering permission prompts, changing modes and stopping the
    /// daemon; it is created if missing, and read by the daemon when it starts
    #[arg(long)]
    admin: bool,
}

pub(crate) fn run(args: &McpTokenArgs) -> anyhow::Result<u8> {
    if args.admin {
        writeln!(output::stdout(), "{}", admin_token(&token_file()?.with_file_name("admin-token"))?)?;
        return Ok(OK);
    }
    let file = token_file()?;
    let token = std::fs::read_to_string(&file)
        .with_context(|| format!("can't read {}: the daemon creates it when mcp.listen is set", file.display()))?;
    writeln!(output::stdout(), "{}", token.trim())?;
    Ok(OK)
}

/// The token in this file, which is created if missing.
fn admin_token(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(token) => return Ok(token.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", file.display())),
    }
    let mut random = [0u8; 32];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).context("can't get random bytes")?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(dir) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut made = made.with_context(|| format!("can't create {}", file.display()))?;
    made.write_all(token.as_bytes()).with_context(|| format!("can't write {}", file.display()))?;
    Ok(token)
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
