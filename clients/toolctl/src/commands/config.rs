//! `toolctl config`: the configuration, its origin and its errors.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use toold_client::ClientError;
use toold_proto::config::{ConfigEntry, ShownConfig};
use toold_proto::daemon::NoParams;
use toold_proto::mcp::McpServerState;
use toold_proto::method::{DaemonGetConfig, DaemonReload, McpServersList, SecretsList};
use toold_proto::nearest::did_you_mean;

use crate::commands::mcp::server_health;
use crate::commands::{author, mcp_servers};
use crate::config_file;
use crate::connection;
use crate::exit::{NOT_RUN, OK, TOOL_ERROR, not_found};
use crate::finding::{any_bad, show as show_findings};
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, GOOD, NAME, WARN, one_line, plain, print_answer};
use crate::program;

/// Show, edit and check the configuration
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, Subcommand)]
enum ConfigAction {
    /// Show the active configuration: yours and that of the current project
    #[command(alias = "get")]
    Show {
        /// Show where each value comes from: a default, a file and line, the environment, a flag
        #[arg(long)]
        origin: bool,
        /// Only keys that begin with this
        key: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open the file in $VISUAL or $EDITOR, and check it afterwards
    Edit {
        /// Edit the configuration of the current project
        #[arg(long)]
        project: bool,
    },
    /// Print every error in a file, or in the whole configuration; exit status 1 if there is one
    Check {
        /// The file; defaults to the whole configuration: yours and that of the current project
        file: Option<PathBuf>,
        /// Print JSON, with the line and column of each error
        #[arg(long)]
        json: bool,
        /// Also start each mounted MCP server, and name those that fail
        #[arg(long, conflicts_with_all = ["file", "json"])]
        servers: bool,
    },
    /// Print where the configuration file is
    Path,
    /// Print the JSON Schema of configuration files, for editors
    Schema,
    /// Reload the configuration files; exit status 3 if they are invalid and the previous configuration stays active
    Reload,
}

pub(crate) async fn run(args: ConfigArgs, globals: &Globals) -> anyhow::Result<u8> {
    match args.action {
        ConfigAction::Show { origin, key, json } => show(globals, origin, key.as_deref(), json).await,
        ConfigAction::Edit { project } => edit(project).await,
        ConfigAction::Check { file, json, servers: false } => {
            let checked = check(file.as_deref(), json).await?;
            if file.is_none() && !json {
                warn_of_missing_secrets(globals).await?;
            }
            Ok(checked)
        }
        ConfigAction::Check { servers: true, .. } => check_with_servers(globals).await,
        ConfigAction::Path => program::run(&["config".as_ref(), "path".as_ref()]).await,
        ConfigAction::Schema => program::run(&["config".as_ref(), "schema".as_ref()]).await,
        ConfigAction::Reload => reload(globals).await,
    }
}

async fn show(globals: &Globals, origin: bool, key: Option<&str>, json: bool) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let mut config = client.call::<DaemonGetConfig>(NoParams {}).await?;
    let wanted = |entry: &ConfigEntry| key.is_none_or(|key| entry.key.starts_with(key));
    let all: Vec<String> = config.entries.iter().map(|entry| entry.key.clone()).collect();
    config.entries.retain(wanted);
    if let Some(project) = &mut config.project {
        project.entries.retain(wanted);
    }
    let found =
        !config.entries.is_empty() || config.project.as_ref().is_some_and(|project| !project.entries.is_empty());
    if let Some(key) = key.filter(|_| !found) {
        let near = did_you_mean(key, all.iter().map(String::as_str));
        return Err(not_found(format!("no key begins with {key}{near}")));
    }
    print_answer(json, &config, |config, _| render(config, origin))?;
    Ok(OK)
}

fn render(config: &ShownConfig, origin: bool) -> String {
    let mut text = String::new();
    for problem in &config.problems {
        text.push_str(&format!("{BAD}not active:{BAD:#} {}\n", plain(problem)));
    }
    config.entries.iter().for_each(|entry| text.push_str(&line(entry, origin)));
    if let Some(project) = &config.project {
        let state = match project.trusted {
            true => format!("{GOOD}trusted{GOOD:#}"),
            false => format!("{WARN}not trusted: only its deny and ask rules apply{WARN:#}"),
        };
        text.push_str(&format!("\n{BOLD}{}{BOLD:#} {state}\n", one_line(&project.file)));
        for problem in &project.problems {
            text.push_str(&format!("{BAD}denies:{BAD:#} {}\n", plain(problem)));
        }
        project.entries.iter().for_each(|entry| text.push_str(&line(entry, origin)));
    }
    text
}

fn line(entry: &ConfigEntry, origin: bool) -> String {
    let from = if origin { format!("  {DIM}{}{DIM:#}", one_line(&entry.origin)) } else { String::new() };
    let value =
        if entry.value.is_null() { "not set".to_owned() } else { one_line(&entry.value.to_string()).to_string() };
    format!("{NAME}{}{NAME:#} = {value}{from}\n", one_line(&entry.key))
}

/// Checks the whole configuration, and starts each MCP server that the daemon mounts.
async fn check_with_servers(globals: &Globals) -> anyhow::Result<u8> {
    let checked = check(None, false).await?;
    let client = connection::open(globals).await?;
    let mounted = client.call::<McpServersList>(NoParams {}).await?.servers;
    let mut names: Vec<&str> = mounted
        .iter()
        .filter(|server| server.state != McpServerState::Disabled)
        .map(|server| server.name.as_str())
        .collect();
    names.dedup();
    let mut findings = Vec::new();
    for name in names {
        let list = mcp_servers::tested(&client, name).await?;
        findings.extend(server_health::diagnosed(&client, &list).await);
    }
    let mut out = output::stdout();
    show_findings(&findings, &mut out)?;
    out.flush()?;
    Ok(if any_bad(&findings) { checked.max(TOOL_ERROR) } else { checked })
}

/// Names the MCP servers whose secrets are not set. Only a running daemon knows that, and only while the secrets are open.
async fn warn_of_missing_secrets(globals: &Globals) -> anyhow::Result<()> {
    let Some(client) = connection::open_running(globals).await? else { return Ok(()) };
    let servers = client.call::<McpServersList>(NoParams {}).await?.servers;
    let servers = servers.iter().filter(|server| server.state != McpServerState::Disabled);
    let mut wanted = servers.flat_map(|server| server.secrets.iter().map(move |secret| (server, secret))).peekable();
    if wanted.peek().is_none() {
        return Ok(());
    }
    let known = match client.call::<SecretsList>(NoParams {}).await {
        Ok(list) => list.secrets,
        // Not for an agent.
        Err(ClientError::Rpc(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut err = output::stderr();
    for (server, secret) in wanted {
        if known.iter().any(|known| known.name == *secret && known.is_set == Some(false)) {
            let (server, secret) = (one_line(&server.name), one_line(secret));
            writeln!(
                err,
                "{WARN}warning:{WARN:#} the MCP server {server} cannot be used: there is no secret {secret}; \
                 `toolctl secrets set {secret}` sets it"
            )?;
        }
    }
    Ok(())
}

async fn reload(globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let reloaded = client.call::<DaemonReload>(NoParams {}).await?;
    let mut err = output::stderr();
    for problem in &reloaded.problems {
        writeln!(err, "{BAD}{}{BAD:#}", plain(problem))?;
    }
    if !reloaded.applied {
        writeln!(err, "the previous configuration stays active")?;
        return Ok(NOT_RUN);
    }
    if !reloaded.needs_restart.is_empty() {
        writeln!(
            err,
            "{WARN}takes effect after `toolctl stop` and the next start:{WARN:#} {}",
            reloaded.needs_restart.join(", ")
        )?;
    }
    Ok(OK)
}

async fn edit(project: bool) -> anyhow::Result<u8> {
    let file = match project {
        true => config_file::of_project()?,
        false => PathBuf::from(program::text(&["config".as_ref(), "path".as_ref()]).await?.trim_end()),
    };
    if !file.exists() {
        begin(&file).await?;
    }
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // As other programs do it: the variable may hold arguments.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&file).status();
    let status = status.with_context(|| format!("can't run {editor}"))?;
    if !status.success() {
        bail!("{editor} failed: {status}");
    }
    check(Some(&file), false).await
}

async fn check(file: Option<&Path>, json: bool) -> anyhow::Result<u8> {
    let mut arguments: Vec<&OsStr> = vec!["config".as_ref(), "check".as_ref()];
    arguments.extend(json.then_some(OsStr::new("--json")));
    if let Some(file) = file {
        // A link that leads nowhere is there, and is wrong.
        if file.symlink_metadata().is_err() {
            author::must_exist(file)?;
        }
        arguments.extend(["--".as_ref(), file.as_os_str()]);
    }
    program::run(&arguments).await
}

/// Creates the file with a link to its schema, for editors that use it.
async fn begin(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().context("the file is in no folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    let schema = folder.join("config.schema.json");
    let text = program::text(&["config".as_ref(), "schema".as_ref()]).await?;
    std::fs::write(&schema, text).with_context(|| format!("can't write {}", schema.display()))?;
    std::fs::write(file, "#:schema ./config.schema.json\n").with_context(|| format!("can't write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_untrusted_project_is_marked() {
        let entry = |key: &str, value: u64, origin: &str| json!({"key": key, "value": value, "origin": origin});
        let config = serde_json::from_value(json!({
            "file": "/c/config.toml",
            "entries": [entry("limits.calls", 7, "/c/config.toml:2"), entry("cache.max_mib", 64, "default")],
            "project": {"file": "/p/.toold/config.toml", "trusted": false, "entries": []},
        }))
        .unwrap();
        let text = anstream::adapter::strip_str(&render(&config, true)).to_string();
        assert_eq!(
            text,
            "limits.calls = 7  /c/config.toml:2\ncache.max_mib = 64  default\n\n\
             /p/.toold/config.toml not trusted: only its deny and ask rules apply\n"
        );
    }
}
