//! Running a plugin's script in a new machine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toold_proto::plugin::PluginError;

use crate::brake::Brake;
use crate::call::Call;
use crate::hygge::{self, Following};
use crate::manifest::ManifestError;
use crate::plugin::{Loaded, Plugin, Registered};
use crate::trouble::Sources;
use crate::vm::{Vm, chunk, machine};

/// What functions of the host find of the machine that they are called in.
pub(crate) struct Home {
    pub(crate) plugin: Arc<Plugin>,
    /// Takes registrations while the script runs; `None` afterwards.
    pub(crate) registered: Mutex<Option<Registered>>,
    /// A registration was refused because of a name of another source.
    pub(crate) name_taken: AtomicBool,
    /// Programs that are followed as they run.
    pub(crate) followed: Mutex<HashMap<u64, Arc<Following>>>,
}

impl Home {
    /// Keeps what a program writes until it is asked for; gives its number.
    pub(crate) fn follow(&self, following: Arc<Following>) -> u64 {
        let mut followed = self.followed();
        let id = followed.keys().max().map_or(1, |last| last + 1);
        followed.insert(id, following);
        id
    }

    pub(crate) fn following(&self, id: u64) -> Option<Arc<Following>> {
        self.followed().get(&id).cloned()
    }

    pub(crate) fn forget(&self, id: u64) {
        self.followed().remove(&id);
    }

    fn followed(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Following>>> {
        self.followed.lock().expect("no code panics while it holds this lock")
    }
}

/// Why a plugin did not load.
pub(crate) struct Failure {
    pub(crate) error: PluginError,
    /// Another source has the name of one of its tools: it is worth another try when that is free.
    pub(crate) name_taken: bool,
}

/// Runs the script from top to bottom. Blocks for the load limit at most, single calls of C functions
/// aside; belongs on a thread that may block.
pub(crate) fn load(plugin: &Arc<Plugin>) -> Result<(Loaded, Registered), Failure> {
    let home = Arc::new(Home {
        plugin: plugin.clone(),
        registered: Mutex::new(Some(Registered::default())),
        name_taken: AtomicBool::new(false),
        followed: Mutex::default(),
    });
    load_at(&home).map_err(|error| Failure { error, name_taken: home.name_taken.load(Ordering::Relaxed) })
}

fn load_at(home: &Arc<Home>) -> Result<(Loaded, Registered), PluginError> {
    let plugin = &home.plugin;
    let failed = |error: &mlua::Error| plugin.sources.explain(error);
    let lua = machine(plugin.memory(), |lua, prelude| hygge::offer(lua, prelude, home)).map_err(|e| failed(&e))?;
    let vm = Vm::new(lua);
    let shown = plugin.manifest.shown(&plugin.manifest.entry);
    plugin.sources.add(&shown, &plugin.manifest.entry, plugin.script.clone());
    let script = chunk(vm.lua(), &plugin.script, &format!("@{shown}"))
        .map_err(|message| plugin.sources.explain_text(&message, None))?;
    let call = Call::of_load(Brake::of_load(plugin.shared.load_limit, plugin.shared.stop.clone()));
    let watched = plugin.shared.watchdog.watch(&call.brake);
    let ended = vm.run_blocking(&call, &script, ());
    drop(watched);
    let registered = home.registered.lock().expect("no code panics while it holds this lock").take();
    ended.map_err(|e| failed(&e))?;
    let registered = registered.unwrap_or_default();
    let loaded = Loaded {
        tools: registered.tools.iter().map(|(spec, handlers)| (spec.name.clone(), handlers.clone())).collect(),
        hooks: registered.hooks.iter().map(|(_, handler)| handler.clone()).collect(),
        commands: registered.commands.iter().map(|(spec, run)| (spec.name.clone(), run.clone())).collect(),
        vm,
    };
    Ok((loaded, registered))
}

/// A manifest's mistakes, in the same form as a script's.
pub(crate) fn explain_manifest(error: &ManifestError) -> PluginError {
    let plain = PluginError { message: error.to_string(), file: None, line: None, source_line: None, traceback: None };
    match error {
        ManifestError::Toml { path, line, message } => {
            let sources = Sources::default();
            if let Ok(text) = std::fs::read(path) {
                sources.add("plugin.toml", path, text.into());
            }
            let line = line.unwrap_or(1);
            sources.explain_text(&format!("plugin.toml:{line}: {}", message.trim()), None)
        }
        ManifestError::Unreadable { path, .. } => PluginError { file: Some(show(path)), ..plain },
        ManifestError::Name(_) | ManifestError::Outside(_) => plain,
        ManifestError::NoEntry(path) => PluginError { file: Some(show(path)), ..plain },
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
