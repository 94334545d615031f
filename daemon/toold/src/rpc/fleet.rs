//! `fleet.status`; the other methods are in [`audit`] and [`grants`].

mod audit;
pub(super) mod grants;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::time::rfc3339;
use toold_fleet::adapter::FleetMountStatus;
use toold_fleet::audit::waiting;
use toold_fleet::directory::KnownDaemon;
use toold_fleet::member::Member;
use toold_fleet::target::CallTarget;
use toold_proto::daemon::NoParams;
use toold_proto::fleet::{FleetDaemon, FleetDaemonState, FleetLabel, FleetStatus};
use toold_proto::method::FleetGetStatus;

use crate::config::fleet::{FleetConfig, FleetDaemonSection};
use crate::rpc::error::refused;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    audit::register(module)?;
    grants::register(module)?;
    add_async::<FleetGetStatus, _>(module, Right::Anyone, status)
}

async fn status(request: MethodRequest, _: NoParams) -> Result<FleetStatus, ErrorObjectOwned> {
    let loaded = request.services.config.loaded();
    let config = &loaded.config.fleet;
    let Some(name) = config.name.clone().filter(|_| config.enabled) else { return Ok(FleetStatus::default()) };
    let mut status = FleetStatus {
        configured: true,
        name: Some(name),
        person: config.person.clone(),
        servers: config.servers.clone(),
        labels: config.labels.clone(),
        max_calls: config.max_calls as u64,
        error: request.services.fleet.error(),
        ..FleetStatus::default()
    };
    status.daemons = config.daemons.iter().map(|(name, section)| unknown(name, section)).collect();
    status.daemons.retain(|daemon| Some(&daemon.name) != status.name.as_ref());
    status.grants = request.services.fleet.grants().valid() as u64;
    if let Some(member) = request.services.fleet.member() {
        add_member(&mut status, &member).await;
    }
    status.label_groups = label_groups(&status, config);
    for mount in request.services.fleet_mounts.list() {
        add_mount(&mut status, mount);
    }
    if !may_decide(&request) {
        hide(&mut status);
    }
    Ok(status)
}

async fn add_member(status: &mut FleetStatus, member: &Arc<Member>) {
    let broker = member.broker.state.borrow().clone();
    let counts = &member.counts;
    status.key = Some(member.key().as_str().to_owned());
    status.person_key = member.person_key().map(|key| key.as_str().to_owned());
    status.connected = broker.connected;
    status.since = broker.since.map(rfc3339);
    let problems = broker.error.map(|error| format!("the NATS server: {error}")).into_iter().chain(member.problems());
    let problems: Vec<String> = problems.collect();
    status.error = (!problems.is_empty()).then(|| problems.join("; "));
    status.offered = member.offered.load(Ordering::Relaxed);
    status.running = counts.running.load(Ordering::Relaxed);
    status.served = counts.served.load(Ordering::Relaxed);
    status.refused = counts.refused().map(|(refusal, number)| (refusal.as_str().to_owned(), number)).collect();
    status.last_refused = counts.last_refused();
    status.audit_sent = counts.audit_sent.load(Ordering::Relaxed);
    status.audit_waiting = waiting(member).await;
    status.grants = member.grants.valid() as u64;
    member.directory.read(|known| {
        for daemon in &mut status.daemons {
            if let Some(known) = known.get(daemon.name.as_str()) {
                add_known(daemon, known);
                daemon.trusts_this = known.trusts(&member.name, member.key());
            }
        }
    });
}

/// A daemon of which nothing is known but its section.
fn unknown(name: &str, section: &FleetDaemonSection) -> FleetDaemon {
    FleetDaemon {
        name: name.to_owned(),
        state: if section.enabled { FleetDaemonState::Unknown } else { FleetDaemonState::Disabled },
        key: section.key.clone(),
        version: None,
        labels: Vec::new(),
        tools: Vec::new(),
        running: 0,
        max_calls: 0,
        people: Vec::new(),
        heard_at: None,
        heard_ms: None,
        clock_ms: None,
        audit_waiting: 0,
        trusts_this: None,
        may_call: section.may_call,
        problems: Vec::new(),
        calls: 0,
        bad_calls: 0,
        error: None,
    }
}

fn add_known(daemon: &mut FleetDaemon, known: &KnownDaemon) {
    let (Some(record), Some(heard_at)) = (&known.record, known.heard_at) else { return };
    if daemon.state == FleetDaemonState::Unknown {
        daemon.state = if known.is_away { FleetDaemonState::Away } else { FleetDaemonState::Online };
    }
    daemon.version = Some(record.version.clone());
    daemon.labels = record.labels.iter().map(ToString::to_string).collect();
    daemon.running = if known.is_away { 0 } else { record.running };
    daemon.max_calls = record.max_calls;
    daemon.people = if known.is_away { Vec::new() } else { record.people.iter().map(ToString::to_string).collect() };
    daemon.heard_at = Some(rfc3339(heard_at));
    daemon.heard_ms = Some(u64::try_from(known.heard.elapsed().as_millis()).unwrap_or(u64::MAX));
    daemon.clock_ms = known.clock_ms;
    daemon.audit_waiting = record.audit_waiting;
}

/// The tools of a daemon or of a label, as they are listed here.
fn add_mount(status: &mut FleetStatus, mount: FleetMountStatus) {
    match mount.target {
        CallTarget::Daemon(name) => {
            let Some(daemon) = status.daemons.iter_mut().find(|daemon| daemon.name == name.as_str()) else { return };
            daemon.tools = mount.tools;
            daemon.problems = mount.problems;
            (daemon.calls, daemon.bad_calls) = (mount.calls, mount.bad_calls);
            daemon.error = mount.error;
        }
        CallTarget::Label(name) => {
            let label = status.label_groups.iter_mut().find(|label| label.name == name.as_str());
            if let Some(label) = label {
                label.tools = mount.tools;
            }
        }
    }
}

/// The labels of all daemons, this one among them, and those that are mounted here.
fn label_groups(status: &FleetStatus, config: &FleetConfig) -> Vec<FleetLabel> {
    let mut groups: BTreeMap<&str, FleetLabel> = BTreeMap::new();
    let group = |name: &str| FleetLabel {
        name: name.to_owned(),
        online: Vec::new(),
        away: Vec::new(),
        running: 0,
        max_calls: 0,
        tools: Vec::new(),
        mounted: config.use_labels.contains_key(name),
    };
    for name in config.use_labels.keys() {
        groups.entry(name).or_insert_with(|| group(name));
    }
    let own = status.name.iter().filter(|_| status.connected);
    let own = own.map(|name| (name, &status.labels, true, status.running, status.max_calls));
    let others = status.daemons.iter().map(|daemon| {
        let is_online = daemon.heard_at.is_some() && daemon.state == FleetDaemonState::Online;
        (&daemon.name, &daemon.labels, is_online, daemon.running, daemon.max_calls)
    });
    for (name, labels, is_online, running, max_calls) in own.chain(others) {
        for label in labels {
            let group = groups.entry(label).or_insert_with(|| group(label));
            if is_online {
                group.online.push(name.clone());
                group.running += running;
                group.max_calls += max_calls;
            } else {
                group.away.push(name.clone());
            }
        }
    }
    groups.into_values().map(|group| FleetLabel { online: sorted(group.online), ..group }).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Persons, keys, addresses, and errors, which may contain paths, are for persons only.
fn hide(status: &mut FleetStatus) {
    let hidden = |error: &mut Option<String>, words: &str| *error = error.take().map(|_| words.to_owned());
    (status.key, status.person, status.person_key, status.last_refused) = (None, None, None, None);
    status.servers.clear();
    hidden(&mut status.error, "the fleet does not work");
    for daemon in &mut status.daemons {
        daemon.key.clear();
        daemon.people.clear();
        hidden(&mut daemon.error, "it is away");
    }
}

/// # Errors
/// This daemon is in no fleet; with a reason if it is configured.
fn member(request: &MethodRequest) -> Result<Arc<Member>, ErrorObjectOwned> {
    let fleet = &request.services.fleet;
    fleet.member().ok_or_else(|| match fleet.error() {
        Some(why) => refused("no_fleet", &format!("this daemon is not in its fleet: {why}")),
        None => refused(
            "no_fleet",
            "this machine is in no fleet; start one with `toolctl fleet init`, or take part with `toolctl fleet join`",
        ),
    })
}
