//! The permissions that plugins were refused, for the person who may grant them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::time::SystemTime;

use parking_lot::Mutex;
use toold_proto::cut::cut_bytes;
use toold_proto::permission::GrantInfo;
use toold_proto::plugin::RefusedNeed;
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId, SourceKind};

use crate::Engine;
use crate::need::Need;
use crate::policy::Subject;
use crate::policy::allowing::allowing_pattern;
use crate::policy::pattern::Pattern;
use crate::registry::{SourceKey, SourceScope};
use crate::time::rfc3339;

/// Limit of refusals of each plugin; the one that was refused longest ago goes first.
const MAX_OF_PLUGIN: usize = 100;
/// The plugin that was refused something longest ago goes first.
const MAX_PLUGINS: usize = 200;
/// Bytes of a target, of a reason, of a rule.
const MAX_TEXT: usize = 2_000;

/// The refused needs of plugins, by plugin. Kept in memory, bounded.
#[derive(Default)]
pub struct PluginRefusals {
    plugins: Mutex<HashMap<PluginIdentity, VecDeque<PluginRefusal>>>,
}

type PluginIdentity = (SourceScope, String);

/// The newest is the last of its plugin.
struct PluginRefusal {
    /// Without what is only for the moment of asking, such as a diff.
    need: Need,
    chain: Vec<String>,
    rule: String,
    pattern: Option<String>,
    /// The session of the last one; `None` while the plugin loaded.
    session: Option<SessionId>,
    times: u64,
    first: SystemTime,
    last: SystemTime,
}

/// When a plugin was refused something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedDuring {
    Load,
    Call(SessionId),
}

/// Records that the last plugin of the subject's chain was refused a need. Does nothing for a chain without plugins.
///
/// `scope` is that of the plugin: see [`scope_of`].
pub fn note_refusal(
    engine: &Engine,
    subject: &Subject,
    scope: SourceScope,
    need: &Need,
    rule: &str,
    during: RefusedDuring,
) {
    let Some(plugin) = subject.chain.last() else { return };
    let fits = need.target.len() <= MAX_TEXT;
    // A mode passes, and the refusals are shown for grants that last.
    let subject = &Subject { mode: Mode::Default, ..subject.clone() };
    let pattern = || allowing_pattern(&engine.policy.load(), &engine.grants.snapshot(), subject, need);
    let now = SystemTime::now();
    let kept = Need {
        target: shortened(&need.target),
        reason: need.reason.as_deref().map(shortened),
        line: None,
        ..need.clone()
    };
    let refusal = PluginRefusal {
        need: kept
            .with_command(|command| (command.script, command.covers) = (None, Vec::new()))
            .with_file(|file| (file.diff, file.covers) = (None, Vec::new())),
        chain: subject.chain.to_vec(),
        rule: shortened(rule),
        // A shortened target is not what was asked for.
        pattern: fits.then(pattern).flatten(),
        session: match during {
            RefusedDuring::Load => None,
            RefusedDuring::Call(session) => Some(session),
        },
        times: 1,
        first: now,
        last: now,
    };
    engine.plugin_refusals.add((scope, plugin.clone()), refusal);
}

/// The scope of the plugin of that name which serves sessions of a project.
pub fn scope_of(engine: &Engine, plugin: &str, project: &Path) -> SourceScope {
    let scope = SourceScope::Project(project.to_owned());
    let key = SourceKey { kind: SourceKind::Plugin, name: plugin.to_owned(), scope };
    if engine.registry.has_source(&key) { key.scope } else { SourceScope::Global }
}

impl PluginRefusals {
    fn add(&self, plugin: PluginIdentity, mut refusal: PluginRefusal) {
        let mut plugins = self.plugins.lock();
        if plugins.len() >= MAX_PLUGINS && !plugins.contains_key(&plugin) {
            let newest = |refusals: &VecDeque<PluginRefusal>| refusals.back().map(|refusal| refusal.last);
            let oldest = plugins.iter().min_by_key(|(_, refusals)| newest(refusals)).map(|(key, _)| key.clone());
            oldest.map(|key| plugins.remove(&key));
        }
        let refusals = plugins.entry(plugin).or_default();
        if let Some(at) = refusals.iter().position(|known| known.is_same(&refusal)) {
            let known = refusals.remove(at).expect("the position is of this list");
            refusal.times += known.times;
            refusal.first = known.first;
        }
        if refusals.len() >= MAX_OF_PLUGIN {
            refusals.pop_front();
        }
        refusals.push_back(refusal);
    }

    /// The refusals of a plugin, the newest first. `session`: only in that session and while the plugin loaded; all
    /// when `None`.
    pub fn of(&self, scope: &SourceScope, plugin: &str, session: Option<&SessionId>) -> Vec<RefusedNeed> {
        let plugins = self.plugins.lock();
        let refusals = plugins.get(&(scope.clone(), plugin.to_owned())).into_iter().flatten().rev();
        let is_seen = |refusal: &&PluginRefusal| {
            session.is_none() || refusal.session.is_none() || refusal.session.as_ref() == session
        };
        refusals.filter(is_seen).map(PluginRefusal::to_wire).collect()
    }

    /// Removes what a plugin was refused while it loaded: it is about to load again.
    pub fn forget_load(&self, scope: &SourceScope, plugin: &str) {
        if let Some(refusals) = self.plugins.lock().get_mut(&(scope.clone(), plugin.to_owned())) {
            refusals.retain(|refusal| refusal.session.is_some());
        }
    }

    /// Removes what a grant allows, now that it was made.
    pub(crate) fn forget_granted(&self, pattern: &Pattern, grant: &GrantInfo) {
        let mut plugins = self.plugins.lock();
        for refusals in plugins.values_mut() {
            refusals.retain(|refusal| refusal.chain != grant.chain || !refusal.is_about(grant.category, pattern));
        }
        plugins.retain(|_, refusals| !refusals.is_empty());
    }

    /// The chains of plugins that were refused something which the pattern matches and a grant allows.
    pub(crate) fn chains(&self, category: Category, pattern: &Pattern) -> Vec<Vec<String>> {
        let plugins = self.plugins.lock();
        let about = plugins.values().flatten().filter(|refusal| refusal.is_about(category, pattern));
        let chains: BTreeSet<Vec<String>> =
            about.filter(|refusal| refusal.pattern.is_some()).map(|refusal| refusal.chain.clone()).collect();
        chains.into_iter().collect()
    }
}

impl PluginRefusal {
    fn is_same(&self, other: &Self) -> bool {
        self.need.category() == other.need.category()
            && self.need.target == other.need.target
            && self.chain == other.chain
    }

    fn is_about(&self, category: Category, pattern: &Pattern) -> bool {
        self.need.category() == category && pattern.matches(&self.need).is_some()
    }

    fn to_wire(&self) -> RefusedNeed {
        RefusedNeed {
            category: self.need.category(),
            target: self.need.target.clone(),
            reason: self.need.reason.clone(),
            rule: self.rule.clone(),
            pattern: self.pattern.clone(),
            chain: self.chain.clone(),
            at_load: self.session.is_none(),
            times: self.times,
            first_at: rfc3339(self.first),
            last_at: rfc3339(self.last),
        }
    }
}

fn shortened(text: &str) -> String {
    cut_bytes(text, MAX_TEXT, "…").into_owned()
}
