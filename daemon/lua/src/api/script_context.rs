//! The context of host functions: the Lua state that calls them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use toold_proto::plugin::PluginError;

use crate::api::exec::PendingOutput;
use crate::plugin::PluginVersion;
use crate::plugin::registrations::ScriptRegistrations;

/// Belongs to one Lua state of a plugin.
pub(crate) struct ScriptContext {
    pub(crate) plugin: Arc<PluginVersion>,
    /// Collects registrations while the script runs; `None` afterwards.
    pub(crate) registered: Mutex<Option<ScriptRegistrations>>,
    /// A registration was refused because another source has the name.
    pub(crate) name_taken: AtomicBool,
    /// The script did more than register, or read something that may be different next time.
    has_side_effects: AtomicBool,
    /// Collects mistakes of registrations, in a load that finds all of them.
    pub(crate) notes: Option<Mutex<LoadNotes>>,
    /// Programs whose output the script receives while they run.
    pub(crate) followed: Mutex<HashMap<u64, Arc<PendingOutput>>>,
}

impl ScriptContext {
    /// With `lenient`, mistakes of registrations are recorded and the script continues.
    pub(crate) fn new(plugin: Arc<PluginVersion>, lenient: bool) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            registered: Mutex::new(Some(ScriptRegistrations::default())),
            name_taken: AtomicBool::new(false),
            has_side_effects: AtomicBool::new(false),
            notes: lenient.then(Mutex::default),
            followed: Mutex::default(),
        })
    }

    /// Called by functions whose effect is lost, or whose result may differ, if the load is not repeated.
    pub(crate) fn note_side_effect(&self) {
        self.has_side_effects.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_side_effects(&self) -> bool {
        self.has_side_effects.load(Ordering::Relaxed)
    }

    /// In a lenient load: records the mistake at the script's own line, and lets the script continue.
    pub(crate) fn record_mistake(&self, lua: &mlua::Lua, mistake: Result<(), String>) -> Result<(), String> {
        let (Some(notes), Err(message)) = (&self.notes, &mistake) else { return mistake };
        notes.lock().problems.push(self.here(lua, message));
        Ok(())
    }

    /// In a lenient load: records something that is probably a mistake.
    pub(crate) fn warn(&self, lua: &mlua::Lua, message: &str) {
        if let Some(notes) = &self.notes {
            notes.lock().warnings.push(self.here(lua, message));
        }
    }

    fn here(&self, lua: &mlua::Lua, message: &str) -> PluginError {
        let traceback = lua.traceback(None, 0).map(|text| text.to_string_lossy()).ok();
        self.plugin.sources.explain_text(message, traceback.as_deref())
    }

    /// Keeps the output of a program until the script asks for it; returns its number.
    pub(crate) fn follow(&self, following: Arc<PendingOutput>) -> u64 {
        let mut followed = self.followed.lock();
        let id = followed.keys().max().map_or(1, |last| last + 1);
        followed.insert(id, following);
        id
    }

    pub(crate) fn following(&self, id: u64) -> Option<Arc<PendingOutput>> {
        self.followed.lock().get(&id).cloned()
    }

    pub(crate) fn forget(&self, id: u64) {
        self.followed.lock().remove(&id);
    }
}

/// Mistakes and warnings of a lenient load.
#[derive(Default)]
pub(crate) struct LoadNotes {
    pub(crate) problems: Vec<PluginError>,
    pub(crate) warnings: Vec<PluginError>,
}
