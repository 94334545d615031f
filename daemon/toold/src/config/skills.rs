//! The `skill` tool, whose description lists the available skills: one for everybody, and one for
//! each project that has some. It is registered again when they change, and so are the resources
//! and prompts for MCP clients: skills, and the memories of projects and of the user.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toold_builtins::memories::{self, MemoryScope};
use toold_builtins::skills::{Skills, find_skills};
use toold_builtins::toolkit::Toolkit;
use toold_builtins::{resources, skill};
use toold_engine::Engine;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::SourceKind;

/// How often the folders are checked while a client is connected. Reading a handful of small files
/// takes less than a millisecond; watching folders that mostly do not exist would take more care
/// than it saves.
const EVERY: Duration = Duration::from_secs(2);

/// The `skill` tools of the user and of each project.
struct SkillTools {
    engine: Arc<Engine>,
    builtins: Arc<Toolkit>,
    registered: Mutex<RegisteredSkills>,
}

/// The descriptions of the registered tools, and the current offers.
#[derive(Default)]
struct RegisteredSkills {
    skills: HashMap<SourceScope, Skills>,
    /// By their ids.
    memories: HashMap<SourceScope, Vec<String>>,
}

/// Registers the tool, and follows the folders from then on.
pub fn follow(engine: &Arc<Engine>, builtins: &Arc<Toolkit>) {
    let (engine, builtins) = (engine.clone(), builtins.clone());
    let following = Arc::new(SkillTools { engine, builtins, registered: Mutex::default() });
    following.refresh();
    let (stop, tasks) = (following.engine.stop.clone(), following.engine.tasks.clone());
    tasks.spawn(async move {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            if following.engine.sessions.list().is_empty() {
                continue;
            }
            let tools = following.clone();
            // Fails only when the runtime stops.
            let _ = tokio::task::spawn_blocking(move || tools.refresh()).await;
        }
    });
}

impl SkillTools {
    /// Checks the folders of the user and of open projects, and registers changes. Blocks.
    fn refresh(&self) {
        let mut projects: Vec<PathBuf> =
            self.engine.sessions.list().iter().map(|session| session.project().to_owned()).collect();
        projects.sort();
        projects.dedup();
        let places = self.builtins.skill_places();
        let mut known = self.registered.lock();
        let mut offers = Vec::new();
        let global = find_skills(places, None);
        for project in projects {
            let skills = find_skills(places, Some((&project, &project)));
            // A project without skills of its own sees the same tool as everybody.
            let own = skills.skills.iter().any(|skill| global.find(&skill.name) != Some(skill));
            let memories = memories::ids(&self.builtins, Some(&project));
            let scope = SourceScope::Project(project);
            offers.extend(self.put(&mut known.skills, scope.clone(), own.then_some(skills)));
            offers.extend(self.offer_memories(&mut known.memories, scope, memories));
        }
        offers.extend(self.put(&mut known.skills, SourceScope::Global, Some(global)));
        let memories = memories::ids(&self.builtins, None);
        offers.extend(self.offer_memories(&mut known.memories, SourceScope::Global, memories));
        // A plugin of the user's keeps its prompts, whatever skills a project brings.
        let offers = offers.into_iter().map(|(key, offer)| (key, Origin::ProjectPlugin, offer));
        self.engine.offers.commit(offers.collect());
    }

    /// Registers the tool, and returns the new offer if it changed.
    fn put(
        &self,
        known: &mut HashMap<SourceScope, Skills>,
        scope: SourceScope,
        skills: Option<Skills>,
    ) -> Option<(SourceKey, SourceOffer)> {
        if known.get(&scope) == skills.as_ref() {
            return None;
        }
        let key = key("skills", &scope);
        let Some(skills) = skills else {
            self.engine.registry.remove(key.clone());
            known.remove(&scope);
            return Some((key, SourceOffer::default()));
        };
        let tool = skill::tool(&self.builtins, &skills);
        if let Err(error) = self.engine.registry.put(key.clone(), Origin::Builtin, vec![tool]) {
            tracing::error!(%error, "the skill tool cannot be registered");
        }
        let offer = resources::of_skills(&self.builtins, &skills);
        known.insert(scope, skills);
        Some((key, offer))
    }

    fn offer_memories(
        &self,
        known: &mut HashMap<SourceScope, Vec<String>>,
        scope: SourceScope,
        ids: Vec<String>,
    ) -> Option<(SourceKey, SourceOffer)> {
        if known.get(&scope).map_or(&[][..], Vec::as_slice) == ids {
            return None;
        }
        let whose = match &scope {
            SourceScope::Global => MemoryScope::Global,
            SourceScope::Project(_) => MemoryScope::Project,
        };
        let offer = resources::of_memories(&self.builtins, whose, &ids);
        let key = key("memories", &scope);
        known.insert(scope, ids);
        Some((key, offer))
    }
}

fn key(name: &str, scope: &SourceScope) -> SourceKey {
    SourceKey { kind: SourceKind::Builtin, name: name.into(), scope: scope.clone() }
}
