use serde_json::json;
use toold_builtins::memories::{MemoryScope, memories};
use toold_proto::tool::Category;

use crate::builtin_test::{BuiltinTest, session};

#[tokio::test]
async fn session_memory_needs_no_permission() {
    let test = BuiltinTest::strict();
    let text = test.ok("remember", json!({"content": "The build needs make 4.4"})).await;
    let id = text.strip_prefix("remembered as ").unwrap().to_owned();
    assert!(id.starts_with("the-build-needs-make-4-4-"), "{id}");
    assert_eq!(
        test.ok("remember", json!({"content": "The build needs make 4.4"})).await,
        format!("known already as {id}")
    );
    let known = memories(&test.toolkit, &test.session);
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].content.as_str(), known[0].scope), ("The build needs make 4.4", MemoryScope::Session));
    let (other, _) = test.engine.sessions.open(session("s2", &test.root));
    assert!(memories(&test.toolkit, &other).is_empty());
    assert_eq!(test.ok("forget", json!({"memory_id": id})).await, "forgot: The build needs make 4.4");
    assert!(memories(&test.toolkit, &test.session).is_empty());
}

#[tokio::test]
async fn shared_memory_is_a_file_that_needs_permission() {
    let test = BuiltinTest::strict();
    let error = test.bad("remember", json!({"content": "Use tabs", "scope": "project"})).await;
    assert!(error.contains("file.write"), "{error}");
    assert!(!test.root.join(".toold").exists());
    test.rule(Category::FileWrite, "**", toold_proto::permission::Verdict::Allow);
    let text = test.ok("remember", json!({"content": "Use tabs", "scope": "project"})).await;
    let id = text.strip_prefix("remembered as ").unwrap().to_owned();
    let file = test.content(&format!(".toold/memories/{id}.md"));
    assert!(file.starts_with("---\ncreated_at: 20") && file.ends_with("---\nUse tabs\n"), "{file}");
    // All sessions in the project see it; no other tool may write it.
    let (other, _) = test.engine.sessions.open(session("s2", &test.root));
    assert_eq!(memories(&test.toolkit, &other)[0].content, "Use tabs");
    let written = test.bad("write", json!({"path": ".toold/memories/other.md", "content": "x"})).await;
    assert!(written.contains("control files"), "{written}");
    test.ok("remember", json!({"content": "Answer in French", "scope": "global"})).await;
    assert_eq!(memories(&test.toolkit, &test.session).len(), 2);
    test.ok("forget", json!({"memory_id": id})).await;
    assert_eq!(memories(&test.toolkit, &test.session).len(), 1);
}

#[tokio::test]
async fn people_write_memories_by_hand_too() {
    let test = BuiltinTest::new();
    test.write(".toold/memories/style.md", "Write short sentences.\n");
    test.write(".toold/memories/notes.txt", "no memory");
    test.write("outside.md", "secret");
    std::os::unix::fs::symlink(test.root.join("outside.md"), test.root.join(".toold/memories/link.md")).unwrap();
    let known = memories(&test.toolkit, &test.session);
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!((known[0].id.as_str(), known[0].content.as_str()), ("style", "Write short sentences."));
    let unknown = test.bad("forget", json!({"memory_id": "none"})).await;
    assert_eq!(unknown, "there is no memory none; there are: style");
}

#[tokio::test]
async fn secrets_and_nothing_are_not_remembered() {
    let test = BuiltinTest::new();
    let secret = test.bad("remember", json!({"content": "the key is sk-ant-A1b2C3d4E5f6G7h8I9j0"})).await;
    assert!(secret.contains("looks like a secret"), "{secret}");
    assert!(test.bad("remember", json!({"content": "  "})).await.contains("is empty"));
    assert!(test.bad("remember", json!({"content": "x".repeat(9000)})).await.contains("too many"));
    assert!(memories(&test.toolkit, &test.session).is_empty());
}
