//! `[fleet]` of the configuration: this daemon's part in a fleet of daemons.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toold_fleet::fleet::{Fleet, WantedSettings};
use toold_fleet::keys::{KeyOwner, PublicKey};
use toold_fleet::names::FleetName;
use toold_fleet::settings::{ConnectionSettings, DaemonMember, FleetSettings, OwnPerson, PersonMember, Roster};

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::config::fleet_mistakes;
use crate::config::options::Options;
use crate::config::remotes::RemoteToolFilter;

/// `[fleet]`: daemons on several machines that share tools, asks and grants through a NATS server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetConfig {
    /// Whether this daemon is in the fleet.
    pub enabled: bool,
    /// The name of this daemon: 1 to 32 lower-case letters, digits or `_`. Without it there is no fleet.
    pub name: Option<String>,
    /// Addresses of the NATS server, such as `tls://nats.example:4222`; one that answers is used.
    pub servers: Vec<String>,
    /// The file that logs in at the server: NATS credentials, the seed of a user's nkey, or a token. Readable by its
    /// owner only.
    pub credentials: Option<String>,
    /// The file with the certificate of the authority that signed the server's, if the system does not know it.
    pub ca_file: Option<String>,
    /// Connect to a server over a network without TLS. Everyone on the way can read arguments and results.
    pub in_the_clear: bool,
    /// The file with the private key of this daemon; `fleet/daemon.key` in the state folder when absent.
    pub key_file: Option<String>,
    /// The person who uses this machine, by the name in `[fleet.people]`.
    pub person: Option<String>,
    /// The file with that person's private key; `fleet/person.key` in the state folder when absent.
    pub person_key_file: Option<String>,
    /// The labels of this daemon, such as `gpu`: calls for a label run on any daemon that has it.
    pub labels: Vec<String>,
    /// The maximum number of calls from the fleet that run here at the same time.
    pub max_calls: usize,
    /// The folder in which calls from the fleet run; `~` is the home folder.
    pub cwd: String,
    /// Which of its tools this daemon offers to the fleet.
    pub offer: RemoteToolFilter,
    /// For how long grants of the fleet that allow something stay valid without the server, in milliseconds.
    pub lease_ms: u64,
    /// Send the rows of the audit log to the fleet's stream.
    pub audit: bool,
    /// The other daemons, by name.
    pub daemons: BTreeMap<String, FleetDaemonSection>,
    /// The persons who decide, by name.
    pub people: BTreeMap<String, FleetPersonSection>,
    /// Labels whose tools are called `LABEL_tool` here.
    pub use_labels: BTreeMap<String, FleetLabelSection>,
}

/// `[fleet.daemons.NAME]`: another daemon. Its tools are called `NAME_tool` here.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetDaemonSection {
    /// Its public key, which begins with `V`.
    pub key: String,
    /// Whether it may call tools here. Rules, grants and persons decide about each call all the same.
    pub may_call: bool,
    /// Whether its asks are shown here.
    pub shows_asks: bool,
    /// Whether its tools are listed here.
    pub enabled: bool,
    /// Which of its tools are listed here.
    pub tools: RemoteToolFilter,
    /// The timeout of a call, in milliseconds; the tool's own when absent.
    pub timeout_ms: Option<u64>,
}

/// `[fleet.people.NAME]`: a person.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetPersonSection {
    /// The public key, which begins with `U`.
    pub key: String,
    /// Whether this person answers asks and makes grants that are valid here.
    pub decides: bool,
}

/// `[fleet.use_labels.NAME]`: a label whose tools are listed here.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetLabelSection {
    /// Which of its tools are listed here.
    pub tools: RemoteToolFilter,
    /// The timeout of a call, in milliseconds; the tool's own when absent.
    pub timeout_ms: Option<u64>,
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            name: None,
            servers: Vec::new(),
            credentials: None,
            ca_file: None,
            in_the_clear: false,
            key_file: None,
            person: None,
            person_key_file: None,
            labels: Vec::new(),
            max_calls: 4,
            cwd: "~".into(),
            offer: RemoteToolFilter::default(),
            lease_ms: 10 * 60 * 1000,
            audit: true,
            daemons: BTreeMap::new(),
            people: BTreeMap::new(),
            use_labels: BTreeMap::new(),
        }
    }
}

impl Default for FleetDaemonSection {
    fn default() -> Self {
        Self {
            key: String::new(),
            may_call: true,
            shows_asks: true,
            enabled: true,
            tools: RemoteToolFilter::default(),
            timeout_ms: None,
        }
    }
}

impl Default for FleetPersonSection {
    fn default() -> Self {
        Self { key: String::new(), decides: true }
    }
}

/// Joins the fleet of the user's configuration, and follows changes. A project's configuration may not contain one.
pub fn follow(config: &Arc<ActiveConfig>, fleet: &Arc<Fleet>) {
    let fleet = fleet.clone();
    config.follow(move |config| {
        fleet.configure(settings(&config.loaded().config.fleet, &config.options));
    });
}

/// The files of this daemon's part in its fleet.
pub(super) struct FleetFiles {
    pub(super) key: PathBuf,
    pub(super) person_key: PathBuf,
    pub(super) credentials: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
}

impl FleetFiles {
    /// Paths that are not absolute are left out.
    pub(super) fn of(fleet: &FleetConfig, options: &Options) -> Self {
        let home = options.paths.home.as_deref();
        let file = |text: &Option<String>| config::absolute(text.as_deref()?, home).ok();
        let keys = options.paths.fleet();
        Self {
            key: file(&fleet.key_file).unwrap_or_else(|| keys.join("daemon.key")),
            person_key: file(&fleet.person_key_file).unwrap_or_else(|| keys.join("person.key")),
            credentials: file(&fleet.credentials),
            ca: file(&fleet.ca_file),
        }
    }

    /// Those that no tool may read.
    pub(super) fn secret(self) -> impl Iterator<Item = PathBuf> {
        let files = [self.key, self.person_key].into_iter().chain(self.credentials);
        let real = |file: PathBuf| file.canonicalize().unwrap_or(file);
        files.filter(|file| !file.is_dir()).map(real)
    }
}

/// What the configuration says, or its first mistake.
fn settings(fleet: &FleetConfig, options: &Options) -> WantedSettings {
    let name = fleet.name.as_ref().filter(|_| fleet.enabled)?;
    Some(match fleet_mistakes::of_texts(fleet, options).first() {
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
