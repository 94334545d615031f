//! Publishes the lists of sources in the registry, and their resources and prompts among the offers.

use std::collections::HashMap;
use std::sync::Arc;

use toold_engine::callable::Callable;
use toold_engine::offers::{HiddenOffer, SourceOffer};
use toold_engine::registry::{RegistryChange, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::ToolName;

use crate::adapter::{ListedTool, MountAdapter};
use crate::config::MountKey;
use crate::mount::{MountedSource, NamedTools};
use crate::offers::PublishedOffers;
use crate::tool::MountedTool;
use crate::{MountSupervisor, names, source_key};

/// The registered tools of one mount.
pub(crate) struct PublishedTools<A: MountAdapter> {
    /// The lists that `tools` were made of.
    named: NamedTools<A>,
    notice: Option<String>,
    tools: Vec<Arc<MountedTool<A>>>,
    /// Tools whose names are taken.
    problems: Vec<String>,
    offers: Option<PublishedOffers<A>>,
}

impl<A: MountAdapter> Default for PublishedTools<A> {
    fn default() -> Self {
        Self { named: NamedTools::<A>::default(), notice: None, tools: Vec::new(), problems: Vec::new(), offers: None }
    }
}

impl<A: MountAdapter> MountSupervisor<A> {
    /// Updates the registry from all mounts, as one revision; does nothing when nothing changed.
    /// Names are assigned in the order of the mounts' names, so that it does not matter which was
    /// there first.
    pub(crate) fn publish(&self) {
        let Some(engine) = self.engine.upgrade() else { return };
        let mut published = self.published.lock();
        let mounts: Vec<(MountKey, Arc<MountedSource<A>>)> =
            self.mounts.lock().iter().map(|(key, mount)| (key.clone(), mount.clone())).collect();
        // The names of other mounts of this kind are assigned again at the same time.
        let mut taken = engine.registry.names_held(Origin::Mcp, |key| key.kind != A::SOURCE);
        let (mut removes, mut puts, mut offers) = (Vec::new(), Vec::new(), Vec::new());
        published.retain(|key, _| {
            let is_mounted = mounts.iter().any(|(other, _)| other == key);
            if !is_mounted {
                let key = source_key::<A>(key);
                offers.push((key.clone(), Origin::Mcp, SourceOffer::default()));
                removes.push(RegistryChange::Remove { key });
            }
            is_mounted
        });
        for (key, mount) in &mounts {
            let before = published.entry(key.clone()).or_default();
            let listed = mount.offers();
            let mut offered = before.offers.take();
            if offered.as_ref().is_none_or(|offered| !offered.is_of(mount, &listed)) {
                let now = PublishedOffers::new(mount, listed, offered.as_ref());
                offers.push((source_key::<A>(key), Origin::Mcp, now.offer()));
                offered = Some(now);
            }
            let mut now = tools_of(key, mount, before, &mut taken);
            let is_same = now.tools.len() == before.tools.len()
                && now.tools.iter().zip(&before.tools).all(|(now, before)| Arc::ptr_eq(now, before));
            if !is_same {
                let tools = now.tools.iter().map(|tool| tool.clone() as Arc<dyn Callable>).collect();
                // All removals before any additions: a name may move from one mount to another.
                removes.push(RegistryChange::Remove { key: source_key::<A>(key) });
                puts.push(RegistryChange::Put { key: source_key::<A>(key), origin: Origin::Mcp, tools });
            }
            now.offers = offered;
            *before = now;
        }
        engine.offers.commit(offers);
        let removed = removes.len();
        removes.append(&mut puts);
        for answer in engine.registry.commit(removes).into_iter().skip(removed) {
            if let Err(taken) = answer {
                // Another source took a name between the check and the commit; the next list
                // retries.
                tracing::warn!(%taken, "the tools of a mounted source are not published");
            }
        }
    }

    /// The names of a mount's tools, sorted, and the problems with them.
    pub(crate) fn published_tools(&self, key: &MountKey) -> (Vec<ToolName>, Vec<String>) {
        let published = self.published.lock();
        let Some(of_mount) = published.get(key) else { return (Vec::new(), Vec::new()) };
        let mut names: Vec<ToolName> = of_mount.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        names.sort();
        let hidden =
            self.engine.upgrade().map(|engine| engine.offers.hidden(&source_key::<A>(key))).unwrap_or_default();
        let hidden = hidden.into_iter().map(|HiddenOffer { kind, name, holder }| {
            format!(
                "its {kind} {name} is not used: {} {} offers the same and comes first",
                holder.kind.as_str(),
                holder.name
            )
        });
        (names, of_mount.problems.iter().cloned().chain(hidden).collect())
    }
}

fn tools_of<A: MountAdapter>(
    key: &MountKey,
    mount: &Arc<MountedSource<A>>,
    before: &PublishedTools<A>,
    taken: &mut HashMap<ToolName, Vec<SourceScope>>,
) -> PublishedTools<A> {
    let named = mount.offered_tools();
    let notice = mount.away().map(|away| away.notice);
    let is_unchanged = Arc::ptr_eq(&named, &before.named) && notice == before.notice;
    let old: HashMap<&str, &Arc<MountedTool<A>>> = match is_unchanged {
        // They are in the same order, if no name was taken.
        true if before.tools.len() == named.len() => HashMap::new(),
        _ => before.tools.iter().map(|tool| (tool.upstream_name(), tool)).collect(),
    };
    let mut now = PublishedTools { tools: Vec::with_capacity(named.len()), ..PublishedTools::default() };
    for (place, (name, known)) in named.iter().enumerate() {
        let own = known.tool.upstream_name();
        let mut name = name.clone();
        if mount.adapter.renames_taken() && !is_free(key, &name, taken) {
            name = names::with_hash(&mount.config.name, own);
        }
        if !is_free(key, &name, taken) {
            now.problems.push(format!("{own} is left out: the name {name} is taken"));
            continue;
        }
        // An unchanged tool stays the same object, or it would be reported as changed.
        let old = if old.is_empty() { before.tools.get(place) } else { old.get(own).copied() };
        let made = match old.filter(|old| old.is_same(mount, &name, known, notice.as_deref())) {
            Some(old) => Some(old.clone()),
            None => MountedTool::new(mount, name.clone(), known, notice.as_deref()).map(Arc::new),
        };
        if let Some(made) = made {
            taken.entry(name).or_default().push(key.0.clone());
            now.tools.push(made);
        }
    }
    now.named = named;
    now.notice = notice;
    now
}

fn is_free(key: &MountKey, name: &ToolName, taken: &HashMap<ToolName, Vec<SourceScope>>) -> bool {
    let overlaps =
        |other: &SourceScope| *other == SourceScope::Global || key.0 == SourceScope::Global || *other == key.0;
    !taken.get(name).is_some_and(|scopes| scopes.iter().any(overlaps))
}
