//! `toolctl fleet broker-config`: a configuration for nats-server, with a login for each machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::membership::{configuration, public_key};
use super::roster::{FleetSection, key_path};
use crate::exit::{OK, usage};
use crate::output::{self, print_json};

/// Print a configuration of nats-server for this fleet
///
/// Makes a login for each machine, unless it has one, and prints a configuration that lets each of them reach only its own
/// subjects: it cannot read what is sent to another one. Run it again with one more machine, or one fewer, whenever that
/// changes, and have the server read it with `nats-server --signal reload`. Without names, all machines have one login, and each
/// can read everything. The server is reached from this machine only, unless --tls-cert is given.
#[derive(Debug, Args)]
pub(super) struct BrokerConfigArgs {
    /// The machines, by their names in the fleet, with the person who answers prompts there, such as laptop=anna. The first one
    /// sets up what the fleet stores on the server
    #[arg(value_name = "MACHINE[=PERSON]")]
    machines: Vec<NamedMachine>,
    /// The address that the server listens on; defaults to 127.0.0.1:4222, or with TLS to 0.0.0.0:4222
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The server's certificate
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The folder for what the server stores
    #[arg(long, value_name = "FOLDER", default_value = "nats")]
    store: PathBuf,
    /// The file with the login of all machines, if none is named; defaults to that of the configuration, or else to
    /// fleet/login.key in the state folder. Made if it does not exist
    #[arg(long, value_name = "FILE", conflicts_with = "machines")]
    credentials: Option<PathBuf>,
}

/// A machine of the fleet, and the person at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedMachine {
    name: String,
    person: Option<String>,
}

impl FromStr for NamedMachine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, person) = match text.split_once('=') {
            Some((name, person)) => (name, Some(person)),
            None => (text, None),
        };
        for name in [Some(name), person].into_iter().flatten() {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.bytes().all(fits) {
                return Err(format!("expected a name of lower-case letters, digits and _, not {name:?}"));
            }
            if RESERVED.contains(&name) {
                return Err(format!("{name} means something else in subjects of the fleet: choose another name"));
            }
        }
        Ok(Self { name: name.to_owned(), person: person.map(str::to_owned) })
    }
}

pub(super) async fn run(args: BrokerConfigArgs, json: bool) -> anyhow::Result<u8> {
    let (mut users, mut logins, mut shared) = (Vec::new(), Vec::new(), None);
    for (place, machine) in args.machines.iter().enumerate() {
        if args.machines[..place].iter().any(|earlier| earlier.name == machine.name) {
            return Err(usage(format!("{} is named twice: a machine has one login", machine.name)));
        }
        let file = key_path("logins")?.join(format!("{}.key", machine.name));
        let key = public_key("login", &file, true).await?;
        let person = machine.person.as_ref().map(|person| format!(", where {person} answers")).unwrap_or_default();
        let about = format!("{}{person}", machine.name);
        users.push(user(&about, &key, publishes(machine, place == 0), receives(machine)));
        logins.push((machine, file));
    }
    if args.machines.is_empty() {
        let (_, text) = configuration().await?;
        let configured = FleetSection::read(&text)?.map(|fleet| fleet.credentials()).transpose()?.flatten();
        let file = match args.credentials.map(std::path::absolute).transpose()?.or(configured) {
            Some(file) => file,
            None => key_path("login.key")?,
        };
        let key = public_key("login", &file, true)
            .await
            .map_err(|error| usage(format!("{error:#}; name another file with --credentials")))?;
        let about = "All machines, each of which can read everything. Name them for a login of each:\n    \
                     #   toolctl fleet broker-config MACHINE[=PERSON]...";
        users.push(user(about, &key, EVERYTHING.map(str::to_owned).into(), RECEIVED.map(str::to_owned).into()));
        let mut err = output::stderr();
        writeln!(err, "daemons log in with --credentials {}; copy it to each machine", file.display())?;
        writeln!(err, "warning: each machine can then read what is sent to all: name them for a login of each")?;
        shared = Some(file);
    }
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some((std::path::absolute(cert)?, std::path::absolute(key)?)),
        _ => None,
    };
    let listen =
        args.listen.unwrap_or_else(|| if tls.is_some() { "0.0.0.0:4222" } else { "127.0.0.1:4222" }.to_owned());
    let store = std::path::absolute(&args.store).context("can't find the folder of --store")?;
    let text = rendered(&listen, tls.as_ref(), &store, &users);
    match json {
        true => {
            let of_machines =
                logins.iter().map(|(machine, file)| json!({"machine": machine.name, "credentials": file}));
            let of_all = shared.iter().map(|file| json!({"credentials": file}));
            print_json(&json!({"configuration": text, "logins": of_machines.chain(of_all).collect::<Vec<_>>()}))?;
        }
        false => output::print_unfolded(&text)?,
    }
    if !logins.is_empty() {
        let mut err = output::stderr();
        writeln!(err, "each machine logs in with --credentials and its own file; copy it there, and nowhere else:")?;
        for (machine, file) in logins {
            writeln!(err, "  {}  {}", machine.name, file.display())?;
        }
    }
    Ok(OK)
}

/// Subjects of the same form as those of a machine use these in the place of its name.
const RESERVED: [&str; 4] = ["any", "ask", "answer", "audit"];
/// Buckets and streams whose entries all machines read: each entry is signed, or encrypted.
const SHARED: [&str; 4] = ["KV_toold_daemons", "KV_toold_tools", "KV_toold_grants", "OBJ_TOOLD_BLOBS"];
const ASKS: &str = "TOOLD_ASKS";
const AUDIT: &str = "TOOLD_AUDIT";

/// The subjects of a login that all machines have.
const EVERYTHING: [&str; 10] = [
    "toold.>",
    "$SRV.>",
    "_INBOX.>",
    "$JS.API.>",
    "$JS.ACK.>",
    "$JS.FC.>",
    "$KV.toold_daemons.>",
    "$KV.toold_tools.>",
    "$KV.toold_grants.>",
    "$O.TOOLD_BLOBS.>",
];
const RECEIVED: [&str; 3] = ["toold.>", "$SRV.>", "_INBOX.>"];

/// The subjects that a machine publishes to.
fn publishes(NamedMachine { name, person }: &NamedMachine, sets_up: bool) -> Vec<String> {
    let mut subjects: Vec<String> = [
        // Calls of any machine, and answers to those that call here.
        "toold.*.call",
        "toold.any.*.call",
        "toold.*.cancel.*",
        "toold.*.alive.*",
        "_INBOX.>",
        "$O.TOOLD_BLOBS.>",
        "$JS.API.INFO",
        "$JS.API.STREAM.MSG.GET.OBJ_TOOLD_BLOBS",
        "$JS.API.STREAM.PURGE.OBJ_TOOLD_BLOBS",
    ]
    .map(str::to_owned)
    .into();
    subjects.extend([
        format!("toold.ask.*.{name}.*"),
        format!("toold.audit.{name}"),
        format!("$KV.toold_daemons.{name}"),
        format!("$KV.toold_tools.{name}.*"),
        format!("$JS.API.DIRECT.GET.{ASKS}.toold.ask.*.{name}.*"),
        format!("$JS.API.DIRECT.GET.{AUDIT}.toold.audit.{name}"),
    ]);
    for stream in SHARED {
        subjects.extend([
            format!("$JS.API.DIRECT.GET.{stream}.>"),
            format!("$JS.API.CONSUMER.CREATE.{stream}"),
            format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
            format!("$JS.FC.{stream}.>"),
        ]);
    }
    let mut read: Vec<&str> = SHARED.into();
    if let Some(person) = person {
        subjects.extend([
            "toold.answer.*.*".to_owned(),
            format!("$KV.toold_grants.{person}.*"),
            format!("$JS.API.CONSUMER.CREATE.{ASKS}.*.toold.ask.{person}.>"),
            format!("$JS.API.CONSUMER.CREATE.{AUDIT}.*.toold.audit.>"),
        ]);
        read.extend([ASKS, AUDIT]);
    }
    for stream in read {
        let of_consumers = ["INFO", "DELETE", "MSG.NEXT"].map(|verb| format!("$JS.API.CONSUMER.{verb}.{stream}.*"));
        subjects.extend(of_consumers);
    }
    for stream in SHARED.into_iter().chain([ASKS, AUDIT]) {
        subjects.push(format!("$JS.API.STREAM.INFO.{stream}"));
        if sets_up {
            subjects.extend(["CREATE", "UPDATE"].map(|verb| format!("$JS.API.STREAM.{verb}.{stream}")));
        }
    }
    subjects
}

/// The subjects that a machine receives. Calls for a label only as one of the queue group.
fn receives(NamedMachine { name, .. }: &NamedMachine) -> Vec<String> {
    [
        format!("toold.{name}.>"),
        "toold.any.*.call >".to_owned(),
        format!("toold.answer.{name}.*"),
        format!("_INBOX.{name}.>"),
        "$SRV.>".to_owned(),
    ]
    .into()
}

/// An entry of the configuration.
fn user(about: &str, key: &str, publish: Vec<String>, subscribe: Vec<String>) -> String {
    let list = |subjects: Vec<String>| {
        let lines: Vec<String> = subjects.iter().map(|subject| format!("          {}", quoted(subject))).collect();
        format!("[\n{}\n        ]", lines.join("\n"))
    };
    let (publish, subscribe) = (list(publish), list(subscribe));
    format!(
        "    # {about}\n    {{\n      nkey: {key}\n      permissions: {{\n        publish: {publish}\n        subscribe: \
         {subscribe}\n      }}\n    }}\n"
    )
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn rendered(listen: &str, tls: Option<&(PathBuf, PathBuf)>, store: &Path, users: &[String]) -> String {
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let tls = match tls {
        Some((cert, key)) => format!("tls {{\n  cert_file: {}\n  key_file: {}\n}}\n", path(cert), path(key)),
        None => "# Without TLS, for this machine alone. Other machines need a certificate:\n\
                 #   toolctl fleet broker-config --tls-cert FILE --tls-key FILE MACHINE...\n"
            .to_owned(),
    };
    format!(
        "# nats-server 2.11 or newer, for a fleet of toold. Start it with: nats-server -c FILE
server_name: toold
listen: {listen}

{tls}
# Records of daemons and tools, asks, grants and rows of audit logs are stored here.
jetstream {{
  store_dir: {store}
  max_file_store: 2GB
}}

# Logins, each of which reaches the subjects of its machine and nothing else. Remove an entry to take a login away.
authorization {{
  users: [
{users}  ]
}}
",
        store = path(store),
        users = users.concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_with_its_person() {
        let machine =
            |name: &str, person: Option<&str>| NamedMachine { name: name.into(), person: person.map(Into::into) };
        assert_eq!("build".parse(), Ok(machine("build", None)));
        assert_eq!("desk_2=anna".parse(), Ok(machine("desk_2", Some("anna"))));
        for wrong in ["", "Build", "build box", "*", "build.>", "build=", "build=>", "2", "a=b=c", "ask"] {
            assert!(wrong.parse::<NamedMachine>().is_err(), "{wrong}");
        }
    }
}
