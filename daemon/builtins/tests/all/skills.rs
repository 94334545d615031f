use std::sync::Arc;

use serde_json::json;
use toold_builtins::skill;
use toold_builtins::skills::{Skills, find_skills};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::tool::SourceKind;

use crate::builtin_test::BuiltinTest;

fn register(test: &BuiltinTest, scope: SourceScope, skills: &Skills) {
    let key = SourceKey { kind: SourceKind::Builtin, name: "skills".into(), scope };
    test.engine.registry.put(key, Origin::Builtin, vec![skill::tool(&test.toolkit, skills)]).unwrap();
}

#[tokio::test]
async fn skill_is_read_now_and_lists_its_files() {
    let test = BuiltinTest::new();
    register(&test, SourceScope::Global, &Skills::default());
    test.write(".agents/skills/commit/SKILL.md", "---\nname: commit\ndescription: How to commit\n---\nWrite why.\n");
    test.write(".agents/skills/commit/scripts/check.sh", "");
    // Neither is named.
    test.write(".agents/skills/commit/scripts/.env", "");
    test.write(".agents/skills/commit/private/notes", "");
    test.write(".aiexclude", "private/\n");
    let text = test.ok("skill", json!({"name": "commit"})).await;
    assert!(text.starts_with("Write why.\n\n[the skill's folder is "), "{text}");
    assert!(text.ends_with("it holds scripts/check.sh]"), "{text}");
    test.write(".agents/skills/commit/SKILL.md", "---\nname: commit\ndescription: How to commit\n---\nWrite what.\n");
    assert!(test.ok("skill", json!({"name": "commit"})).await.starts_with("Write what."));
    assert_eq!(test.bad("skill", json!({"name": "x"})).await, "there is no skill x; there are: commit");
}

#[tokio::test]
async fn tool_description_lists_the_skills_of_a_project() {
    let test = BuiltinTest::new();
    test.write(".claude/skills/review.md", "# Reviews code\n");
    let places = test.toolkit.skill_places();
    register(&test, SourceScope::Global, &find_skills(places, None));
    register(&test, SourceScope::Project(test.root.clone()), &find_skills(places, Some((&test.root, &test.root))));
    let snapshot = test.engine.registry.snapshot();
    let described =
        |view: &Arc<toold_engine::registry::ToolView>| view.find("skill").unwrap().spec().description.clone();
    assert!(described(snapshot.view(&test.root)).ends_with("There are:\n- review: Reviews code"));
    assert!(described(snapshot.global()).ends_with("There are none yet."));
}
