//! How this daemon takes part in a fleet, as its configuration says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::keys::{KeyOwner, PublicKey, SigningKey};
use crate::names::FleetName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    pub connection: ConnectionSettings,
    pub roster: Roster,
    /// The labels that this daemon has.
    pub labels: Vec<FleetName>,
    /// Calls from the fleet that it runs at the same time.
    pub max_calls: usize,
    /// Globs over the names of its own tools that the fleet may call; `None` for all.
    pub offer: Option<Vec<String>>,
    /// Globs over those that it may not.
    pub withhold: Vec<String>,
    /// The folder in which calls from the fleet run.
    pub cwd: PathBuf,
    /// How long allowing grants of the fleet are valid without the broker.
    pub lease: Duration,
    /// Send the audit log to the fleet.
    pub audit: bool,
}

/// Settings whose change requires a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The name of this daemon.
    pub name: FleetName,
    /// Addresses of the broker, as `nats://HOST:PORT` or `tls://HOST:PORT`; one that answers is used.
    pub servers: Vec<String>,
    /// The file that logs in at the broker: it contains NATS credentials (`.creds`), the seed of a user's nkey, or a token.
    pub credentials: Option<PathBuf>,
    /// Certificates of authorities that the broker's certificate may be signed by, in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// The file with the daemon's key.
    pub key_file: PathBuf,
    /// The person who uses this machine.
    pub person: Option<OwnPerson>,
    /// The folder for what must outlive the process.
    pub state_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPerson {
    pub name: FleetName,
    pub key_file: PathBuf,
}

impl OwnPerson {
    /// # Errors
    /// The file cannot be read, or is not this person's; as a sentence for the user.
    pub(crate) fn load_key(&self, roster: &Roster) -> Result<(FleetName, SigningKey), String> {
        let key = SigningKey::load(&self.key_file, KeyOwner::Person)?;
        match roster.people.get(&self.name) {
            Some(person) if person.key != *key.public() => Err(format!(
                "{} does not fit the public key in [fleet.people.{}], which is {}",
                self.key_file.display(),
                self.name,
                person.key.as_str()
            )),
            _ => Ok((self.name.clone(), key)),
        }
    }
}

/// The daemons and persons whose signatures count here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// Other daemons; never this one.
    pub daemons: BTreeMap<FleetName, DaemonMember>,
    /// Persons, the one at this machine among them.
    pub people: BTreeMap<FleetName, PersonMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonMember {
    pub key: PublicKey,
    /// Whether it may call tools here. Rules and persons decide about each call all the same.
    pub may_call: bool,
    /// Whether its asks are shown here.
    pub shows_asks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonMember {
    pub key: PublicKey,
    /// Whether this person decides here: answers asks and makes grants that are valid here.
    pub decides: bool,
}

/// The settings to take effect: none without `[fleet]`, or why they cannot be used.
pub type WantedSettings = Option<Result<FleetSettings, String>>;
