use serde_json::json;
use toold_builtins::todo::items;
use toold_proto::todo::TodoStatus;

use crate::builtin_test::{BuiltinTest, session};

#[tokio::test]
async fn the_list_is_replaced_and_belongs_to_its_session() {
    let test = BuiltinTest::strict();
    let list = json!([
        {"content": "Read the code", "status": "completed"},
        {"content": "Fix it", "status": "in_progress", "priority": "high", "active_form": "Fixing it"},
        {"content": "Test it", "status": "pending"},
    ]);
    let result = test.call("todo", json!({"items": list})).await;
    assert_eq!(result.text(), "[x] Read the code\n[>] Fix it (high)\n[ ] Test it");
    assert_eq!(result.metadata["items"], list);
    let kept = items(&test.toolkit, &test.session);
    assert_eq!((kept.len(), kept[1].status), (3, TodoStatus::InProgress));
    let (other, _) = test.engine.sessions.open(session("s2", &test.root));
    assert!(items(&test.toolkit, &other).is_empty());
    assert_eq!(test.ok("todo", json!({"items": []})).await, "the list is empty");
    assert!(items(&test.toolkit, &test.session).is_empty());
}

#[tokio::test]
async fn items_are_checked() {
    let test = BuiltinTest::strict();
    assert_eq!(test.bad("todo", json!({"items": [{"content": " ", "status": "pending"}]})).await, "item 1 is empty");
    let call = test.prepare("todo", json!({"items": [{"content": "x", "status": "done"}]}));
    assert!(test.run(call).await.unwrap_err().to_string().contains("/items/0/status"));
}
