use std::sync::Arc;

use serde_json::json;
use toold_builtins::skill;
use toold_builtins::skills::{Skills, find_skills};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::SourceKind;

use crate::house::House;

fn register(house: &House, scope: SourceScope, skills: &Skills) {
    let key = SourceKey { kind: SourceKind::Builtin, name: "skills".into(), scope };
    house.engine.registry.put(key, Origin::Builtin, vec![skill::tool(&house.shared, skills)]).unwrap();
}

#[tokio::test]
async fn a_skill_is_shown_as_it_is_now_with_what_lies_beside_it() {
    let house = House::new();
    register(&house, SourceScope::Global, &Skills::default());
    house.write(".agents/skills/commit/SKILL.md", "---\nname: commit\ndescription: How to commit\n---\nWrite why.\n");
    house.write(".agents/skills/commit/scripts/check.sh", "");
    // Neither is named.
    house.write(".agents/skills/commit/scripts/.env", "");
    house.write(".agents/skills/commit/private/notes", "");
    house.write(".aiexclude", "private/\n");
    let text = house.ok("skill", json!({"name": "commit"})).await;
    assert!(text.starts_with("Write why.\n\n[the skill's folder is "), "{text}");
    assert!(text.ends_with("it holds scripts/check.sh]"), "{text}");
    house.write(".agents/skills/commit/SKILL.md", "---\nname: commit\ndescription: How to commit\n---\nWrite what.\n");
    assert!(house.ok("skill", json!({"name": "commit"})).await.starts_with("Write what."));
    assert_eq!(house.bad("skill", json!({"name": "x"})).await, "there is no skill x; there are: commit");
}

#[tokio::test]
async fn the_tool_says_which_skills_a_project_has() {
    let house = House::new();
    house.write(".claude/skills/review.md", "# Reviews code\n");
    let places = house.shared.skill_places();
    register(&house, SourceScope::Global, &find_skills(places, None));
    register(&house, SourceScope::Project(house.root.clone()), &find_skills(places, Some((&house.root, &house.root))));
    let snapshot = house.engine.registry.snapshot();
    let described =
        |view: &Arc<toold_engine::registry::ToolView>| view.find("skill").unwrap().spec().description.clone();
    assert!(described(snapshot.view(&house.root)).ends_with("There are:\n- review: Reviews code"));
    assert!(described(snapshot.global()).ends_with("There are none yet."));
}
