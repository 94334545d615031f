//! `toolctl fleet doctor`: what does not work between this machine and its fleet, and what to do.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toold_client::{Client, ClientError};
use toold_proto::daemon::NoParams;
use toold_proto::fleet::{FleetDaemon, FleetDaemonState, FleetStatus};
use toold_proto::method::FleetGetStatus;

use super::broker_info::{BrokerInfo, OLDEST};
use super::membership::{configuration, is_local, public_key};
use super::roster::FleetSection;
use super::show::{NOT_CONFIGURED, trust_command, words};
use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::finding::{Finding, any_bad, bad, good, show, warning};
use crate::globals::Globals;
use crate::output::{self, counted, duration, print_json};

/// How long a daemon may take to read a new `[fleet]` and to connect, and to hear of the others.
const CONNECTS: Duration = Duration::from_secs(5);
const HEARS: Duration = Duration::from_secs(2);
const SETTLE_CHECK: Duration = Duration::from_millis(100);
/// A daemon renews its record every ten seconds.
const LATE_MS: u64 = 15_000;
/// A difference of clocks that is worth a warning.
const MUCH_CLOCK_MS: u64 = 20_000;
/// Clocks that differ by a minute or more keep calls from running.
const MOST_CLOCK_MS: u64 = 60_000;
/// Rows of the audit log; fewer wait at any time.
const MANY_ROWS: u64 = 1_000;

pub(super) async fn run(json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let (_, text) = configuration().await?;
    let is_member = FleetSection::read(&text).is_ok_and(|fleet| fleet.is_some_and(|fleet| fleet.name.is_some()));
    let status = settled_status(&client, is_member).await?;
    let mut findings = Vec::new();
    match FleetSection::read(&text) {
        Ok(Some(fleet)) if fleet.name.is_some() => {
            findings.push(good("fleet", format!("this machine is {}", fleet.name.as_deref().unwrap_or_default())));
            keys(&fleet, &mut findings).await;
            for server in &fleet.servers {
                findings.extend(broker(server).await);
            }
            of_status(&status, &mut findings);
        }
        Ok(_) => findings.push(bad("fleet", "not configured", NOT_CONFIGURED)),
        Err(error) => findings.push(bad("fleet", format!("{error:#}"), "run `toolctl config check`")),
    }
    match json {
        true => print_json(&findings)?,
        false => {
            let mut text = Vec::new();
            show(&findings, &mut text)?;
            output::print(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(if any_bad(&findings) { NOT_RUN } else { OK })
}

/// The status, once the daemon has read the section and is connected, or says why not, and has heard of the others; or after a
/// few seconds without that.
async fn settled_status(client: &Client, is_member: bool) -> Result<FleetStatus, ClientError> {
    let began = Instant::now();
    loop {
        let status = client.call::<FleetGetStatus>(NoParams {}).await?;
        let is_connecting = !status.configured || !status.connected && status.error.is_none();
        let is_unheard = |daemon: &FleetDaemon| daemon.state == FleetDaemonState::Unknown;
        let waits = match is_connecting {
            true => began.elapsed() < CONNECTS,
            false => status.connected && status.daemons.iter().any(is_unheard) && began.elapsed() < HEARS,
        };
        if !is_member || !waits {
            return Ok(status);
        }
        sleep(SETTLE_CHECK).await;
    }
}

/// The key files: each is there, for its owner alone, and the person's fits the public one.
async fn keys(fleet: &FleetSection, findings: &mut Vec<Finding>) {
    let file = match fleet.key_file() {
        Ok(file) => file,
        Err(error) => return findings.push(bad("key", format!("{error:#}"), "set HOME")),
    };
    findings.push(match public_key("daemon", &file, false).await {
        Ok(key) => good("key", format!("{key} of this daemon")),
        Err(error) => key_problem(&error, &file, "a new key must be trusted by each other machine"),
    });
    let Some((person, file)) = fleet.person.as_ref().zip(fleet.person_key_file().ok()) else {
        let advice = "add person = \"NAME\" to [fleet] if somebody works at this machine";
        return findings.push(good("person", format!("none here, so that no asks of the fleet are shown; {advice}")));
    };
    let copy = "copy it from another machine of this person";
    let own = match public_key("person", &file, false).await {
        Ok(own) => own,
        Err(error) => return findings.push(key_problem(&error, &file, copy)),
    };
    findings.push(match fleet.people.get(person) {
        Some(known) if known.key == own => good("person", format!("{own} of {person}")),
        Some(known) => bad(
            "person",
            format!("the key of {person} here is {own}, and [fleet.people.{person}] says {}", known.key),
            format!("{copy}, as one person has one key: {}", file.display()),
        ),
        None => bad(
            "person",
            format!("{person} is not in [fleet.people]"),
            format!("run `toolctl fleet trust {person} {own} --person`"),
        ),
    });
}

fn key_problem(error: &anyhow::Error, file: &Path, advice: &str) -> Finding {
    let message = error.to_string();
    let advice = match message.contains("chmod") {
        true => format!("run `chmod 600 {}`", file.display()),
        false => advice.to_owned(),
    };
    bad("key", message, advice)
}

/// The server, as anybody sees it who connects.
async fn broker(server: &str) -> Vec<Finding> {
    let info = match BrokerInfo::of(server).await {
        Ok(info) => info,
        Err(error) => {
            let advice = "start nats-server there, or check the address and the firewall";
            return vec![bad("server", format!("{server}: {error:#}"), advice)];
        }
    };
    let mut findings = Vec::new();
    if info.is_too_old() {
        let message = format!("{server} is version {}", info.version);
        findings.push(bad("server", message, format!("install nats-server {OLDEST} or newer")));
    }
    if !info.jetstream {
        let advice =
            "add jetstream { store_dir: ... } to its configuration, as `toolctl fleet broker-config` prints it";
        findings.push(bad("server", format!("{server} has no JetStream"), advice));
    }
    let is_encrypted = info.tls_required || info.tls_available && server.starts_with("tls://");
    if !is_encrypted && !is_local(server) {
        let advice = "give it a certificate: `toolctl fleet broker-config --tls-cert FILE --tls-key FILE`";
        let message = format!("{server} is without TLS: everyone on the way can read arguments and results");
        findings.push(warning("server", message, advice));
    }
    if !info.auth_required {
        let message = format!("{server} lets in everybody who reaches it");
        let advice =
            "nobody can forge calls or answers, but everybody can read them: use `toolctl fleet broker-config`";
        findings.push(warning("server", message, advice));
    }
    if findings.is_empty() {
        let tls = if is_encrypted { "TLS" } else { "on this machine" };
        findings.push(good("server", format!("{server}: nats-server {}, {tls}, JetStream", info.version)));
    }
    findings
}

/// The server's words when its store has no room left (error code 10023 of JetStream).
const STORE_IS_FULL: &str = "insufficient resources";

/// The server's word for a subject that a login does not reach.
const NOT_PERMITTED: &str = "permissions violation";

fn advice_for(message: &str) -> &'static str {
    if message.contains(STORE_IS_FULL) {
        "the store of the server is full: raise max_file_store in its jetstream { ... }, or remove streams there that \
         the fleet does not use"
    } else if message.to_lowercase().contains(NOT_PERMITTED) {
        "`credentials` of [fleet] must be the login of this machine, and the server's configuration must name its person: print \
         it again with `toolctl fleet broker-config MACHINE=PERSON ...`"
    } else {
        "check the server, `credentials` and `ca_file` of [fleet]; `toolctl logs` has the details"
    }
}

/// The status that the daemon reports.
fn of_status(status: &FleetStatus, findings: &mut Vec<Finding>) {
    if !status.configured {
        let advice = "run `toolctl restart`; its log says why if that does not help";
        return findings.push(bad("daemon", "the running daemon has not read [fleet]", advice));
    }
    match (&status.error, status.connected) {
        (None, true) => findings.push(good("daemon", format!("logged in; offers {}", counted(status.offered, "tool")))),
        (error, connected) => {
            let message =
                error.as_deref().unwrap_or(if connected { "connected" } else { "not connected to the server" });
            findings.push(bad("daemon", message, advice_for(message)));
        }
    }
    if !status.connected {
        let message = "grants of the fleet that allow something end here with their lease; those that deny stay valid";
        findings.push(warning(
            "lease",
            message,
            "connect to the server again, or allow it here: `toolctl permissions grant`",
        ));
    }
    // Without the server, only the past of the others is known.
    let others = status.daemons.iter().filter(|_| status.connected);
    findings.extend(others.map(|daemon| of_daemon(daemon, status)));
    findings.extend(status.daemons.iter().filter_map(clock));
    for daemon in &status.daemons {
        findings.extend(daemon.problems.iter().map(|problem| {
            let advice = format!("rename the tool, or leave it out with [fleet.daemons.{}.tools]", daemon.name);
            warning("tools", format!("{}: {problem}", daemon.name), advice)
        }));
    }
    refusals(status, findings);
    if status.audit_waiting > MANY_ROWS && status.connected {
        let message = format!("not sent yet: {}", counted(status.audit_waiting, "row"));
        findings.push(warning("audit", message, "wait; if the number does not fall, look at `toolctl logs`"));
    }
    let people: BTreeSet<&str> = status.daemons.iter().flat_map(|daemon| &daemon.people).map(String::as_str).collect();
    if !people.is_empty() {
        let people: Vec<&str> = people.into_iter().collect();
        findings.push(good("people", format!("{} can be asked on another machine", people.join(", "))));
    }
}

fn of_daemon(daemon: &FleetDaemon, status: &FleetStatus) -> Finding {
    let name = &daemon.name;
    let own = trust_command(status);
    if daemon.trusts_this == Some(false) {
        let message = format!("{name} does not trust this machine: it refuses everything from here");
        return bad("member", message, format!("run there: `{own}`"));
    }
    match daemon.state {
        FleetDaemonState::Online => match daemon.heard_ms.filter(|age| *age > LATE_MS) {
            Some(age) => {
                let message = format!("{name} was heard of {} ago, and should be every 10 s", duration(age));
                warning("member", message, "check the load and the network of that machine")
            }
            None => good("member", format!("{name} is online, with {}", counted(daemon.tools.len() as u64, "tool"))),
        },
        FleetDaemonState::Disabled => good("member", format!("{name} is disabled here: its tools are not listed")),
        FleetDaemonState::Away => {
            let message = daemon.error.clone().unwrap_or_else(|| format!("{name} is away"));
            warning("member", message, "start toold there, or wait until it is awake")
        }
        FleetDaemonState::Unknown => warning(
            "member",
            format!("{name} has not been heard of"),
            format!("start toold there, and run there: `toolctl fleet doctor` and `{own}`"),
        ),
    }
}

/// The clock of a daemon that is there, if it differs much.
fn clock(daemon: &FleetDaemon) -> Option<Finding> {
    let ahead = daemon.clock_ms.filter(|_| daemon.state == FleetDaemonState::Online)?;
    let difference = ahead.unsigned_abs();
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    (difference > MUCH_CLOCK_MS).then(|| {
        let message = format!("the clock of {} is {} {direction} the clock here", daemon.name, duration(difference));
        let advice = "set both: `timedatectl` shows whether a clock is synchronized; calls between machines fail when clocks \
                      differ by a minute or more";
        match difference < MOST_CLOCK_MS {
            true => warning("clock", message, advice),
            false => bad("clock", message, advice),
        }
    })
}

/// Messages that were refused here. A machine that refuses this one counts that on its side.
fn refusals(status: &FleetStatus, findings: &mut Vec<Finding>) {
    for (reason, times) in status.refused.iter().filter(|(_, times)| **times > 0) {
        let advice = match reason.as_str() {
            "unknown_sender" => {
                "if you know the sender, run `toolctl fleet trust NAME KEY` with what `toolctl fleet join` printed there"
            }
            "bad_signature" => {
                "somebody else uses the name, or the machine has a new key: `toolctl fleet forget NAME`, then trust it again"
            }
            "expired" => {
                "compare the clocks of the machines, which may differ by 60 s: `timedatectl` shows whether one is synchronized"
            }
            "replayed" => "somebody who reads the server's traffic repeats messages, or a machine's clock was set back",
            "misdirected" => "somebody who reads the server's traffic sends messages to others than they are for",
            "not_permitted" => {
                "if it should be allowed, remove may_call, shows_asks or decides = false from its entry in [fleet]"
            }
            _ => "another program uses the subjects of toold, or a daemon has another version",
        };
        let last = status.last_refused.as_ref().map(|last| format!("; the last one: {last}")).unwrap_or_default();
        findings.push(warning("refused", format!("{} {}{last}", counted(*times, "message"), words(reason)), advice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_of_the_server_is_named() {
        let full =
            "can't write laptop into its bucket: publish failed: insufficient resources (code 503, error code 10023)";
        assert!(advice_for(full).contains("max_file_store"));
        assert!(advice_for("not connected to the server").contains("credentials"));
    }
}
