use std::path::Path;

use serde_json::json;
use toold_builtins::buffers::{Buffer, BufferError};

use crate::house::House;

fn lay(house: &House, path: &str, version: i64, text: &str) -> Result<(), BufferError> {
    house.shared.buffers.set(Buffer {
        path: house.root.join(path),
        project: house.session.project().to_owned(),
        connection: 1,
        owner: "nvim".to_owned(),
        version,
        text: text.to_owned(),
    })
}

#[tokio::test]
async fn unsaved_text_is_read_and_searched_and_says_so() {
    let house = House::new();
    house.write("file", "on disk\n");
    lay(&house, "file", 3, "in editor\n").unwrap();
    let result = house.call("read", json!({"path": "file"})).await;
    assert_eq!(result.text(), "1: in editor\n[unsaved text in nvim, version 3; the file on the disk differs]");
    assert_eq!(result.metadata["buffer"], json!({"owner": "nvim", "version": 3}));
    let text = house.ok("grep", json!({"pattern": "in editor|on disk"})).await;
    assert_eq!(text, "file:1:in editor\n[1 of the files as their editors have them, not saved]");
}

#[tokio::test]
async fn unsaved_text_is_not_written_over() {
    let house = House::new();
    house.write("file", "one\n");
    house.read("file").await;
    lay(&house, "file", 1, "two\n").unwrap();
    for (tool, arguments) in [
        ("edit", json!({"path": "file", "old": "one", "new": "x"})),
        ("write", json!({"path": "file", "content": "x"})),
    ] {
        assert_eq!(house.bad(tool, arguments).await, "file has unsaved changes in nvim: save it there first");
    }
    // Saved: the file and the editor agree again.
    house.write("file", "two\n");
    assert_eq!(house.read("file").await, "1: two");
    house.ok("edit", json!({"path": "file", "old": "two", "new": "three"})).await;
}

#[tokio::test]
async fn buffers_belong_to_their_connection_and_project() {
    let house = House::new();
    house.write("file", "on disk");
    lay(&house, "file", 2, "two").unwrap();
    assert!(matches!(lay(&house, "file", 1, "one"), Err(BufferError::Old { have: 2, got: 1, .. })));
    let foreign = Buffer {
        path: house.root.join("file"),
        project: Path::new("/elsewhere").to_owned(),
        connection: 2,
        owner: "emacs".to_owned(),
        version: 1,
        text: "foreign".to_owned(),
    };
    house.shared.buffers.set(foreign.clone()).unwrap();
    let same_project = Buffer { project: house.session.project().to_owned(), ..foreign };
    assert!(matches!(house.shared.buffers.set(same_project), Err(BufferError::Taken { owner, .. }) if owner == "nvim"));
    assert!(house.read("file").await.starts_with("1: two\n"));
    assert!(!house.shared.buffers.clear(2, &house.root.join("other")));
    house.shared.buffers.clear_connection(1);
    assert_eq!(house.read("file").await, "1: on disk");
}
