//! Undo takes back all that a call did, touches nothing else, and loses nothing: in cases that were thought of, and in
//! random ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::json;
use toold_builtins::journal::{ChangeFilter, JournalScope, Selection};
use toold_builtins::undo::{UndoError, preview, undo};
use toold_proto::tool::{CallId, ToolResult};

use crate::builtin_test::BuiltinTest;
use crate::command_changes::tree;

type TreeStates = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

/// Runs a script that the tools do not know of.
fn outside(test: &BuiltinTest, script: &str) {
    let done = Command::new("sh").args(["-c", script]).current_dir(&test.root).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Everything in the session's folder, and in the folder beside it.
fn all(test: &BuiltinTest) -> TreeStates {
    let mut all = tree(&test.root);
    all.extend(tree(&test.root.with_file_name("store")));
    all
}

/// Runs a line that the daemon does not judge.
async fn bash(test: &BuiltinTest, id: &str, line: &str) -> ToolResult {
    std::fs::write(test.root.with_file_name("script"), line).unwrap();
    let mut call = test.prepare("bash", json!({"command": "sh ../script"}));
    call.call_id = Some(CallId::parse(id).unwrap());
    test.run(call).await.unwrap()
}

async fn take_back(test: &BuiltinTest, id: &str) -> Result<Vec<PathBuf>, UndoError> {
    let call = Selection::Call(CallId::parse(id).unwrap());
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &call).await
}

fn started() -> BuiltinTest {
    let test = BuiltinTest::new();
    std::fs::create_dir(test.root.with_file_name("store")).unwrap();
    test
}

/// What is there, what a person or another program does once the folder is known, and the command that is undone.
const CASES: &[(&str, &str, &str)] = &[
    // Another file is put at the path: it keeps its content under its other names.
    ("echo a > a; echo precious > p", "", "ln -f p a"),
    ("echo a > a; echo precious > ../store/p", "", "ln -f ../store/p a"),
    ("echo a > a; echo precious > ../store/p", "", "rm a; cp -al ../store/p a"),
    ("echo same > a; echo same > ../store/p", "", "ln -f ../store/p a; rm a; echo b > a"),
    ("echo precious > ../store/p", "", "mkdir d; ln ../store/p d/a; ln d/a b; rm d/a"),
    // A file that has other names outside, and gets another one here: they show what they did before.
    ("echo a > ../store/o; ln ../store/o a", "", "echo x > x; echo o > a; mv a b"),
    ("echo a > ../store/o; ln ../store/o b; echo c > c", "", "ln b a; chmod 600 a; echo o >> b; mv c b"),
    (
        "echo a > ../store/o; ln ../store/o a; ln a b",
        "",
        "echo o > b; rm a; echo b > new; mv new b; ln -f ../store/o c",
    ),
    ("echo a > a; echo precious > p; chmod 444 p", "ln -f p a", "echo b > b; rm -f a; echo mine > a"),
    // A file with several names, of which one or another is used.
    ("echo a > a; ln a b", "", "echo gone > a"),
    ("echo a > a; ln a b; mkdir n; ln a n/c", "", "chmod 600 a; truncate -s 1 n/c"),
    ("echo a > a; ln a b", "echo other >> a", "rm b"),
    ("echo a > a; ln a b", "echo other >> a", "sed -i s/zzz/y/ b"),
    ("echo a > a; ln a b", "echo other >> a", "touch b; echo d > c"),
    ("echo a > a; ln a b", "echo other >> a", "rm b; cp a b; chmod 640 b"),
    ("echo a > ../store/o; ln ../store/o a", "echo other > ../store/o", "rm a"),
    ("echo a > ../store/o; ln ../store/o a", "", "echo other > ../store/o; echo x > x"),
    ("echo a > a", "ln a b; echo more >> b", "rm a"),
    // Permission bits are those from before.
    ("echo a > f; chmod 444 f", "", "sed -i s/a/b/ f"),
    ("echo a > f; chmod 2555 f", "", "chmod u+w f; echo q > f; chmod 2555 f"),
    ("echo a > f; chmod 400 f", "", "rm -f f"),
    ("echo a > f; ln f g; chmod 444 f", "", "chmod u+w f; echo q > f; chmod 444 g"),
    ("mkdir d; echo a > d/a; chmod 555 d", "", "chmod 755 d; echo b > d/b; rm d/a; chmod 500 d"),
    ("mkdir d; echo a > d/a", "", "rm d/a; echo b > d/b; chmod 555 d"),
    // A link in the place of a folder.
    ("mkdir d; echo old > d/old", "", "rm -rf d; ln -s nowhere d"),
    ("mkdir d; echo old > d/old", "", "mv d d2; ln -s d2 d"),
    ("mkdir -p d/s e; echo old > d/s/old; echo e > e/old", "", "rm -rf d/s; ln -s ../e d/s; echo x > e/old"),
    // A link that gets another name, and loses it again.
    ("ln -s nowhere a; echo b > b", "", "ln -f a b"),
    ("ln -s nowhere a; ln a b", "", "rm b"),
    // What is neither a file nor a folder nor a link.
    ("mkfifo -m 640 p; echo x > x", "", "rm p; echo x > p; rm x"),
    ("echo x > x", "", "rm x; mkfifo x"),
    ("mkfifo p", "", "chmod 600 p; mkfifo q"),
    ("echo x > x", "", "rm x; python3 -c 'import socket; socket.socket(1).bind(\"x\")'"),
    // Large files that need not be kept.
    ("echo o > o", "", "truncate -s 65M big; rm o"),
    ("echo o > o", "", "mkdir -p new/deep; truncate -s 65M new/deep/big; rm o"),
    ("echo o > o", "", "truncate -s 65M o; echo x > x"),
    ("echo o > o", "", "rm o; mkdir o; truncate -s 65M o/big"),
];

#[tokio::test]
async fn a_call_is_taken_back_and_nothing_else() {
    for (there, meanwhile, line) in CASES {
        let test = started();
        outside(&test, there);
        assert!(!bash(&test, "first", "true").await.is_error);
        outside(&test, meanwhile);
        let before = all(&test);
        let result = bash(&test, "call", line).await;
        assert!(!result.is_error && !result.metadata.contains_key("not_undoable"), "{line}: {result:?}");
        // That a name has no change at all is right, too.
        match take_back(&test, "call").await {
            Ok(_) | Err(UndoError::Nothing) => {}
            Err(error) => panic!("{there}; {meanwhile}; {line}: {error}"),
        }
        let mut now = all(&test);
        // What the command itself wrote outside is not the session's.
        if line.contains("> ../store") && !there.contains("ln ../store") {
            now.retain(|path, _| path.starts_with(&test.root));
            assert!(now.iter().all(|(path, state)| before.get(path) == Some(state)), "{line}: {now:?}");
            continue;
        }
        assert_eq!(now, before, "{there}; {meanwhile}; {line}");
    }
}

/// Names of one file are names of one file again.
#[tokio::test]
async fn files_with_several_names_get_them_back() {
    use std::os::unix::fs::MetadataExt;
    let test = started();
    outside(&test, "echo a > a; ln a b; ln a c");
    bash(&test, "true", "true").await;
    for line in ["rm a b c", "echo 2 > a; rm b c; cp a b", "rm -r ./*; mkdir a"] {
        bash(&test, line.split(' ').next().unwrap(), line).await;
        take_back(&test, line.split(' ').next().unwrap()).await.ok();
    }
    let inode = |name: &str| test.root.join(name).metadata().unwrap().ino();
    assert_eq!((inode("b"), inode("c")), (inode("a"), inode("a")));
    assert_eq!(test.content("c"), "a\n");
    // The content stays the same, and the call is a change all the same.
    for line in ["cp b new; mv new b", "sed -i s/nothing/here/ b c", "rm c; cp -p b c"] {
        let id = line.split(' ').next().unwrap();
        bash(&test, id, line).await;
        let records = toold_builtins::undo::history(&test.toolkit, JournalScope::Everybody);
        let diff = toold_builtins::undo::combined_diff(&test.toolkit, &records, Some(&test.root));
        assert!(diff.contains(": no longer the same file as "), "{line}: {diff}");
        let call = Selection::Call(CallId::parse(id).unwrap());
        let plan = preview(&test.toolkit, JournalScope::Everybody, &call, Some(&test.root)).unwrap();
        assert!(plan.iter().all(|(_, diff)| diff.contains(": again the same file as ")), "{line}: {plan:?}");
        take_back(&test, id).await.unwrap();
        assert_eq!((inode("b"), inode("c")), (inode("a"), inode("a")), "{line}");
    }
    outside(&test, "cp a d");
    bash(&test, "ln", "ln -f a d").await;
    let call = Selection::Call(CallId::parse("ln").unwrap());
    let plan = preview(&test.toolkit, JournalScope::Everybody, &call, Some(&test.root)).unwrap();
    assert_eq!(plan, [(test.root.join("d"), "# d: again a file of its own\n".to_owned())]);
    take_back(&test, "ln").await.unwrap();
    assert_ne!(inode("d"), inode("a"));
    assert_eq!(test.content("d"), "a\n");
}

/// What cannot be brought back is said by the command itself, and the refusal gives the same reason.
#[tokio::test]
async fn what_cannot_be_undone_is_said_at_once() {
    for (there, line, why) in [
        ("truncate -s 65M big; echo o > o", "echo a >> big; rm o", "the contents of files over 64 MiB are not kept"),
        // The copy may be all that there is of it.
        ("truncate -s 65M big; echo o > o", "cp big copy; rm big o", "the contents of files over 64 MiB are not kept"),
        (
            "echo precious > ../store/p",
            "ln ../store/p a; echo gone > a; echo b > b",
            "it is another name of a file outside of the session's folders, which was written and is not kept",
        ),
        (
            "echo precious > ../store/p; mkdir ../store/d; echo 1 > ../store/d/f",
            "mv ../store/p a; echo b > b",
            "it was moved here from outside of the session's folders, and would be lost",
        ),
        (
            "mkdir ../store/d; echo 1 > ../store/d/f",
            "mv ../store/d d",
            "it was moved here from outside of the session's folders, and would be lost",
        ),
        (
            "mkdir ../store/d; ln -s somewhere ../store/d/l",
            "mv ../store/d d",
            "it was moved here from outside of the session's folders, and would be lost",
        ),
    ] {
        let test = started();
        outside(&test, there);
        bash(&test, "first", "true").await;
        let result = bash(&test, "call", line).await;
        let said = result.metadata["not_undoable"].as_str().unwrap().to_owned();
        assert!(said.ends_with(&format!(" cannot be brought back: {why}")), "{said}");
        assert!(
            result.text().ends_with(&format!("[what this command changed cannot be undone: {said}]")),
            "{result:?}"
        );
        let after = all(&test);
        assert_eq!(take_back(&test, "call").await.unwrap_err().to_string(), said);
        assert_eq!(all(&test), after);
    }
}

/// All else that the command removed comes back.
#[tokio::test]
async fn what_was_removed_for_good_is_no_reason_to_bring_back_nothing() {
    let socket = "python3 -c 'import socket; socket.socket(1).bind(\"lost\")'";
    for (there, line) in [
        ("truncate -s 65M lost", "rm -r lost d o"),
        (socket, "rm -r lost d o"),
        // A socket holds nothing, whatever else was done.
        (socket, "rm -r lost d; echo other > o"),
    ] {
        let test = started();
        outside(&test, there);
        outside(&test, "echo o > o; mkdir d; echo 1 > d/f");
        bash(&test, "first", "true").await;
        let before = all(&test);
        let result = bash(&test, "call", line).await;
        let lost = test.root.join("lost");
        let said = format!("{}, of which nothing is kept", lost.display());
        assert!(
            result.text().ends_with(&format!("[undo does not bring back all that this command removed: {said}]")),
            "{result:?}"
        );
        take_back(&test, "call").await.unwrap();
        std::fs::remove_file(&lost).unwrap_err();
        assert_eq!(test.content("d/f"), "1\n", "{line}");
        assert_eq!(all(&test).len() + 1, before.len(), "{line}");
    }
}

/// Whatever was done to it since: what is there is all that there is of it.
#[tokio::test]
async fn a_file_that_was_moved_here_is_not_lost_by_a_later_undo() {
    for later in ["rm a", "echo x >> a", "mv a b", "cp a c; mv c a", "chmod 600 a"] {
        let test = started();
        outside(&test, "echo precious > ../store/p");
        bash(&test, "first", "true").await;
        bash(&test, "move", "mv ../store/p a").await;
        bash(&test, "later", later).await;
        let both = Selection::All(ChangeFilter::default());
        undo(&test.toolkit, &test.session, JournalScope::Everybody, &both).await.expect_err(later);
        // The same content in another file is no change.
        match take_back(&test, "later").await {
            Ok(_) | Err(UndoError::Nothing) => {}
            Err(error) => panic!("{later}: {error}"),
        }
        let error = take_back(&test, "move").await.unwrap_err().to_string();
        assert!(error.contains("moved here from outside"), "{later}: {error}");
        assert_eq!(test.content("a"), "precious\n", "{later}");
    }
}

/// A name that a file had with another one is given to a third: from then on, that one changes through it.
#[tokio::test]
async fn a_file_that_gets_the_name_of_another_linked_file_is_followed() {
    let test = started();
    outside(&test, "mkdir one two; echo old > one/a; ln one/a two/b; echo text > one/c");
    bash(&test, "first", "true").await;
    bash(&test, "link", "ln -f one/c two/b").await;
    bash(&test, "write", "echo new > two/b").await;
    bash(&test, "replace", "rm one/c; echo other > one/c").await;
    take_back(&test, "replace").await.unwrap();
    assert_eq!(test.content("one/c"), "new\n");
    take_back(&test, "write").await.unwrap();
    assert_eq!((test.content("one/c"), test.content("two/b")), ("text\n".to_owned(), "text\n".to_owned()));
}

/// A link is all that is left of a file by the time of the undo.
#[tokio::test]
async fn the_last_name_of_a_file_that_came_from_outside_stays() {
    let test = started();
    outside(&test, "echo precious > ../store/p");
    bash(&test, "first", "true").await;
    let result = bash(&test, "call", "ln ../store/p a").await;
    assert!(!result.metadata.contains_key("not_undoable"), "{result:?}");
    outside(&test, "rm ../store/p");
    let error = take_back(&test, "call").await.unwrap_err().to_string();
    assert!(error.ends_with("would be lost"), "{error}");
    assert_eq!(test.content("a"), "precious\n");
}

/// Another program gives a name to the file that a call had taken it from: the call did not write into that file.
#[tokio::test]
async fn a_file_that_a_call_did_not_change_is_not_written() {
    let test = started();
    outside(&test, "echo a > a; ln a ../store/o");
    bash(&test, "first", "true").await;
    bash(&test, "call", "rm a; echo b > a").await;
    outside(&test, "echo b > ../store/o; ln -f ../store/o a");
    take_back(&test, "call").await.unwrap();
    assert_eq!(test.content("a"), "a\n");
    assert_eq!(test.content("../store/o"), "b\n");
}

/// Nobody may see what a command did in a folder that it made unreadable.
#[tokio::test]
async fn changes_in_a_folder_that_may_not_be_read_are_not_undone() {
    if rustix::process::geteuid().is_root() {
        return eprintln!("skipped: root may read every folder");
    }
    for mode in ["000", "400"] {
        let test = started();
        outside(&test, "mkdir -p d/s; echo old > d/old; echo deep > d/s/deep");
        bash(&test, "first", "true").await;
        let line = format!("echo a > d/new; echo x >> d/old; rm d/s/deep; chmod {mode} d");
        let result = bash(&test, "call", &line).await;
        let said = result.metadata["not_undoable"].as_str().unwrap_or_default();
        assert!(said.ends_with("is not known: it may not be read any more"), "{result:?}");
        assert!(take_back(&test, "call").await.is_err());
        outside(&test, "chmod 700 d");
    }
}

/// It is not said of what stays that it was undone.
#[tokio::test]
async fn a_folder_stays_in_which_others_made_something_since() {
    let test = started();
    bash(&test, "call", "mkdir -p new/in; echo x > new/in/f").await;
    outside(&test, "echo y > new/other");
    let of_call = Selection::Call(CallId::parse("call").unwrap());
    let undone = undo(&test.toolkit, &test.session, JournalScope::Everybody, &of_call).await.unwrap();
    assert_eq!(undone, [test.root.join("new/in"), test.root.join("new/in/f")]);
    assert_eq!(test.content("new/other"), "y\n");
}

/// A path that somebody else brought back is no reason to refuse the rest.
#[tokio::test]
async fn what_is_as_before_counts_as_undone() {
    let test = started();
    outside(&test, "echo 1 > f1; echo 3 > f3; echo 4 > f4");
    let before = all(&test);
    bash(&test, "one", "echo a > f1; chmod 600 f1").await;
    bash(&test, "two", "rm f3; mkdir new; echo x > new/x").await;
    outside(&test, "echo 1 > f1; chmod 644 f1; rm new/x");
    bash(&test, "three", "echo b > f1").await;
    outside(&test, "echo 1 > f1");
    let every = Selection::All(toold_builtins::journal::ChangeFilter::default());
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &every).await.unwrap();
    assert_eq!(all(&test), before);
}

#[tokio::test]
async fn a_patch_that_fails_leaves_no_folder() {
    let test = started();
    outside(&test, "mkdir ro; echo x > ro/f; chmod 555 ro; echo g > g");
    let long = "n".repeat(256);
    let before = all(&test);
    for body in [
        format!("*** Add File: new/deep/x\n+hey\n*** Add File: other/{long}\n+ho\n"),
        format!("*** Add File: new/deep/{long}\n+ho\n"),
    ] {
        test.bad("apply_patch", json!({"input": format!("*** Begin Patch\n{body}*** End Patch")})).await;
        assert_eq!(all(&test), before);
    }
    assert!(toold_builtins::undo::history(&test.toolkit, JournalScope::Everybody).is_empty());
}

/// Several calls are undone at once though a later one has closed a folder that an earlier one worked in.
#[tokio::test]
async fn folders_that_a_later_call_closed_are_looked_into() {
    for mode in ["444", "000"] {
        let test = started();
        outside(&test, "mkdir d; echo old > d/old");
        bash(&test, "first", "true").await;
        let before = all(&test);
        bash(&test, "one", "echo x > d/old").await;
        bash(&test, "two", &format!("chmod {mode} d")).await;
        let every = Selection::All(toold_builtins::journal::ChangeFilter::default());
        undo(&test.toolkit, &test.session, JournalScope::Everybody, &every).await.unwrap();
        assert_eq!(all(&test), before);
    }
}

/// The system lets nobody change what is in a folder: nothing is undone, and the refusal says what was tried where.
#[tokio::test]
async fn an_undo_that_the_system_refuses_says_which_step_was_refused() {
    let is_root = rustix::process::geteuid().is_root();
    for (line, step) in [
        ("rm ro/f; echo 2 > other", "make"),
        ("echo 2 > ro/f; echo 2 > other", "bring back the content of"),
        ("echo new > ro/new; echo 2 > other", "remove"),
        ("chmod 600 ro/f; echo 2 > other", "set the permission bits of"),
    ] {
        let test = started();
        outside(&test, "mkdir ro; echo 1 > ro/f; chmod 640 ro/f; echo 1 > other");
        bash(&test, "first", "true").await;
        bash(&test, "call", line).await;
        // Root is stopped by nothing else.
        let lock = |flag: &str| {
            let lock = format!("chattr {flag}i ro $(find ro -type f)");
            Command::new("sh").args(["-c", &lock]).current_dir(&test.root).output().unwrap().status.success()
        };
        if is_root && !lock("+") {
            return eprintln!("skipped: the file system has no immutable files");
        }
        if !is_root {
            outside(&test, "chmod 444 ro/* 2>/dev/null; chmod 555 ro");
        }
        let after = all(&test);
        let error = take_back(&test, "call").await.unwrap_err().to_string();
        assert_eq!(all(&test), after, "{line}");
        if is_root {
            lock("-");
        }
        outside(&test, "chmod 755 ro");
        let path = test.root.join(if step == "remove" { "ro/new" } else { "ro/f" });
        // The owner of a file may set its bits.
        if is_root || matches!(step, "make" | "remove") {
            assert!(error.starts_with(&format!("can't {step} {}: ", path.display())), "{error}");
            assert!(error.ends_with("; nothing was undone"), "{error}");
            assert_eq!(error.contains(", since the folder "), !is_root, "{error}");
        }
        if is_root {
            take_back(&test, "call").await.unwrap();
            assert_eq!((test.content("ro/f"), test.content("other")), ("1\n".to_owned(), "1\n".to_owned()));
        }
    }
}

/// What another program writes while a large undo runs is not lost: the undo goes back.
#[tokio::test]
async fn what_is_written_while_an_undo_runs_is_kept() {
    let test = started();
    outside(
        &test,
        "mkdir m zz; for n in $(seq 300); do echo $n > m/$n; done; echo 1 > zz/changed; echo 1 > zz/removed",
    );
    bash(&test, "first", "true").await;
    bash(&test, "call", "rm -r m zz/removed; echo 2 > zz/changed").await;
    let root = test.root.clone();
    let other = std::thread::spawn(move || {
        while !root.join("m").exists() {
            std::thread::yield_now();
        }
        std::fs::write(root.join("zz/changed"), "foreign").unwrap();
        std::fs::write(root.join("zz/removed"), "foreign").unwrap();
    });
    let undone = take_back(&test, "call").await;
    other.join().unwrap();
    assert_eq!([test.content("zz/changed"), test.content("zz/removed")], ["foreign"; 2]);
    if let Err(error) = undone {
        assert!(error.to_string().contains("has changed since"), "{error}");
        assert!(!test.root.join("m").exists());
    }
}

/// The next daemon records what a command had done when its daemon was killed; what may be somebody else's is apart.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_had_done_before_a_kill_is_undone() {
    for is_certain in [true, false] {
        let test = started();
        outside(&test, "echo 1 > f1; echo 1 > f2; mkdir d");
        bash(&test, "first", "true").await;
        let before = tree(&test.root);
        let said = test.root.with_file_name("store").join("said");
        std::fs::write(
            test.root.with_file_name("script"),
            "echo 2 > f1; rm f2; mkdir n; echo x > n/x; touch ../store/said; read line",
        )
        .unwrap();
        let mut call = test.prepare("bash", json!({"command": "sh ../script", "background": true, "tty": true}));
        call.call_id = Some(CallId::parse("call").unwrap());
        assert!(!test.run(call).await.unwrap().is_error);
        toold_test_kit::until("the command runs", || said.exists().then_some(()));
        // What a killed daemon leaves is not locked.
        let logs = test.root.with_file_name("undo").join("@index");
        let left: PathBuf = std::fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
        std::fs::copy(left, logs.join("left.log")).unwrap();
        if !is_certain {
            let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
            let log = std::fs::File::options().append(true).open(logs.join("left.log")).unwrap();
            log.set_modified(long_ago).unwrap();
        }
        let next = test.next_toolkit();
        toold_builtins::undo::take_up(&next).await;
        let every = Selection::All(toold_builtins::journal::ChangeFilter::default());
        let all = undo(&next, &test.session, JournalScope::Everybody, &every).await;
        assert_eq!(all.is_ok(), is_certain, "{all:?}");
        if !is_certain {
            let call = Selection::Call(CallId::parse("call").unwrap());
            undo(&next, &test.session, JournalScope::Everybody, &call).await.unwrap();
        }
        assert_eq!(tree(&test.root), before);
        assert!(!logs.join("left.log").exists());
    }
}

/// More happens than the system reports: what the command did is known all the same, and so is what comes next.
#[tokio::test]
async fn lost_events_lose_no_changes() {
    let test = started();
    outside(&test, "echo 1 > a; echo 1 > b; mkdir d; echo 1 > d/c");
    bash(&test, "first", "true").await;
    let before = all(&test);
    let many = "python3 -c 'import os\nfor n in range(40000): os.chmod(\"ab\"[n % 2], 0o600 + n % 4 // 2)'; echo 2 > d/c; mkdir e; echo 1 > e/f";
    for (id, line) in [("many", many), ("next", "echo 3 > d/c; rm e/f")] {
        let result = bash(&test, id, line).await;
        assert!(!result.is_error && !result.metadata.contains_key("not_undoable"), "{result:?}");
    }
    take_back(&test, "next").await.unwrap();
    assert_eq!(test.content("d/c"), "2\n");
    take_back(&test, "many").await.unwrap();
    assert_eq!(all(&test), before);
}

/// The session's folder is another one at the same path: by a person, or by the command itself.
#[tokio::test]
async fn a_folder_that_is_made_again_is_known_as_such() {
    for meanwhile in [
        "cd ..; rm -rf work; mkdir work",
        "cd ..; mv work old; mkdir work",
        "cd ..; cp -r work new; mv work old; mv new work",
    ] {
        let test = started();
        outside(&test, "echo 1 > a; mkdir d; echo 1 > d/c");
        bash(&test, "first", "true").await;
        outside(&test, &format!("{meanwhile}; cd work; echo z > z; echo y > y"));
        let before = all(&test);
        for n in 0..2 {
            bash(&test, &format!("c{n}"), "rm z; echo 5 > y; mkdir -p d; echo 6 > d/c").await;
            assert_ne!(all(&test), before);
            take_back(&test, &format!("c{n}")).await.unwrap_or_else(|error| panic!("{meanwhile}: {error}"));
            assert_eq!(all(&test), before, "{meanwhile}");
        }
        let result = bash(&test, "itself", &format!("{meanwhile}; cd work; echo z > z")).await;
        assert!(!result.metadata.contains_key("not_undoable"), "{result:?}");
        if meanwhile.contains("cp -r") {
            continue;
        }
        take_back(&test, "itself").await.unwrap_or_else(|error| panic!("{meanwhile}: {error}"));
        assert_eq!(all(&test), before, "{meanwhile}");
    }
}

/// A person who undoes the last call is told of the one before it, not of one that is undone.
#[tokio::test]
async fn undone_calls_stand_in_nobodys_way() {
    let test = started();
    for id in ["one", "two", "three"] {
        bash(&test, id, &format!("echo {id} >> r")).await;
    }
    take_back(&test, "three").await.unwrap();
    let error = take_back(&test, "one").await.unwrap_err().to_string();
    assert!(error.contains("by bash in call two"), "{error}");
    let records = toold_builtins::undo::history(&test.toolkit, JournalScope::Everybody);
    let diff = toold_builtins::undo::combined_diff(&test.toolkit, &records, Some(&test.root));
    assert!(diff.contains("+two\n") && !diff.contains("three"), "{diff}");
}

/// One thing that a command does.
#[derive(Clone, Debug)]
enum Deed {
    Remove(usize),
    Move(usize, usize),
    Folder(usize),
    Mode(usize, &'static str),
    Symlink(usize, usize),
    Link(usize, usize),
    LinkOutside(usize),
    Write(usize, u8),
    Append(usize),
    Replace(usize),
    Truncate(usize),
    Pipe(usize),
    CopyFolder(usize, usize),
    FileToFolder(usize),
    FolderToFile(usize),
}

const NAMES: [&str; 12] =
    ["a", "b", "sub", "sub/c", "sub/deep", "sub/deep/d", "e e", "new\nline", "-n", "z/y/x", "\u{fc}", "store-link"];

impl Deed {
    fn line(&self) -> String {
        let name = |index: &usize| format!("\"$PWD/{}\"", NAMES[*index]);
        match self {
            Self::Remove(at) => format!("rm -rf {}", name(at)),
            Self::Move(from, to) => format!("mv -f -T {} {}", name(from), name(to)),
            Self::Folder(at) => format!("mkdir -p {}", name(at)),
            Self::Mode(at, mode) => format!("chmod {mode} {}", name(at)),
            Self::Symlink(to, at) => format!("ln -sfn {} {}", name(to), name(at)),
            Self::Link(file, at) => format!("ln -f {} {}", name(file), name(at)),
            Self::LinkOutside(at) => format!("ln -f ../store/kept {}", name(at)),
            // Nobody reads from a pipe.
            Self::Write(at, n) => format!(
                "test -p {0} || {{ printf 'n%s\\n' {n} > {0}.tmp && cat {0}.tmp > {0}; rm -f {0}.tmp; }}",
                name(at)
            ),
            Self::Append(at) => format!("test -p {0} || echo more >> {0}", name(at)),
            Self::Replace(at) => format!("test -f {0} && sed -i 's/n/N/' {0}", name(at)),
            Self::Truncate(at) => format!("test -f {0} && truncate -s 5000 {0}", name(at)),
            Self::Pipe(at) => format!("mkfifo {}", name(at)),
            Self::CopyFolder(from, to) => format!("test -d {} && cp -a {0} {}", name(from), name(to)),
            Self::FileToFolder(at) => format!("rm -f {0}; mkdir {0} && echo in > {0}/inner", name(at)),
            Self::FolderToFile(at) => format!("rm -rf {0}; echo file > {0}", name(at)),
        }
    }
}

fn deed() -> impl Strategy<Value = Deed> {
    let name = || 0..NAMES.len();
    prop_oneof![
        2 => name().prop_map(Deed::Remove),
        2 => (name(), name()).prop_map(|(from, to)| Deed::Move(from, to)),
        1 => name().prop_map(Deed::Folder),
        2 => (name(), prop_oneof![Just("600"), Just("444"), Just("755"), Just("555"), Just("2750")])
            .prop_map(|(at, mode)| Deed::Mode(at, mode)),
        1 => (name(), name()).prop_map(|(to, at)| Deed::Symlink(to, at)),
        3 => (name(), name()).prop_map(|(file, at)| Deed::Link(file, at)),
        1 => name().prop_map(Deed::LinkOutside),
        4 => (name(), any::<u8>()).prop_map(|(at, n)| Deed::Write(at, n)),
        2 => name().prop_map(Deed::Append),
        2 => name().prop_map(Deed::Replace),
        1 => name().prop_map(Deed::Truncate),
        1 => name().prop_map(Deed::Pipe),
        1 => (name(), name()).prop_map(|(from, to)| Deed::CopyFolder(from, to)),
        1 => name().prop_map(Deed::FileToFolder),
        1 => name().prop_map(Deed::FolderToFile),
    ]
}

#[derive(Clone, Debug)]
enum UndoStep {
    Command(Vec<Deed>),
    /// `write` of the tool.
    Tool(usize, u8),
    /// Another program does it.
    Foreign(Deed),
    /// Of the last call that is not undone, or of an earlier one.
    Undo(prop::sample::Index, bool),
}

fn step() -> impl Strategy<Value = UndoStep> {
    prop_oneof![
        5 => prop::collection::vec(deed(), 1..4).prop_map(UndoStep::Command),
        2 => (0..NAMES.len(), any::<u8>()).prop_map(|(at, n)| UndoStep::Tool(at, n)),
        2 => deed().prop_map(UndoStep::Foreign),
        4 => (any::<prop::sample::Index>(), prop::bool::weighted(0.7)).prop_map(|(at, last)| UndoStep::Undo(at, last)),
    ]
}

/// A call that has changed something, with the paths as they were before it and after it.
struct DoneCall {
    id: String,
    before: TreeStates,
    after: TreeStates,
    /// The path that the tool `write` was given: its record has no other name of the file.
    written: Option<PathBuf>,
    /// It linked the file outside into the folder. Whether it wrote into it before or after that is not known.
    linked_outside: bool,
}

impl DoneCall {
    fn changed(&self) -> impl Iterator<Item = &PathBuf> {
        let all = self.before.keys().chain(self.after.keys());
        all.filter(|path| self.before.get(*path) != self.after.get(*path))
    }
}

fn file_number(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().filter(Metadata::is_file).map(|file| (file.dev(), file.ino()))
}

/// Whether one of these paths is a name of the file outside of the session's folder.
fn is_name_of<'p>(outside: &Path, paths: impl IntoIterator<Item = &'p PathBuf>) -> bool {
    let file = file_number(outside);
    paths.into_iter().any(|path| path != outside && file.is_some() && file_number(path) == file)
}

/// What becomes of the tree when a call is undone: nothing but its paths changes, and these are as before it. The file outside
/// is one of them as far as the call has left a name of it.
fn expected(call: &DoneCall, outside: &Path, now: &TreeStates) -> TreeStates {
    let mut expected = now.clone();
    for path in call.changed().filter(|path| **path != outside || is_name_of(outside, call.changed())) {
        let is_recorded = call.written.as_ref().is_none_or(|written| written == path);
        if !is_recorded && now.get(path) != call.after.get(path) {
            // Others have moved or removed this name since.
            continue;
        }
        match call.before.get(path) {
            Some((kind, mode, content)) => {
                // Permission bits that others have set since stay.
                let is_kept = |state: &&(char, u32, Vec<u8>)| state.0 == *kind;
                let left = call.after.get(path).filter(is_kept).filter(|left| left.1 == *mode);
                let now = left.and(now.get(path).filter(is_kept)).map_or(*mode, |now| now.1);
                expected.insert(path.clone(), (*kind, now, content.clone()))
            }
            None => expected.remove(path),
        };
    }
    expected
}

/// Further names of the files that a call changed, which later calls or others have made: they have the content of the file.
fn further_names(call: &DoneCall, now: &TreeStates) -> BTreeSet<PathBuf> {
    let changed: BTreeSet<(u64, u64)> = call.changed().filter_map(|path| file_number(path)).collect();
    let own: BTreeSet<&PathBuf> = call.changed().collect();
    let is_further =
        |path: &&PathBuf| !own.contains(path) && file_number(path).is_some_and(|file| changed.contains(&file));
    now.keys().filter(is_further).cloned().collect()
}

/// Whether others have made something in a folder of the call, in the place of what was no folder before it.
fn is_used_by_others(call: &DoneCall, now: &TreeStates) -> bool {
    let replaced = |path: &&PathBuf| call.before.get(*path).is_some_and(|state| state.0 != 'd');
    call.changed().filter(replaced).any(|folder| {
        now.keys().any(|path| path != folder && path.starts_with(folder) && !call.after.contains_key(path))
    })
}

/// Pipes and folders that others use by now stay where they are.
fn is_right(expected: &TreeStates, got: &TreeStates, further: &BTreeSet<PathBuf>) -> bool {
    let holds = |folder: &Path| got.keys().any(|path| path != folder && path.starts_with(folder));
    let extra = got.iter().filter(|(path, _)| !expected.contains_key(*path));
    let is_same =
        |path: &PathBuf| got.iter().any(|(name, state)| !further.contains(name) && got.get(path) == Some(state));
    let is_as_expected =
        |(path, state): (&PathBuf, _)| got.get(path) == Some(state) || further.contains(path) && is_same(path);
    expected.iter().all(is_as_expected) && extra.into_iter().all(|(path, state)| state.0 == 'd' && holds(path))
}

async fn follow(steps: &[UndoStep]) -> Result<(), TestCaseError> {
    let test = started();
    let outside_file = test.root.with_file_name("store").join("kept");
    std::fs::write(&outside_file, "kept\n").unwrap();
    outside(&test, "mkdir -p sub/deep z/y; echo one > a; echo two > sub/c; ln a sub/deep/d; echo n > 'e e'");
    bash(&test, "first", "true").await;
    let mut calls: Vec<DoneCall> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (mut before, id) = (all(&test), format!("c{number}"));
        let had_name = is_name_of(&outside_file, before.keys());
        let (mut is_lost, mut written) = (false, None);
        match step {
            UndoStep::Command(deeds) => {
                let lines: Vec<String> = deeds.iter().map(Deed::line).collect();
                let result = bash(&test, &id, &format!("exec 2>/dev/null\n{}\ntrue", lines.join("\n"))).await;
                prop_assert!(!result.is_error, "{}", result.text());
                is_lost = result.metadata.contains_key("not_undoable");
            }
            UndoStep::Tool(at, n) => {
                let mut call = test.prepare("write", json!({"path": NAMES[*at], "content": format!("n{n}\n")}));
                call.call_id = Some(CallId::parse(&id).unwrap());
                test.run(call).await.unwrap();
                written = Some(test.root.join(NAMES[*at]));
            }
            UndoStep::Foreign(deed) => {
                let done = Command::new("sh").args(["-c", &deed.line()]).current_dir(&test.root).output();
                done.unwrap();
                continue;
            }
            UndoStep::Undo(at, last) => {
                let Some(newest) = calls.len().checked_sub(1) else { continue };
                let call = calls.remove(if *last { newest } else { at.index(newest + 1) });
                let further = further_names(&call, &before);
                let undone = take_back(&test, &call.id).await;
                let got = all(&test);
                let is_as_left = call.changed().all(|path| before.get(path) == call.after.get(path));
                match undone {
                    Ok(_) => {
                        let expected = expected(&call, &outside_file, &before);
                        prop_assert!(
                            is_right(&expected, &got, &further),
                            "{}: {:?}\nexpected {:#?}\ngot {:#?}",
                            call.id,
                            steps,
                            expected,
                            got
                        );
                    }
                    Err(error) => {
                        prop_assert_eq!(&got, &before, "{} was refused: {}", call.id, error);
                        let may_be_lost =
                            !is_as_left || !*last || call.linked_outside || is_used_by_others(&call, &before);
                        prop_assert!(may_be_lost, "{}: {}\n{:?}", call.id, error, steps);
                    }
                }
                continue;
            }
        }
        let after = all(&test);
        let has_name = is_name_of(&outside_file, after.keys());
        let linked_outside = has_name && !had_name;
        // Which permission bits it had before a call linked it is not known.
        let is_written = before[&outside_file].2 != after[&outside_file].2;
        prop_assert!(!is_lost || linked_outside, "{}: {:?}", id, steps);
        prop_assert!(is_lost || !linked_outside || !is_written, "{}: {:?}", id, steps);
        if !(had_name && has_name) {
            // What a call does outside of the session's folders is not undone.
            before.insert(outside_file.clone(), after[&outside_file].clone());
        }
        if after != before {
            calls.push(DoneCall { id, before, after, written, linked_outside });
        }
    }
    Ok(())
}

/// The seeds of each run, and how many sequences each of them gives; `UNDO_SEED=7` makes others.
fn seeds() -> (std::ops::RangeInclusive<u64>, u32) {
    match std::env::var("UNDO_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => (seed..=seed, 24),
        None => (1..=4, 8),
    }
}

#[test]
fn undo_is_right_or_refused_after_any_calls() {
    let (seeds, cases) = seeds();
    for seed in seeds {
        let rng_seed = RngSeed::Fixed(seed);
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            max_shrink_iters: 200,
            rng_seed,
            ..ProptestConfig::default()
        };
        let sequences = prop::collection::vec(step(), 4..24);
        let found = TestRunner::new(config).run(&sequences, |steps| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(follow(&steps))
        });
        found.unwrap_or_else(|error| panic!("UNDO_SEED={seed}: {error}"));
    }
}
