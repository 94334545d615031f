//! `toolctl agents doctor`: checks that the hooks of agents reach the daemon.

use std::io::Write;
use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::commands::agents::found::{self, FoundAgent};
use crate::commands::agents::switched_off::http_hooks_here;
use crate::commands::agents::{hooks_file, install as agents_install, told};
use crate::commands::hook::daemon::{DaemonError, Exchange};
use crate::commands::hook::{FailArg, HookAgent, answers};
use crate::commands::mcp::install;
use crate::config_file;
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, one_line};

/// Check that the hooks of agents are installed, can run, and reach the daemon
#[derive(Debug, Args)]
pub(crate) struct AgentsDoctorArgs {}

pub(crate) async fn run(_: &AgentsDoctorArgs, globals: &Globals) -> anyhow::Result<u8> {
    let home = install::home()?;
    let mut out = output::stdout();
    let mut well = true;
    // As a hook does: a daemon is never started for it.
    let answered = Exchange::open(globals).and_then(|exchange| exchange.call("daemon.ping", &json!({})));
    match answered {
        Ok(_) => writeln!(out, "ok    toold is running")?,
        Err(error) => {
            well = false;
            writeln!(out, "bad   {error}{}", remedy(&error))?;
        }
    }
    for agent in found::all().await? {
        let name = agent.agent.name();
        if !agent.has_hooks {
            let (mark, text) = without_hooks(agent.agent, &home);
            well &= mark != "bad";
            writeln!(out, "{mark:<5} {name}: {text}")?;
            continue;
        }
        for (mark, text) in checks(&agent, &home) {
            well &= mark != "bad";
            writeln!(out, "{mark:<5} {name}: {text}")?;
        }
    }
    Ok(if well { OK } else { NOT_RUN })
}

/// The advice where there is no answer. The lines of the agents say how their hooks decide while none runs.
fn remedy(error: &DaemonError) -> &'static str {
    match error {
        DaemonError::NotRunning => " (toolctl status starts it)",
        _ => ": until it answers, hooks make agents ask, and deny where they cannot (toolctl restart)",
    }
}

/// Whether the agent should have hooks, or nobody can tell.
fn without_hooks(agent: HookAgent, home: &Path) -> (&'static str, String) {
    let (name, file) = (agent.name(), home.join(hooks_file::file(agent)));
    if let Some(problem) = hooks_file::problem(agent, &file) {
        return ("bad", format!("no hooks, and they cannot be installed: {problem}"));
    }
    match hooks_file::were_installed(agent) {
        true => {
            let words = format!("the hooks that were installed in {} are gone", file.display());
            ("bad", format!("{words}; toolctl agents install {name} --hooks"))
        }
        false => ("-", format!("no hooks; toolctl agents install {name} --hooks")),
    }
}

fn checks(found: &FoundAgent, home: &Path) -> Vec<(&'static str, String)> {
    let agent = found.agent;
    let mut checks = Vec::new();
    let file = home.join(hooks_file::file(agent));
    let text = config_file::read(&file).ok().flatten().unwrap_or_default();
    match hooks_file::program_in(agent, &text) {
        Some(program) if Path::new(&program).is_file() => checks.push(("ok", format!("hooks in {}", file.display()))),
        Some(program) => checks.push((
            "bad",
            format!("the hooks run {program}, which is not there; toolctl agents install {} --hooks", agent.name()),
        )),
        None => checks.push(("bad", format!("the hooks in {} name no program", file.display()))),
    }
    if !found.has_whole_hooks {
        let again = format!("toolctl agents install {} --hooks", agent.name());
        checks.push(("bad", format!("the hooks in {} {}; {again}", file.display(), hooks_file::DIFFER)));
    }
    if let Some(fail) = found.fail {
        let effect = match fail {
            FailArg::Open => "the agent decides by its own rules (--fail open)",
            FailArg::Closed => "its tools do not run (--fail closed)",
        };
        checks.push(("-", format!("while toold does not run, {effect}")));
    }
    match (answers::version_tried(agent), &found.version) {
        (Some(tried), Some(version)) if tried != version => {
            let words =
                format!("version {version} is installed, and {tried} was tried: what AGENTS.md says may differ");
            checks.push(("-", words));
        }
        (Some(tried), Some(_)) => checks.push(("ok", format!("version {tried} is the one that was tried"))),
        (None, _) => checks.push(("-", "no version was tried: its hooks follow its documentation".to_owned())),
        (Some(_), None) => {}
    }
    if let Some(off) = &found.hooks_off {
        checks.push(("bad", format!("the hooks do not run: {} in {}", off.setting, off.file.display())));
    }
    for hook in http_hooks_here(agent, home) {
        let (event, url, file) = (one_line(&hook.event), one_line(&hook.url), hook.file.display());
        let words = format!("{file} also sends {event} to {url}, whose answer counts beside that of toold's hooks");
        checks.push(("-", words));
    }
    match (agent, found.confines) {
        (_, true) => checks.push(("ok", "its commands run through toolctl confine".to_owned())),
        (HookAgent::ClaudeCode, false) => checks.push((
            "-",
            format!(
                "its commands are not confined, so that no level frees them; toolctl agents install {} --hooks",
                agent.name()
            ),
        )),
        (_, false) => checks.push(("-", "its commands cannot be confined, so that no level frees them".to_owned())),
    }
    match &found.last_call {
        Some(call) if call.problem.is_some() => checks.push(("bad", format!("last hook {}", told(call)))),
        Some(call) => checks.push(("ok", format!("last hook {}", told(call)))),
        None => checks.push(("-", "no hook has run yet".to_owned())),
    }
    // A hook that has run is trusted.
    if agent == HookAgent::Codex
        && found.last_call.is_none()
        && let Some(note) = agents_install::next_step(agent)
    {
        checks.push(("-", note.to_owned()));
    }
    checks
}
