//! `toolctl permissions`: rules, grants and pending prompts.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use chrono::Utc;
use clap::{Args, Subcommand, ValueEnum};
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{
    PermissionsCheck, PermissionsGrant, PermissionsList, PermissionsPending, PermissionsReply, PermissionsRevoke,
    PermissionsSetMode, SessionsList,
};
use toold_proto::permission::{
    Action, CheckPermission, GrantInfo, GrantPermission, ReplyPermission, RevokePermission, Scope, SetMode, Verdict,
};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId};

use crate::commands::call::session_id;
use crate::commands::hook::HookAgent;
use crate::connection;
use crate::exit::{OK, TOOL_ERROR, usage};
use crate::globals::Globals;
use crate::new_grant::allowing;
use crate::output::{self, BOLD, DIM, WARN, one_line, plain, print_answer, print_json};
use crate::prompts::ask;

pub(crate) mod observe;
mod replay;
mod review;
pub(crate) mod show;

/// Show and change what tools may do
#[derive(Debug, Args)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    action: PermissionsAction,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PermissionsAction {
    /// List the rules from configuration files, and the grants
    List,
    /// Show whether something would be allowed, and by which rule; exit status 1 unless it is
    Check(CheckArgs),
    /// Allow something from now on, or deny it
    Grant(GrantArgs),
    /// Revoke a grant
    Revoke {
        /// The id of the grant; `toolctl permissions list` lists them
        id: String,
    },
    /// Go through the grants: how often each was used, and which could be dropped or merged
    Review {
        /// Carry out all proposals without asking
        #[arg(long)]
        yes: bool,
    },
    /// Record what would be asked and allowed for some days, and leave it to the agents
    Observe(observe::ObserveArgs),
    /// Try rules or a level on the audit log: what would have been asked, allowed and denied; nothing is run
    Replay(replay::ReplayArgs),
    /// Propose rules that would have given the answers of the last days, and store those that you accept
    Suggest(replay::SuggestArgs),
    /// List the prompts that wait for an answer
    Pending,
    /// Allow a pending prompt
    Allow(AllowArgs),
    /// Deny a pending prompt
    Deny {
        /// The id of the prompt; `toolctl permissions pending` lists them
        request_id: String,
        /// Why, or what to do instead; the model reads it
        #[arg(long, short, visible_alias = "reason")]
        message: Option<String>,
        /// How long the answer holds
        #[arg(long, value_enum, default_value = "once")]
        scope: ReplyScopeArg,
    },
    /// Change the permission mode of a session
    Mode {
        /// The new mode
        #[arg(value_enum)]
        mode: ModeArg,
        /// The session; defaults to that of this terminal
        #[arg(long, value_name = "ID", value_parser = session_id)]
        session: Option<SessionId>,
    },
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// A command line; or a category (file.read, file.write, shell, network, mcp, agent or plugin) and a path, a command
    /// line, a host and port, or a name
    #[arg(value_names = ["CATEGORY", "TARGET"], num_args = 1..=2, required = true)]
    what: Vec<String>,
    /// Show how a command line is read: programs, options, files, uncertain parts, and which rule decides each
    #[arg(long)]
    explain: bool,
    /// The tool that would need this permission
    #[arg(long)]
    tool: Option<String>,
    /// The agent that would ask about a tool of its own, for rules that hold for one agent
    #[arg(long)]
    agent: Option<HookAgent>,
    /// The folder it would run in; defaults to the current folder
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
}

/// Where a grant applies, and for how long.
#[derive(Debug, Args)]
pub(crate) struct GrantReach {
    /// Where the grant applies
    #[arg(long, value_enum, default_value = "always")]
    scope: GrantScopeArg,
    /// The session, for --scope session
    #[arg(long, value_name = "ID", value_parser = session_id, required_if_eq("scope", "session"))]
    session: Option<SessionId>,
    /// A folder of the project; defaults to the current folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// Expire after this time, such as 30m or 1h; a number alone is in seconds
    #[arg(long, value_name = "TIME", value_parser = crate::amount::seconds)]
    expires_in: Option<u64>,
}

impl GrantReach {
    /// A grant that allows the pattern to calls that no plugin makes.
    pub(crate) fn allowing(&self, category: Category, pattern: String) -> anyhow::Result<GrantPermission> {
        let cwd = folder(self.cwd.clone())?;
        Ok(GrantPermission {
            session_id: self.session.clone(),
            expires_in: self.expires_in,
            ..allowing(category, pattern, self.scope.into(), Some(cwd))
        })
    }
}

#[derive(Debug, Args)]
struct GrantArgs {
    /// file.read, file.write, shell, network, mcp, agent or plugin
    #[arg(value_parser = category)]
    category: Category,
    /// The exact target, or a pattern with * and **
    pattern: String,
    #[command(flatten)]
    reach: GrantReach,
    /// Deny instead of allow
    #[arg(long)]
    deny: bool,
    /// Only for this tool; can be repeated
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Only for calls made through this plugin; repeat it for a chain, the outermost first. Without it, calls that
    /// plugins make are not included
    #[arg(long, value_name = "PLUGIN")]
    chain: Vec<String>,
}

#[derive(Debug, Args)]
struct AllowArgs {
    /// The id of the prompt; `toolctl permissions pending` lists them
    request_id: String,
    /// How long the answer holds; a workspace is remembered for its client unless this is session
    #[arg(long, value_enum, default_value = "once")]
    scope: ReplyScopeArg,
    /// One of the suggested patterns; defaults to the exact target
    #[arg(long)]
    pattern: Option<String>,
    /// All parts of the prompt, such as the commands of a line, each exactly as shown
    #[arg(long, conflicts_with = "pattern")]
    all_parts: bool,
    /// Expire after this time, such as 30m or 1h; a number alone is in seconds
    #[arg(long, value_name = "TIME", value_parser = crate::amount::seconds)]
    expires_in: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GrantScopeArg {
    /// For one session
    Session,
    /// For the project of a folder
    Project,
    /// For everything
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReplyScopeArg {
    Once,
    Session,
    Project,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Only reading is allowed
    Plan,
    /// Rules, grants and your answers decide
    Default,
    /// Writes in the session's folders are allowed without a prompt
    #[value(name = "accept_edits", alias = "accept-edits")]
    AcceptEdits,
    /// Everything is allowed unless a rule denies it
    Yolo,
}

pub(crate) async fn run(args: PermissionsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    // So that grants and answers record this client.
    let session = connection::open_session(&client, None, None).await?;
    let status = run_action(&client, args.action, args.json).await;
    session.close(&client).await;
    status
}

async fn run_action(client: &Client, action: PermissionsAction, json: bool) -> anyhow::Result<u8> {
    match action {
        PermissionsAction::List => {
            let list = client.call::<PermissionsList>(NoParams {}).await?;
            print_answer(json, &list, show::list)?;
            Ok(OK)
        }
        PermissionsAction::Check(check) => run_check(client, check, json).await,
        PermissionsAction::Grant(grant) => run_grant(client, grant, json).await,
        PermissionsAction::Revoke { id } => {
            let grants = client.call::<PermissionsList>(NoParams {}).await?.grants;
            client.call::<PermissionsRevoke>(RevokePermission { id: id.clone() }).await?;
            if let Some(grant) = grants.iter().find(|grant| grant.id == id) {
                writeln!(output::stderr(), "{}", show::revoked(grant))?;
            }
            Ok(OK)
        }
        PermissionsAction::Review { yes } => review::run(client, yes, json).await,
        PermissionsAction::Observe(args) => observe::run(client, args, json).await,
        PermissionsAction::Replay(args) => replay::replay(client, args, json).await,
        PermissionsAction::Suggest(args) => replay::suggest(client, args, json).await,
        PermissionsAction::Pending => pending(client, json).await,
        PermissionsAction::Allow(allow) => {
            let reply = ReplyPermission {
                scope: Some(allow.scope.into()),
                pattern: allow.pattern,
                expires_in: allow.expires_in,
                all_parts: allow.all_parts,
                ..ReplyPermission::once(allow.request_id, Action::Allow)
            };
            answer(client, reply, json).await
        }
        PermissionsAction::Deny { request_id, message, scope } => {
            let reply = ReplyPermission {
                scope: Some(scope.into()),
                message,
                ..ReplyPermission::once(request_id, Action::Deny)
            };
            answer(client, reply, json).await
        }
        PermissionsAction::Mode { mode, session } => {
            let session = match session {
                Some(session) => session,
                None => own_session(client).await?,
            };
            client.call::<PermissionsSetMode>(SetMode { session_id: Some(session), mode: mode.into() }).await?;
            Ok(OK)
        }
    }
}

/// The session of this terminal, which its commands share.
async fn own_session(client: &Client) -> anyhow::Result<SessionId> {
    let sessions = client.call::<SessionsList>(NoParams {}).await?.sessions;
    let own = connection::of_this_terminal(&sessions).map(|session| session.session_id.clone());
    own.ok_or_else(|| {
        usage("this terminal has no session yet: name one with --session (`toolctl sessions` lists them)")
    })
}

async fn run_check(client: &Client, check: CheckArgs, json: bool) -> anyhow::Result<u8> {
    let (category, target) = match check.what.as_slice() {
        [name] if category(name).is_ok_and(|category| category != Category::Shell) => {
            return Err(usage(format!("{name} is a category: expected a target behind it, such as {}", example(name))));
        }
        [line] => (Category::Shell, line.clone()),
        [name, target, ..] => {
            (category(name).map_err(|error| usage(format!("{name:?} is not a category: {error}")))?, target.clone())
        }
        [] => anyhow::bail!("expected a command line, or a category and a target"),
    };
    if check.explain && category != Category::Shell {
        return Err(usage("--explain works for command lines only (category shell)"));
    }
    let params = CheckPermission {
        category,
        target,
        explain: check.explain,
        cwd: Some(folder(check.cwd)?),
        session_id: None,
        tool: check.tool,
        agent: check.agent.map(|agent| agent.name().to_owned()),
    };
    let checked = client.call::<PermissionsCheck>(params).await?;
    print_answer(json, &checked, show::check)?;
    Ok(if checked.verdict == Verdict::Allow { OK } else { TOOL_ERROR })
}

async fn run_grant(client: &Client, grant: GrantArgs, json: bool) -> anyhow::Result<u8> {
    let params = GrantPermission {
        action: if grant.deny { Action::Deny } else { Action::Allow },
        tools: (!grant.tools.is_empty()).then_some(grant.tools),
        chain: grant.chain,
        ..grant.reach.allowing(grant.category, grant.pattern)?
    };
    let stored = client.call::<PermissionsGrant>(params).await?;
    if json {
        print_json(&stored)?
    } else {
        output::print(&format!("{}\n", show::grant(&stored)))?;
        output::stderr().write_all(show::without_chains(&stored).as_bytes())?;
        for warning in &stored.warnings {
            writeln!(output::stderr(), "{WARN}warning:{WARN:#} {}", one_line(warning))?;
        }
    }
    Ok(OK)
}

/// Answers a prompt, and shows what is stored of the answer.
async fn answer(client: &Client, reply: ReplyPermission, json: bool) -> anyhow::Result<u8> {
    let grants = async || anyhow::Ok(client.call::<PermissionsList>(NoParams {}).await?.grants);
    let before = grants().await?;
    let pending = client.call::<PermissionsPending>(NoParams {}).await?;
    let ask = pending.asks.into_iter().find(|ask| ask.request_id == reply.request_id);
    let action = reply.action;
    client.call::<PermissionsReply>(reply).await?;
    let is_new = |grant: &GrantInfo| !before.iter().any(|old| old.id == grant.id && old.expires_at == grant.expires_at);
    let stored: Vec<GrantInfo> = grants().await?.into_iter().filter(is_new).collect();
    if json {
        print_json(&stored)?;
        return Ok(OK);
    }
    let mut text: String = stored.iter().map(|grant| format!("{}\n", show::grant(grant))).collect();
    if let Some(ask) = ask.filter(|_| stored.is_empty()) {
        let word = if action == Action::Allow { "allowed" } else { "denied" };
        text = format!("{word} once: {} {BOLD}{}{BOLD:#}\n", ask.category, one_line(&ask.target));
        if ask::is_for_workspace(&ask) {
            text = format!("{word}: workspace {BOLD}{}{BOLD:#}\n", one_line(&ask.target));
        }
    }
    output::print(&text)?;
    Ok(OK)
}

async fn pending(client: &Client, json: bool) -> anyhow::Result<u8> {
    let pending = client.call::<PermissionsPending>(NoParams {}).await?;
    if json {
        print_json(&pending)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    for request in &pending.asks {
        writeln!(out, "{DIM}{}{DIM:#}", one_line(&request.request_id))?;
        ask::show(request, &mut out)?;
        if let Some(left) = ask::time_left(&request.expires_at, Utc::now()) {
            writeln!(out, "  {DIM}{left}{DIM:#}")?;
        }
        for suggestion in &request.suggestions {
            let covers = suggestion.covers.as_ref().map(|covers| format!(" {DIM}({}){DIM:#}", one_line(covers)));
            writeln!(
                out,
                "  {DIM}suggests{DIM:#} --scope {} --pattern '{}'{}",
                suggestion.scope.as_str(),
                plain(&suggestion.pattern),
                covers.unwrap_or_default()
            )?;
        }
    }
    out.flush()?;
    if pending.asks.is_empty() {
        writeln!(output::stderr(), "no prompts are pending")?;
    }
    Ok(OK)
}

/// A check of a category.
fn example(category: &str) -> String {
    let target = match category {
        "network" => "example.org:443",
        "mcp" => "SERVER/TOOL",
        "agent" | "plugin" => "NAME",
        _ => "PATH",
    };
    format!("`toolctl permissions check {category} {target}`")
}

fn folder(folder: Option<PathBuf>) -> anyhow::Result<String> {
    let folder = match folder {
        Some(folder) => std::path::absolute(&folder).with_context(|| format!("can't find {}", folder.display()))?,
        None => std::env::current_dir().context("can't determine the current folder")?,
    };
    Ok(folder.to_string_lossy().into_owned())
}

pub(crate) fn category(text: &str) -> Result<Category, String> {
    Category::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl From<GrantScopeArg> for Scope {
    fn from(scope: GrantScopeArg) -> Self {
        match scope {
            GrantScopeArg::Session => Self::Session,
            GrantScopeArg::Project => Self::Project,
            GrantScopeArg::Always => Self::Always,
        }
    }
}

impl From<ReplyScopeArg> for Scope {
    fn from(scope: ReplyScopeArg) -> Self {
        match scope {
            ReplyScopeArg::Once => Self::Once,
            ReplyScopeArg::Session => Self::Session,
            ReplyScopeArg::Project => Self::Project,
            ReplyScopeArg::Always => Self::Always,
        }
    }
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Plan => Self::Plan,
            ModeArg::Default => Self::Default,
            ModeArg::AcceptEdits => Self::AcceptEdits,
            ModeArg::Yolo => Self::Yolo,
        }
    }
}
