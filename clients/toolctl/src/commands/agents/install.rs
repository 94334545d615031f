//! `toolctl agents install`: puts the hooks and the MCP entry into an agent's configuration.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::commands::agents::hooks_file::{self, HookCommand};
use crate::commands::agents::{chosen_fail, programs, prompt_hooks};
use crate::commands::hook::{FailArg, HookAgent, installed};
use crate::commands::mcp::install::{self, McpInstallArgs, back_up, put_back};
use crate::config_file::{behind_links, difference, read, replace};
use crate::confirm::confirm;
use crate::exit::OK;
use crate::globals::Globals;
use crate::made_folders;
use crate::output::{self, one_line};
use crate::person::PersonWrites;

/// Let toold judge an agent's own tools, and offer it the tools of toold
///
/// Shows each change and asks for confirmation. The rest of a file stays as it is. Without --hooks and --mcp, both are
/// installed. --undo removes only what was added, or restores the original file if nothing else has changed.
#[derive(Debug, Args)]
pub(crate) struct AgentsInstallArgs {
    /// The agent
    agent: HookAgent,
    /// Only the hooks, which ask toold before each of the agent's own tools
    #[arg(long)]
    hooks: bool,
    /// Only the MCP entry, which offers the agent the tools of toold
    #[arg(long)]
    mcp: bool,
    /// The profile of the MCP entry, as for `toolctl mcp install`
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    profile: Option<String>,
    /// How the hooks answer when no daemon runs: with a denial, or not at all, so that the agent decides by its own rules. Without
    /// it, an installation that is there keeps its choice; a new one for Claude Code or Cursor is closed, which also denies when
    /// toolctl is gone, and all others are open
    #[arg(long, value_enum, conflicts_with = "undo")]
    fail: Option<FailArg>,
    /// The agent's program, where that in PATH is a script that starts it. It is recorded, so that `level` of `[agents.NAME]` may
    /// also raise the level of this program; that of a script only lowers it
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    program: Option<PathBuf>,
    /// Remove what was installed
    #[arg(long)]
    undo: bool,
    /// Show the changes, and make none
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(install: &AgentsInstallArgs, globals: &Globals) -> anyhow::Result<u8> {
    let right = PersonWrites::of(globals).await?;
    let both = install.hooks == install.mcp;
    let (hooks, mcp) = (install.hooks || both, install.mcp || both);
    // The last change first, where both are in one file, so that each one finds the file as it left it.
    if hooks && !install.undo {
        change_hooks(install, globals, &right).await?;
    }
    let exit = if mcp { change_entry(install, both, globals).await? } else { OK };
    if hooks && install.undo {
        change_hooks(install, globals, &right).await?;
    }
    if !install.dry_run {
        record_program(install, &right)?;
    }
    Ok(exit)
}

/// Records the agent's program while something is installed for it, as it is now.
fn record_program(install: &AgentsInstallArgs, right: &PersonWrites) -> anyhow::Result<()> {
    let (agent, home) = (install.agent, install::home()?);
    let client = agent.mcp_client();
    let has_entry =
        || read(&client.found_file(&home)).is_ok_and(|text| text.is_some_and(|text| client.has_entry(&text)));
    let is_installed = hooks_file::is_installed(agent, &home) || has_entry();
    let program = match (programs::program_of(agent, install.program.as_deref()), &install.program) {
        (Err(error), Some(_)) => return Err(error.context(format!("{} was not recorded", agent.title()))),
        (program, _) => program.ok().filter(|_| is_installed),
    };
    let path = program.as_ref().map(|program| one_line(&program.path.display().to_string()));
    if let (true, Some(path)) = (programs::record(agent, program, right)?, path) {
        writeln!(
            output::stdout(),
            "recorded its program {path}: the level of [agents.{}] may raise what it may do",
            agent.name()
        )?;
    }
    Ok(())
}

async fn change_entry(install: &AgentsInstallArgs, both: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = install.agent.mcp_client();
    let has_entry = read(&client.found_file(&install::home()?))?.is_some_and(|text| client.has_entry(&text));
    if install.undo && both && !has_entry {
        return Ok(OK);
    }
    let entry = McpInstallArgs::of(client, install.profile.clone());
    install::run(entry.with(install.undo, install.dry_run, install.yes), globals).await
}

async fn change_hooks(install: &AgentsInstallArgs, globals: &Globals, right: &PersonWrites) -> anyhow::Result<()> {
    let agent = install.agent;
    let file = behind_links(&install::home()?.join(hooks_file::file(agent)));
    let backup = backup_of(&file);
    let program = install::program()?;
    let there = read(&file)?;
    let before = there.clone().unwrap_or_default();
    let mut out = output::stdout();
    let mut of_messages = Vec::new();
    let changed = || format!("can't change {}", file.display());
    let after = if install.undo {
        if !hooks_file::has_hooks(agent, &before) {
            writeln!(out, "{} has no hooks of toold", file.display())?;
            return Ok(());
        }
        undone(agent, &before, read(&backup)?, &program).with_context(changed)?
    } else {
        let fail = install.fail.or_else(|| hooks_file::chosen_fail_of(agent, &before));
        let fail = fail.unwrap_or_else(|| hooks_file::default_fail(agent));
        let command = HookCommand { program: &program, fail, variables: installed::variables() };
        let after = hooks_file::with_hooks(agent, &before, &command).with_context(changed)?;
        of_messages = prompt_hooks::of_messages(globals).await;
        Some(prompt_hooks::changed(agent, &after, &command, !of_messages.is_empty()).with_context(changed)?)
    };
    if there == after {
        writeln!(out, "{} already has the hooks", file.display())?;
        return Ok(());
    }
    write!(out, "{}", difference(&file, &before, after.as_deref().unwrap_or_default()))?;
    let verb = if install.undo { "Remove the hooks from" } else { "Write" };
    if install.dry_run || !install.yes && !confirm(&format!("{verb} {}?", file.display())).await? {
        return Ok(());
    }
    if install.undo {
        put_back(&file, &backup, after.as_deref(), right)?;
        chosen_fail::forget(agent);
        writeln!(out, "removed the hooks from {}", file.display())?;
        return Ok(());
    }
    write_hooks(agent, &file, &backup, (there.as_deref(), &after.unwrap_or_default()), right)?;
    writeln!(out, "done: {} asks toold before each of its tools, and starts it with each session", agent.title())?;
    if backup.exists() {
        writeln!(out, "the original is {}", one_line(&backup.display().to_string()))?;
    }
    if let Some(words) = prompt_hooks::words(agent, &of_messages) {
        writeln!(out, "{words}")?;
    }
    if let Some(note) = next_step(agent) {
        writeln!(out, "{note}")?;
    }
    Ok(())
}

/// The texts are the file's before and after.
fn write_hooks(
    agent: HookAgent,
    file: &Path,
    backup: &Path,
    (before, after): (Option<&str>, &str),
    right: &PersonWrites,
) -> anyhow::Result<()> {
    made_folders::create_for(file)?;
    hooks_file::prepare(agent, after, &install::program()?)?;
    // When the hooks are only updated, the backup from before the first ones stays.
    if !before.is_some_and(|before| hooks_file::has_hooks(agent, before)) {
        back_up(backup, before, right)?;
    }
    replace(file, after, right)
}

/// The text without the hooks; `None` when there was no file before.
fn undone(agent: HookAgent, now: &str, before: Option<String>, program: &str) -> anyhow::Result<Option<String>> {
    let text = before.as_deref().unwrap_or_default();
    let fail = hooks_file::fail_in(agent, now).unwrap_or(FailArg::Open);
    let command = HookCommand { program, fail, variables: hooks_file::variables_in(agent, now) };
    if let Ok(after) = hooks_file::with_hooks(agent, text, &command)
        && (after == now || prompt_hooks::changed(agent, &after, &command, true).is_ok_and(|after| after == now))
    {
        return Ok(before);
    }
    let without = hooks_file::without_hooks(agent, now, text)?;
    let without = prompt_hooks::changed(agent, &without, &command, false)?;
    Ok(Some(without).filter(|without| before.is_some() || !hooks_file::is_bare(without)))
}

/// The step that a person has to take before the hooks run.
pub(super) fn next_step(agent: HookAgent) -> Option<&'static str> {
    match agent {
        HookAgent::Codex => Some(
            "Codex runs a new hook only after you trust it: start codex and review the hooks when it asks, or with /hooks",
        ),
        HookAgent::Opencode => Some("opencode loads the plugin at its next start"),
        HookAgent::Vscode => Some("agent hooks of VS Code are a preview, which an organisation may have disabled"),
        HookAgent::ClaudeCode | HookAgent::Gemini | HookAgent::Cursor | HookAgent::Copilot | HookAgent::QwenCode => {
            None
        }
    }
}

/// The copy that an installation keeps of the file as it was.
pub(crate) fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-toold-hooks");
    PathBuf::from(name)
}
