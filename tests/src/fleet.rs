//! The configuration of several daemons as one fleet, with keys of their own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use toold_fleet::keys::{KeyOwner, SigningKey};

use crate::daemon::Setup;

/// Members that trust each other, and their keys.
pub struct FleetPlan {
    dir: tempfile::TempDir,
    /// Public keys.
    daemons: BTreeMap<String, String>,
    people: BTreeMap<String, String>,
}

impl FleetPlan {
    pub fn new(daemons: &[&str], people: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("toold-fleet-").tempdir().expect("there is a place for temp files");
        let make = |names: &[&str], owner: KeyOwner| -> BTreeMap<String, String> {
            let key = |name: &str| {
                let file = dir.path().join(format!("{}-{name}.key", owner.as_str()));
                let key = SigningKey::create(&file, owner).unwrap();
                (name.to_owned(), key.public().as_str().to_owned())
            };
            names.iter().map(|name| key(name)).collect()
        };
        let (daemons, people) = (make(daemons, KeyOwner::Daemon), make(people, KeyOwner::Person));
        Self { dir, daemons, people }
    }

    /// The file with the private key of a daemon.
    pub fn daemon_key(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("daemon-{name}.key"))
    }

    /// The file with the private key of a person.
    pub fn person_key(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("person-{name}.key"))
    }

    pub fn daemon_public_key(&self, name: &str) -> &str {
        &self.daemons[name]
    }

    pub fn person_public_key(&self, name: &str) -> &str {
        &self.people[name]
    }

    /// `[fleet]` of one member, with `more` lines in that table. `person` uses that machine.
    pub fn config(&self, name: &str, server: &str, person: Option<&str>, more: &str) -> String {
        let mut text = format!(
            "[fleet]\nname = {name:?}\nservers = [{server:?}]\nkey_file = {:?}\n{more}\n",
            self.daemon_key(name)
        );
        if let Some(person) = person {
            writeln!(text, "person = {person:?}\nperson_key_file = {:?}", self.person_key(person)).unwrap();
        }
        for (other, key) in self.daemons.iter().filter(|(other, _)| *other != name) {
            write!(text, "\n[fleet.daemons.{other}]\nkey = {key:?}\n").unwrap();
        }
        for (person, key) in &self.people {
            write!(text, "\n[fleet.people.{person}]\nkey = {key:?}\n").unwrap();
        }
        text
    }
}

impl Setup {
    /// Adds to the configuration.
    pub fn more_config(self, toml: &str) -> Self {
        let path = self.path("config/toold/config.toml");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, format!("{before}\n{toml}")).unwrap();
        self
    }
}
