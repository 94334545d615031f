//! `[fleet]` of the configuration: this daemon's part in a fleet of daemons.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::config;
use crate::config::options::Options;
use crate::config::remotes::RemoteToolFilter;

/// `[fleet]`: daemons on several machines that share tools, asks and grants through a NATS server.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The file with the certificate of the authority that signed the server's. No other authority counts then; the
    /// system's do when absent.
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
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FleetPersonSection {
    /// The public key, which begins with `U`.
    pub key: String,
    /// Whether this person answers asks and makes grants that are valid here.
    pub decides: bool,
}

/// `[fleet.use_labels.NAME]`: a label whose tools are listed here.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A mistake, and the keys from `fleet` on that lead to it.
pub(super) struct FleetMistake {
    pub(super) keys: Vec<String>,
    pub(super) why: String,
}

impl fmt::Display for FleetMistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.keys.join("."), self.why)
    }
}

/// The files of this daemon's part in its fleet.
pub(super) struct FleetFiles {
    pub(super) key: PathBuf,
    pub(super) person_key: PathBuf,
    pub(super) credentials: Option<PathBuf>,
    #[cfg_attr(not(feature = "fleet"), expect(dead_code))]
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
