use std::path::Path;

use serde_json::json;
use toold_builtins::buffers::{Buffer, BufferError};

use crate::builtin_test::BuiltinTest;

fn lay(test: &BuiltinTest, path: &str, version: i64, text: &str) -> Result<(), BufferError> {
    test.toolkit.buffers.set(Buffer {
        path: test.root.join(path),
        project: test.session.project().to_owned(),
        connection: 1,
        owner: "nvim".to_owned(),
        version,
        text: text.to_owned(),
    })
}

#[tokio::test]
async fn unsaved_text_is_read_and_searched_and_marked() {
    let test = BuiltinTest::new();
    test.write("file", "on disk\n");
    lay(&test, "file", 3, "in editor\n").unwrap();
    let result = test.call("read", json!({"path": "file"})).await;
    assert_eq!(result.text(), "1: in editor\n[unsaved text in nvim, version 3; the file on the disk differs]");
    assert_eq!(result.metadata["buffer"], json!({"owner": "nvim", "version": 3}));
    let text = test.ok("grep", json!({"pattern": "in editor|on disk"})).await;
    assert_eq!(text, "file:1:in editor\n[1 of the files were searched with unsaved changes]");
}

#[tokio::test]
async fn unsaved_text_is_not_written_over() {
    let test = BuiltinTest::new();
    test.write("file", "one\n");
    test.read("file").await;
    lay(&test, "file", 1, "two\n").unwrap();
    for (tool, arguments) in [
        ("edit", json!({"path": "file", "old": "one", "new": "x"})),
        ("write", json!({"path": "file", "content": "x"})),
    ] {
        assert_eq!(test.bad(tool, arguments).await, "file has unsaved changes in nvim: save it there first");
    }
    // Saved: the file and the editor agree again.
    test.write("file", "two\n");
    assert_eq!(test.read("file").await, "1: two");
    test.ok("edit", json!({"path": "file", "old": "two", "new": "three"})).await;
}

#[tokio::test]
async fn buffers_belong_to_their_connection_and_project() {
    let test = BuiltinTest::new();
    test.write("file", "on disk");
    lay(&test, "file", 2, "two").unwrap();
    assert!(matches!(lay(&test, "file", 1, "one"), Err(BufferError::Old { have: 2, got: 1, .. })));
    let foreign = Buffer {
        path: test.root.join("file"),
        project: Path::new("/elsewhere").to_owned(),
        connection: 2,
        owner: "emacs".to_owned(),
        version: 1,
        text: "foreign".to_owned(),
    };
    test.toolkit.buffers.set(foreign.clone()).unwrap();
    let same_project = Buffer { project: test.session.project().to_owned(), ..foreign };
    assert!(matches!(test.toolkit.buffers.set(same_project), Err(BufferError::Taken { owner, .. }) if owner == "nvim"));
    assert!(test.read("file").await.starts_with("1: two\n"));
    assert!(!test.toolkit.buffers.clear(2, &test.root.join("other")));
    test.toolkit.buffers.clear_connection(1);
    assert_eq!(test.read("file").await, "1: on disk");
}
