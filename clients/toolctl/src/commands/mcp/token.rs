//! `toolctl mcp token`: the bearer tokens of HTTP clients.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use toold_proto::mcp::is_profile_name;

use crate::commands::mcp::install::home;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output;
use crate::profiles;

/// Print a token for MCP clients over HTTP
///
/// Clients send it in the header `Authorization: Bearer TOKEN`. Anyone who has it can call tools as you.
#[derive(Debug, Args)]
pub(crate) struct McpTokenArgs {
    /// Print the administrator token, which also allows answering permission prompts, changing modes and stopping the
    /// daemon; it is created if missing, and read by the daemon when it starts
    #[arg(long)]
    admin: bool,
    /// Print the token whose clients get this profile of the configuration, whatever they ask for; it is created if
    /// missing, and valid at once
    #[arg(long, value_name = "NAME", conflicts_with = "admin")]
    profile: Option<String>,
    /// Make the token of the profile invalid; the connections that it opened end
    #[arg(long, requires = "profile")]
    revoke: bool,
}

pub(crate) async fn run(args: &McpTokenArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut out = output::stdout();
    let file = token_file()?;
    if let Some(profile) = &args.profile {
        let file = profile_tokens()?.join(profile);
        if args.revoke {
            // Also of a profile that the configuration has no more.
            anyhow::ensure!(is_profile_name(profile), "{profile:?} is not the name of a profile");
            std::fs::remove_file(&file).with_context(|| format!("profile {profile} has no token to revoke"))?;
            writeln!(out, "the token of profile {profile} is not valid any more")?;
            return Ok(OK);
        }
        profiles::check_with_daemon(profile, globals).await?;
        writeln!(out, "{}", made_token(&file, &format!("{profile}."))?)?;
        return Ok(OK);
    }
    if args.admin {
        writeln!(out, "{}", made_token(&file.with_file_name("admin-token"), "")?)?;
        return Ok(OK);
    }
    let token = std::fs::read_to_string(&file)
        .with_context(|| format!("can't read {}: the daemon creates it when mcp.listen is set", file.display()))?;
    writeln!(out, "{}", token.trim())?;
    Ok(OK)
}

/// The token in this file, which is created if missing, and then begins with `prefix`.
fn made_token(file: &Path, prefix: &str) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(token) => return Ok(token.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", file.display())),
    }
    let mut random = [0u8; 32];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).context("can't get random bytes")?;
    let digits = random.iter().map(|byte| format!("{byte:02x}"));
    let token: String = std::iter::once(prefix.to_owned()).chain(digits).collect();
    if let Some(dir) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut made = made.with_context(|| format!("can't create {}", file.display()))?;
    made.write_all(token.as_bytes()).with_context(|| format!("can't write {}", file.display()))?;
    Ok(token)
}

/// The folder of the tokens of profiles, which are in files of the profiles' names.
pub(super) fn profile_tokens() -> anyhow::Result<PathBuf> {
    Ok(token_file()?.with_file_name("mcp-tokens"))
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
