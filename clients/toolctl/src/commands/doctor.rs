//! `toolctl doctor`: what is wrong here, and what to do.

use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use toold_client::Client;
use toold_proto::daemon::{DaemonStatus, GuardTrial, NoParams};
use toold_proto::mcp::McpServerState;
use toold_proto::method::{DaemonGetStatus, McpServersList, PermissionsList, PluginsList, RemotesList};
use toold_proto::plugin::{ListPlugins, PluginStatus};
use toold_proto::remote::RemoteState;
use toold_proto::socket::{log_file, log_path};

use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, GOOD, HINT, WARN, one_line, plain, print_json};

/// Look for what is wrong, and say what to do
///
/// Starts nothing and changes nothing. Exit status 0 when all is well, or warnings are all there is; 3 when something does
/// not work or is lost, such as what a damaged database held.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    about: &'static str,
    health: Severity,
    message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    Good,
    Warning,
    Bad,
}

pub(crate) async fn run(args: DoctorArgs, globals: &Globals) -> anyhow::Result<u8> {
    let socket = connection::socket(globals)?;
    let mut findings = vec![program(), folder(&socket)];
    match Client::connect(&socket).await {
        Ok(client) => daemon(&client, &mut findings).await,
        Err(toold_client::ClientError::NotRunning { .. }) => findings.push(not_running(&socket)),
        Err(error) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            findings.push(bad("daemon", message, "see the folder's and the socket's owner and mode"));
        }
    }
    findings.extend(clients());
    if args.json {
        print_json(&findings)?;
    } else {
        let mut out = output::stdout();
        show(&findings, &mut out)?;
        out.flush()?;
    }
    let broken = findings.iter().any(|finding| finding.health == Severity::Bad);
    Ok(if broken { NOT_RUN } else { OK })
}

fn program() -> Finding {
    match toold_client::start::find_program() {
        Ok(path) => good("program", path.display().to_string()),
        Err(error) => bad("program", error.to_string(), "install toold beside toolctl, or put its folder into PATH"),
    }
}

fn folder(socket: &Path) -> Finding {
    let Some(folder) = socket.parent() else {
        return bad(
            "socket",
            format!("{} is in no folder", socket.display()),
            "set TOOLD_SOCKET to a path in a folder of yours",
        );
    };
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return good("socket", format!("{} (its folder is made at the first start)", socket.display()));
        }
        Err(error) => {
            return bad(
                "socket",
                format!("can't look at {}: {error}", folder.display()),
                "set TOOLD_SOCKET to a place of yours",
            );
        }
    };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("{} belongs to user {}", folder.display(), metadata.uid());
        return bad("socket", message, "set TOOLD_SOCKET to a place of yours");
    }
    if mode & 0o077 != 0 {
        let message = format!("{} is open to others (mode {mode:o})", folder.display());
        return bad("socket", message, format!("chmod 700 {}", folder.display()));
    }
    good("socket", socket.display().to_string())
}

fn not_running(socket: &Path) -> Finding {
    let kept = log_file(socket, |name| std::env::var(name).ok()).filter(|path| path.exists());
    let log = kept.unwrap_or_else(|| log_path(socket));
    let log = if log.exists() { format!("; the last one wrote to {}", log.display()) } else { String::new() };
    let finding = good("daemon", format!("not running{log}"));
    Finding { advice: Some("any other command starts it".to_owned()), ..finding }
}

async fn daemon(client: &Client, findings: &mut Vec<Finding>) {
    let status = match client.call::<DaemonGetStatus>(NoParams {}).await {
        Ok(status) => status,
        Err(error) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            return findings.push(bad("daemon", message, "toolctl stop, and try again"));
        }
    };
    findings.push(version(&status));
    findings.push(good("config", status.config.clone().unwrap_or_else(|| "none; the defaults hold".to_owned())));
    findings.push(sandbox(&status));
    findings.extend(problems(&status));
    plugins(client, &status, findings).await;
    mcp_servers(client, findings).await;
    remotes(client, findings).await;
    permissions(client, findings).await;
}

/// What is not stored, or lost, is worse than what works less well. What to do is in the words.
fn problems(status: &DaemonStatus) -> Vec<Finding> {
    let lost = status.store.as_ref().map(|store| store.problems.as_slice()).unwrap_or_default();
    let finding = |problem: &String| match lost.contains(problem) {
        true => Finding { about: "store", health: Severity::Bad, message: problem.clone(), advice: None },
        false => Finding { about: "problem", health: Severity::Warning, message: problem.clone(), advice: None },
    };
    status.problems.iter().map(finding).collect()
}

/// Recommends nothing that was not tried out.
fn sandbox(status: &DaemonStatus) -> Finding {
    if let Some(sandbox) = &status.sandbox {
        return good("sandbox", sandbox.clone());
    }
    let (message, advice) = match &status.guard {
        Some(GuardTrial { works: true, .. }) => (
            "off; the mode guard was tried out: it kept a command from the configuration and from the daemon's own files",
            Some("[sandbox] mode = \"guard\", after a look at what it breaks in daemon/host/SANDBOX.md"),
        ),
        Some(GuardTrial { problem, .. }) => {
            let why = problem.as_deref().unwrap_or("nobody knows why");
            return good("sandbox", format!("off; the mode guard was tried out and does not work here: {why}"));
        }
        None => ("off; [sandbox] in the configuration confines commands", None),
    };
    Finding { advice: advice.map(str::to_owned), ..good("sandbox", message.to_owned()) }
}

fn version(status: &DaemonStatus) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let running = format!("toold {}, pid {}", status.version, status.pid);
    if status.protocol != toold_proto::PROTOCOL {
        let message = format!("{running} speaks protocol {}, this toolctl {}", status.protocol, toold_proto::PROTOCOL);
        return bad("daemon", message, "install both of one version, then toolctl restart");
    }
    if status.version != own {
        let finding = good("daemon", format!("{running}, and this is toolctl {own}"));
        return Finding {
            health: Severity::Warning,
            advice: Some("toolctl restart, after an upgrade".to_owned()),
            ..finding
        };
    }
    good("daemon", running)
}

async fn plugins(client: &Client, status: &DaemonStatus, findings: &mut Vec<Finding>) {
    let list = match client.call::<PluginsList>(ListPlugins::default()).await {
        Ok(list) => list,
        Err(error) => return findings.push(bad("plugins", error.to_string(), "toolctl status")),
    };
    let loaded = list.plugins.iter().filter(|plugin| plugin.status == PluginStatus::Loaded).count();
    findings.push(good("plugins", format!("{loaded} loaded, from {}", status.plugin_dirs.join(", "))));
    for plugin in &list.plugins {
        let (health, advice) = match plugin.status {
            PluginStatus::Loaded => continue,
            PluginStatus::Failed => (Severity::Bad, "mend it: it is loaded when it is saved".to_owned()),
            PluginStatus::Untrusted => (Severity::Warning, format!("look at {}, then trust it", plugin.path)),
            PluginStatus::Shadowed => (Severity::Warning, "give it another name".to_owned()),
            PluginStatus::Disabled => continue,
        };
        let error = plugin.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        let message = format!("{} is {}{error}", plugin.name, plugin.status.as_str());
        findings.push(Finding { about: "plugin", health, message, advice: Some(advice) });
    }
}

/// None is nothing to tell of.
async fn mcp_servers(client: &Client, findings: &mut Vec<Finding>) {
    let Ok(list) = client.call::<McpServersList>(NoParams {}).await else { return };
    if !list.servers.is_empty() {
        findings.push(good("mcp servers", format!("{} mounted", list.servers.len())));
    }
    for server in list.servers.iter().filter(|server| server.state == McpServerState::Failed) {
        let error = server.error.as_deref().unwrap_or("it does not run");
        findings.push(bad("mcp server", format!("{}: {error}", server.name), "toolctl mcp doctor"));
    }
}

async fn remotes(client: &Client, findings: &mut Vec<Finding>) {
    let Ok(list) = client.call::<RemotesList>(NoParams {}).await else { return };
    let connected = list.remotes.iter().filter(|remote| remote.state == RemoteState::Connected).count();
    if !list.remotes.is_empty() {
        findings.push(good("remotes", format!("{connected} of {} connected", list.remotes.len())));
    }
    for remote in list.remotes.iter().filter(|remote| remote.state == RemoteState::Away) {
        let error = remote.error.as_deref().unwrap_or("it is away");
        // Other machines may sleep.
        let finding = bad("remote", format!("{}: {error}", remote.name), "toolctl remotes doctor");
        findings.push(Finding { health: Severity::Warning, ..finding });
    }
}

async fn permissions(client: &Client, findings: &mut Vec<Finding>) {
    // A daemon without this method has no rules to be broken.
    let Ok(list) = client.call::<PermissionsList>(NoParams {}).await else { return };
    for broken in list.broken {
        findings.push(bad("permissions", broken, "mend the rule; until then everything that it might cover is denied"));
    }
}

/// Editors and agents start `toolctl connect` by its name.
fn clients() -> Option<Finding> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Option<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join("toolctl")).find_map(|path| path.canonicalize().ok());
    Some(match found {
        Some(found) if found == own => good("clients", format!("find {}", own.display())),
        Some(found) => Finding {
            about: "clients",
            health: Severity::Warning,
            message: format!("find {}, which is not this toolctl ({})", found.display(), own.display()),
            advice: Some("mend PATH, if that is not meant".to_owned()),
        },
        None => Finding {
            about: "clients",
            health: Severity::Warning,
            message: "do not find toolctl by its name".to_owned(),
            advice: Some(format!("put {} into PATH", own.parent().unwrap_or(&own).display())),
        },
    })
}

fn good(about: &'static str, message: String) -> Finding {
    Finding { about, health: Severity::Good, message, advice: None }
}

fn bad(about: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { about, health: Severity::Bad, message: message.into(), advice: Some(advice.into()) }
}

fn show(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let (style, word) = match finding.health {
            Severity::Good => (GOOD, "ok  "),
            Severity::Warning => (WARN, "warn"),
            Severity::Bad => (BAD, "bad "),
        };
        writeln!(out, "{style}{word}{style:#} {DIM}{:<11}{DIM:#} {}", finding.about, one_line(&finding.message))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "                 {HINT}>{HINT:#} {}", plain(advice))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_comes_with_advice() {
        let findings = [good("program", "/bin/toold".to_owned()), bad("socket", "is open to others", "chmod 700 /x")];
        let mut out = Vec::new();
        show(&findings, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        ok   program     /bin/toold
        bad  socket      is open to others
                         > chmod 700 /x
        ");
    }

    #[test]
    fn a_folder_that_others_can_open_is_bad() {
        let place = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let socket = place.path().join("toold.sock");
        mode(0o755);
        assert_eq!(folder(&socket).health, Severity::Bad);
        mode(0o700);
        assert_eq!(folder(&socket).health, Severity::Good);
    }
}
