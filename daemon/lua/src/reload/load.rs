//! Running a plugin's script in a new machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toold_proto::plugin::PluginError;

use crate::brake::Brake;
use crate::call::Call;
use crate::content::read_file;
use crate::hygge::{self, Following};
use crate::manifest::{MAX_MANIFEST, ManifestError};
use crate::plugin::{Loaded, Plugin, Registered};
use crate::trouble::Sources;
use crate::vm::{MAX_SOURCE, Vm, chunk, machine};

/// What functions of the host find of the machine that they are called in.
pub(crate) struct Home {
    pub(crate) plugin: Arc<Plugin>,
    /// Takes registrations while the script runs; `None` afterwards.
    pub(crate) registered: Mutex<Option<Registered>>,
    /// A registration was refused because of a name of another source.
    pub(crate) name_taken: AtomicBool,
    /// The script did something else than to register, or looked at what may be otherwise next time.
    did_more: AtomicBool,
    /// Takes mistakes of registrations, in a load that finds all of them.
    pub(crate) notes: Option<Mutex<Notes>>,
    /// Programs that are followed as they run.
    pub(crate) followed: Mutex<HashMap<u64, Arc<Following>>>,
}

impl Home {
    /// To be said by functions whose effect is lost, or whose answer may be another one, when a load is not
    /// repeated.
    pub(crate) fn does_more(&self) {
        self.did_more.store(true, Ordering::Relaxed);
    }

    /// In a lenient load: notes the mistake at the script's own line, and lets the script go on.
    pub(crate) fn excuse(&self, lua: &mlua::Lua, mistake: Result<(), String>) -> Result<(), String> {
        let (Some(notes), Err(message)) = (&self.notes, &mistake) else { return mistake };
        notes.lock().expect(POISON).problems.push(self.here(lua, message));
        Ok(())
    }

    /// In a lenient load: notes what is probably not meant.
    pub(crate) fn warn(&self, lua: &mlua::Lua, message: &str) {
        if let Some(notes) = &self.notes {
            notes.lock().expect(POISON).warnings.push(self.here(lua, message));
        }
    }

    fn here(&self, lua: &mlua::Lua, message: &str) -> PluginError {
        let traceback = lua.traceback(None, 0).map(|text| text.to_string_lossy()).ok();
        self.plugin.sources.explain_text(message, traceback.as_deref())
    }

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

/// How authors' tools load a plugin.
#[derive(Default)]
pub(crate) struct Extra {
    /// A registration with a mistake is noted and passed over, so that all mistakes are found.
    pub(crate) lenient: bool,
    /// A tool of this name that runs this file of tests.
    pub(crate) tests: Option<(&'static str, PathBuf)>,
}

/// What was noted of a plugin that was loaded leniently.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) problems: Vec<PluginError>,
    pub(crate) warnings: Vec<PluginError>,
}

/// What loading gave.
pub(crate) struct Outcome {
    pub(crate) loaded: Loaded,
    pub(crate) registered: Registered,
    /// The script did nothing that a later load would not do again: it registered, and used neither the host's
    /// other functions, nor clocks, nor random numbers.
    pub(crate) only_registered: bool,
}

/// Runs the script from top to bottom. Blocks for the load limit at most, single calls of C functions
/// aside; belongs on a thread that may block.
pub(crate) fn load(plugin: &Arc<Plugin>) -> Result<Outcome, Failure> {
    load_with(plugin, &Extra::default()).0
}

/// The same, as authors' tools do it.
pub(crate) fn load_with(plugin: &Arc<Plugin>, extra: &Extra) -> (Result<Outcome, Failure>, Notes) {
    let home = Arc::new(Home {
        plugin: plugin.clone(),
        registered: Mutex::new(Some(Registered::default())),
        name_taken: AtomicBool::new(false),
        did_more: AtomicBool::new(false),
        notes: extra.lenient.then(Mutex::default),
        followed: Mutex::default(),
    });
    let loaded =
        load_at(&home, extra).map_err(|error| Failure { error, name_taken: home.name_taken.load(Ordering::Relaxed) });
    let notes = home.notes.as_ref().map(|notes| std::mem::take(&mut *notes.lock().expect(POISON)));
    (loaded, notes.unwrap_or_default())
}

fn load_at(home: &Arc<Home>, extra: &Extra) -> Result<Outcome, PluginError> {
    let plugin = &home.plugin;
    let failed = |error: mlua::Error| plugin.sources.explain(&error);
    let lua = machine(plugin.memory(), &plugin.shared.own, |lua, prelude| {
        hygge::offer(lua, prelude, home)?;
        match &extra.tests {
            Some(_) => hygge::offer_testing(lua),
            None => Ok(()),
        }
    });
    let vm = Vm::new(lua.map_err(failed)?, plugin.shared.usage.clone());
    let script = compile(plugin, &vm, &plugin.manifest.entry, plugin.script.clone())?;
    let call = Call::of_load(Brake::of_load(plugin.shared.load_limit, plugin.shared.stop.clone()));
    let watched = plugin.shared.watchdog.watch(&call.brake);
    let ended = vm.run_blocking(&call, &script, ());
    drop(watched);
    hygge::after_load(vm.lua()).map_err(failed)?;
    let registered = home.registered.lock().expect(POISON).take();
    ended.map_err(failed)?;
    let mut registered = registered.unwrap_or_default();
    if let Some((name, file)) = &extra.tests {
        let text =
            read_file(file, MAX_SOURCE).map_err(|error| plain(format!("can't read {}: {error}", file.display())))?;
        let tests = compile(plugin, &vm, file, text.into())?;
        registered.tools.push(hygge::test_runner(plugin, vm.lua(), name, &tests).map_err(failed)?);
    }
    let loaded = Loaded {
        tools: registered.tools.iter().map(|(spec, handlers)| (spec.name.clone(), handlers.clone())).collect(),
        hooks: registered.hooks.iter().map(|(_, handler)| handler.clone()).collect(),
        commands: registered.commands.iter().map(|(spec, run)| (spec.name.clone(), run.clone())).collect(),
        resources: registered.resources.iter().map(|(_, handlers)| handlers.clone()).collect(),
        prompts: registered.prompts.iter().map(|(_, handlers)| handlers.clone()).collect(),
        vm,
    };
    let did_more = home.did_more.load(Ordering::Relaxed) || home.name_taken.load(Ordering::Relaxed);
    Ok(Outcome { loaded, registered, only_registered: !did_more })
}

/// Compiles a file of the plugin, and keeps its text for those who read its errors.
fn compile(plugin: &Plugin, vm: &Vm, path: &Path, text: Arc<[u8]>) -> Result<mlua::Function, PluginError> {
    let shown = plugin.manifest.shown(path);
    plugin.sources.add(&shown, path, text.clone());
    chunk(vm.lua(), &text, &format!("@{shown}")).map_err(|message| plugin.sources.explain_text(&message, None))
}

const POISON: &str = "no code panics while it holds this lock";

fn plain(message: String) -> PluginError {
    PluginError { message, file: None, line: None, source_line: None, traceback: None }
}

/// A manifest's mistakes, in the same form as a script's.
pub(crate) fn explain_manifest(error: &ManifestError) -> PluginError {
    let plain = PluginError { message: error.to_string(), file: None, line: None, source_line: None, traceback: None };
    match error {
        ManifestError::Toml { path, line, message } => {
            let sources = Sources::default();
            if let Ok(text) = read_file(path, MAX_MANIFEST) {
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
