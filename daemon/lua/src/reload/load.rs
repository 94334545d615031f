//! Running a plugin's script in a new Lua state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use toold_host::memory_reserve;
use toold_proto::plugin::PluginError;

use crate::api::script_context::{LoadNotes, ScriptContext};
use crate::api::{self, io, testing};
use crate::plugin::PluginVersion;
use crate::plugin::content::read_file;
use crate::plugin::own_authority;
use crate::plugin::registrations::ScriptRegistrations;
use crate::plugin::state_pool::LoadedState;
use crate::vm::create::{MAX_SOURCE, chunk, new_lua_state};
use crate::vm::interrupt::{OUT_OF_MEMORY, ScriptInterrupt};
use crate::vm::line_hits::{count_lines, start_counting};
use crate::vm::lua_state::LuaState;
use crate::vm::script_run::ScriptRun;

/// Why a plugin did not load.
pub(crate) struct LoadFailure {
    pub(crate) error: PluginError,
    /// Another source has the name of one of its tools: loading is tried again when the name is free.
    pub(crate) name_taken: bool,
}

/// How authors' tools load a plugin.
#[derive(Default)]
pub(crate) struct LoadOptions {
    /// A registration with a mistake is recorded and skipped, so that all mistakes are found.
    pub(crate) lenient: bool,
    /// Adds the functions of test files, and fakes.
    pub(crate) fakes: bool,
    /// Adds a tool of this name that runs this test file; needs `fakes`.
    pub(crate) tests: Option<(&'static str, PathBuf)>,
    /// Counts how often each line runs.
    pub(crate) counts_lines: bool,
}

/// The result of loading.
pub(crate) struct LoadedScript {
    pub(crate) loaded: LoadedState,
    pub(crate) registered: ScriptRegistrations,
    /// The script did nothing that a later load would not repeat: it registered, and used neither other host functions,
    /// nor clocks, nor random numbers.
    pub(crate) only_registered: bool,
}

/// Runs the script from top to bottom. Blocks for the load limit at most, apart from single calls of C functions; for
/// threads that may block.
pub(crate) fn load(plugin: &Arc<PluginVersion>) -> Result<LoadedScript, LoadFailure> {
    load_with(plugin, &LoadOptions::default()).0
}

/// The same for a plugin whose registrations are known: returns only the Lua state.
pub(crate) fn load_again(plugin: &Arc<PluginVersion>) -> Result<LoadedState, PluginError> {
    load(plugin).map(|script| script.loaded).map_err(|failure| failure.error)
}

/// The same with the options of authors' tools.
pub(crate) fn load_with(
    plugin: &Arc<PluginVersion>,
    extra: &LoadOptions,
) -> (Result<LoadedScript, LoadFailure>, LoadNotes) {
    let context = ScriptContext::new(plugin.clone(), extra.lenient);
    let loaded = load_at(&context, extra)
        .map_err(|error| LoadFailure { error, name_taken: context.name_taken.load(Ordering::Relaxed) });
    let notes = context.notes.as_ref().map(|notes| std::mem::take(&mut *notes.lock()));
    (loaded, notes.unwrap_or_default())
}

fn load_at(context: &Arc<ScriptContext>, extra: &LoadOptions) -> Result<LoadedScript, PluginError> {
    let plugin = &context.plugin;
    let failed = |error: mlua::Error| plugin.sources.explain(&error);
    // What is allocated before the first safepoint, for libraries and for compiling, ends no script when it fails.
    if !memory_reserve::ensure() {
        return Err(PluginError::of(OUT_OF_MEMORY.to_owned()));
    }
    let lua = new_lua_state(plugin.memory(), &plugin.shared.host_chunks, |lua, prelude| {
        api::install(lua, prelude, context)?;
        if extra.counts_lines {
            start_counting(lua);
        }
        match extra.fakes {
            true => testing::install_testing(lua),
            false => Ok(()),
        }
    });
    let state = LuaState::new(lua.map_err(failed)?, plugin.shared.usage.clone(), plugin.sampler.clone());
    let script = compile(plugin, &state, &plugin.manifest.entry, plugin.script.clone())?;
    count_lines(state.lua(), &plugin.manifest.shown(&plugin.manifest.entry), &script);
    let interrupt = ScriptInterrupt::of_load(plugin.shared.load_limit, plugin.shared.stop.clone());
    let call = ScriptRun::of_load(interrupt, own_authority::of_load(plugin));
    let watched = plugin.shared.watchdog.watch(&call.interrupt);
    let ended = state.run_blocking(&call, &script, ());
    drop(watched);
    io::after_load(state.lua()).map_err(failed)?;
    let registered = context.registered.lock().take();
    ended.map_err(failed)?;
    let mut registered = registered.unwrap_or_default();
    if let Some((name, file)) = &extra.tests {
        let text = read_file(file, MAX_SOURCE)
            .map_err(|error| PluginError::of(format!("can't read {}: {error}", file.display())))?;
        let tests = compile(plugin, &state, file, text.into())?;
        registered.tools.push(testing::test_runner(plugin, state.lua(), name, &tests).map_err(failed)?);
    }
    let loaded = LoadedState {
        tools: registered.tools.iter().map(|(spec, handlers)| (spec.name.clone(), handlers.clone())).collect(),
        hooks: registered.hooks.iter().map(|(_, handler)| handler.clone()).collect(),
        commands: registered.commands.iter().map(|(spec, run)| (spec.name.clone(), run.clone())).collect(),
        resources: registered.resources.iter().map(|(_, handlers)| handlers.clone()).collect(),
        prompts: registered.prompts.iter().map(|(_, handlers)| handlers.clone()).collect(),
        timers: registered.timers.iter().map(|(_, run)| run.clone()).collect(),
        state_tables: registered.state_tables.clone(),
        state,
    };
    let has_side_effects = context.has_side_effects() || context.name_taken.load(Ordering::Relaxed);
    Ok(LoadedScript { loaded, registered, only_registered: !has_side_effects })
}

/// Compiles a file of the plugin, and keeps its text to explain errors.
fn compile(
    plugin: &PluginVersion,
    state: &LuaState,
    path: &Path,
    text: Arc<[u8]>,
) -> Result<mlua::Function, PluginError> {
    let shown = plugin.manifest.shown(path);
    plugin.sources.add(&shown, path, text.clone());
    chunk(state.lua(), &text, &format!("@{shown}")).map_err(|message| plugin.sources.explain_text(&message, None))
}
