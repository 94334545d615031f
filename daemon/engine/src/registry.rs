//! All tools, by source, in views.
//!
//! A source owns its tools and replaces them as a whole. Readers take a snapshot and never wait;
//! a call keeps the tool that it found, whatever is replaced meanwhile.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use toold_proto::event::EventBody;
use toold_proto::nearest::{MIN_ALIKE, likeness};
use toold_proto::tool::{Source, SourceKind, ToolName};

use crate::callable::Callable;
use crate::events::Events;
use crate::renamed::RenamedTool;
use crate::tool::Origin;
use crate::tool_search::{SearchTerms, search_tools};
use crate::tool_settings::{ToolPattern, ToolRename, ToolSettings};

/// The sessions that see a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceScope {
    Global,
    /// Only sessions of the project with this real path.
    Project(PathBuf),
}

/// The identity of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceKey {
    pub kind: SourceKind,
    pub name: String,
    pub scope: SourceScope,
}

/// A change of what one source offers.
pub enum RegistryChange {
    /// From now on the source has exactly these tools.
    Put {
        key: SourceKey,
        origin: Origin,
        tools: Vec<Arc<dyn Callable>>,
    },
    Remove {
        key: SourceKey,
    },
}

/// A name that another source already has. That source keeps it, and the change was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool name {name} is taken by {}, so {} cannot use it", show(.holder), show(.refused))]
pub struct NameTaken {
    pub name: ToolName,
    pub holder: Box<Source>,
    pub refused: Box<Source>,
}

fn show(source: &Source) -> String {
    match &source.path {
        Some(path) => format!("{} {} ({path})", source.kind.as_str(), source.name),
        None => format!("{} {}", source.kind.as_str(), source.name),
    }
}

pub struct Registry {
    snapshot: ArcSwap<Snapshot>,
    /// Serialises writers.
    sources: Mutex<Sources>,
    events: Arc<Events>,
}

/// All sources, and which of them have a tool of a name: there can be tens of thousands of tools.
#[derive(Default)]
struct Sources {
    by_key: HashMap<Arc<SourceKey>, OwnedTools>,
    by_name: HashMap<ToolName, Vec<Arc<SourceKey>>>,
    /// Built-in tools that a source replaces, because a person allowed it.
    overrides: HashSet<(ToolName, SourceKey)>,
}

struct OwnedTools {
    origin: Origin,
    tools: Vec<Arc<OwnedTool>>,
    /// Earlier sources of one origin keep a name.
    since: u64,
}

/// A tool of a source. It outlives the revisions that it is in, and what was made for it with it.
struct OwnedTool {
    tool: Arc<dyn Callable>,
    /// The same under another name, as last asked for.
    renamed: Mutex<Option<Arc<dyn Callable>>>,
    terms: OnceLock<SearchTerms>,
}

/// The registry at one revision.
#[derive(Default)]
pub struct Snapshot {
    pub revision: u64,
    settings: Arc<ToolSettings>,
    global: Arc<ToolView>,
    projects: HashMap<PathBuf, Arc<ToolView>>,
}

/// The tools that one kind of caller sees. Names are unique.
#[derive(Default)]
pub struct ToolView {
    /// By the names that lists show.
    tools: BTreeMap<ToolName, ShownTool>,
    renamed: BTreeMap<ToolName, ToolRename>,
    disabled: BTreeMap<ToolName, DisabledTool>,
}

struct ShownTool {
    tool: Arc<dyn Callable>,
    owned: Arc<OwnedTool>,
}

/// A tool that the settings disable.
pub struct DisabledTool {
    pub tool: Arc<dyn Callable>,
    pub pattern: ToolPattern,
}

impl Registry {
    pub fn new(events: Arc<Events>) -> Self {
        Self { snapshot: ArcSwap::default(), sources: Mutex::default(), events }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Makes several changes as one revision; each succeeds or fails as a whole. The results are in
    /// the order of the changes. A later change sees the earlier ones.
    pub fn commit(&self, changes: Vec<RegistryChange>) -> Vec<Result<(), NameTaken>> {
        let mut sources = self.sources.lock();
        let before = self.snapshot.load_full();
        let revision = before.revision + 1;
        let apply = |change| apply(&mut sources, change, &before.settings, revision);
        let answers = changes.into_iter().map(apply).collect();
        let after = Snapshot::of(&sources, &before.settings, revision);
        let (added, removed, changed) = difference(&before, &after);
        if added.is_empty() && removed.is_empty() && changed.is_empty() {
            return answers;
        }
        self.replace(after, (added, removed, changed));
        answers
    }

    /// Makes a snapshot the current one, and reports it. Call it under the lock of the sources, so that events come in the
    /// order of revisions.
    fn replace(&self, after: Snapshot, (added, removed, changed): NameChanges) {
        let revision = after.revision;
        self.snapshot.store(Arc::new(after));
        self.events.emit(EventBody::ToolsChanged { revision, added, removed, changed });
    }

    /// One change, one revision.
    pub fn put(&self, key: SourceKey, origin: Origin, tools: Vec<Arc<dyn Callable>>) -> Result<(), NameTaken> {
        self.commit(vec![RegistryChange::Put { key, origin, tools }]).pop().expect("one change has one answer")
    }

    pub fn remove(&self, key: SourceKey) {
        self.commit(vec![RegistryChange::Remove { key }]);
    }

    /// Replaces the settings of tools. If they differ from those before, this is a new revision, also when no name
    /// changes: lists may be shorter or longer.
    pub fn set_tool_settings(&self, settings: ToolSettings) {
        let sources = self.sources.lock();
        let before = self.snapshot.load_full();
        if *before.settings == settings {
            return;
        }
        let after = Snapshot::of(&sources, &Arc::new(settings), before.revision + 1);
        let names = difference(&before, &after);
        self.replace(after, names);
    }

    /// Makes a new revision of the same tools. A session sees those of another project from now on, so the list that it
    /// has is outdated.
    pub fn view_changed(&self) {
        let _sources = self.sources.lock();
        let before = self.snapshot.load_full();
        let (settings, global, projects) = (before.settings.clone(), before.global.clone(), before.projects.clone());
        let after = Snapshot { revision: before.revision + 1, settings, global, projects };
        self.replace(after, NameChanges::default());
    }

    pub fn has_source(&self, key: &SourceKey) -> bool {
        self.sources.lock().by_key.contains_key(key)
    }

    /// The source that owns this name and keeps it from others: for an early warning to a plugin's
    /// author.
    pub fn holder(&self, name: &ToolName, key: &SourceKey, origin: Origin) -> Option<Source> {
        let sources = self.sources.lock();
        sources.holder(name, key, origin, &self.snapshot.load().settings)
    }

    /// From now on a source may have the name of a built-in tool, which it then replaces. To be called only for what a
    /// person allowed.
    pub fn let_override(&self, name: ToolName, key: SourceKey) {
        self.sources.lock().overrides.insert((name, key));
    }

    /// A source replaces this built-in tool no more, from its next change on.
    pub fn end_override(&self, name: &ToolName, key: &SourceKey) {
        self.sources.lock().overrides.remove(&(name.clone(), key.clone()));
    }

    /// The names that these sources keep from a source of this origin, and where they do.
    pub fn names_held(&self, origin: Origin, by: impl Fn(&SourceKey) -> bool) -> HashMap<ToolName, Vec<SourceScope>> {
        let sources = self.sources.lock();
        let mut held: HashMap<ToolName, Vec<SourceScope>> = HashMap::new();
        for (key, owned) in sources.by_key.iter().filter(|(key, owned)| owned.origin <= origin && by(key)) {
            for owned in &owned.tools {
                held.entry(owned.tool.spec().name.clone()).or_default().push(key.scope.clone());
            }
        }
        held
    }
}

impl Snapshot {
    /// The view of a session in this project; the global one for projects without sources.
    pub fn view(&self, project: &Path) -> &Arc<ToolView> {
        self.projects.get(project).unwrap_or(&self.global)
    }

    pub fn global(&self) -> &Arc<ToolView> {
        &self.global
    }

    pub fn tool_settings(&self) -> &ToolSettings {
        &self.settings
    }

    fn of(sources: &Sources, settings: &Arc<ToolSettings>, revision: u64) -> Self {
        let mut ordered: Vec<(&SourceKey, &OwnedTools)> =
            sources.by_key.iter().map(|(key, owned)| (key.as_ref(), owned)).collect();
        // A built-in source for one project replaces the one for all projects.
        let general = |key: &SourceKey| key.kind == SourceKind::Builtin && key.scope == SourceScope::Global;
        ordered.sort_by_key(|(key, owned)| (owned.origin, general(key), owned.since));
        let view = |sees: &dyn Fn(&SourceScope) -> bool| {
            let mut tools = BTreeMap::<ToolName, Arc<OwnedTool>>::new();
            // Tools with the name of a built-in one that the settings disable or rename.
            let mut successors = Vec::new();
            for (key, owned) in ordered.iter().filter(|(key, _)| sees(&key.scope)) {
                for owned in &owned.tools {
                    let spec = owned.tool.spec();
                    match tools.entry(spec.name.clone()) {
                        Entry::Vacant(free) => _ = free.insert(owned.clone()),
                        Entry::Occupied(_) if spec.source.kind != SourceKind::Plugin => {}
                        Entry::Occupied(mut held) if held.get().tool.spec().origin == Origin::Builtin => {
                            if sources.overrides.contains(&(spec.name.clone(), (*key).clone())) {
                                held.insert(owned.clone());
                            } else if settings.frees(&spec.name) {
                                successors.push(owned.clone());
                            }
                        }
                        Entry::Occupied(_) => {}
                    }
                }
            }
            Arc::new(ToolView::of(tools, successors, settings))
        };
        let projects: BTreeSet<&PathBuf> = sources
            .by_key
            .keys()
            .filter_map(|key| match &key.scope {
                SourceScope::Global => None,
                SourceScope::Project(path) => Some(path),
            })
            .collect();
        Self {
            revision,
            settings: settings.clone(),
            global: view(&|scope| *scope == SourceScope::Global),
            projects: projects
                .into_iter()
                .map(|path| {
                    let own = SourceScope::Project(path.clone());
                    (path.clone(), view(&|scope| *scope == SourceScope::Global || *scope == own))
                })
                .collect(),
        }
    }
}

impl ToolView {
    /// `tools` by their own names. `successors` have names of tools that the settings disable or rename; the settings are
    /// about those, and the first successor has the name.
    fn of(
        mut tools: BTreeMap<ToolName, Arc<OwnedTool>>,
        successors: Vec<Arc<OwnedTool>>,
        settings: &ToolSettings,
    ) -> Self {
        let mut disabled = BTreeMap::new();
        if !settings.disabled.is_empty() {
            tools.retain(|name, owned| {
                let Some(pattern) = settings.disables(name) else { return true };
                disabled.insert(name.clone(), DisabledTool { tool: owned.tool.clone(), pattern: pattern.clone() });
                false
            });
        }
        let renamed = match settings.renamed.is_empty() {
            true => BTreeMap::new(),
            false => {
                settings.renames_among(&tools.iter().map(|(own, owned)| (own, owned.tool.spec().origin)).collect())
            }
        };
        let hidden: BTreeSet<ToolName> = renamed.values().map(|rename| rename.to.clone()).collect();
        tools.retain(|own, _| renamed.contains_key(own) || !hidden.contains(own));
        let listed = |(own, owned): (ToolName, Arc<OwnedTool>)| match renamed.get(&own) {
            Some(rename) => (rename.to.clone(), ShownTool { tool: owned.renamed_to(&rename.to), owned }),
            None => (own, ShownTool { tool: owned.tool.clone(), owned }),
        };
        let mut shown: BTreeMap<ToolName, ShownTool> = tools.into_iter().map(listed).collect();
        for owned in successors {
            let name = owned.tool.spec().name.clone();
            shown.entry(name).or_insert_with(|| ShownTool { tool: owned.tool.clone(), owned });
        }
        Self { tools: shown, renamed, disabled }
    }

    /// The tool that lists show under this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Callable>> {
        self.tools.get(name).map(|listed| &listed.tool)
    }

    /// The tool of this own name, whatever lists call it: plugins call tools so.
    pub fn find_own(&self, own_name: &str) -> Option<&Arc<dyn Callable>> {
        let listed = self.renamed.get(own_name).map_or(own_name, |rename| rename.to.as_str());
        self.find(listed).filter(|tool| tool.own_name().as_str() == own_name)
    }

    /// The new name of the tool with this own name, if it has one.
    pub fn rename_of(&self, own_name: &str) -> Option<&ToolRename> {
        self.renamed.get(own_name)
    }

    /// The tool of this own name that the settings disable.
    pub fn disabled(&self, own_name: &str) -> Option<&DisabledTool> {
        self.disabled.get(own_name)
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Callable>> {
        self.tools.values().map(|listed| &listed.tool)
    }

    /// The tools that fit the words, the best first, of those that `seen` takes. All of them, by name, if there are no words.
    pub fn search(&self, words: &str, seen: impl Fn(&Arc<dyn Callable>) -> bool) -> Vec<&Arc<dyn Callable>> {
        let seen: Vec<&ShownTool> = self.tools.values().filter(|listed| seen(&listed.tool)).collect();
        let terms: Vec<&SearchTerms> = seen.iter().map(|listed| listed.terms()).collect();
        search_tools(words, &terms).into_iter().map(|place| &seen[place].tool).collect()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Suggestions for a misspelt name, the closest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        // One letter is the start of many names.
        if name.chars().nth(1).is_none() {
            return Vec::new();
        }
        let mut scored: Vec<(f64, &ToolName)> = self
            .tools
            .keys()
            .map(|known| {
                let similar = likeness(known.as_str(), name);
                // Nearly all names have any one letter.
                let contains = name.len() > 2 && (known.as_str().contains(name) || name.contains(known.as_str()));
                (if contains { similar.max(0.9) } else { similar }, known)
            })
            .filter(|(score, _)| *score >= MIN_ALIKE)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(5).map(|(_, name)| name.as_str().to_owned()).collect()
    }
}

impl ShownTool {
    fn terms(&self) -> &SearchTerms {
        // Uses the tool's own name: it stays while the name in lists changes, and says as much about the tool.
        self.owned.terms.get_or_init(|| SearchTerms::of(self.owned.tool.spec()))
    }
}

impl OwnedTool {
    fn new(tool: Arc<dyn Callable>) -> Self {
        Self { tool, renamed: Mutex::default(), terms: OnceLock::new() }
    }

    fn renamed_to(&self, name: &ToolName) -> Arc<dyn Callable> {
        let mut renamed = self.renamed.lock();
        match renamed.as_ref().filter(|renamed| renamed.spec().name == *name) {
            Some(known) => known.clone(),
            None => renamed.insert(Arc::new(RenamedTool::new(&self.tool, name.clone()))).clone(),
        }
    }
}

fn apply(
    sources: &mut Sources,
    change: RegistryChange,
    settings: &ToolSettings,
    revision: u64,
) -> Result<(), NameTaken> {
    match change {
        RegistryChange::Remove { key } => {
            sources.overrides.retain(|(_, other)| *other != key);
            sources.remove(&key);
            Ok(())
        }
        RegistryChange::Put { key, origin, tools } => {
            for tool in &tools {
                let spec = tool.spec();
                if let Some(holder) = sources.holder(&spec.name, &key, origin, settings) {
                    let (holder, refused) = (Box::new(holder), Box::new(spec.source.clone()));
                    return Err(NameTaken { name: spec.name.clone(), holder, refused });
                }
            }
            let before = sources.remove(&key);
            let since = before.as_ref().map_or(revision, |owned| owned.since);
            // A source that changes mostly adds few tools to many.
            let address = |tool: &Arc<dyn Callable>| Arc::as_ptr(tool).cast::<()>();
            let mut known: HashMap<_, _> =
                before.into_iter().flat_map(|owned| owned.tools).map(|owned| (address(&owned.tool), owned)).collect();
            let owned = |tool: Arc<dyn Callable>| match known.remove(&address(&tool)) {
                Some(known) => known,
                None => Arc::new(OwnedTool::new(tool)),
            };
            let tools = tools.into_iter().map(owned).collect();
            sources.insert(key, OwnedTools { origin, tools, since });
            Ok(())
        }
    }
}

impl Sources {
    fn remove(&mut self, key: &SourceKey) -> Option<OwnedTools> {
        let removed = self.by_key.remove(key)?;
        for owned in &removed.tools {
            let name = &owned.tool.spec().name;
            let Some(keys) = self.by_name.get_mut(name) else { continue };
            keys.retain(|other| other.as_ref() != key);
            if keys.is_empty() {
                self.by_name.remove(name);
            }
        }
        Some(removed)
    }

    /// Its key must be free.
    fn insert(&mut self, key: SourceKey, owned: OwnedTools) {
        let key = Arc::new(key);
        for owned in &owned.tools {
            self.by_name.entry(owned.tool.spec().name.clone()).or_default().push(key.clone());
        }
        self.by_key.insert(key, owned);
    }

    /// A source of the same or an earlier origin, in an overlapping scope, that has the name. A
    /// built-in source of the same name is the same source for another project. A built-in tool that the settings disable
    /// or rename holds no name against plugins, and neither does one that the source may replace.
    fn holder(&self, name: &ToolName, key: &SourceKey, origin: Origin, settings: &ToolSettings) -> Option<Source> {
        let frees_builtin = key.kind == SourceKind::Plugin
            && (settings.frees(name) || self.overrides.contains(&(name.clone(), key.clone())));
        let overlaps = |other: &SourceScope| {
            *other == SourceScope::Global || key.scope == SourceScope::Global || *other == key.scope
        };
        let is_same_builtin =
            |other: &SourceKey| key.kind == SourceKind::Builtin && other.kind == key.kind && other.name == key.name;
        let keys = self.by_name.get(name)?.iter();
        let mut others =
            keys.filter(|other| other.as_ref() != key && overlaps(&other.scope) && !is_same_builtin(other));
        let owned = others.find_map(|other| {
            let holds =
                |owned: &&OwnedTools| owned.origin <= origin && !(frees_builtin && owned.origin == Origin::Builtin);
            self.by_key.get(other).filter(holds)
        })?;
        let tool = owned.tools.iter().map(|owned| owned.tool.spec()).find(|spec| spec.name == *name)?;
        Some(tool.source.clone())
    }
}

/// The names that were added, removed and changed.
type NameChanges = (Vec<ToolName>, Vec<ToolName>, Vec<ToolName>);

/// Names that were added, removed, or are served by another tool now, over all views.
fn difference(before: &Snapshot, after: &Snapshot) -> NameChanges {
    let (mut added, mut removed, mut changed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut compare = |old: &ToolView, new: &ToolView| {
        for (name, tool) in &new.tools {
            match old.tools.get(name) {
                None => _ = added.insert(name.clone()),
                Some(was) if !Arc::ptr_eq(&was.tool, &tool.tool) => _ = changed.insert(name.clone()),
                Some(_) => {}
            }
        }
        removed.extend(old.tools.keys().filter(|name| !new.tools.contains_key(*name)).cloned());
    };
    compare(&before.global, &after.global);
    let projects: BTreeSet<&PathBuf> = before.projects.keys().chain(after.projects.keys()).collect();
    for project in projects {
        compare(before.view(project), after.view(project));
    }
    let list = |set: BTreeSet<ToolName>| set.into_iter().collect();
    (list(added), list(removed), list(changed))
}
