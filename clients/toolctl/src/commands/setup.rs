//! `toolctl setup`: makes toold the one place for the tools of all agents and editors of this machine, and gives
//! everything back with `--undo`.
//!
//! [`plan`] reads what is there and computes each change, [`apply`] makes them, [`record`] keeps what is needed to take
//! them back, and [`undo`] does so.

mod allowances;
mod apply;
mod bridge;
mod check;
mod checked;
mod figures;
mod folders;
mod level;
mod page;
mod places;
mod plan;
mod purge;
mod record;
mod rules;
mod servers;
mod text;
mod undo;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use inquire::MultiSelect;
use inquire::list_option::ListOption;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::effect::{Effect, in_words};
use toold_proto::method::{PermissionsCheck, SecretsList, WorkspacesList};
use toold_proto::permission::CheckPermission;
use toold_proto::secret::{SecretStoreKind, SecretStoreState};
use toold_proto::tool::Category;

use crate::commands::mcp::install;
use crate::confirm::confirm;
use crate::exit::{OK, interrupted};
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::person::{PersonWrites, is_below_first_shell};
use crate::{config_file, connection, keys, terminal};
use allowances::AgentAllowance;
use plan::{PlanInput, SetupPlan};
use record::SetupRecord;

/// Set toold up for the agents and editors here, or take that back
///
/// Finds agents, editors and the MCP servers that they start, shows what would change, and asks once. Each server then runs
/// once, in the daemon: its entry keeps its name and its tools, and starts `toolctl mcp --source NAME`. Secrets move from the
/// files into `toolctl secrets`. Agents get hooks, which ask toold before each tool, and their denials hold for all of them.
/// An agent's file that Git tracks is never changed. Run it again at any time; --undo takes everything back.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Show what would change, and change nothing; with --yes, what --yes would change
    #[arg(long, conflicts_with_all = ["check", "purge"])]
    dry_run: bool,
    /// Only check whether everything is as setup left it; exit status 1 if not
    #[arg(long, conflicts_with = "undo")]
    check: bool,
    /// Take back what setup changed: files that nobody else changed become what they were, byte for byte; from others only
    /// the entries and hooks of toold are removed, and the servers put back with their secrets
    #[arg(long)]
    undo: bool,
    /// With --undo: then pack what you wrote into ~/toold-DATE.tar.gz, and remove all data of toold
    #[arg(long, requires = "undo")]
    purge: bool,
    /// With --purge: put the stored secrets into the archive, too
    #[arg(long, requires = "purge")]
    with_secrets: bool,
    /// Let every agent work in this folder; can be repeated
    #[arg(long = "folder", value_name = "FOLDER", conflicts_with_all = ["undo", "check"])]
    folders: Vec<PathBuf>,
    /// Let agents call this server's tools without a question of toold; the agents' own questions stay. Can be repeated
    #[arg(long = "allow", value_name = "SERVER", conflicts_with_all = ["undo", "check"])]
    allowed: Vec<String>,
    /// Print JSON; without --yes, what would change
    #[arg(long)]
    json: bool,
    /// Do not ask for confirmation: entries, hooks and denials, but no folders except those of --folder
    #[arg(long, short)]
    yes: bool,
}

const NOTHING: &str = "Nothing to change.\n";

pub(crate) async fn run(args: SetupArgs, globals: &Globals) -> anyhow::Result<u8> {
    let home = install::home()?;
    let record = SetupRecord::read()?;
    if args.check {
        let places = PlaceForSecrets::found(globals).await;
        return check::run(record.as_ref(), &input(&home, record.as_ref()).await?, places, args.json);
    }
    if args.undo {
        return undo::run(&args, record, globals).await;
    }
    let mut input = input(&home, record.as_ref()).await?;
    if args.dry_run || args.json && !args.yes {
        let running = connection::open_running(globals).await.ok().flatten();
        input.leave_out_open_folders(running.as_ref()).await?;
        let place = PlaceForSecrets::found(globals).await;
        let plan = SetupPlan::new(&input.plan_input(&[], place.keeps(!args.yes), &[]))?;
        let folders = named_folders(&args, &home)?;
        check_servers(&args, &plan, record.as_ref())?;
        return show(&plan, &folders, place, &args);
    }
    let client = connection::open(globals).await?;
    let right = PersonWrites::with(Some(&client)).await?;
    config_file::check_is_read(&client, &input.config).await?;
    input.leave_out_open_folders(Some(&client)).await?;
    let secrets = client.call::<SecretsList>(NoParams {}).await?;
    let names: Vec<String> = secrets
        .secrets
        .iter()
        .filter(|secret| secret.is_set != Some(false))
        .map(|secret| secret.name.clone())
        .collect();
    let keeps_secrets = PlaceForSecrets::of(secrets.state).keeps(keys::has_terminal() && !args.yes);
    let mut plan = SetupPlan::new(&input.plan_input(&names, keeps_secrets, &[]))?;
    let mut chosen = named_folders(&args, &home)?;
    check_servers(&args, &plan, record.as_ref())?;
    let mut allowed = args.allowed.clone();
    if !args.json {
        output::print(&page::render(&plan, false))?;
    }
    let offers = !args.yes && !plan.allowances.is_empty();
    if plan.is_empty() && chosen.is_empty() && allowed.is_empty() && !offers {
        return done(&args, &plan, None);
    }
    if !args.yes {
        chosen.extend(choose_folders(&plan, &chosen)?);
        allowed.extend(choose_servers(&plan, &allowed)?);
        let taken = choose_allowances(&plan, &client).await?;
        if !taken.is_empty() {
            plan = SetupPlan::new(&input.plan_input(&names, keeps_secrets, &taken))?;
        }
        if let Some(level) = level::ask(&plan.config).await? {
            plan.set_level(&level)?;
        }
        // Only questions were left, and none was answered with a change.
        if plan.is_empty() && chosen.is_empty() && allowed.is_empty() {
            return done(&args, &plan, None);
        }
        if !confirm("Set toold up like this?").await? {
            return Ok(OK);
        }
    }
    if !plan.secrets().is_empty()
        && secrets.store == SecretStoreKind::File
        && secrets.state != SecretStoreState::Unlocked
    {
        crate::commands::secrets::unlock_if_asked(&client).await?;
    }
    let choices = apply::Choices { folders: chosen, allowed };
    apply::run(&plan, record.clone(), &choices, &input.program, &client, &right).await?;
    let figures = figures::measure(&plan, &choices.allowed, &client).await;
    done(&args, &plan, Some(&figures))
}

/// The folders of `--folder`.
///
/// # Errors
/// One of them does not exist, or is too wide.
fn named_folders(args: &SetupArgs, home: &std::path::Path) -> anyhow::Result<Vec<PathBuf>> {
    let found = |folder: &PathBuf| folder.canonicalize().with_context(|| format!("can't find {}", folder.display()));
    let named: Vec<PathBuf> = args.folders.iter().map(found).collect::<anyhow::Result<_>>()?;
    if let Some(wide) = named.iter().find(|folder| !folders::is_possible(folder, home)) {
        return Err(crate::exit::usage(format!(
            "--folder {}: expected a folder for work, not your home folder, one above it, or one for temporary files",
            wide.display()
        )));
    }
    Ok(named)
}

/// # Errors
/// `--allow` names a server that setup does not move.
fn check_servers(args: &SetupArgs, plan: &SetupPlan, record: Option<&SetupRecord>) -> anyhow::Result<()> {
    match args.allowed.iter().find(|name| !plan.knows_source(name, record)) {
        Some(unknown) => {
            Err(crate::exit::not_found(format!("--allow {unknown}: setup has moved no server of this name")))
        }
        None => Ok(()),
    }
}

/// Whether there is a place for the secrets that leave files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceForSecrets {
    Ready,
    /// The secrets are locked, or have no passphrase yet.
    Missing,
    /// No daemon runs that could tell, and none is started to find out.
    Unknown,
}

impl PlaceForSecrets {
    fn of(state: SecretStoreState) -> Self {
        if state == SecretStoreState::Unlocked { Self::Ready } else { Self::Missing }
    }

    /// As a daemon that runs knows it.
    async fn found(globals: &Globals) -> Self {
        let Ok(Some(client)) = connection::open_running(globals).await else { return Self::Unknown };
        client.call::<SecretsList>(NoParams {}).await.map_or(Self::Unknown, |secrets| Self::of(secrets.state))
    }

    /// Whether servers with secrets move. `asks`: a person is asked for a passphrase if need be.
    fn keeps(self, asks: bool) -> bool {
        match self {
            Self::Ready | Self::Unknown => true,
            Self::Missing => asks,
        }
    }
}

/// What plans depend on, read from this process's surroundings.
struct SetupInput<'a> {
    home: &'a std::path::Path,
    program: String,
    config: PathBuf,
    record: Option<&'a SetupRecord>,
    rules: rules::AgentRules,
    folders: Vec<folders::WorkFolder>,
    servers: servers::MachineServers,
}

impl SetupInput<'_> {
    /// Folders in which every agent may work already are not offered: those of an earlier setup, where no daemon runs that
    /// knows all.
    async fn leave_out_open_folders(&mut self, client: Option<&Client>) -> anyhow::Result<()> {
        let open: Vec<PathBuf> = match client {
            Some(client) => {
                let list = client.call::<WorkspacesList>(NoParams {}).await?.workspaces;
                let all = list.into_iter().filter(|workspace| workspace.client.is_none());
                all.map(|workspace| workspace.path.into()).collect()
            }
            None => self.record.into_iter().flat_map(|record| &record.workspaces).map(PathBuf::from).collect(),
        };
        self.folders.retain(|folder| !open.contains(&folder.path));
        Ok(())
    }

    fn plan_input<'b>(
        &'b self,
        secrets: &'b [String],
        keeps_secrets: bool,
        taken: &'b [AgentAllowance],
    ) -> PlanInput<'b> {
        PlanInput {
            home: self.home,
            program: &self.program,
            config: &self.config,
            secrets,
            record: self.record,
            rules: &self.rules,
            keeps_secrets,
            taken,
            folders: &self.folders,
            servers: &self.servers,
        }
    }
}

async fn input<'a>(home: &'a std::path::Path, record: Option<&'a SetupRecord>) -> anyhow::Result<SetupInput<'a>> {
    let cwd = std::env::current_dir().context("can't determine the current folder")?;
    let folders = folders::lately(home);
    let mut projects: Vec<PathBuf> = folders.iter().map(|folder| folder.path.clone()).collect();
    // Where no agent worked, only an untracked file of a repository is surely the person's own.
    let here = cwd.ancestors().find(|folder| folder.join(".git").exists());
    if let Some(here) = here.filter(|here| folders::is_possible(here, home))
        && !projects.iter().any(|project| project == here)
    {
        projects.push(here.to_owned());
    }
    Ok(SetupInput {
        home,
        program: install::program()?,
        config: config_file::find().await?,
        record,
        rules: rules::read_all(home).only_valid().await?,
        servers: servers::MachineServers::read(home, &projects).only_valid().await?,
        folders,
    })
}

fn show(plan: &SetupPlan, folders: &[PathBuf], place: PlaceForSecrets, args: &SetupArgs) -> anyhow::Result<u8> {
    match args.json {
        true => {
            let mut page = page::json(plan, None);
            page["chosen_folders"] = serde_json::json!(folders);
            page["chosen_servers"] = serde_json::json!(args.allowed);
            print_json(&page)?;
        }
        false => {
            output::print(&page::render(plan, true))?;
            for folder in folders {
                output::print(&format!("Every agent may work in {}.\n", one_line(&folder.display().to_string())))?;
            }
            for server in &args.allowed {
                output::print(&format!("toold does not ask about calls of {}.\n", one_line(server)))?;
            }
            match place {
                _ if plan.secrets().is_empty() => {}
                PlaceForSecrets::Ready => {}
                PlaceForSecrets::Missing => output::print(
                    "The secrets have no place yet: setup asks for a passphrase. With --yes, their servers stay where they are.\n",
                )?,
                PlaceForSecrets::Unknown => output::print(
                    "No daemon is running that tells whether there is a place for the secrets: without one, setup asks for a \
                     passphrase, and with --yes, their servers stay where they are.\n",
                )?,
            }
            if plan.is_empty() && folders.is_empty() && args.allowed.is_empty() {
                output::print(NOTHING)?;
            }
        }
    }
    Ok(OK)
}

fn done(args: &SetupArgs, plan: &SetupPlan, figures: Option<&figures::Figures>) -> anyhow::Result<u8> {
    if args.json {
        print_json(&page::json(plan, figures))?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    match figures {
        Some(figures) => write!(out, "{}", figures.render())?,
        None => write!(out, "{NOTHING}")?,
    }
    if figures.is_some() && is_below_first_shell() {
        writeln!(
            out,
            "The shell of this terminal is process 1: start another one in it (`bash`), and agents there. Otherwise toold can't \
             tell your commands from what an agent left behind."
        )?;
    }
    Ok(OK)
}

/// Folders to tick; none is ticked at first.
fn choose_folders(plan: &SetupPlan, chosen: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let offered: Vec<&folders::WorkFolder> =
        plan.folders.iter().filter(|folder| !chosen.contains(&folder.path)).collect();
    let labels = offered
        .iter()
        .map(|folder| format!("{}  {}", one_line(&folder.path.display().to_string()), folder.agents.join(", ")))
        .collect();
    let question = "Folders in which every agent may work without asking (none is fine):";
    Ok(tick(question, labels)?.into_iter().map(|at| offered[at].path.clone()).collect())
}

/// Servers whose tools toold need not ask for; none is ticked at first.
fn choose_servers(plan: &SetupPlan, allowed: &[String]) -> anyhow::Result<Vec<String>> {
    let offered: Vec<&String> =
        plan.sources.iter().map(|source| &source.name).filter(|name| !allowed.contains(name)).collect();
    let question = "Servers whose tools toold need not ask for; the agents' own questions stay (none is fine):";
    let ticked = tick(question, offered.iter().map(|name| one_line(name)).collect())?;
    Ok(ticked.into_iter().map(|at| offered[at].clone()).collect())
}

/// What agents allow, to tick, each with what it frees; none is ticked at first.
async fn choose_allowances(plan: &SetupPlan, client: &Client) -> anyhow::Result<Vec<AgentAllowance>> {
    if plan.allowances.is_empty() {
        return Ok(Vec::new());
    }
    let are_all_valid = rules::are_valid(plan.allowances.iter().map(AgentAllowance::table)).await?;
    let mut offered = Vec::new();
    let mut labels = Vec::new();
    for rule in &plan.allowances {
        if !are_all_valid && !rules::are_valid([rule.table()]).await? {
            continue;
        }
        let frees = match rule.category {
            "shell" => effects(client, rule.pattern.trim_end_matches(" *")).await?,
            _ => String::new(),
        };
        let frees = if frees.is_empty() { rule.frees().to_owned() } else { frees };
        labels.push(format!("{} {}  {}  {frees}", rule.category, one_line(&rule.pattern), rule.agent));
        offered.push(rule);
    }
    let question = "Rules that allow, which toold takes along for their agent alone (none is fine):";
    Ok(tick(question, labels)?.into_iter().map(|at| offered[at].clone()).collect())
}

/// What a command does, in words; empty where it is not known to do more than read.
async fn effects(client: &Client, command: &str) -> anyhow::Result<String> {
    let params = CheckPermission {
        category: Category::Shell,
        target: command.to_owned(),
        explain: true,
        cwd: None,
        session_id: None,
        tool: None,
        agent: None,
    };
    let checked = client.call::<PermissionsCheck>(params).await?;
    let effects: Vec<Effect> = checked.commands.into_iter().flat_map(|command| command.effects).collect();
    Ok(in_words(&effects))
}

/// The places of what the person ticks; nothing without a terminal.
fn tick(question: &str, labels: Vec<String>) -> anyhow::Result<Vec<usize>> {
    if labels.is_empty() || !keys::has_terminal() {
        return Ok(Vec::new());
    }
    terminal::guard()?;
    // The text beside a name only helps to choose.
    let chosen = |ticked: &[ListOption<&String>]| {
        let names = ticked.iter().map(|option| option.value.split("  ").next().unwrap_or_default());
        names.collect::<Vec<_>>().join(", ")
    };
    match terminal::answered(MultiSelect::new(question, labels).with_formatter(&chosen).raw_prompt())? {
        Some(ticked) => Ok(ticked.into_iter().map(|label| label.index).collect()),
        None => Err(interrupted("nothing is changed")),
    }
}
