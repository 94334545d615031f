//! `toolctl doctor`: finds problems, and says how to fix them.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use toold_client::{Client, place};
use toold_proto::daemon::{DaemonStatus, FloorStatus, GuardTrial, NoParams};
use toold_proto::fleet::FleetDaemonState;
use toold_proto::level::Level;
use toold_proto::method::{DaemonGetStatus, FleetGetStatus, McpServersList, PermissionsList, PluginsList, RemotesList};
use toold_proto::plugin::{ListPlugins, PluginStatus};
use toold_proto::remote::RemoteState;
use toold_proto::socket::{database_path, log_file, log_path, others_can_replace_files};

use crate::commands::agents::switched_off::{SwitchedOff, switched_off};
use crate::commands::hook_health;
use crate::commands::mcp::server_health;
use crate::commands::status;
use crate::exit::{NOT_RUN, OK};
use crate::finding::{Finding, Severity, any_bad, bad, good, show, warning};
use crate::globals::Globals;
use crate::output::{self, counted, one_line, print_json};
use crate::person::is_below_first_shell;
use crate::{config_file, connection, program};

/// Find problems, and show how to fix them
///
/// Starts nothing and changes nothing. The exit status is 0 if there are at most warnings, and 3 if something does not
/// work or data was lost, such as the content of a damaged database.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DoctorArgs, globals: &Globals) -> anyhow::Result<u8> {
    let socket = connection::socket(globals)?;
    let mut findings = vec![daemon_program()];
    findings.extend(places(&socket));
    let is_blocked = findings.iter().any(|finding| finding.about == "socket" && finding.health == Severity::Bad);
    match Client::connect(&socket).await {
        Ok(client) => {
            daemon(&client, &mut findings).await;
            // Without a toold, that is reported already.
            if let Ok(file) = config_file::find().await
                && let Err(error) = config_file::check_is_read(&client, &file).await
            {
                findings.push(bad(
                    "config",
                    error.to_string(),
                    "set XDG_CONFIG_HOME alike for both, and start the daemon again",
                ));
            }
        }
        Err(toold_client::ClientError::NotRunning { .. }) if is_blocked => {
            findings.push(bad("daemon", "not running, and it can't be started", "fix the socket's place first"));
        }
        Err(toold_client::ClientError::NotRunning { .. }) => findings.push(not_running(&socket)),
        Err(error) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            findings.push(bad("daemon", message, "check the owner and mode of the socket and of its folder"));
        }
    }
    let configuration = configuration().await;
    // A running daemon names those mistakes, too.
    findings.retain(|found| {
        found.about != "problem" || !configuration.iter().any(|known| found.message.contains(&known.message))
    });
    findings.extend(configuration);
    findings.extend(switched_off_hooks());
    findings.extend(first_shell());
    findings.extend(clients());
    if args.json {
        print_json(&findings)?;
    } else {
        let mut out = output::stdout();
        show(&findings, &mut out)?;
        out.flush()?;
    }
    Ok(if any_bad(&findings) { NOT_RUN } else { OK })
}

/// A terminal in which nobody can decide once an agent has run.
fn first_shell() -> Option<Finding> {
    is_below_first_shell().then(|| {
        warning(
            "terminal",
            "its shell is process 1: once an agent has run, toold can't tell your commands from what the agent left behind",
            "start another shell in it (`bash`), and agents there; or open a terminal with `docker exec -it CONTAINER bash`",
        )
    })
}

fn daemon_program() -> Finding {
    match toold_client::start::find_program() {
        Ok(path) => good("program", path.display().to_string()),
        Err(error) => bad("program", error.to_string(), "install toold beside toolctl, or add its folder to PATH"),
    }
}

/// The socket, and its folder.
fn places(socket: &Path) -> Vec<Finding> {
    let folder = folder(socket);
    let other = socket.symlink_metadata().ok().filter(|metadata| !metadata.file_type().is_socket());
    let Some(metadata) = other else { return vec![folder] };
    let taken = bad(
        "socket",
        format!("broken: {} is {}, not a socket", socket.display(), kind(&metadata)),
        "move it away, or set TOOLD_SOCKET to another path",
    );
    // A good folder is no news beside that.
    std::iter::once(taken).chain((folder.health == Severity::Bad).then_some(folder)).collect()
}

fn folder(socket: &Path) -> Finding {
    let Some(folder) = socket.parent() else {
        return bad(
            "socket",
            format!("{} is in no folder", socket.display()),
            "set TOOLD_SOCKET to a path in a folder that you own",
        );
    };
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return good("socket", format!("{} (its folder is created at the first start)", socket.display()));
        }
        Err(error) => {
            return bad(
                "socket",
                format!("can't inspect {}: {error}", folder.display()),
                "set TOOLD_SOCKET to a path in a folder that you own",
            );
        }
    };
    let mode = metadata.permissions().mode();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("{} belongs to user {}", folder.display(), metadata.uid());
        return bad("socket", message, "set TOOLD_SOCKET to a path in a folder that you own");
    }
    if others_can_replace_files(mode) {
        let message = format!("other users can replace files in {} (mode {:o})", folder.display(), mode & 0o7777);
        return bad("socket", message, format!("chmod 700 {}", folder.display()));
    }
    good("socket", socket.display().to_string())
}

/// The findings of `config check`, in the file that the next start reads.
#[derive(Deserialize)]
struct ConfigReport {
    file: PathBuf,
    problems: Vec<ConfigProblem>,
    warnings: Vec<ConfigProblem>,
    /// The report on the current project's file, if it has one.
    project: Option<Box<ConfigReport>>,
}

#[derive(Deserialize)]
struct ConfigProblem {
    line: Option<u64>,
    column: Option<u64>,
    message: String,
}

/// Your configuration, and that of the current project. The files count, whatever a running daemon has read of them.
async fn configuration() -> Vec<Finding> {
    let unchecked = |why: String| {
        let advice = "install toold and toolctl of the same version; `toolctl config check` has to work";
        vec![bad("config", format!("can't check the configuration: {why}"), advice)]
    };
    let output = match program::report(&["config", "check", "--json"].map(OsStr::new)).await {
        Ok(output) => output,
        Err(error) => return unchecked(format!("{error:#}")),
    };
    let report: ConfigReport = match serde_json::from_slice(&output) {
        Ok(report) => report,
        Err(error) => return unchecked(format!("unexpected output of toold config check: {error}")),
    };
    let mut findings = of_report(&report, "fix it with `toolctl config edit`; `toolctl config check` names all errors");
    if let Some(project) = &report.project {
        let file = one_line(&project.file.display().to_string());
        let advice = format!("fix {file}, such as with `toolctl config edit --project`");
        findings.extend(of_report(project, &advice));
    }
    findings
}

fn of_report(report: &ConfigReport, advice: &str) -> Vec<Finding> {
    let place = |problem: &ConfigProblem| {
        let numbers = [problem.line, problem.column].map(|n| n.map(|n| format!(":{n}")).unwrap_or_default());
        match numbers.concat() {
            none if none.is_empty() && problem.message.contains(&*report.file.to_string_lossy()) => {
                problem.message.clone()
            }
            numbers => format!("{}{numbers}: {}", report.file.display(), problem.message),
        }
    };
    let wrong = report.problems.iter().map(|problem| bad("config", place(problem), advice));
    let doubtful = report.warnings.iter().map(|problem| Finding {
        about: "config",
        health: Severity::Warning,
        message: place(problem),
        advice: None,
    });
    let mut findings: Vec<Finding> = wrong.chain(doubtful).collect();
    if findings.is_empty() {
        findings.push(match report.file.exists() {
            true => good("config", format!("{} has no errors", report.file.display())),
            false => good("config", "none; the defaults apply"),
        });
    }
    findings
}

/// Agents whose own settings keep the hooks from running.
fn switched_off_hooks() -> Vec<Finding> {
    let finding = |SwitchedOff { agent, file, setting }: SwitchedOff| Finding {
        about: "agent",
        health: Severity::Warning,
        message: format!("{agent} does not run the hooks of toold: {setting} in {}", file.display()),
        advice: Some(format!("remove that setting, or the hooks: `toolctl agents install {agent} --undo`")),
    };
    switched_off().into_iter().map(finding).collect()
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match (kind.is_file(), kind.is_dir(), kind.is_symlink()) {
        (true, _, _) => "a plain file",
        (_, true, _) => "a folder",
        (_, _, true) => "a link",
        _ => "something else",
    }
}

fn not_running(socket: &Path) -> Finding {
    let kept = place::state_folder().map(|state| log_file(&state)).filter(|path| path.exists());
    let log = kept.unwrap_or_else(|| log_path(socket));
    let log = if log.exists() { format!("; the log of the last one is {}", log.display()) } else { String::new() };
    let finding = good("daemon", format!("not running{log}"));
    Finding { advice: Some("any other toolctl command starts it".to_owned()), ..finding }
}

async fn daemon(client: &Client, findings: &mut Vec<Finding>) {
    let status = match client.call::<DaemonGetStatus>(NoParams {}).await {
        Ok(status) => status,
        Err(error) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            return findings.push(bad("daemon", message, "run `toolctl stop`, then try again"));
        }
    };
    findings.push(version(&status));
    findings.extend(other_database(&status));
    findings.push(sandbox(&status));
    findings.extend(status.floors.as_ref().map(floors));
    findings.push(level(&status));
    findings.extend(problems(&status));
    plugins(client, &status, findings).await;
    findings.extend(hook_health::findings(client).await);
    mcp_servers(client, findings).await;
    remotes(client, findings).await;
    fleet(client, findings).await;
    permissions(client, findings).await;
}

/// Clients with other environments find another daemon.
fn other_database(status: &DaemonStatus) -> Option<Finding> {
    let (theirs, own) = (Path::new(status.database.as_deref()?), database_path(&place::state_folder()?));
    let same = theirs == own || theirs.canonicalize().ok() == own.canonicalize().ok();
    (!same).then(|| Finding {
        about: "database",
        health: Severity::Warning,
        message: format!("this daemon has {}; by your environment it would be {}", theirs.display(), own.display()),
        advice: Some("use one XDG_STATE_HOME for all clients, or ignore this if it is intended".to_owned()),
    })
}

/// Data that is lost or not stored is bad; other problems are warnings. Each message says what to do.
fn problems(status: &DaemonStatus) -> Vec<Finding> {
    let lost = status.store.as_ref().map(|store| store.problems.as_slice()).unwrap_or_default();
    let finding = |problem: &String| match lost.contains(problem) {
        true => Finding { about: "store", health: Severity::Bad, message: problem.clone(), advice: None },
        false => Finding { about: "problem", health: Severity::Warning, message: problem.clone(), advice: None },
    };
    status.problems.iter().map(finding).collect()
}

/// A level that frees less than it says is a warning.
fn level(status: &DaemonStatus) -> Finding {
    let found = good("level", status::level(&status.level));
    match status.level.unconfined.is_some() && status.level.level > Level::Read {
        true => Finding {
            health: Severity::Warning,
            advice: Some("toolctl level --explain shows what it frees".to_owned()),
            ..found
        },
        false => found,
    }
}

/// Where commands run that nobody approved.
fn floors(floors: &FloorStatus) -> Finding {
    let why = floors.problem.as_deref().unwrap_or("the reason is unknown");
    let (message, advice) = match (floors.reading, floors.freed, &floors.sockets) {
        (true, true, Some(sockets)) => (
            format!("what runs without an approval runs confined to its effects, but {sockets}"),
            "a rule or a grant for a build lets it run as [sandbox] says",
        ),
        (true, true, None) => {
            return good("floor", "what runs without an approval runs confined to its effects".to_owned());
        }
        (true, false, _) => (
            format!("commands that only read run confined; a person is asked about all others: {why}"),
            "the page Sandbox of the documentation has what each system gives",
        ),
        (false, ..) => (
            format!("commands that only read run unconfined, and a person is asked about all others: {why}"),
            "read_only_commands = \"ask\" below [permission] asks about them too",
        ),
    };
    Finding { about: "floor", health: Severity::Warning, message, advice: Some(advice.to_owned()) }
}

/// Recommends guard mode only if a trial of it worked.
fn sandbox(status: &DaemonStatus) -> Finding {
    if let Some(why) = &status.sandbox_refused {
        let message = format!("no command runs: the configured sandbox is not available: {why}");
        return bad("sandbox", message, "change [sandbox] mode in the configuration, or what the message names");
    }
    if let Some(sandbox) = &status.sandbox {
        return good("sandbox", sandbox.clone());
    }
    let (message, advice) = match &status.guard {
        Some(GuardTrial { works: true, .. }) => (
            "off; guard mode works here: in a trial it protected the configuration and the daemon's own files from a command",
            Some("set [sandbox] mode = \"guard\"; the page Sandbox of the documentation lists what it breaks"),
        ),
        Some(GuardTrial { problem, .. }) => {
            let why = problem.as_deref().unwrap_or("the reason is unknown");
            return good("sandbox", format!("off; guard mode does not work here: {why}"));
        }
        None => ("off; [sandbox] in the configuration turns it on", None),
    };
    Finding { advice: advice.map(str::to_owned), ..good("sandbox", message.to_owned()) }
}

fn version(status: &DaemonStatus) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let running = format!("toold {}, pid {}", status.version, status.pid);
    if status.protocol != toold_proto::PROTOCOL {
        let message = format!(
            "protocol mismatch: {running} speaks protocol {}, this toolctl speaks {}",
            status.protocol,
            toold_proto::PROTOCOL
        );
        return bad("daemon", message, "install toold and toolctl of the same version, then run `toolctl restart`");
    }
    if status.version != own {
        let finding = good("daemon", format!("version mismatch: {running}, toolctl {own}"));
        return Finding {
            health: Severity::Warning,
            advice: Some("after an upgrade, run `toolctl restart`".to_owned()),
            ..finding
        };
    }
    good("daemon", running)
}

async fn plugins(client: &Client, status: &DaemonStatus, findings: &mut Vec<Finding>) {
    let list = match client.call::<PluginsList>(ListPlugins::default()).await {
        Ok(list) => list,
        Err(error) => return findings.push(bad("plugins", error.to_string(), "run `toolctl status`")),
    };
    let loaded = list.plugins.iter().filter(|plugin| plugin.status == PluginStatus::Loaded).count();
    findings.push(good("plugins", format!("{loaded} loaded, from {}", status.plugin_dirs.join(", "))));
    for plugin in &list.plugins {
        let (health, advice) = match plugin.status {
            PluginStatus::Loaded => continue,
            PluginStatus::Failed => (Severity::Bad, "fix the file; it reloads on save".to_owned()),
            PluginStatus::Untrusted => {
                (Severity::Warning, format!("review {}, then trust it with `toolctl plugins trust`", plugin.path))
            }
            PluginStatus::Shadowed => (
                Severity::Warning,
                format!("rename it: another plugin of this name comes first, and {} is not used", plugin.path),
            ),
            PluginStatus::Disabled => continue,
        };
        let error = plugin.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        let message = match plugin.status {
            PluginStatus::Failed => format!("{} failed{error}", plugin.name),
            _ => format!("{} is {}{error}", plugin.name, plugin.status.as_str()),
        };
        findings.push(Finding { about: "plugin", health, message, advice: Some(advice) });
    }
}

async fn mcp_servers(client: &Client, findings: &mut Vec<Finding>) {
    let Ok(list) = client.call::<McpServersList>(NoParams {}).await else { return };
    if !list.servers.is_empty() {
        findings.push(good("mcp servers", format!("{} mounted", list.servers.len())));
    }
    findings.extend(
        server_health::diagnosed(client, &list).await.into_iter().filter(|finding| finding.health != Severity::Good),
    );
}

async fn remotes(client: &Client, findings: &mut Vec<Finding>) {
    let Ok(list) = client.call::<RemotesList>(NoParams {}).await else { return };
    let connected = list.remotes.iter().filter(|remote| remote.state == RemoteState::Connected).count();
    if !list.remotes.is_empty() {
        findings.push(good("remotes", format!("{connected} of {} connected", list.remotes.len())));
    }
    for remote in list.remotes.iter().filter(|remote| remote.state == RemoteState::Away) {
        let error = remote.error.as_deref().unwrap_or("it is not connected");
        // A warning only: the other computer may be asleep.
        findings.push(warning("remote", format!("{}: {error}", remote.name), "run `toolctl remotes doctor`"));
    }
}

async fn fleet(client: &Client, findings: &mut Vec<Finding>) {
    let Ok(fleet) = client.call::<FleetGetStatus>(NoParams {}).await else { return };
    if !fleet.configured {
        return;
    }
    let advice = "run `toolctl fleet doctor`";
    if let Some(error) = &fleet.error {
        return findings.push(bad("fleet", error, advice));
    }
    if !fleet.connected {
        return findings.push(warning("fleet", format!("no connection to {}", fleet.servers.join(", ")), advice));
    }
    let online = fleet.daemons.iter().filter(|daemon| daemon.state == FleetDaemonState::Online).count();
    findings.push(good("fleet", format!("{online} of {} online", counted(fleet.daemons.len() as u64, "other daemon"))));
    let refused: u64 = fleet.refused.values().sum();
    if refused > 0 {
        findings.push(warning("fleet", format!("{} refused", counted(refused, "message")), advice));
    }
}

async fn permissions(client: &Client, findings: &mut Vec<Finding>) {
    // A daemon without this method has no rules that could be broken.
    let Ok(list) = client.call::<PermissionsList>(NoParams {}).await else { return };
    for broken in list.broken {
        findings.push(bad("permissions", broken, "fix the rule; until then, everything that it may cover is denied"));
    }
}

/// Editors and agents start `toolctl connect` by its name.
fn clients() -> Option<Finding> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Option<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join("toolctl")).find_map(|path| path.canonicalize().ok());
    Some(match found {
        Some(found) if found == own => good("clients", format!("find toolctl at {}", own.display())),
        Some(found) => Finding {
            about: "clients",
            health: Severity::Warning,
            message: format!("find another toolctl at {}; this one is {}", found.display(), own.display()),
            advice: Some("fix PATH, unless this is intended".to_owned()),
        },
        None => Finding {
            about: "clients",
            health: Severity::Warning,
            message: "do not find toolctl in PATH".to_owned(),
            advice: Some(format!("add {} to PATH", own.parent().unwrap_or(&own).display())),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_makes_no_sockets_is_a_finding() {
        let all = FloorStatus { reading: true, freed: true, ..FloorStatus::default() };
        assert_eq!(floors(&all).health, Severity::Good);
        let sockets = Some("builds make no Unix sockets, since kernel.yama.ptrace_scope is 2".to_owned());
        let found = floors(&FloorStatus { sockets, ..all });
        assert_eq!(found.health, Severity::Warning);
        assert!(
            found.message.ends_with("kernel.yama.ptrace_scope is 2") && found.advice.is_some(),
            "{}",
            found.message
        );
    }

    #[test]
    fn a_folder_in_which_others_can_replace_the_socket_is_bad() {
        let place = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let socket = place.path().join("toold.sock");
        for (bits, health) in
            [(0o775, Severity::Bad), (0o777, Severity::Bad), (0o1777, Severity::Good), (0o700, Severity::Good)]
        {
            mode(bits);
            assert_eq!(folder(&socket).health, health, "{bits:o}");
        }
    }
}
