//! For authors: checking a plugin without a daemon.

use std::path::Path;
use std::sync::Arc;

use toold_engine::Engine;
use toold_engine::hooks::HookEvent;
use toold_proto::plugin::{PluginError, RefusedNeed};
use toold_proto::tool::Tool;

use crate::api::script_context::LoadNotes;
use crate::plugin::manifest::{Capabilities, Manifest};
use crate::plugin::registrations::HookRegistration;
use crate::plugin::resources_and_prompts::ResourceRegistration;
use crate::plugin::timers::TimerRegistration;
use crate::reload::load::{LoadFailure, LoadOptions, LoadedScript, load_with};
use crate::reload::options::StandaloneOptions;
use crate::reload::source_check::check_sources;
use crate::reload::standalone::{LOAD_LIMIT, plugin_at, shared};

/// What a plugin registers, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    pub name: String,
    pub version: Option<String>,
    /// Its declared capabilities; `None` if it declares none and is not restricted.
    pub capabilities: Option<Vec<String>>,
    pub tools: Vec<Tool>,
    pub hooks: Vec<CheckedHook>,
    pub commands: Vec<String>,
    pub subagents: Vec<String>,
    /// URIs and templates.
    pub resources: Vec<String>,
    pub prompts: Vec<String>,
    /// Names and intervals.
    pub timers: Vec<String>,
    /// The permissions that it was refused while it loaded.
    pub refused: Vec<RefusedNeed>,
    /// Why it does not load; all mistakes of registrations, not only the first.
    pub problems: Vec<PluginError>,
    /// Things that load but are probably mistakes.
    pub warnings: Vec<PluginError>,
}

/// A hook that a plugin registers.
#[derive(Clone, Debug)]
pub struct CheckedHook {
    pub name: String,
    pub event: HookEvent,
    /// Names or globs of the tools whose calls it sees; `None` for all.
    pub tools: Option<Vec<String>>,
}

impl CheckReport {
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    fn registers_nothing(&self) -> bool {
        let names = [&self.commands, &self.subagents, &self.resources, &self.prompts, &self.timers];
        self.tools.is_empty() && self.hooks.is_empty() && names.iter().all(|names| names.is_empty())
    }
}

/// The capabilities that a plugin declares; `None` if it declares none, or its manifest cannot be read.
pub fn capabilities(path: &Path) -> Option<Vec<String>> {
    let manifest = if path.is_dir() { Manifest::of_folder(path) } else { Manifest::of_file(path) };
    Some(manifest.ok()?.capabilities?.names())
}

/// Loads a plugin's file or folder as the daemon does, and reports what it registers, everything that is wrong, and what it
/// was refused. Takes 5 s at most. The script has the authority of a load, with the rules of these options and no grants.
///
/// # Errors
/// The system has no thread for the watchdog.
pub async fn check(path: &Path, options: StandaloneOptions) -> std::io::Result<CheckReport> {
    let path = path.to_owned();
    // The script may wait, for which the host needs the runtime, and a thread that may block.
    tokio::task::spawn_blocking(move || check_blocking(&path, options)).await?
}

fn check_blocking(path: &Path, options: StandaloneOptions) -> std::io::Result<CheckReport> {
    let engine = Arc::new(Engine::new("check"));
    let mut report = CheckReport::default();
    let plugin = match plugin_at(path, shared(engine.clone(), LOAD_LIMIT, options)?) {
        Ok(plugin) => plugin,
        Err(error) => {
            report.problems.push(*error);
            return Ok(report);
        }
    };
    report.name = plugin.name().to_owned();
    report.version = plugin.manifest.version.clone();
    report.capabilities = plugin.manifest.capabilities.as_ref().map(Capabilities::names);
    let (loaded, notes) = load_with(&plugin, &LoadOptions { lenient: true, ..LoadOptions::default() });
    let LoadNotes { problems, warnings } = check_sources(&plugin);
    report.problems = problems;
    report.problems.extend(notes.problems);
    report.warnings = notes.warnings;
    report.warnings.extend(warnings);
    report.refused = engine.plugin_refusals.of(&plugin.key.scope, plugin.name(), None);
    match loaded {
        Ok(LoadedScript { registered, .. }) => {
            report.tools = registered.tools.iter().map(|(spec, _)| spec.describe()).collect();
            report.hooks = registered.hooks.iter().map(|(hook, _)| checked_hook(hook)).collect();
            report.commands = registered.commands.iter().map(|(command, _)| command.name.clone()).collect();
            report.subagents = registered.subagents.iter().map(|subagent| subagent.name.clone()).collect();
            let address = |resource: &ResourceRegistration| resource.address.as_str().to_owned();
            report.resources = registered.resources.iter().map(|(resource, _)| address(resource)).collect();
            let timer = |timer: &TimerRegistration| format!("{} every {:?}", timer.name, timer.interval);
            report.timers = registered.timers.iter().map(|(spec, _)| timer(spec)).collect();
            report.prompts = registered.prompts.iter().map(|(prompt, _)| prompt.about.name.clone()).collect();
            if report.registers_nothing() {
                report.warnings.push(PluginError::of("it registers nothing, so that it does nothing"));
            }
        }
        Err(LoadFailure { error, .. }) => {
            let is_same = |known: &PluginError| (&known.file, known.line) == (&error.file, error.line);
            if error.line.is_none() || !report.problems.iter().any(is_same) {
                report.problems.push(error);
            }
        }
    }
    let problems = &report.problems;
    report.warnings.retain(|warning| problems.iter().all(|problem| problem.message != warning.message));
    Ok(report)
}

fn checked_hook(hook: &HookRegistration) -> CheckedHook {
    CheckedHook { name: hook.name.clone(), event: hook.event, tools: hook.tools.clone() }
}
