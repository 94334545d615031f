//! `write`, `edit`, the versions that sessions have seen, and undoing changes.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toold_builtins::journal::{JournalScope, Selection};
use toold_builtins::undo::{UndoError, history, preview, undo};
use toold_proto::permission::Verdict;
use toold_proto::tool::{CallId, Category};

use crate::builtin_test::{BuiltinTest, session};

#[tokio::test]
async fn a_new_file_is_written_with_its_folders() {
    let test = BuiltinTest::new();
    let result = test.call("write", json!({"path": "a/b/new.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(result.text(), "created a/b/new.txt (2 lines)");
    assert_eq!(test.content("a/b/new.txt"), "one\ntwo\n");
    assert_eq!(result.metadata["diff"], json!("--- /dev/null\n+++ b/a/b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"));
}

#[tokio::test]
async fn unread_file_is_not_replaced() {
    let test = BuiltinTest::new();
    test.write("file", "old\n");
    let text = test.bad("write", json!({"path": "file", "content": "new\n"})).await;
    assert_eq!(text, "file has not been read in this session: read it first");
    let text = test.bad("edit", json!({"path": "file", "old": "x", "new": "y"})).await;
    assert_eq!(text, "file has not been read in this session: read it first");
    test.read("file").await;
    let text = test.ok("write", json!({"path": "file", "content": "new\n"})).await;
    assert_eq!(text, "changed file (+1 -1)\n--- a/file\n+++ b/file\n@@ -1 +1 @@\n-old\n+new");
    // The session knows what it wrote.
    test.ok("edit", json!({"path": "file", "old": "new", "new": "newer"})).await;
    assert_eq!(test.content("file"), "newer\n");
}

#[tokio::test]
async fn file_changed_since_read_is_not_replaced() {
    let test = BuiltinTest::new();
    test.write("file", "one");
    test.read("file").await;
    test.write("file", "two");
    for (tool, arguments) in [
        ("write", json!({"path": "file", "content": "x"})),
        ("edit", json!({"path": "file", "old": "two", "new": "x"})),
    ] {
        let text = test.bad(tool, arguments).await;
        assert_eq!(text, "file has changed on disk since it was read: read it again");
    }
    assert_eq!(test.content("file"), "two");
    // Writing the same content again leaves the file unchanged.
    test.write("file", "one");
    test.ok("edit", json!({"path": "file", "old": "one", "new": "three"})).await;
}

#[tokio::test]
async fn another_sessions_change_is_known_as_such() {
    let test = BuiltinTest::new();
    test.write("file", "one");
    test.read("file").await;
    let (other, _) = test.engine.sessions.open(session("s2", &test.root));
    other.set_mode(toold_proto::session::Mode::Yolo);
    for (tool, arguments) in
        [("read", json!({"path": "file"})), ("edit", json!({"path": "file", "old": "one", "new": "two"}))]
    {
        let mut call = test.prepare(tool, arguments);
        call.session = other.clone();
        assert!(!test.run(call).await.unwrap().is_error);
    }
    let text = test.bad("edit", json!({"path": "file", "old": "one", "new": "three"})).await;
    assert_eq!(text, "file was changed by another session (s2) since it was read: read it again");
}

#[tokio::test]
async fn a_session_of_before_a_restart_is_told_to_read_again() {
    let test = BuiltinTest::new();
    test.write("file", "one");
    let mut restored = session("s2", &test.root);
    restored.opened_at = std::time::SystemTime::UNIX_EPOCH;
    let (restored, _) = test.engine.sessions.open(restored);
    restored.set_mode(toold_proto::session::Mode::Yolo);
    for (tool, arguments) in [
        ("edit", json!({"path": "file", "old": "one", "new": "two"})),
        ("write", json!({"path": "file", "content": "two"})),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Delete File: file\n*** End Patch\n"})),
    ] {
        let mut call = test.prepare(tool, arguments);
        call.session = restored.clone();
        let text = test.run(call).await.unwrap().text();
        assert!(
            text.ends_with("file has not been read since the daemon was restarted: read it again"),
            "{tool}: {text}"
        );
    }
}

#[tokio::test]
async fn the_modes_of_write() {
    let test = BuiltinTest::new();
    test.write("file", "one\r\n");
    let text = test.bad("write", json!({"path": "file", "content": "x", "mode": "create"})).await;
    assert!(text.contains("already exists"), "{text}");
    test.ok("write", json!({"path": "file", "content": "two\n", "mode": "append"})).await;
    assert_eq!(test.content("file"), "one\r\ntwo\r\n");
    test.ok("write", json!({"path": "log", "content": "first\n", "mode": "append"})).await;
    let text = test.ok("write", json!({"path": "log", "content": "first\n"})).await;
    assert!(text.contains("nothing was written"), "{text}");
    std::fs::create_dir(test.root.join("folder")).unwrap();
    assert_eq!(test.bad("write", json!({"path": "folder", "content": "x"})).await, "folder is a folder");
}

#[tokio::test]
async fn all_edits_are_made_or_none() {
    let test = BuiltinTest::new();
    test.write("file", "a\nb\nc\n");
    test.read("file").await;
    let edits = json!([{"old": "a", "new": "A"}, {"old": "zzz", "new": "Z"}]);
    let text = test.bad("edit", json!({"path": "file", "edits": edits})).await;
    assert!(text.starts_with("file was not changed: edit 2: `old` is not in the file"), "{text}");
    assert_eq!(test.content("file"), "a\nb\nc\n");
    let edits = json!([{"old": "a", "new": ""}, {"old": "c\n", "new": "C"}, {"old": "b", "new": "B"}]);
    test.ok("edit", json!({"path": "file", "edits": edits})).await;
    assert_eq!(test.content("file"), "\nB\nC");
}

#[tokio::test]
async fn edit_that_does_not_apply_explains_why() {
    let test = BuiltinTest::new();
    test.write("file", "\tfoo(1);\n\tbar();\n\tfoo(1);\n");
    test.read("file").await;
    let cases = [
        (json!({"old": "foo(1);", "new": "x"}), "2 times, at lines 1, 3"),
        (json!({"old": "    foo(1);\n    bar();", "new": "x"}), "lines 1 to 2 differ only in indentation"),
        (json!({"old": "", "new": "x"}), "`old` is empty"),
        (json!({"old": "bar", "new": "bar"}), "the same"),
        (json!({"old": "bar"}), "give `old` and `new`"),
        (json!({"old": "bar", "new": "x", "edits": [{"old": "a", "new": "b"}]}), "not both"),
    ];
    for (mut arguments, expected) in cases {
        arguments["path"] = json!("file");
        let text = test.bad("edit", arguments).await;
        assert!(text.contains(expected), "{text}");
    }
    test.ok("edit", json!({"path": "file", "old": "foo(1)", "new": "baz", "replace_all": true})).await;
    assert_eq!(test.content("file"), "\tbaz;\n\tbar();\n\tbaz;\n");
}

#[tokio::test]
async fn line_ends_mark_and_encoding_stay() {
    let test = BuiltinTest::new();
    test.write("crlf", b"\xef\xbb\xbfone\r\ntwo\r\n");
    test.write("latin", b"Gr\xfcn ist die Wiese\nzwei\n");
    test.read("crlf").await;
    test.read("latin").await;
    test.ok("edit", json!({"path": "crlf", "old": "one\ntwo", "new": "one\n1.5\ntwo"})).await;
    assert_eq!(std::fs::read(test.root.join("crlf")).unwrap(), b"\xef\xbb\xbfone\r\n1.5\r\ntwo\r\n");
    test.ok("edit", json!({"path": "latin", "old": "zwei", "new": "für"})).await;
    assert_eq!(std::fs::read(test.root.join("latin")).unwrap(), b"Gr\xfcn ist die Wiese\nf\xfcr\n");
    let text = test.bad("edit", json!({"path": "latin", "old": "für", "new": "漢"})).await;
    assert!(text.contains("has no '漢'"), "{text}");
}

#[tokio::test]
async fn match_with_other_line_ends_or_spaces_is_changed_and_told() {
    let test = BuiltinTest::new();
    test.write("mixed", "one\r\ntwo\nthree\r\n");
    test.read("mixed").await;
    let text = test.ok("edit", json!({"path": "mixed", "old": "one\ntwo\nthree", "new": "one\n2\nthree"})).await;
    assert!(
        text.ends_with("[`old` was found at line 1 with other line ends: the file's own stay where `new` has any]"),
        "{text}"
    );
    assert_eq!(std::fs::read(test.root.join("mixed")).unwrap(), b"one\r\n2\nthree\r\n");
    test.write("spaces", "10\u{a0}kg of\u{202f}flour\n");
    test.read("spaces").await;
    let text = test.ok("edit", json!({"path": "spaces", "old": "10 kg of flour", "new": "12 kg of flour"})).await;
    assert!(text.contains("no-break spaces"), "{text}");
    assert_eq!(test.content("spaces"), "12\u{a0}kg of\u{202f}flour\n");
}

#[tokio::test]
async fn a_link_is_written_through_to_its_target() {
    let test = BuiltinTest::new();
    test.write("target", "old");
    symlink("target", test.root.join("link")).unwrap();
    test.read("link").await;
    test.ok("write", json!({"path": "link", "content": "new"})).await;
    assert_eq!(test.content("target"), "new");
    assert!(std::fs::symlink_metadata(test.root.join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn ask_shows_the_diff_and_control_files_are_never_written() {
    let test = BuiltinTest::strict();
    test.write("file", "old\n");
    test.read("file").await;
    let result = test.call("write", json!({"path": "file", "content": "new\n"})).await;
    assert_eq!(result.metadata["permission"]["category"], json!("file.write"));
    test.rule(Category::FileWrite, "**", Verdict::Allow);
    for path in [".toold/config.toml", ".aiexclude", ".env", "../outside/../work/.toolignore"] {
        let text = test.bad("write", json!({"path": path, "content": "x"})).await;
        assert!(text.starts_with("not allowed"), "{path}: {text}");
    }
    assert_eq!(test.content("file"), "old\n");
}

#[tokio::test]
async fn writers_of_one_file_take_turns() {
    let test = Arc::new(BuiltinTest::new());
    test.write("log", "");
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (other, _) = test.engine.sessions.open(session(&format!("w{n}"), &test.root));
        other.set_mode(toold_proto::session::Mode::Yolo);
        let engine = test.engine.clone();
        let arguments = json!({"path": "log", "content": format!("{n}\n"), "mode": "append"});
        let mut call = test.prepare("write", arguments);
        call.session = other;
        calls.spawn(async move { toold_engine::execute::execute(&engine, call).await.unwrap() });
    }
    for result in calls.join_all().await {
        assert!(!result.is_error, "{}", result.text());
    }
    assert_eq!(test.content("log").lines().count(), 20);
}

#[tokio::test]
async fn changes_are_taken_back_by_path_and_by_call() {
    let test = BuiltinTest::new();
    let file = test.write("file", "one\n");
    test.read("file").await;
    test.ok("edit", json!({"path": "file", "old": "one", "new": "two"})).await;
    test.ok("edit", json!({"path": "file", "old": "two", "new": "three"})).await;
    test.ok("write", json!({"path": "made", "content": "x"})).await;
    let changes = history(&test.toolkit, JournalScope::Session(&test.session.id));
    assert_eq!(changes.len(), 3);
    assert_eq!((changes[0].changes[0].path.path(), changes[0].changes[0].before.is_some()), (file.as_path(), true));
    assert!(changes[2].changes[0].before.is_none());

    let by_path = Selection::Path(file.clone());
    let shown = preview(&test.toolkit, JournalScope::Session(&test.session.id), &by_path, None).unwrap();
    assert_eq!(shown.len(), 1);
    assert!(shown[0].1.ends_with("@@ -1 +1 @@\n-three\n+two\n"), "{}", shown[0].1);
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &by_path).await.unwrap();
    assert_eq!(test.content("file"), "two\n");
    // The session knows what it restored.
    test.ok("edit", json!({"path": "file", "old": "two", "new": "four"})).await;
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &by_path).await.unwrap();
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &by_path).await.unwrap();
    assert_eq!(test.content("file"), "one\n");
    assert!(matches!(
        undo(&test.toolkit, &test.session, JournalScope::Everybody, &by_path).await,
        Err(UndoError::NothingOf(file)) if file.ends_with("file")
    ));

    undo(&test.toolkit, &test.session, JournalScope::Everybody, &Selection::Call(changes[2].call_id.clone()))
        .await
        .unwrap();
    assert!(!test.root.join("made").exists());
    let unknown = Selection::Call(CallId::parse("none").unwrap());
    assert!(matches!(
        undo(&test.toolkit, &test.session, JournalScope::Everybody, &unknown).await,
        Err(UndoError::Nothing)
    ));
}

#[tokio::test]
async fn file_changed_since_is_not_undone() {
    let test = BuiltinTest::new();
    test.ok("write", json!({"path": "file", "content": "x"})).await;
    let file = test.write("file", "other");
    let undone = undo(&test.toolkit, &test.session, JournalScope::Everybody, &Selection::Path(file.clone())).await;
    assert!(matches!(undone, Err(UndoError::Changed { .. })));
    assert_eq!(test.content("file"), "other");
    // It is as before the call, whoever did that.
    std::fs::remove_file(&file).unwrap();
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &Selection::Path(file)).await.unwrap();
}

#[tokio::test]
async fn nothing_but_the_file_is_left_in_its_folder() {
    let test = BuiltinTest::new();
    test.ok("write", json!({"path": "d/file", "content": "x"})).await;
    test.bad("write", json!({"path": "d/file/x", "content": "x"})).await;
    test.ok("edit", json!({"path": "d/file", "old": "x", "new": "y"})).await;
    let names: Vec<_> =
        std::fs::read_dir(test.root.join("d")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [Path::new("file").as_os_str()]);
}

#[tokio::test]
async fn write_keeps_what_read_does_not_show() {
    let test = BuiltinTest::new();
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let cases: [(&[u8], &str, &[u8], &str); 10] = [
        (
            b"\xef\xbb\xbfa\r\nb\r\n",
            "a\nc\n",
            b"\xef\xbb\xbfa\r\nc\r\n",
            "line ends (CRLF) and encoding (UTF-8 with BOM)",
        ),
        (b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n", "changed file (+1 -1)\n---"),
        (b"caf\xe9\r\n", "th\u{e9}\n", b"th\xe9\r\n", "line ends (CRLF) and encoding (windows-1252)"),
        (&utf16("\u{feff}one\r\n"), "two\n", &utf16("\u{feff}two\r\n"), "encoding (UTF-16LE with BOM)"),
        // Mixed line ends: lines that stay keep theirs.
        (b"a\r\nb\nc\r\n", "a\nx\nb\nd\n", b"a\r\nx\r\nb\nd\n", "line ends (mixed)"),
        (b"a\r\nb\nc\r\n", "a\nnew\n", b"a\r\nnew\r\n", "line ends: mixed -> CRLF"),
        (
            b"a\rb\rc\r",
            "a\nnew\nc\n",
            b"a\rnew\rc\r",
            "@@ -1,3 +1,3 @@\n a\n-b\n+new\n c\n[the file keeps its line ends (CR)]",
        ),
        // In windows-1251, the new text would be read as another one.
        (
            b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0\r\n\xe2\xf2\xee\xf0\xe0\xff \xf1\xf2\xf0\xee\xea\xe0\r\n",
            "\u{434}\u{430}\n",
            "\u{434}\u{430}\r\n".as_bytes(),
            "encoding: windows-1251 -> UTF-8\n---",
        ),
        // A byte that is not valid.
        (b"gr\xc3\xbcn\n\xff!\n", "rot\n\u{fffd}!\n", b"rot\n\xff!\n", "bytes that are not valid UTF-8"),
        // Line ends that the caller gives are what it wants where the file has none of its own.
        (b"a\n", "a\r\nb\r\n", b"a\r\nb\r\n", "line ends: LF -> CRLF"),
    ];
    for (old, content, new, words) in cases {
        test.write("file", old);
        test.read("file").await;
        let text = test.ok("write", json!({"path": "file", "content": content})).await;
        assert_eq!(std::fs::read(test.root.join("file")).unwrap(), new, "{text}");
        assert!(text.contains(words), "{words}: {text}");
        // Either the form has changed, or it is kept.
        for respect in ["encoding", "line ends"] {
            let is_kept = text.contains(&format!("keeps its {respect}")) || text.contains(&format!("and {respect}"));
            assert!(!is_kept || !text.contains(&format!("{respect}: ")), "{text}");
        }
    }
}

/// Text that cannot be decoded without loss is neither added to nor taken for another one, and what was not shown was not read.
#[tokio::test]
async fn files_that_cannot_be_read_as_text_are_not_damaged() {
    let test = BuiltinTest::new();
    let lone_surrogate = b"\xff\xfea\0\r\0\n\0\x00\xd8b\0\r\0\n\0";
    let utf32 = b"\xff\xfe\0\0h\0\0\0i\0\0\0";
    for (bytes, words) in [
        (&lone_surrogate[..], "it contains bytes that are not valid UTF-16LE"),
        (&utf32[..], "it is a binary file"),
        (b"\0\0\xfe\xff\0\0\0h", "it is a binary file"),
        (b"a\0b\n", "it is a binary file"),
    ] {
        test.write("file", bytes);
        test.run(test.prepare("read", json!({"path": "file"}))).await.unwrap();
        let append = json!({"path": "file", "content": "APP\n", "mode": "append"});
        let text = test.bad("write", append).await;
        assert!(text.starts_with("can't append to file: ") && text.contains(words), "{text}");
        if words.contains("binary") {
            let text = test.bad("write", json!({"path": "file", "content": "x"})).await;
            assert!(text.starts_with("file is a binary file, which `read` does not show"), "{text}");
        }
        assert_eq!(std::fs::read(test.root.join("file")).unwrap(), bytes);
    }
    // What is given as a whole is written in the form of the file.
    test.write("file", lone_surrogate);
    let text = test.read("file").await;
    assert!(text.contains("only `write` can replace such a file"), "{text}");
    test.ok("write", json!({"path": "file", "content": "c\n"})).await;
    assert_eq!(std::fs::read(test.root.join("file")).unwrap(), b"\xff\xfec\0\r\0\n\0");
}

/// One path cannot be a file and a folder: that is found out before a folder is made.
#[tokio::test]
async fn a_patch_that_contradicts_itself_changes_nothing() {
    let test = BuiltinTest::new();
    let input = "*** Begin Patch\n*** Add File: a/b\n+x\n*** Add File: a\n+y\n*** End Patch";
    let text = test.bad("apply_patch", json!({"input": input})).await;
    assert!(text.contains("a cannot be a file and the folder of a/b: nothing was changed"), "{text}");
    assert!(!test.root.join("a").exists());
    test.write("f", "f\n");
    test.read("f").await;
    let input = "*** Begin Patch\n*** Delete File: f\n*** Delete File: f\n*** End Patch";
    let text = test.bad("apply_patch", json!({"input": input})).await;
    assert!(text.contains("f is removed or moved by an earlier part of the patch"), "{text}");
}

#[tokio::test]
async fn an_edit_takes_over_the_line_ends_of_the_file() {
    let test = BuiltinTest::new();
    for (before, new, after) in
        [("a\nb\n", "x\r\ny", "x\ny\nb\n"), ("a\r\nb\r\n", "x\ny", "x\r\ny\r\nb\r\n"), ("a", "x\r\ny", "x\r\ny")]
    {
        test.write("file", before);
        test.read("file").await;
        test.ok("edit", json!({"path": "file", "old": "a", "new": new})).await;
        assert_eq!(test.content("file"), after);
    }
    test.write("file", "def f(x):\n    return 1\n");
    test.read("file").await;
    for old in ["     1\tdef f(x):\n     2\t    return 1", "1: def f(x):", "  1\u{2192}def f(x):"] {
        let text = test.bad("edit", json!({"path": "file", "old": old, "new": "x"})).await;
        assert!(text.contains("it begins with line numbers"), "{text}");
    }
}

#[tokio::test]
async fn a_change_of_the_form_of_a_text_is_in_result_and_diff() {
    let test = BuiltinTest::new();
    test.write("file", b"caf\xe9\r\n");
    test.read("file").await;
    let result = test.call("write", json!({"path": "file", "content": "\u{6f22}\n"})).await;
    assert_eq!(test.content("file"), "\u{6f22}\r\n");
    let form = "diff --git a/file b/file\nencoding: windows-1252 -> UTF-8\n--- a/file\n";
    assert!(result.metadata["diff"].as_str().unwrap().starts_with(form), "{}", result.metadata["diff"]);
    assert!(result.text().contains("encoding: windows-1252 -> UTF-8"), "{}", result.text());
    // An edit changes neither, whatever the new text makes a guess of the encoding be.
    test.write("other", b"caf\xe9 et th\xe9\n");
    test.read("other").await;
    let text = test.ok("edit", json!({"path": "other", "old": "et th\u{e9}", "new": "!"})).await;
    assert!(text.starts_with("changed other (+1 -1)\n---"), "{text}");
}

#[tokio::test]
async fn bytes_that_are_not_valid_stay_as_they_are() {
    let test = BuiltinTest::new();
    test.write("file", b"gr\xc3\xbcn \xe2\x82 blau\nzwei\n");
    let text = test.read("file").await;
    assert!(text.starts_with("1: gr\u{fc}n \u{fffd} blau\n2: zwei"), "{text}");
    assert!(text.contains("not valid UTF-8"), "{text}");
    test.ok("edit", json!({"path": "file", "old": "zwei", "new": "drei"})).await;
    let text = test.ok("edit", json!({"path": "file", "old": "\u{fffd} blau", "new": "\u{fffd} rot"})).await;
    assert!(text.contains("+gr\u{fc}n \u{fffd} rot"), "{text}");
    let patch = "*** Begin Patch\n*** Update File: file\n@@\n gr\u{fc}n \u{fffd} rot\n-drei\n+vier\n*** End Patch";
    test.ok("apply_patch", json!({"input": patch})).await;
    assert_eq!(std::fs::read(test.root.join("file")).unwrap(), b"gr\xc3\xbcn \xe2\x82 rot\nvier\n");
}

#[tokio::test]
async fn a_call_is_undone_as_a_whole_or_not_at_all() {
    let test = BuiltinTest::new();
    let undone = |path: &str| {
        let (toolkit, session, path) = (test.toolkit.clone(), test.session.clone(), test.root.join(path));
        async move { undo(&toolkit, &session, JournalScope::Session(&session.id), &Selection::Path(path)).await }
    };
    let patch = "*** Begin Patch\n*** Update File: old\n*** Move to: new\n@@\n-precious\n+changed\n*** Update File: b\n@@\n\
                 -b\n+B\n*** Add File: c\n+c\n*** End Patch";
    test.write("old", "precious\n");
    test.write("b", "b\n");
    std::fs::set_permissions(test.root.join("old"), std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
    for path in ["old", "b"] {
        test.read(path).await;
    }
    test.ok("apply_patch", json!({"input": patch})).await;
    // One of the files has changed since: nothing is undone.
    test.write("b", "another\n");
    assert!(matches!(undone("new").await, Err(UndoError::Changed { path, .. }) if path == test.root.join("b")));
    assert!(!test.root.join("old").exists());
    assert_eq!((test.content("new"), test.content("c")), ("changed\n".to_owned(), "c\n".to_owned()));
    test.write("b", "B\n");
    let selection = Selection::Path(test.root.join("c"));
    let shown = preview(&test.toolkit, JournalScope::Session(&test.session.id), &selection, None).unwrap();
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!(undone("c").await.unwrap().len(), 4);
    assert_eq!((test.content("old"), test.content("b")), ("precious\n".to_owned(), "b\n".to_owned()));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(test.root.join("old")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o750);
    assert!(!test.root.join("new").exists() && !test.root.join("c").exists());
}

#[tokio::test]
async fn words_about_paths_lead_on() {
    let test = BuiltinTest::new();
    test.write("f.txt", "x");
    let text = test.bad("write", json!({"path": "dir/", "content": "x"})).await;
    assert_eq!(text, "dir/ names a folder: give the path of a file");
    let moved = "*** Begin Patch\n*** Update File: other\n*** Move to: dir/\n-caf\u{e9} !\n+x\n*** End Patch";
    let text = test.bad("apply_patch", json!({"input": moved})).await;
    assert!(text.ends_with("dir/ names a folder: give the path of a file"), "{text}");
    let text = test.bad("write", json!({"path": "f.txt/x", "content": "x"})).await;
    assert!(text.ends_with("/f.txt is no folder"), "{text}");
}

#[tokio::test]
async fn an_edit_leaves_a_notebook_valid() {
    let test = BuiltinTest::new();
    let notebook =
        json!({"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": "y = 2"}], "nbformat": 4});
    test.write("n.ipynb", notebook.to_string());
    test.read("n.ipynb").await;
    let text = test.bad("edit", json!({"path": "n.ipynb", "old": "y = 2", "new": "y = 3\nz = \"q\""})).await;
    assert!(text.contains("it is a notebook, and would no longer be valid JSON"), "{text}");
    for (tool, arguments) in [
        ("write", json!({"path": "n.ipynb", "content": "y = 3"})),
        ("write", json!({"path": "n.ipynb", "content": "{", "mode": "append"})),
        (
            "apply_patch",
            json!({"input": format!("*** Begin Patch\n*** Update File: n.ipynb\n@@\n-{notebook}\n+{{\n*** End Patch")}),
        ),
    ] {
        let text = test.bad(tool, arguments).await;
        assert!(text.contains("it is a notebook, and would no longer be valid JSON"), "{text}");
    }
    test.ok("edit", json!({"path": "n.ipynb", "old": "y = 2", "new": "y = 3\\nz = 4"})).await;
}

#[tokio::test]
async fn look_alikes_are_named_with_what_differs() {
    let test = BuiltinTest::new();
    for name in
        ["Screenshot at 1.01.11\u{202f}AM.txt", "caf\u{e9}.txt", "cafe\u{301} 2.txt", "bidi\u{202e}.txt", "trail.txt "]
    {
        test.write(name, "x");
    }
    for (name, words) in [
        ("Screenshot at 1.01.11 AM.txt", "U+202F, written in JSON as Screenshot at 1.01.11\\u202fAM.txt)"),
        ("cafe\u{301}.txt", "did you mean caf\u{e9}.txt (its name has U+00E9, written in JSON as caf\\u00e9.txt)?"),
        (
            "bidi.txt",
            "did you mean \"bidi\\342\\200\\256.txt\" (its name has U+202E, written in JSON as bidi\\u202e.txt)?",
        ),
        ("trail.txt", "did you mean trail.txt  (its name has a space at its end)?"),
    ] {
        let text = test.bad("read", json!({"path": name})).await;
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn git_goes_on_without_an_editor() {
    let test = BuiltinTest::new();
    let text = test.ok("bash", json!({"command": "git var GIT_EDITOR"})).await;
    assert_eq!(text, "true\n");
}
