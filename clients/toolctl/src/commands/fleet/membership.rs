//! `toolctl fleet init`, `join`, `invite`, `trust` and `forget`: the members that this machine's configuration names.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonReload;

use super::invitation::Invitation;
use super::roster::{self, FleetSection, MemberList, NewSection};
use super::show::NOT_CONFIGURED;
use crate::config_file::{self, appended, read, write_checked};
use crate::confirm::confirm;
use crate::exit::{NOT_RUN, OK, not_found, usage};
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, NAME, WARN, one_line, plain, print_json};
use crate::person::PersonWrites;
use crate::{connection, program};

/// How this machine takes part.
#[derive(Debug, Args)]
struct MemberOptions {
    /// The person who uses this machine and answers prompts of the fleet here
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    /// A file that logs in at the NATS server: credentials, the seed of a user's nkey, or a token
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's, if this system does not know it
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A label of this daemon, such as gpu: calls for a label run on any daemon that has it; can be repeated
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// Connect over a network without TLS: everyone on the way can read arguments and results
    #[arg(long)]
    in_the_clear: bool,
}

/// Start a fleet: make this machine its first member
///
/// Makes the keys of this daemon and of the person, adds a section fleet to your configuration, and prints an invitation for the
/// other machines. It contains addresses and public keys, and no secrets.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The name of this daemon in the fleet: lower-case letters, digits and _
    name: String,
    /// The address of the NATS server, such as tls://nats.example:4222; can be repeated
    #[arg(long = "server", value_name = "URL", required = true)]
    servers: Vec<String>,
    #[command(flatten)]
    options: MemberOptions,
}

/// Take part in a fleet with an invitation
///
/// Makes the key of this daemon, and adds a section fleet to your configuration with all members of the invitation. Prints the
/// command to run on the other machines, which do not trust this one before.
#[derive(Debug, Args)]
pub(super) struct JoinArgs {
    /// The line that `toolctl fleet init` or `toolctl fleet invite` has printed on another machine
    invitation: String,
    /// The name of this daemon in the fleet: lower-case letters, digits and _
    name: String,
    /// An address of the NATS server, if this machine reaches it at another one than the invitation says; can be repeated
    #[arg(long = "server", value_name = "URL")]
    servers: Vec<String>,
    /// The file with the private key of the person, copied from another machine of theirs
    #[arg(long, value_name = "FILE", requires = "person")]
    person_key: Option<PathBuf>,
    #[command(flatten)]
    options: MemberOptions,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Trust another daemon, or a person, from now on
#[derive(Debug, Args)]
pub(super) struct FleetTrustArgs {
    /// Its name in the fleet
    name: String,
    /// Its public key, as `toolctl fleet join` has printed it there
    key: String,
    /// It is a person, who answers prompts and makes grants that count here
    #[arg(long)]
    person: bool,
    /// It may not call tools here: only its own are listed
    #[arg(long, conflicts_with = "person")]
    no_calls: bool,
}

/// Stop trusting a daemon or a person: nothing that they sign counts here any more
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The name in the fleet
    name: String,
    /// It is a person
    #[arg(long)]
    person: bool,
}

pub(super) async fn init(args: InitArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let (file, text) = configuration_without_fleet().await?;
    let options = args.options.absolute()?;
    let people = match &options.person {
        Some(person) => BTreeMap::from([(person.clone(), make_key("person", &roster::key_path("person.key")?).await?)]),
        None => BTreeMap::new(),
    };
    make_key("daemon", &roster::key_path("daemon.key")?).await?;
    let nobody = BTreeMap::new();
    let section = options.section(&args.name, &args.servers, None, &nobody, &people);
    let status = write(&file, &appended(&text, &section.toml()), globals).await?;
    let mut err = output::stderr();
    writeln!(
        err,
        "{NAME}{}{NAME:#} is the first daemon of the fleet. Run on each other machine:",
        one_line(&args.name)
    )?;
    writeln!(err, "  toolctl fleet join INVITATION NAME")?;
    if options.credentials.is_some() {
        writeln!(err, "  {DIM}with --credentials and the login of that machine{DIM:#}")?;
    }
    warn_of_local(&args.servers)?;
    writeln!(err, "with this invitation:")?;
    drop(err);
    invite(json).await?;
    Ok(status)
}

pub(super) async fn join(args: JoinArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let invitation = Invitation::read(&args.invitation).map_err(|error| usage(error.to_string()))?;
    let (file, text) = configuration_without_fleet().await?;
    let options = args.options.absolute()?;
    let servers = if args.servers.is_empty() { &invitation.servers } else { &args.servers };
    let question = described(&invitation, servers);
    match json {
        true => write!(output::stderr(), "{question}")?,
        false => output::print(&question)?,
    }
    if args.servers.is_empty() {
        warn_of_local(servers)?;
    }
    if !args.yes && !confirm("Trust these daemons and persons, and connect to this server?").await? {
        return Ok(OK);
    }
    let key = make_key("daemon", &roster::key_path("daemon.key")?).await?;
    if invitation.daemons.get(&args.name).is_some_and(|other| *other != key) {
        return Err(usage(format!("the fleet has a daemon {} already: choose another name", args.name)));
    }
    let mut people = invitation.people.clone();
    let person_key_file = args.person_key.as_ref().map(std::path::absolute).transpose()?;
    let mut new_person = None;
    if let Some(person) = &options.person {
        let own = person_key(person, person_key_file.as_deref(), &invitation).await?;
        if people.insert(person.clone(), own.clone()).is_none() {
            new_person = Some((person, own));
        }
    }
    let mut others = invitation.daemons.clone();
    others.remove(&args.name);
    let section = options.section(&args.name, servers, person_key_file.as_deref(), &others, &people);
    let status = write(&file, &appended(&text, &section.toml()), globals).await?;
    let names = others.keys().map(|name| one_line(name)).collect::<Vec<_>>().join(", ");
    writeln!(output::stderr(), "{NAME}{}{NAME:#} is in the fleet. Run on {names}:", one_line(&args.name))?;
    let mut commands = vec![format!("toolctl fleet trust {} {key}", args.name)];
    commands.extend(new_person.map(|(person, key)| format!("toolctl fleet trust {person} {key} --person")));
    match json {
        true => print_json(&json!({"name": args.name, "commands": commands}))?,
        false => output::print_unfolded(&format!("{}\n", commands.join("\n")))?,
    }
    Ok(status)
}

pub(super) async fn invite(json: bool) -> anyhow::Result<u8> {
    let (_, text) = configuration().await?;
    let fleet = FleetSection::read(&text)?.filter(|fleet| fleet.name.is_some());
    let Some(fleet) = fleet else {
        return Err(not_found(NOT_CONFIGURED));
    };
    let keys = |members: &BTreeMap<String, roster::MemberKey>| -> BTreeMap<String, String> {
        members.iter().map(|(name, member)| (name.clone(), member.key.clone())).collect()
    };
    let mut daemons = keys(&fleet.daemons);
    daemons.extend(fleet.name.clone().zip(Some(public_key("daemon", &fleet.key_file()?, false).await?)));
    let invitation = Invitation::new(fleet.servers, daemons, keys(&fleet.people));
    let line = invitation.line()?;
    match json {
        true => print_json(&json!({"invitation": line}))?,
        false => output::print_unfolded(&format!("{line}\n"))?,
    }
    Ok(OK)
}

pub(super) async fn trust(args: &FleetTrustArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let list = if args.person { MemberList::People } else { MemberList::Daemons };
    let (file, text) = configuration().await?;
    let fleet = FleetSection::read(&text)?.unwrap_or_default();
    let Some(own) = &fleet.name else {
        return Err(not_found(NOT_CONFIGURED));
    };
    let name = one_line(&args.name);
    if list == MemberList::Daemons && *own == args.name {
        return match public_key("daemon", &fleet.key_file()?, false).await? == args.key {
            true => {
                writeln!(output::stderr(), "{NAME}{name}{NAME:#} is this machine: there is nothing to do here")?;
                print_member(json, &args.name, list, true)?;
                Ok(OK)
            }
            false => Err(usage(format!("{name} is the name of this machine, which has another key"))),
        };
    }
    let known = match list {
        MemberList::Daemons => &fleet.daemons,
        MemberList::People => &fleet.people,
    };
    if known.get(&args.name).is_some_and(|known| known.key != args.key) {
        let option = if args.person { " --person" } else { "" };
        return Err(usage(format!(
            "{name} is trusted with another key. If it has a new one, run `toolctl fleet forget {name}{option}` first"
        )));
    }
    let after = roster::with_member(&text, list, &args.name, &args.key, args.no_calls)?;
    let status = write(&file, &after, globals).await?;
    let what = match (list, args.no_calls) {
        (MemberList::People, _) => "answers and grants of this person count here",
        (MemberList::Daemons, false) => {
            "its tools are listed here, and it may call tools here, if rules, grants or you allow that"
        }
        (MemberList::Daemons, true) => "its tools are listed here, and it may not call tools here",
    };
    writeln!(output::stderr(), "{NAME}{name}{NAME:#} is trusted: {what}")?;
    print_member(json, &args.name, list, true)?;
    Ok(status)
}

pub(super) async fn forget(args: &ForgetArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let list = if args.person { MemberList::People } else { MemberList::Daemons };
    let (file, text) = configuration().await?;
    let name = one_line(&args.name);
    let Some(after) = roster::without_member(&text, list, &args.name)? else {
        return Err(not_found(format!("[fleet] names no {} {name}", list.noun())));
    };
    let status = write(&file, &after, globals).await?;
    let note = "forgotten on this machine; run the same on each other one";
    writeln!(output::stderr(), "{NAME}{name}{NAME:#} is {note}")?;
    print_member(json, &args.name, list, false)?;
    Ok(status)
}

/// With `--json`, whether a daemon or a person is trusted now.
fn print_member(json: bool, name: &str, list: MemberList, is_trusted: bool) -> anyhow::Result<()> {
    match json {
        true => print_json(&json!({"name": name, "person": list == MemberList::People, "trusted": is_trusted})),
        false => Ok(()),
    }
}

impl MemberOptions {
    /// The configuration is read from other folders than this command runs in.
    fn absolute(self) -> anyhow::Result<Self> {
        let whole = |path: Option<PathBuf>| path.map(std::path::absolute).transpose();
        Ok(Self { credentials: whole(self.credentials)?, ca_file: whole(self.ca_file)?, ..self })
    }

    fn section<'a>(
        &'a self,
        name: &'a str,
        servers: &'a [String],
        person_key_file: Option<&'a Path>,
        daemons: &'a BTreeMap<String, String>,
        people: &'a BTreeMap<String, String>,
    ) -> NewSection<'a> {
        NewSection {
            name,
            servers,
            credentials: self.credentials.as_deref(),
            ca_file: self.ca_file.as_deref(),
            in_the_clear: self.in_the_clear,
            person: self.person.as_deref(),
            person_key_file,
            labels: &self.labels,
            daemons,
            people,
        }
    }
}

/// The configuration's path and text.
pub(super) async fn configuration() -> anyhow::Result<(PathBuf, String)> {
    let file = config_file::find().await?;
    let text = read(&file)?.unwrap_or_default();
    Ok((file, text))
}

async fn configuration_without_fleet() -> anyhow::Result<(PathBuf, String)> {
    let (file, text) = configuration().await?;
    let fleet = FleetSection::read(&text).with_context(|| format!("can't read {}", file.display()))?;
    let shown = file.display();
    match fleet.map(|fleet| fleet.name) {
        None => Ok((file, text)),
        Some(Some(name)) => Err(usage(format!(
            "this machine is in a fleet already, as {}; to leave it, remove [fleet] from {shown}",
            one_line(&name)
        ))),
        Some(None) => Err(usage(format!("{shown} has a [fleet] already; remove it first"))),
    }
}

/// Writes a configuration that is valid, and has the daemon read it, if one is running.
async fn write(file: &Path, text: &str, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open_running(globals).await?;
    write_checked(file, text, &PersonWrites::with(client.as_ref()).await?).await?;
    let Some(client) = client else { return Ok(OK) };
    let reloaded = client.call::<DaemonReload>(NoParams {}).await?;
    let mut err = output::stderr();
    for problem in &reloaded.problems {
        writeln!(err, "{BAD}{}{BAD:#}", plain(problem))?;
    }
    Ok(if reloaded.applied { OK } else { NOT_RUN })
}

/// The public key of a key file; `toold` knows the format.
pub(super) async fn public_key(key_use: &str, file: &Path, create: bool) -> anyhow::Result<String> {
    let mut arguments = vec!["fleet-key".as_ref(), key_use.as_ref()];
    if create {
        arguments.push("--create".as_ref());
    }
    arguments.extend(["--".as_ref(), file.as_os_str()]);
    let printed = program::text(&arguments).await;
    Ok(printed
        .map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_start_matches("toold: ")))?
        .trim()
        .to_owned())
}

/// A key of an earlier attempt is kept: other machines may trust it.
async fn make_key(key_use: &str, file: &Path) -> anyhow::Result<String> {
    public_key(key_use, file, true).await
}

/// The public key of the person at this machine. A person has one key on all machines.
async fn person_key(person: &str, file: Option<&Path>, invitation: &Invitation) -> anyhow::Result<String> {
    let usual = roster::key_path("person.key")?;
    let file = file.unwrap_or(&usual);
    let Some(known) = invitation.people.get(person) else {
        return make_key("person", file).await;
    };
    let person = one_line(person);
    if !file.exists() {
        let shown = file.display();
        return Err(usage(format!(
            "{person} has a key already, which this machine needs: copy it from the machine where {person} started, such as with\n  \
             scp OTHER:.local/state/toold/fleet/person.key {shown}"
        )));
    }
    let own = public_key("person", file, false).await?;
    if own != *known {
        bail!(
            "{} is not the key of {person} in the invitation: its public key is {own}, expected {known}",
            file.display()
        );
    }
    Ok(own)
}

fn described(invitation: &Invitation, servers: &[String]) -> String {
    let mut text = format!("{BOLD}server{BOLD:#}\n");
    text.extend(servers.iter().map(|server| format!("  {}\n", one_line(server))));
    for (title, members) in [
        ("daemons: their tools are listed here, and they may call tools here", &invitation.daemons),
        ("persons: their answers and grants count here", &invitation.people),
    ] {
        if !members.is_empty() {
            text.push_str(&format!("{BOLD}{title}{BOLD:#}\n"));
        }
        let line = |(name, key): (&String, &String)| format!("  {NAME}{}{NAME:#} {}\n", one_line(name), one_line(key));
        text.extend(members.iter().map(line));
    }
    text
}

/// Other machines do not reach the loopback address of this one.
fn warn_of_local(servers: &[String]) -> anyhow::Result<()> {
    for server in servers.iter().filter(|server| is_local(server)) {
        writeln!(
            output::stderr(),
            "{WARN}{}{WARN:#} is reached from its own machine only; pass --server to join on others",
            one_line(server)
        )?;
    }
    Ok(())
}

/// Whether an address is of the machine that uses it.
pub(super) fn is_local(server: &str) -> bool {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|host| host.is_loopback())
}
