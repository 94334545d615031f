//! Mistakes in `[fleet]`. The daemon runs without its fleet then, so they make nothing else invalid; `config check` names
//! them all.

use std::collections::BTreeMap;
use std::path::Path;

use toold_fleet::keys::{KeyOwner, PublicKey, SigningKey};
use toold_fleet::names::FleetName;
use toold_fleet::subjects;

use crate::config;
use crate::config::fleet::{FleetConfig, FleetFiles, FleetMistake};
use crate::config::listen::is_this_machine;
use crate::config::options::Options;
use crate::config::remotes::RemoteToolFilter;

/// Every mistake in the texts. None while there is no fleet.
pub(super) fn of_texts(fleet: &FleetConfig, options: &Options) -> Vec<FleetMistake> {
    let mut found = Findings::default();
    let Some(name) = &fleet.name else { return found.0 };
    found.names(fleet, name);
    found.keys(fleet);
    if fleet.servers.is_empty() {
        found.add(&["servers"], "name the NATS server, such as \"tls://nats.example:4222\"".to_owned());
    }
    for server in &fleet.servers {
        found.check(&["servers"], check_server(server, fleet.in_the_clear));
    }
    if let Some(person) = fleet.person.as_ref().filter(|person| !fleet.people.contains_key(*person)) {
        let why =
            format!("{person} is not in [fleet.people]: add [fleet.people.{person}] with this person's public key");
        found.add(&["person"], why);
    }
    found.globs(&["offer"], &fleet.offer);
    for (name, section) in &fleet.daemons {
        found.globs(&["daemons", name, "tools"], &section.tools);
    }
    for (name, section) in &fleet.use_labels {
        found.globs(&["use_labels", name, "tools"], &section.tools);
    }
    let home = options.paths.home.as_deref();
    let paths = [
        ("credentials", &fleet.credentials),
        ("ca_file", &fleet.ca_file),
        ("key_file", &fleet.key_file),
        ("person_key_file", &fleet.person_key_file),
    ];
    for (key, path) in paths {
        found.check(&[key], path.as_deref().map_or(Ok(()), |path| config::absolute(path, home).map(drop)));
    }
    found.check(&["cwd"], config::absolute(&fleet.cwd, home).map(drop));
    found.0
}

/// Every mistake in the files that it names. Reads them, and expects correct texts.
pub(super) fn of_files(fleet: &FleetConfig, options: &Options) -> Vec<FleetMistake> {
    let mut found = Findings::default();
    let Some(name) = fleet.name.as_ref().filter(|_| fleet.enabled) else { return found.0 };
    let files = FleetFiles::of(fleet, options);
    let listed = fleet.daemons.get(name).map(|section| (section.key.as_str(), format!("fleet.daemons.{name}")));
    found.check(&["key_file"], check_key(&files.key, KeyOwner::Daemon, listed));
    if let Some(person) = &fleet.person {
        let listed = fleet.people.get(person).map(|section| (section.key.as_str(), format!("fleet.people.{person}")));
        found.check(&["person_key_file"], check_key(&files.person_key, KeyOwner::Person, listed));
    }
    let cwd = config::absolute(&fleet.cwd, options.paths.home.as_deref()).unwrap_or_default();
    if !cwd.is_dir() {
        found.add(&["cwd"], format!("{} is not a folder, and calls from the fleet run there", cwd.display()));
    }
    for (key, file) in [("credentials", &files.credentials), ("ca_file", &files.ca)] {
        if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
            found.add(&[key], format!("there is no file {}", file.display()));
        }
    }
    found.0
}

#[derive(Default)]
struct Findings(Vec<FleetMistake>);

impl Findings {
    fn add(&mut self, keys: &[&str], why: String) {
        let keys = std::iter::once("fleet").chain(keys.iter().copied()).map(str::to_owned).collect();
        self.0.push(FleetMistake { keys, why });
    }

    fn check(&mut self, keys: &[&str], checked: Result<(), String>) {
        if let Err(why) = checked {
            self.add(keys, why);
        }
    }

    fn names(&mut self, fleet: &FleetConfig, own: &String) {
        self.check(&["name"], check_name(own));
        for label in &fleet.labels {
            self.check(&["labels"], check_name(label));
        }
        for (table, names) in [
            ("daemons", fleet.daemons.keys().collect::<Vec<_>>()),
            ("people", fleet.people.keys().collect()),
            ("use_labels", fleet.use_labels.keys().collect()),
        ] {
            for name in names {
                self.check(&[table, name], check_name(name));
            }
        }
        // Both are the prefix of tools' names.
        let is_daemon = |label: &String| label == own || fleet.daemons.contains_key(label);
        let why = |label: &String| format!("{label} is the name of a daemon already: choose another label");
        for label in fleet.labels.iter().filter(|label| is_daemon(label)) {
            self.add(&["labels"], why(label));
        }
        for label in fleet.use_labels.keys().filter(|label| is_daemon(label)) {
            self.add(&["use_labels", label], why(label));
        }
    }

    fn keys(&mut self, fleet: &FleetConfig) {
        let mut owners: BTreeMap<&str, String> = BTreeMap::new();
        let daemons = fleet.daemons.iter().map(|(name, section)| ("daemons", name, &section.key, KeyOwner::Daemon));
        let people = fleet.people.iter().map(|(name, section)| ("people", name, &section.key, KeyOwner::Person));
        for (table, name, key, owner) in daemons.chain(people) {
            let keys = [table, name.as_str(), "key"];
            if key.is_empty() {
                let owner = owner.as_str();
                self.add(&keys, format!("give the public key of this {owner}, which `toolctl fleet init` shows there"));
                continue;
            }
            self.check(&keys, PublicKey::parse(key, owner).map(drop));
            if let Some(other) = owners.insert(key, format!("fleet.{table}.{name}")) {
                self.add(&keys, format!("{other} has the same key: each needs one of its own"));
            }
        }
    }

    fn globs(&mut self, keys: &[&str], filter: &RemoteToolFilter) {
        for glob in filter.allow.iter().flatten().chain(&filter.deny) {
            self.check(keys, globset::Glob::new(glob).map(drop).map_err(|error| error.to_string()));
        }
    }
}

fn check_name(text: &str) -> Result<(), String> {
    FleetName::parse(text).map_err(|error| error.to_string())?;
    match subjects::RESERVED.contains(&text) {
        true => Err(format!("{text} is reserved: choose another name")),
        false => Ok(()),
    }
}

/// An address must encrypt, unless it is on this machine.
fn check_server(server: &str, in_the_clear: bool) -> Result<(), String> {
    let wrong = || format!("{server:?} is not an address such as tls://nats.example:4222");
    let (scheme, rest) = server.split_once("://").ok_or_else(wrong)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(format!(
            "{scheme}://{} contains a login: write that into a file that only you can read, and name it in credentials",
            authority.rsplit('@').next().unwrap_or_default()
        ));
    }
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() || authority != rest.trim_end_matches('/') {
        return Err(wrong());
    }
    match scheme {
        "tls" => Ok(()),
        "nats" if is_this_machine(host) || in_the_clear => Ok(()),
        "nats" => Err(format!(
            "{server} would send arguments and results unencrypted: use tls://, or set in_the_clear = true"
        )),
        _ => Err(wrong()),
    }
}

/// `listed`: the public key in the configuration, and the section that it is in.
fn check_key(file: &Path, owner: KeyOwner, listed: Option<(&str, String)>) -> Result<(), String> {
    let key = SigningKey::load(file, owner)?;
    match listed {
        Some((listed, section)) if listed != key.public().as_str() => {
            Err(format!("{} does not fit the public key in [{section}], which is {listed}", file.display()))
        }
        _ => Ok(()),
    }
}
