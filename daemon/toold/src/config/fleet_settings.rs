//! How this daemon takes part in a fleet, by `[fleet]` of its configuration.

mod mistakes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toold_engine::registry::SourceScope;
use toold_fleet::adapter::{FleetEndpoint, FleetMounts};
use toold_fleet::fleet::Fleet;
use toold_fleet::keys::{KeyOwner, PublicKey, SigningKey};
use toold_fleet::names::FleetName;
use toold_fleet::settings::{
    ConnectionSettings, DaemonMember, FleetSettings, OwnPerson, PersonMember, Roster, WantedSettings,
};
use toold_fleet::target::CallTarget;
use toold_mounts::config::MountConfig;
use toold_proto::mcp::InstanceScope;

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::config::fleet::{FleetConfig, FleetDaemonSection, FleetFiles, FleetMistake, FleetPersonSection};
use crate::config::fleet_key::FleetKeyUse;
use crate::config::options::Options;
use crate::config::remotes::RemoteToolFilter;

/// Until a daemon's tools are listed: they are known as soon as the broker is.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Joins the fleet of the user's configuration, and follows changes. A project's configuration may not contain one.
pub fn follow(config: &Arc<ActiveConfig>, fleet: &Arc<Fleet>, mounts: &Arc<FleetMounts>) {
    let (fleet, mounts) = (fleet.clone(), mounts.clone());
    fleet.inform(&mounts);
    config.follow(move |config| {
        let section = &config.loaded().config.fleet;
        mounts.configure(mounted(section));
        fleet.configure(settings(section, &config.options));
    });
}

/// The daemons and labels whose tools are listed here. Names that cannot be used are mistakes of the configuration, and
/// nothing is mounted under them.
fn mounted(fleet: &FleetConfig) -> Vec<MountConfig<FleetEndpoint>> {
    let Some(own) = fleet.name.as_ref().filter(|_| fleet.enabled) else { return Vec::new() };
    let daemons = fleet.daemons.iter().filter(|(name, _)| *name != own).filter_map(|(name, section)| {
        let target = CallTarget::Daemon(FleetName::parse(name).ok()?);
        let endpoint = FleetEndpoint { target, key: Some(section.key.clone()) };
        Some(mount(name, endpoint, section.enabled, section.timeout_ms, &section.tools))
    });
    let labels = fleet.use_labels.iter().filter_map(|(name, section)| {
        let endpoint = FleetEndpoint { target: CallTarget::Label(FleetName::parse(name).ok()?), key: None };
        Some(mount(name, endpoint, true, section.timeout_ms, &section.tools))
    });
    daemons.chain(labels).collect()
}

fn mount(
    name: &str,
    endpoint: FleetEndpoint,
    enabled: bool,
    timeout_ms: Option<u64>,
    tools: &RemoteToolFilter,
) -> MountConfig<FleetEndpoint> {
    MountConfig {
        name: name.to_owned(),
        scope: SourceScope::Global,
        endpoint,
        enabled,
        instances: InstanceScope::Shared,
        max_instances: 1,
        parallel: None,
        trusts_hints: false,
        revision: None,
        idle_timeout: None,
        timeout: timeout_ms.map(Duration::from_millis),
        start_timeout: START_TIMEOUT,
        allow: tools.allow.clone(),
        deny: tools.deny.clone(),
    }
}

/// The public key that belongs to the private one in a file, which is made if `create`.
pub(super) fn public_key(key_use: FleetKeyUse, file: &Path, create: bool) -> Result<String, String> {
    let owner = match key_use {
        FleetKeyUse::Daemon => KeyOwner::Daemon,
        // To NATS, each client that logs in is a user.
        FleetKeyUse::Person | FleetKeyUse::Login => KeyOwner::Person,
    };
    let key = if create { SigningKey::create(file, owner) } else { SigningKey::load(file, owner) };
    Ok(key?.public().as_str().to_owned())
}

/// Every mistake: those in files only when there are none in texts. Reads files.
pub(super) fn mistakes(fleet: &FleetConfig, options: &Options) -> Vec<FleetMistake> {
    let of_texts = mistakes::of_texts(fleet, options);
    if of_texts.is_empty() { mistakes::of_files(fleet, options) } else { of_texts }
}

/// The settings in the configuration, or its first mistake.
fn settings(fleet: &FleetConfig, options: &Options) -> WantedSettings {
    let name = fleet.name.as_ref().filter(|_| fleet.enabled)?;
    Some(match mistakes::of_texts(fleet, options).first() {
        Some(mistake) => Err(mistake.to_string()),
        None => read(name, fleet, options),
    })
}

fn read(name: &str, fleet: &FleetConfig, options: &Options) -> Result<FleetSettings, String> {
    let files = FleetFiles::of(fleet, options);
    let name_of = |text: &str| FleetName::parse(text).map_err(|error| error.to_string());
    let person =
        |person: &String| Ok::<_, String>(OwnPerson { name: name_of(person)?, key_file: files.person_key.clone() });
    let of_daemon = |(name, section): (&String, &FleetDaemonSection)| {
        let key = PublicKey::parse(&section.key, KeyOwner::Daemon)?;
        Ok((name_of(name)?, DaemonMember { key, may_call: section.may_call, shows_asks: section.shows_asks }))
    };
    let of_person = |(name, section): (&String, &FleetPersonSection)| {
        let key = PublicKey::parse(&section.key, KeyOwner::Person)?;
        Ok((name_of(name)?, PersonMember { key, decides: section.decides }))
    };
    // Several machines can share one file, which names this daemon too.
    let others = fleet.daemons.iter().filter(|(other, _)| *other != name);
    Ok(FleetSettings {
        connection: ConnectionSettings {
            name: name_of(name)?,
            servers: fleet.servers.clone(),
            person: fleet.person.as_ref().map(person).transpose()?,
            credentials: files.credentials,
            ca_file: files.ca,
            key_file: files.key,
            state_dir: options.paths.fleet(),
        },
        roster: Roster {
            daemons: others.map(of_daemon).collect::<Result<_, String>>()?,
            people: fleet.people.iter().map(of_person).collect::<Result<_, String>>()?,
        },
        labels: fleet.labels.iter().map(|label| name_of(label)).collect::<Result<_, _>>()?,
        max_calls: fleet.max_calls,
        offer: fleet.offer.allow.clone(),
        withhold: fleet.offer.deny.clone(),
        cwd: config::absolute(&fleet.cwd, options.paths.home.as_deref())?,
        lease: Duration::from_millis(fleet.lease_ms),
        audit: fleet.audit,
    })
}
