//! The permissions that plugins were refused while they loaded. A plugin loads again when one of them is given.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::registry::SourceKey;
use toold_engine::tool::Denial;
use toold_proto::event::EventBody;
use toold_proto::permission::Verdict;

/// How many refusals of one plugin are kept and reported: the first ones.
const MAX_OF_PLUGIN: usize = 50;

/// By plugin, since its last load began.
#[derive(Default)]
pub(crate) struct LoadRefusals(Mutex<HashMap<SourceKey, RefusedLoad>>);

struct RefusedLoad {
    authority: Arc<Cx>,
    refused: Vec<Need>,
}

impl LoadRefusals {
    /// Forgets the refusals of a plugin, which is about to load.
    pub(crate) fn forget(&self, plugin: &SourceKey) {
        self.0.lock().remove(plugin);
    }

    /// Records a refusal, and emits an event if it is a new one. `authority` is the context of the load.
    pub(crate) fn note(&self, plugin: &SourceKey, authority: &Arc<Cx>, need: Need, denial: &Denial) {
        let mut all = self.0.lock();
        let load = all
            .entry(plugin.clone())
            .or_insert_with(|| RefusedLoad { authority: authority.clone(), refused: Vec::new() });
        let is_known = |known: &Need| known.category() == need.category() && known.target == need.target;
        if load.refused.len() >= MAX_OF_PLUGIN || load.refused.iter().any(is_known) {
            return;
        }
        let event = EventBody::PluginRefused {
            plugin: plugin.name.clone(),
            category: need.category(),
            target: need.target.clone(),
            message: denial.message.clone(),
        };
        load.refused.push(need);
        drop(all);
        authority.engine.events.emit(event);
    }

    /// The plugins that were refused something which is allowed by now.
    pub(crate) fn allowed_by_now(&self) -> Vec<SourceKey> {
        let is_allowed = |load: &RefusedLoad| {
            let RefusedLoad { authority, refused } = load;
            let decide = |need: &Need| decide_need(authority, &authority.chain, need).verdict;
            refused.iter().any(|need| decide(need) == Verdict::Allow)
        };
        self.0.lock().iter().filter(|(_, load)| is_allowed(load)).map(|(plugin, _)| plugin.clone()).collect()
    }
}
