//! `toolctl fleet list` and `labels`: the fleet as tables.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use comfy_table::Cell;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::fleet::{FleetDaemon, FleetDaemonState, FleetStatus};
use toold_proto::method::FleetGetStatus;

use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{
    self, BAD, DIM, GOOD, NAME, TerminalControl, WARN, counted, duration, one_line, print_answer, print_json_line,
};
use crate::table;
use crate::views::sources::daemon_state;

/// How often a watched list is renewed.
const RENEW: Duration = Duration::from_secs(2);

/// List the daemons of the fleet
#[derive(Debug, Default, Args)]
pub(super) struct FleetListArgs {
    /// Renew the list in place until you press Ctrl-C; in a pipe, write it again whenever it has changed
    #[arg(long, short)]
    watch: bool,
}

pub(super) async fn list(args: FleetListArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let mut client = connection::open(globals).await?;
    if args.watch {
        loop {
            watch(&client, json).await?;
            client = connection::successor(&client).await?;
        }
    }
    let status = client.call::<FleetGetStatus>(NoParams {}).await?;
    print_answer(json, &status, render)?;
    if !status.configured && !json {
        writeln!(output::stderr(), "{NOT_CONFIGURED}")?;
    }
    Ok(OK)
}

pub(super) const NOT_CONFIGURED: &str = "this machine is in no fleet; start one with `toolctl fleet init`, or take part \
                                         with `toolctl fleet join`";

/// Shows the list until the daemon is gone.
async fn watch(client: &Client, json: bool) -> anyhow::Result<()> {
    let overwrites = !json && output::overwrites_stdout();
    let mut last: Option<String> = None;
    loop {
        let Ok(status) = client.call::<FleetGetStatus>(NoParams {}).await else { return Ok(()) };
        if json {
            let document = serde_json::to_string(&status)?;
            if last.as_ref() != Some(&document) {
                print_json_line(&status)?;
            }
            last = Some(document);
        } else {
            let shown = match status.configured {
                true => render(&status, output::terminal_width()),
                false => format!("{NOT_CONFIGURED}\n"),
            };
            if overwrites {
                let mut out = output::unfolded_stdout();
                if let Some(last) = &last {
                    let up = u16::try_from(last.lines().count()).unwrap_or(u16::MAX);
                    out.control(TerminalControl::Up(up))?;
                }
                out.control(TerminalControl::EraseBelow)?;
                out.write_all(shown.as_bytes())?;
                out.flush()?;
            } else if last.as_ref() != Some(&shown) {
                output::print(&shown)?;
            }
            last = Some(shown);
        }
        tokio::time::sleep(RENEW).await;
    }
}

pub(super) fn render(status: &FleetStatus, width: Option<u16>) -> String {
    if !status.configured {
        return String::new();
    }
    let mut text = own(status);
    if !status.daemons.is_empty() {
        let mut rows = table::new(width);
        let header =
            ["DAEMON", "STATE", "LABELS", "LOAD", "TOOLS", "LAG", "AUDIT", "CALLS", "FAILED", "PEOPLE", "VERSION"];
        rows.set_header(table::header(&header));
        for daemon in &status.daemons {
            rows.add_row([
                table::name(&one_line(&daemon.name)),
                daemon_state(daemon).into(),
                Cell::new(one_line(&daemon.labels.join(" "))),
                Cell::new(load(daemon)),
                Cell::new(daemon.tools.len()),
                Cell::new(daemon.heard_ms.map(duration).unwrap_or_default()),
                Cell::new(daemon.audit_waiting),
                Cell::new(daemon.calls),
                Cell::new(daemon.bad_calls),
                Cell::new(one_line(&daemon.people.join(" "))),
                Cell::new(one_line(daemon.version.as_deref().unwrap_or_default())),
            ]);
        }
        text.push_str(&table::render_without(&rows, &["VERSION", "PEOPLE", "AUDIT", "FAILED", "CALLS"]));
    }
    for daemon in &status.daemons {
        let name = one_line(&daemon.name);
        if let Some(error) = &daemon.error {
            // It says which daemon is away.
            text.push_str(&format!("{BAD}{}{BAD:#}\n", one_line(error)));
        }
        if daemon.trusts_this == Some(false) {
            text.push_str(&format!("{BAD}{}{BAD:#}\n", one_line(&distrust(daemon, status))));
        }
        text.extend(daemon.problems.iter().map(|problem| format!("{DIM}{name}: {}{DIM:#}\n", one_line(problem))));
    }
    let refused: Vec<String> = status
        .refused
        .iter()
        .filter(|(_, times)| **times > 0)
        .map(|(why, times)| format!("{times} {}", words(why)))
        .collect();
    if !refused.is_empty() {
        text.push_str(&format!("{WARN}refused{WARN:#} {}", one_line(&refused.join(", "))));
        text.extend(status.last_refused.as_ref().map(|last| format!("; the last: {}", one_line(last))));
        text.push('\n');
    }
    text
}

/// Says that a daemon does not trust this machine, and which command changes that.
fn distrust(daemon: &FleetDaemon, status: &FleetStatus) -> String {
    format!("{} does not trust this machine; run there: {}", daemon.name, trust_command(status))
}

/// The command that makes another machine trust this one.
pub(super) fn trust_command(status: &FleetStatus) -> String {
    match (&status.name, &status.key) {
        (Some(name), Some(key)) => format!("toolctl fleet trust {name} {key}"),
        _ => "toolctl fleet trust".to_owned(),
    }
}

/// This daemon, as one or two lines.
fn own(status: &FleetStatus) -> String {
    let state = match status.connected {
        true => format!("{GOOD}connected{GOOD:#}"),
        false => format!("{BAD}not connected{BAD:#}"),
    };
    let mut facts = vec![format!("{state} to {}", one_line(&status.servers.join(", ")))];
    if !status.labels.is_empty() {
        facts.push(format!("labels {}", one_line(&status.labels.join(" "))));
    }
    facts.push(format!("load {}/{}", status.running, status.max_calls));
    facts.push(format!("offers {}", counted(status.offered, "tool")));
    facts.push(format!("served {}", counted(status.served, "call")));
    if status.audit_waiting > 0 {
        facts.push(format!("{} of the audit log not sent yet", counted(status.audit_waiting, "row")));
    }
    let name = one_line(status.name.as_deref().unwrap_or("this daemon"));
    let mut text = format!("{NAME}{name}{NAME:#} {}\n", facts.join(", "));
    text.extend(status.error.as_ref().map(|error| format!("{BAD}error{BAD:#} {}\n", one_line(error))));
    text
}

fn load(daemon: &FleetDaemon) -> String {
    match daemon.state {
        FleetDaemonState::Online => format!("{}/{}", daemon.running, daemon.max_calls),
        FleetDaemonState::Away | FleetDaemonState::Unknown | FleetDaemonState::Disabled => String::new(),
    }
}

pub(super) fn labels(status: &FleetStatus, width: Option<u16>) -> String {
    if status.label_groups.is_empty() {
        return "no daemon of the fleet has a label; add labels = [\"NAME\"] to [fleet]\n".to_owned();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["LABEL", "ONLINE", "AWAY", "LOAD", "TOOLS HERE"]));
    for label in &status.label_groups {
        rows.add_row([
            table::name(&one_line(&label.name)),
            Cell::new(one_line(&label.online.join(" "))),
            Cell::new(one_line(&label.away.join(" "))),
            Cell::new(format!("{}/{}", label.running, label.max_calls)),
            Cell::new(if label.mounted { label.tools.len().to_string() } else { "not listed".to_owned() }),
        ]);
    }
    let mut text = table::render(&rows);
    for label in status.label_groups.iter().filter(|label| !label.mounted) {
        let name = one_line(&label.name);
        text.push_str(&format!("{DIM}to list its tools as {name}_TOOL here, add [fleet.use_labels.{name}]{DIM:#}\n"));
    }
    text
}

/// A reason for a refusal, such as `bad_signature`.
pub(super) fn words(reason: &str) -> String {
    reason.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_fleet_is_a_table_and_its_problems() {
        let daemon = |own: serde_json::Value| {
            let mut daemon = json!({"key": "V", "labels": [], "tools": [], "running": 0, "max_calls": 4, "people": [],
                "audit_waiting": 0, "may_call": true, "problems": [], "calls": 0, "bad_calls": 0});
            daemon.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            serde_json::from_value::<FleetDaemon>(daemon).unwrap()
        };
        let status = FleetStatus {
            configured: true,
            name: Some("laptop".to_owned()),
            connected: true,
            servers: vec!["tls://build:4222".to_owned()],
            max_calls: 4,
            offered: 1,
            daemons: vec![
                daemon(json!({"name": "build", "state": "online", "labels": ["gpu", "big"], "tools": ["build_bash"],
                    "running": 1, "heard_ms": 4200, "calls": 12, "bad_calls": 1, "version": "0.2.0"})),
                daemon(json!({"name": "desk", "state": "away", "heard_ms": 75000, "audit_waiting": 3,
                    "error": "desk is away: it left", "problems": ["a\nb is left out"]})),
            ],
            refused: BTreeMap::from([("bad_signature".to_owned(), 2), ("expired".to_owned(), 0)]),
            last_refused: Some("a call from desk".to_owned()),
            ..FleetStatus::default()
        };
        insta::assert_snapshot!(anstream::adapter::strip_str(&render(&status, None)).to_string(), @r"
        laptop connected to tls://build:4222, load 0/4, offers 1 tool, served 0 calls
         DAEMON  STATE   LABELS   LOAD  TOOLS  LAG         AUDIT  CALLS  FAILED  PEOPLE  VERSION
         build   online  gpu big  1/4   1      4.2 s       0      12     1               0.2.0
         desk    away                   0      1 min 15 s  3      0      0
        desk is away: it left
        desk: a b is left out
        refused 2 bad signature; the last: a call from desk
        ");
        assert_eq!(render(&FleetStatus::default(), None), "");
    }

    #[test]
    fn a_label_that_is_not_listed_says_how_to_list_it() {
        let label = json!({"name": "gpu", "online": ["build"], "away": ["desk"], "running": 1, "max_calls": 4,
            "tools": [], "mounted": false});
        let status =
            FleetStatus { label_groups: vec![serde_json::from_value(label).unwrap()], ..FleetStatus::default() };
        insta::assert_snapshot!(anstream::adapter::strip_str(&labels(&status, None)).to_string(), @r"
         LABEL  ONLINE  AWAY  LOAD  TOOLS HERE
         gpu    build   desk  1/4   not listed
        to list its tools as gpu_TOOL here, add [fleet.use_labels.gpu]
        ");
    }
}
