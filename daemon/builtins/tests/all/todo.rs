use serde_json::json;
use toold_builtins::todo::items;
use toold_proto::todo::TodoStatus;

use crate::house::{House, session};

#[tokio::test]
async fn the_list_is_replaced_and_belongs_to_its_session() {
    let house = House::strict();
    let list = json!([
        {"content": "Read the code", "status": "completed"},
        {"content": "Fix it", "status": "in_progress", "priority": "high", "active_form": "Fixing it"},
        {"content": "Test it", "status": "pending"},
    ]);
    let result = house.call("todo", json!({"items": list})).await;
    assert_eq!(result.text(), "[x] Read the code\n[>] Fix it (high)\n[ ] Test it");
    assert_eq!(result.metadata["items"], list);
    let kept = items(&house.shared, &house.session);
    assert_eq!((kept.len(), kept[1].status), (3, TodoStatus::InProgress));
    let (other, _) = house.engine.sessions.open(session("s2", &house.root));
    assert!(items(&house.shared, &other).is_empty());
    assert_eq!(house.ok("todo", json!({"items": []})).await, "the list is empty");
    assert!(items(&house.shared, &house.session).is_empty());
}

#[tokio::test]
async fn items_are_checked() {
    let house = House::strict();
    assert_eq!(
        house.bad("todo", json!({"items": [{"content": " ", "status": "pending"}]})).await,
        "item 1 says nothing"
    );
    let call = house.prepare("todo", json!({"items": [{"content": "x", "status": "done"}]}));
    assert!(house.run(call).await.unwrap_err().to_string().contains("/items/0/status"));
}
