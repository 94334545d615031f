use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toold_builtins::journal::{JournalScope, Selection};
use toold_builtins::undo::{combined_diff, history, undo};
use toold_proto::permission::Verdict;
use toold_proto::tool::{CallId, Category};

use crate::builtin_test::BuiltinTest;

fn patch(sections: &str) -> serde_json::Value {
    json!({"input": format!("*** Begin Patch\n{sections}*** End Patch\n")})
}

#[tokio::test]
async fn several_files_are_changed_at_once() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\ntwo\n");
    test.write("gone.txt", "x\n");
    test.read("a.txt").await;
    test.read("gone.txt").await;
    let result = test
        .call(
            "apply_patch",
            patch("*** Update File: a.txt\n one\n-two\n+2\n*** Delete File: gone.txt\n*** Add File: new/b.txt\n+b\n"),
        )
        .await;
    assert_eq!(
        result.text(),
        "changed a.txt (+1 -1)\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\nremoved gone.txt (1 line)\n\
         created new/b.txt (1 line)"
    );
    assert_eq!((test.content("a.txt").as_str(), test.content("new/b.txt").as_str()), ("one\n2\n", "b\n"));
    assert!(!test.root.join("gone.txt").exists());
    assert_eq!(result.metadata["files"][1]["deleted"], true);
    // The session knows what it wrote.
    test.ok("edit", json!({"path": "new/b.txt", "old": "b", "new": "c"})).await;
}

#[tokio::test]
async fn a_moved_file_keeps_its_mode_and_comes_back() {
    let test = BuiltinTest::new();
    let old = test.write("run.sh", "echo a\n");
    std::fs::set_permissions(&old, PermissionsExt::from_mode(0o755)).unwrap();
    test.read("run.sh").await;
    let mut call =
        test.prepare("apply_patch", patch("*** Update File: run.sh\n*** Move to: bin/run.sh\n-echo a\n+echo b\n"));
    call.call_id = Some(CallId::parse("moved").unwrap());
    assert!(!test.run(call).await.unwrap().is_error);
    let mode = |path: &str| std::fs::metadata(test.root.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((test.content("bin/run.sh").as_str(), mode("bin/run.sh")), ("echo b\n", 0o755));
    assert!(!old.exists());
    let changes = history(&test.toolkit, JournalScope::Session(&test.session.id));
    let changed = changes[0].changes.iter().map(|change| (change.before.is_some(), change.after.is_some()));
    // The folder, the new file, the old file.
    assert_eq!((changes.len(), changed.collect()), (1, vec![(false, true), (false, true), (true, false)]));
    let selection = Selection::Call(CallId::parse("moved").unwrap());
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &selection).await.unwrap();
    assert_eq!((test.content("run.sh").as_str(), mode("run.sh")), ("echo a\n", 0o755));
    assert!(!test.root.join("bin").exists(), "the folder that the call made is gone too");
}

#[tokio::test]
async fn a_moved_file_stays_the_same_file_with_all_its_names() {
    use std::os::unix::fs::MetadataExt;
    for change in ["", " one\n-two\n+2\n"] {
        let test = BuiltinTest::new();
        test.write("a.txt", "one\ntwo\n");
        std::fs::hard_link(test.root.join("a.txt"), test.root.join("name")).unwrap();
        let set = "import os\ntry: os.setxattr('a.txt', 'user.note', b'kept')\nexcept OSError: pass";
        let python = |script: &str| {
            let done = std::process::Command::new("python3").args(["-c", script]).current_dir(&test.root).output();
            String::from_utf8(done.unwrap().stdout).unwrap()
        };
        python(set);
        let attributes = |path: &str| python(&format!("import os; print(os.listxattr('{path}'))"));
        let kept = attributes("a.txt");
        test.read("a.txt").await;
        let steps = format!("*** Update File: a.txt\n*** Move to: in/b.txt\n{change}");
        test.ok("apply_patch", patch(&steps)).await;
        let number = |path: &str| test.root.join(path).metadata().unwrap().ino();
        assert_eq!((number("in/b.txt"), attributes("in/b.txt")), (number("name"), kept.clone()));
        assert!(!test.root.join("a.txt").exists());
        assert_eq!(test.content("name"), if change.is_empty() { "one\ntwo\n" } else { "one\n2\n" });
        let all = Selection::All(toold_builtins::journal::ChangeFilter::default());
        undo(&test.toolkit, &test.session, JournalScope::Everybody, &all).await.unwrap();
        assert_eq!((number("a.txt"), attributes("a.txt")), (number("name"), kept));
        assert_eq!(test.content("name"), "one\ntwo\n");
        assert!(!test.root.join("in").exists());
        // Nothing is moved where a later part fails.
        test.read("a.txt").await;
        let steps = format!("{steps}*** Delete File: a.txt\n");
        test.bad("apply_patch", patch(&steps)).await;
        let steps = format!("*** Update File: a.txt\n*** Move to: in/b.txt\n{change}*** Add File: /proc/n\n+n\n");
        let text = test.bad("apply_patch", patch(&steps)).await;
        assert!(text.starts_with("nothing was changed: "), "{text}");
        assert_eq!((number("a.txt"), test.content("name")), (number("name"), "one\ntwo\n".to_owned()));
    }
}

#[tokio::test]
async fn a_moved_file_is_shown_with_what_changed_in_it_whoever_changes_it_later() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\ntwo\nthree\n");
    test.read("a.txt").await;
    test.ok("apply_patch", patch("*** Update File: a.txt\n*** Move to: b.txt\n one\n-two\n+2\n three\n")).await;
    let diff = || {
        let records = history(&test.toolkit, JournalScope::Session(&test.session.id));
        let diff = combined_diff(&test.toolkit, &records, Some(&test.root));
        diff.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected =
        ["# a.txt moved to b.txt", "--- a/a.txt", "+++ b/b.txt", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"];
    assert_eq!(diff(), expected);
    test.write("b.txt", "a person's text\n");
    assert_eq!(diff(), expected);
}

#[tokio::test]
async fn nothing_changes_when_one_part_does_not_fit() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\n");
    test.write("b.txt", "x\ny\nx\n");
    test.write("unread.txt", "z\n");
    test.read("a.txt").await;
    test.read("b.txt").await;
    let first = "*** Update File: a.txt\n-one\n+1\n";
    let cases = [
        (
            "*** Update File: b.txt\n-x\n+z\n",
            "nothing was changed: b.txt: line 6 of the patch: the lines to change occur 2 times, at lines 1, 3 of the file: put `@@ `",
        ),
        ("*** Update File: b.txt\n-nothing like it\n+z\n", "the lines to change are not in the file"),
        (
            "*** Update File: unread.txt\n-z\n+y\n",
            "nothing was changed: unread.txt has not been read in this session: read it first",
        ),
        ("*** Delete File: unread.txt\n", "unread.txt has not been read in this session: read it first"),
        ("*** Add File: b.txt\n+z\n", "b.txt already exists: change it with *** Update File: b.txt"),
        ("*** Update File: a.tx\n-one\n+1\n", "there is no file a.tx: did you mean a.txt?"),
        ("*** Update File: b.txt\n*** Move to: unread.txt\n", "can't move b.txt to unread.txt, which already exists"),
        ("*** Update File: b.txt\nx\n", "line 6: \"x\" begins with neither a space, - nor +"),
    ];
    for (second, expected) in cases {
        let text = test.bad("apply_patch", patch(&format!("{first}{second}"))).await;
        assert!(text.contains(expected), "{second}: {text}");
        assert_eq!((test.content("a.txt").as_str(), test.content("b.txt").as_str()), ("one\n", "x\ny\nx\n"));
    }
}

#[tokio::test]
async fn a_failing_write_takes_back_those_before_it() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\n");
    test.write("gone.txt", "x\n");
    for path in ["a.txt", "gone.txt"] {
        test.read(path).await;
    }
    // Nobody makes a file there.
    let steps = "*** Update File: a.txt\n-one\n+1\n*** Add File: new\n+n\n*** Delete File: gone.txt\n*** Add File: /proc/n\n+n\n";
    let text = test.bad("apply_patch", patch(steps)).await;
    assert!(text.starts_with("nothing was changed: "), "{text}");
    assert_eq!(test.content("a.txt"), "one\n");
    assert!(!test.root.join("new").exists() && test.root.join("gone.txt").exists());
    assert!(history(&test.toolkit, JournalScope::Session(&test.session.id)).is_empty());
}

#[tokio::test]
async fn stale_file_is_not_patched() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\n");
    test.read("a.txt").await;
    test.write("a.txt", "one\ntwo\n");
    let text = test.bad("apply_patch", patch("*** Update File: a.txt\n-one\n+1\n")).await;
    assert!(text.contains("a.txt has changed on disk since it was read: read it again"), "{text}");
    assert_eq!(test.content("a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn every_file_needs_permission_before_any_is_written() {
    let test = BuiltinTest::strict();
    test.write("a.txt", "one\n");
    test.read("a.txt").await;
    test.rule(Category::FileWrite, "**/a.txt", Verdict::Allow);
    let both = patch("*** Update File: a.txt\n-one\n+1\n*** Add File: b.txt\n+b\n");
    let result = test.call("apply_patch", both.clone()).await;
    assert_eq!(result.metadata["permission"]["target"], json!(test.root.join("b.txt")));
    assert_eq!(test.content("a.txt"), "one\n");
    test.rule(Category::FileWrite, "**", Verdict::Allow);
    test.ok("apply_patch", both).await;
    for path in ["../outside/../work/.toolignore", ".env", ".toold/config.toml"] {
        let text =
            test.bad("apply_patch", patch(&format!("*** Add File: c.txt\n+c\n*** Add File: {path}\n+x\n"))).await;
        assert!(text.starts_with("not allowed"), "{path}: {text}");
    }
    assert!(!test.root.join("c.txt").exists());
}

#[tokio::test]
async fn sections_of_one_file_are_applied_one_after_another() {
    let test = BuiltinTest::new();
    test.write("a.txt", "one\ntwo\n");
    test.read("a.txt").await;
    test.ok("apply_patch", patch("*** Update File: a.txt\n-one\n+1\n*** Update File: ./a.txt\n 1\n-two\n+2\n")).await;
    assert_eq!(test.content("a.txt"), "1\n2\n");
    test.ok("apply_patch", patch("*** Delete File: a.txt\n*** Add File: a.txt\n+new\n")).await;
    assert_eq!(test.content("a.txt"), "new\n");
}

/// What a link leads to is not removed in its place.
#[tokio::test]
async fn a_link_is_neither_removed_nor_moved() {
    let test = BuiltinTest::new();
    test.write("sub/t", "one\n");
    std::os::unix::fs::symlink("sub/t", test.root.join("l")).unwrap();
    test.read("l").await;
    for body in ["*** Delete File: l\n", "*** Update File: l\n*** Move to: n\n@@\n-one\n+two\n"] {
        let text = test.bad("apply_patch", json!({"input": format!("*** Begin Patch\n{body}*** End Patch")})).await;
        assert!(text.contains("l is a link to sub/t: remove or move the link by a command"), "{text}");
    }
    test.ok("apply_patch", json!({"input": "*** Begin Patch\n*** Update File: l\n@@\n-one\n+two\n*** End Patch"}))
        .await;
    assert_eq!(test.content("sub/t"), "two\n");
}
