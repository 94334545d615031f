//! The `skill` tool, whose description lists the skills that there are: for everybody, and for each project that has
//! some. It is registered anew when they change.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toold_builtins::skill;
use toold_builtins::skills::{Skills, find_skills};
use toold_engine::registry::{Scope, SourceKey};
use toold_engine::tool::Origin;
use toold_proto::tool::SourceKind;

use crate::daemon::State;

/// How often the folders are looked at while somebody is there. Reading a handful of small files takes less than a
/// millisecond; watching folders that are mostly not there would take more care than it saves.
const EVERY: Duration = Duration::from_secs(2);

/// What the registered tools say.
#[derive(Default)]
pub struct SkillTools(Mutex<HashMap<Scope, Skills>>);

/// Registers the tool, and follows the folders from then on.
pub fn follow(state: &Arc<State>) {
    refresh(state);
    let (stop, following) = (state.engine.stop.clone(), state.clone());
    state.engine.tasks.spawn(async move {
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
            let state = following.clone();
            // Fails only when the runtime stops.
            let _ = tokio::task::spawn_blocking(move || refresh(&state)).await;
        }
    });
}

/// Looks at the folders of the user and of open projects, and registers what has changed. Blocks.
pub fn refresh(state: &State) {
    let mut projects: Vec<PathBuf> =
        state.engine.sessions.list().iter().map(|session| session.project.clone()).collect();
    projects.sort();
    projects.dedup();
    let places = state.builtins.skill_places();
    let mut known = state.skill_tools.0.lock().expect("no code panics while it holds this lock");
    let global = find_skills(places, None);
    for project in projects {
        let skills = find_skills(places, Some((&project, &project)));
        // A project without skills of its own sees the same tool as everybody.
        let own = skills.skills.iter().any(|skill| global.find(&skill.name) != Some(skill));
        put(state, &mut known, Scope::Project(project), own.then_some(skills));
    }
    put(state, &mut known, Scope::Global, Some(global));
}

fn put(state: &State, known: &mut HashMap<Scope, Skills>, scope: Scope, skills: Option<Skills>) {
    if known.get(&scope) == skills.as_ref() {
        return;
    }
    let key = SourceKey { kind: SourceKind::Builtin, name: "skills".into(), scope: scope.clone() };
    match skills {
        Some(skills) => {
            let tool = skill::tool(&state.builtins, &skills);
            if let Err(error) = state.engine.registry.put(key, Origin::Builtin, vec![tool]) {
                tracing::error!(%error, "the skill tool cannot be registered");
            }
            known.insert(scope, skills);
        }
        None => {
            state.engine.registry.remove(key);
            known.remove(&scope);
        }
    }
}
