//! For authors: checking a plugin without a daemon.

use std::path::Path;
use std::sync::Arc;

use toold_engine::Engine;
use toold_proto::plugin::PluginError;
use toold_proto::tool::Tool;

use crate::api::script_context::LoadNotes;
use crate::plugin::manifest::{Capabilities, Manifest};
use crate::plugin::resources_and_prompts::ResourceRegistration;
use crate::plugin::timers::TimerRegistration;
use crate::reload::load::{LoadFailure, LoadOptions, LoadedScript, load_with};
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
    pub hooks: Vec<String>,
    pub commands: Vec<String>,
    pub subagents: Vec<String>,
    /// URIs and templates.
    pub resources: Vec<String>,
    pub prompts: Vec<String>,
    /// Names and intervals.
    pub timers: Vec<String>,
    /// Why it does not load; all mistakes of registrations, not only the first.
    pub problems: Vec<PluginError>,
    /// Things that load but are probably mistakes.
    pub warnings: Vec<PluginError>,
}

impl CheckReport {
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

/// The capabilities that a plugin declares; `None` if it declares none, or its manifest cannot be read.
pub fn capabilities(path: &Path) -> Option<Vec<String>> {
    let manifest = if path.is_dir() { Manifest::of_folder(path) } else { Manifest::of_file(path) };
    Some(manifest.ok()?.capabilities?.names())
}

/// Loads a plugin's file or folder and reports what it registers, and everything that is wrong. Blocks, for 5 s at
/// most. Runs the plugin's script, which can reach only its own folder.
///
/// # Errors
/// The system has no thread for the watchdog.
pub fn check(path: &Path) -> std::io::Result<CheckReport> {
    let engine = Arc::new(Engine::new("check"));
    let mut report = CheckReport::default();
    let plugin = match plugin_at(path, shared(engine, LOAD_LIMIT)?) {
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
    match loaded {
        Ok(LoadedScript { registered, .. }) => {
            report.tools = registered.tools.iter().map(|(spec, _)| spec.describe()).collect();
            report.hooks = registered.hooks.iter().map(|(hook, _)| hook.name.clone()).collect();
            report.commands = registered.commands.iter().map(|(command, _)| command.name.clone()).collect();
            report.subagents = registered.subagents.iter().map(|subagent| subagent.name.clone()).collect();
            let address = |resource: &ResourceRegistration| resource.address.as_str().to_owned();
            report.resources = registered.resources.iter().map(|(resource, _)| address(resource)).collect();
            let timer = |timer: &TimerRegistration| format!("{} every {:?}", timer.name, timer.interval);
            report.timers = registered.timers.iter().map(|(spec, _)| timer(spec)).collect();
            report.prompts = registered.prompts.iter().map(|(prompt, _)| prompt.about.name.clone()).collect();
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
