//! What commands change is undone byte for byte.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use toold_builtins::journal::{ChangeFilter, ChangeRecord, JournalScope, RawPath, Selection, UnrecordedChanges};
use toold_builtins::undo::{UndoError, combined_diff, history, undo};
use toold_proto::tool::{CallId, SessionId, ToolResult};

use crate::builtin_test::BuiltinTest;

/// Everything below a folder but `.git`: kind, permission bits and content.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, (char, u32, Vec<u8>)> {
    let (mut found, mut left) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
            let (path, facts) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let mode = facts.permissions().mode() & 0o7777;
            let what = if facts.is_dir() {
                left.push(path.clone());
                ('d', mode, Vec::new())
            } else if facts.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                ('l', 0, target.into_os_string().into_encoded_bytes())
            } else if !facts.is_file() {
                (if facts.file_type().is_fifo() { 'p' } else { 's' }, mode, Vec::new())
            } else {
                ('f', mode, std::fs::read(&path).unwrap())
            };
            found.insert(path, what);
        }
    }
    found
}

/// A repository with files, folders, a link, odd names and a mode, and a formatter.
fn repository(test: &BuiltinTest) {
    for (path, content) in [
        ("src/main.rs", b"fn main() {}\n".as_slice()),
        ("src/deep/er/lib.rs", b"pub fn f() {}\r\n"),
        ("odd/na me\n\u{fc}.bin", b"\x00\xff\xfe"),
        ("odd/empty", b""),
        ("README", b"one\ntwo\n"),
        (".hidden", b"x"),
        (".gitignore", b"target/\n*.log\n"),
        ("kept.log", b"a log\n"),
        ("target/big", b"left out"),
    ] {
        test.write(path, content);
    }
    // So many are kept in one file.
    for n in 0..60 {
        test.write(&format!("many/{n}"), format!("file {n}\n"));
    }
    let bytes: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(b"odd/\xff".to_vec());
    std::fs::write(test.root.join(bytes), "not UTF-8").unwrap();
    std::os::unix::fs::symlink("src/main.rs", test.root.join("link")).unwrap();
    test.write("format", "#!/bin/sh\nfor f in \"$@\"; do sed -i 's/{}/{ }/' \"$f\"; done\n");
    // A person is asked before `rm` removes a file whose name is not UTF-8.
    test.write("wipe", "#!/bin/sh\nrm -rf \"$@\"\n");
    for program in ["format", "wipe"] {
        std::fs::set_permissions(test.root.join(program), PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::create_dir(test.root.join("nothing")).unwrap();
    for arguments in ["init -q", "add -A", "-c user.name=n -c user.email=e@example.com commit -qm first"] {
        let git = Command::new("git").args(arguments.split(' ')).current_dir(&test.root).output().unwrap();
        assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
    }
    // What `git checkout -- .` throws away.
    test.write("README", "one\nmine\n");
}

async fn command(test: &BuiltinTest, id: &str, line: &str) {
    let mut call = test.prepare("bash", json!({"command": line}));
    call.call_id = Some(CallId::parse(id).unwrap());
    let result = test.run(call).await.unwrap();
    assert!(!result.is_error, "{}", result.text());
    assert!(!result.metadata.contains_key("not_undoable"), "{:?}", result.metadata);
}

async fn taken_back(test: &BuiltinTest, selection: Selection) -> Result<Vec<PathBuf>, UndoError> {
    undo(&test.toolkit, &test.session, JournalScope::Everybody, &selection).await
}

fn of(id: &str) -> Selection {
    Selection::Call(CallId::parse(id).unwrap())
}

fn records(test: &BuiltinTest) -> Vec<ChangeRecord> {
    history(&test.toolkit, JournalScope::Session(&test.session.id))
}

#[tokio::test]
async fn commands_are_undone_byte_for_byte() {
    let test = BuiltinTest::new();
    repository(&test);
    let before = tree(&test.root);
    let lines = [
        "rm -rf src nothing link README .hidden kept.log many && ./wipe odd",
        "sed -i 's/one/ONE/; s/fn/FN/' README src/main.rs src/deep/er/lib.rs",
        "mv src source && mv README source/deep/ && mv link other && mv odd/empty odd/full",
        "chmod 600 README && chmod -x format && chmod 700 src && ln -sfn README link",
        "git checkout -q -- .",
        "./format src/main.rs src/deep/er/lib.rs && mkdir -p made/a/b && echo new > made/a/b/c",
        "rm README && mkdir README && echo x > README/file && rm -r nothing && echo now a file > nothing",
    ];
    for (n, line) in lines.iter().enumerate() {
        let id = format!("c{n}");
        command(&test, &id, line).await;
        assert_ne!(tree(&test.root), before, "{line}");
        taken_back(&test, of(&id)).await.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(tree(&test.root), before, "{line}");
    }
}

#[tokio::test]
async fn a_session_is_undone_as_one() {
    let test = BuiltinTest::new();
    repository(&test);
    let before = tree(&test.root);
    command(&test, "one", "sed -i s/one/two/ README && mv src source").await;
    test.ok("write", json!({"path": "source/new/file", "content": "x\n"})).await;
    command(&test, "two", "sed -i s/two/three/g README && rm -rf source && chmod 700 odd").await;
    let diff = combined_diff(&test.toolkit, &records(&test), None);
    assert!(diff.contains("# by bash in call one: sed -i s/one/two/ README && mv src source\n"), "{diff}");
    assert!(diff.contains("-one\n-mine\n+three\n+mine\n") || diff.contains("-one\n+three\n mine\n"), "{diff}");
    taken_back(&test, Selection::All(ChangeFilter::default())).await.unwrap();
    assert_eq!(tree(&test.root), before);
    assert!(records(&test).iter().all(|record| record.undone));
}

#[tokio::test]
async fn what_changed_since_is_named_with_who_did_it() {
    let test = BuiltinTest::new();
    repository(&test);
    command(&test, "one", "echo 1 > a; echo 1 > b").await;
    command(&test, "two", "echo 2 > b").await;
    let error = taken_back(&test, of("one")).await.unwrap_err().to_string();
    assert!(error.contains("b has changed since, by bash in call two"), "{error}");
    assert_eq!((test.content("a"), test.content("b")), ("1\n".to_owned(), "2\n".to_owned()));
    taken_back(&test, of("two")).await.unwrap();
    taken_back(&test, of("one")).await.unwrap();
    assert!(!test.root.join("a").exists());
}

#[tokio::test]
async fn what_people_and_commands_that_read_do_is_no_commands_change() {
    let test = BuiltinTest::new();
    repository(&test);
    command(&test, "read", "cat README > /dev/null").await;
    test.write("mine", "by hand");
    command(&test, "target", "echo x >> target/big").await;
    assert!(records(&test).is_empty(), "{:?}", records(&test));
    command(&test, "made", "echo x > made").await;
    let paths: Vec<PathBuf> = records(&test)[0].changes.iter().map(|change| change.path.0.clone()).collect();
    assert_eq!(paths, [test.root.join("made")]);
}

#[tokio::test]
async fn a_change_while_two_commands_run_may_be_of_both() {
    let test = BuiltinTest::new();
    repository(&test);
    let result =
        test.ok("bash", json!({"command": "touch target/up; read line", "background": true, "tty": true})).await;
    assert!(result.contains("sh_1"), "{result}");
    command(&test, "fore", "echo x > made").await;
    let records = records(&test);
    assert_eq!((records.len(), records[0].shared_with.len()), (1, 1), "{records:?}");
    // It is a change of the session that may have made it, whoever's record it is.
    let (other, _) = records[0].shared_with[0].split_once('/').unwrap();
    let filter = |id: &str| ChangeFilter { session: Some(SessionId::parse(id).unwrap()), ..ChangeFilter::default() };
    let mut of_others = records[0].clone();
    of_others.session_id = SessionId::parse("elsewhere").unwrap();
    assert!(filter(other).has(&of_others) && filter("elsewhere").has(&of_others) && !filter("no").has(&of_others));
    let all = taken_back(&test, Selection::All(ChangeFilter::default())).await;
    assert!(matches!(all, Err(UndoError::Nothing)));
    taken_back(&test, of("fore")).await.unwrap();
    assert!(!test.root.join("made").exists());
    test.ok("kill_shell", json!({"shell_id": "sh_1"})).await;
}

#[tokio::test]
async fn what_changes_beside_a_background_command_is_undone_only_when_it_is_named() {
    let test = BuiltinTest::new();
    repository(&test);
    let mut call = test.prepare("bash", json!({"command": "echo x > up; read line", "background": true, "tty": true}));
    call.call_id = Some(CallId::parse("server").unwrap());
    assert!(!test.run(call).await.unwrap().is_error);
    toold_test_kit::until("the command runs", || test.root.join("up").exists().then_some(()));
    test.write("README", "an hour of work\n");
    test.ok("kill_shell", json!({"shell_id": "sh_1"})).await;
    let all = taken_back(&test, Selection::All(ChangeFilter::default())).await;
    assert!(matches!(all, Err(UndoError::Nothing)), "{all:?}");
    assert_eq!(test.content("README"), "an hour of work\n");
    let diff = combined_diff(&test.toolkit, &records(&test), None);
    assert!(diff.contains("(or by whoever else changed files while it ran in the background)"), "{diff}");
    taken_back(&test, of("server")).await.unwrap();
    assert!(!test.root.join("up").exists());
}

#[tokio::test]
async fn a_call_is_undone_although_a_background_command_goes_on_to_write() {
    let test = BuiltinTest::new();
    repository(&test);
    let server = json!({"command": "echo 1 > served; touch target/up; read line", "background": true, "tty": true});
    test.ok("bash", server).await;
    toold_test_kit::until("it runs", || test.root.join("target/up").exists().then_some(()));
    command(&test, "fore", "echo x > made; echo 2 >> served").await;
    test.write("served", "3\n");
    let diff = combined_diff(&test.toolkit, &records(&test), None);
    assert!(diff.contains(", a call that had changed the same files before and went on)\n"), "{diff}");
    taken_back(&test, of("fore")).await.unwrap();
    assert!(!test.root.join("made").exists());
    assert_eq!(test.content("served"), "3\n");
    test.ok("kill_shell", json!({"shell_id": "sh_1"})).await;
}

#[tokio::test]
async fn a_long_change_does_not_hide_others() {
    let test = BuiltinTest::new();
    test.write("a", "x\n");
    command(&test, "one", "seq 1 1000000 > long; echo other > y").await;
    let patch = toold_builtins::undo::patch(&test.toolkit, &records(&test), &test.root);
    assert!(patch.contains("\n# long: left out, ") && patch.contains("+++ b/y\n"), "{}", patch.len());
    assert!(patch.len() < 10_000);
}

#[tokio::test]
async fn forgotten_changes_and_their_contents_are_gone() {
    let test = BuiltinTest::new();
    repository(&test);
    test.write("secret", "a password\n");
    command(&test, "one", "echo other > secret; echo x > made").await;
    assert_eq!(test.toolkit.forget_changes(Some(&test.root.join("secret"))).unwrap(), 1);
    assert_eq!(records(&test)[0].changes.len(), 1);
    let kept = test.root.parent().unwrap().join("undo/@contents");
    for entry in std::fs::read_dir(kept).unwrap().flatten() {
        let content = std::fs::read(entry.path()).unwrap();
        assert!(!content.windows(10).any(|part| part == b"a password"), "{:?}", entry.path());
    }
    assert_eq!(test.toolkit.forget_changes(None).unwrap(), 1);
    assert!(records(&test).is_empty());
}

/// As if everything had been kept two days ago.
fn two_days_pass(kept: &Path) -> usize {
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
    let files: Vec<PathBuf> = std::fs::read_dir(kept).unwrap().flatten().map(|entry| entry.path()).collect();
    for file in &files {
        std::fs::File::open(file).unwrap().set_modified(long_ago).unwrap();
    }
    files.len()
}

#[tokio::test]
async fn old_contents_stay_while_a_change_or_the_folder_needs_them() {
    let test = BuiltinTest::new();
    repository(&test);
    let before = tree(&test.root);
    let kept = test.root.parent().unwrap().join("undo/@contents");
    command(&test, "one", "sed -i s/file/FILE/ many/1*").await;
    assert!(two_days_pass(&kept) < 60, "many contents are one file");
    test.toolkit.clean_changes(&mut |_| false);
    // Its former content was kept before the first command, two days ago.
    command(&test, "two", "rm -r many src").await;
    two_days_pass(&kept);
    test.toolkit.clean_changes(&mut |_| false);
    taken_back(&test, of("two")).await.unwrap();
    taken_back(&test, of("one")).await.unwrap();
    assert_eq!(tree(&test.root), before);
    // Nothing needs the contents any more.
    assert!(test.toolkit.forget_changes(None).unwrap() > 0);
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
}

#[tokio::test]
async fn what_went_with_a_folder_and_is_not_kept_is_named() {
    let test = BuiltinTest::new();
    std::fs::create_dir(test.root.join(".git")).unwrap();
    let make = || {
        test.write(".gitignore", "node_modules\n*.log\n");
        test.write("pkg/source", "text");
        test.write("pkg/node_modules/x/index.js", "dependency");
        test.write("pkg/large.log", vec![0; 2 << 20]);
        test.write("pkg/small.log", "kept");
        test.write("pkg/inner/.git/HEAD", "ref");
    };
    make();
    let gone = |names: &[&str]| -> Vec<std::path::PathBuf> { names.iter().map(|name| test.root.join(name)).collect() };
    let all = ["pkg/inner/.git", "pkg/large.log", "pkg/node_modules"];
    for (line, expected) in [
        ("rm -rf pkg", gone(&all)),
        ("rm -rf pkg/node_modules && echo changed > pkg/source", gone(&["pkg/node_modules"])),
        ("mv pkg/large.log pkg/other.log && echo changed > pkg/source", gone(&["pkg/large.log"])),
        // Nothing of these was there before, or is there no more.
        ("mkdir -p pkg/tmp/node_modules && rm -rf pkg/tmp && echo changed > pkg/source", gone(&[])),
        ("rm -rf pkg/node_modules && mkdir pkg/node_modules && echo changed > pkg/source", gone(&[])),
        ("rm -rf pkg/small.log pkg/source", gone(&[])),
    ] {
        make();
        test.ok("bash", json!({"command": "true"})).await;
        let result = test.call("bash", json!({"command": line})).await;
        assert_eq!(result.metadata.contains_key("not_undoable"), !expected.is_empty(), "{line}: {result:?}");
        let is_said = result.text().contains("[undo does not bring back all that this command removed: ");
        assert_eq!(is_said, !expected.is_empty(), "{line}: {result:?}");
        let everything = Selection::All(ChangeFilter::default());
        let unrecorded = toold_builtins::undo::unrecorded(&test.toolkit, JournalScope::Everybody, &everything);
        let not_kept: Vec<PathBuf> = unrecorded.not_kept.into_iter().map(|path| path.0).collect();
        assert_eq!(not_kept, expected, "{line}");
        taken_back(&test, everything).await.unwrap();
        assert_eq!((test.content("pkg/source"), test.content("pkg/small.log")), ("text".to_owned(), "kept".to_owned()));
        // Where nothing is recorded, the result says it alone.
        let result = test.call("bash", json!({"command": "rm -rf pkg/node_modules pkg/inner"})).await;
        assert!(!result.is_error);
    }
    make();
    test.ok("bash", json!({"command": "true"})).await;
    let result = test.call("bash", json!({"command": "rm -rf pkg/node_modules"})).await;
    assert!(result.text().contains("pkg/node_modules, of which nothing is kept]"), "{result:?}");
}

fn changed_by(test: &BuiltinTest, id: &str) -> Vec<PathBuf> {
    let records = records(test).into_iter().filter(|record| record.call_id.as_str() == id);
    let paths = records.flat_map(|record| record.changes).map(|change| change.path.0);
    paths.map(|path| path.strip_prefix(&test.root).unwrap().to_owned()).collect()
}

/// A folder that is ignored no longer is known from then on, and no call has made it.
#[tokio::test]
async fn what_is_ignored_no_longer_is_recorded_from_then_on() {
    let test = BuiltinTest::new();
    std::fs::create_dir(test.root.join(".git")).unwrap();
    test.write(".gitignore", "out/\n*.big\n");
    test.write("out/deep/a", "one\n");
    test.write("x.big", vec![0; 2 << 20]);
    command(&test, "c1", "sed -i /out/d .gitignore").await;
    command(&test, "c2", "sed -i s/one/two/ out/deep/a; echo b > out/b").await;
    command(&test, "c3", "rm .gitignore; rm -r out").await;
    command(&test, "c4", "rm x.big").await;
    assert_eq!(changed_by(&test, "c1"), [Path::new(".gitignore")]);
    assert_eq!(changed_by(&test, "c2"), [Path::new("out/b"), Path::new("out/deep/a")]);
    for id in ["c4", "c3", "c2", "c1"] {
        taken_back(&test, of(id)).await.unwrap();
    }
    assert_eq!((test.content("out/deep/a"), test.content(".gitignore")), ("one\n".into(), "out/\n*.big\n".into()));
    assert!(!test.root.join("out/b").exists() && test.root.join("x.big").exists());
}

/// The former content of the folder is not known, so its undo leaves the folder as it is, and says so.
#[tokio::test]
async fn what_a_call_does_where_it_ends_that_git_ignores_it_is_named() {
    let test = BuiltinTest::new();
    std::fs::create_dir(test.root.join(".git")).unwrap();
    test.write(".gitignore", "out/\nother/\n");
    test.write("out/a", "one\n");
    test.write("other/a", "one\n");
    let mut call = test.prepare(
        "bash",
        // The clock of files moves on meanwhile.
        json!({"command": "echo other/ > .gitignore; until [ out/b -nt .gitignore ]; do echo two > out/b; done"}),
    );
    call.call_id = Some(CallId::parse("c1").unwrap());
    let (result, out) = (test.run(call).await.unwrap(), test.root.join("out"));
    assert!(result.text().contains("out, which was ignored until then]"), "{result:?}");
    let beyond = toold_builtins::undo::unrecorded(&test.toolkit, JournalScope::Everybody, &of("c1"));
    assert_eq!(beyond, UnrecordedChanges { ignored: vec![RawPath(out)], ..Default::default() });
    assert_eq!(
        toold_builtins::undo::notes(&beyond, Some(&test.root)),
        ["out stays as it is: it was ignored until then, and was not recorded"]
    );
    taken_back(&test, of("c1")).await.unwrap();
    assert_eq!((test.content(".gitignore").as_str(), test.content("out/b").as_str()), ("out/\nother/\n", "two\n"));
}

/// The file `.git` of a submodule or a worktree comes back with its folder: without it, Git knows neither.
#[tokio::test]
async fn submodules_come_back_with_their_link_to_git() {
    let test = BuiltinTest::new();
    repository(&test);
    let link = "gitdir: ../.git/modules/sub\n";
    test.write("sub/.git", link);
    test.write("sub/file", "text\n");
    let before = tree(&test.root);
    command(&test, "c1", "rm -rf sub").await;
    let patch = toold_builtins::undo::patch(&test.toolkit, &records(&test), &test.root);
    assert!(patch.contains("diff --git a/sub/file b/sub/file\n"), "{patch}");
    assert!(patch.contains("# sub/.git: a file of Git's own, and so left out of the patch\n"), "{patch}");
    taken_back(&test, of("c1")).await.unwrap();
    assert_eq!((tree(&test.root), test.content("sub/.git").as_str()), (before, link));
}

/// A folder whose contents could not be kept once is kept later, in the same session.
#[tokio::test]
async fn a_folder_that_could_not_be_kept_is_tried_again() {
    let test = BuiltinTest::new();
    test.write("f", "one\n");
    let in_the_way = test.root.with_file_name("undo").join("@contents");
    std::fs::create_dir(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, "").unwrap();
    let lost = |result: &ToolResult| result.metadata.get("not_undoable").map(|why| why.as_str().unwrap().to_owned());
    let result = test.call("bash", json!({"command": "echo two > f"})).await;
    assert!(lost(&result).is_some_and(|why| why.starts_with("contents cannot be kept: ")), "{result:?}");
    std::fs::remove_file(&in_the_way).unwrap();
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    tokio::time::resume();
    command(&test, "c1", "echo three > f").await;
    taken_back(&test, of("c1")).await.unwrap();
    assert_eq!(test.content("f"), "two\n");
}

#[tokio::test]
async fn what_is_not_recorded_is_named() {
    let test = BuiltinTest::new();
    repository(&test);
    let (git, outside) = (test.root.join(".git"), test.root.with_file_name("outside"));
    let unrecorded = |id: &str| toold_builtins::undo::unrecorded(&test.toolkit, JournalScope::Everybody, &of(id));
    let paths = |paths: Vec<RawPath>| paths.into_iter().map(|path| path.0).collect::<Vec<_>>();
    let as_person = "git -c user.name=n -c user.email=e@example.com";
    // Nothing but Git's own folder is changed, or nothing here: there is nothing to undo, and the refusal says why.
    for (id, line, expected) in [
        ("commit", format!("{as_person} commit -qam second"), format!("Git's branches and index in {}", git.display())),
        ("tag", "git tag t".to_owned(), format!("Git's branches and index in {}", git.display())),
        (
            "outside",
            "echo x > ../outside".to_owned(),
            format!("{}, which is outside of the session's folders", outside.display()),
        ),
    ] {
        command(&test, id, &line).await;
        let error = taken_back(&test, of(id)).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("there is nothing to undo: bash in call {id} changed {expected}, which undo leaves as it is")
        );
        let diff = combined_diff(&test.toolkit, &records(&test), None);
        assert!(diff.contains(&format!("# not recorded, by bash in call {id}: {line}:\n#   {expected}\n")), "{diff}");
    }
    // Files come back, and the rest stays.
    let before = tree(&test.root);
    for (id, line, is_git) in [
        ("checkout", "echo z > new; echo y > README; git checkout -q -- README", true),
        ("branch", "echo z > new; git checkout -q -b other", true),
        ("reset", "echo z > new; git reset -q --hard HEAD^", true),
        ("tee", "echo y | tee ../outside > new", false),
        ("nothing", "echo z > new", false),
    ] {
        command(&test, id, line).await;
        let left = unrecorded(id);
        assert_eq!(paths(left.repositories), if is_git { vec![git.clone()] } else { vec![] }, "{line}");
        assert_eq!(paths(left.outside), if id == "tee" { vec![outside.clone()] } else { vec![] }, "{line}");
        taken_back(&test, of(id)).await.unwrap();
        assert_eq!(tree(&test.root), before, "{line}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "y\n");
    // Changes that are not undone stay known until they are forgotten.
    assert!(records(&test).iter().any(|record| record.changes.is_empty() && !record.undone));
    test.toolkit.forget_changes(Some(&outside)).unwrap();
    assert!(records(&test).iter().all(|record| record.beyond.outside.is_empty()));
    test.toolkit.forget_changes(None).unwrap();
    assert!(records(&test).is_empty());
}

/// Files and folders get back the attributes that users have given them, whatever was done to them.
#[tokio::test]
async fn extended_attributes_come_back() {
    let test = BuiltinTest::new();
    let python = |script: &str| {
        let done = Command::new("python3").args(["-c", script]).current_dir(&test.root).output().unwrap();
        (done.status.success(), String::from_utf8(done.stdout).unwrap())
    };
    let all = "import os; print([(p, n, os.getxattr(p, n)) for p in ('f', 'd', 'd/e') for n in os.listxattr(p)])";
    test.write("f", "one\n");
    test.write("d/e/in", "in\n");
    if !python("import os; [os.setxattr(p, 'user.note', p.encode() + b'\\xff') for p in ('f', 'd', 'd/e')]").0 {
        return eprintln!("skipped: the file system has no attributes of users");
    }
    let kept = python(all).1;
    assert_eq!(kept.matches("user.note").count(), 3, "{kept}");
    for (n, line) in [
        "rm f",
        "rm -r d",
        "mv d moved; mkdir d",
        "rm -r d; echo file > d",
        "chmod 500 d; python3 -c \"import os; os.removexattr('d', 'user.note'); os.setxattr('d/e', 'user.note', b'o')\"",
        "mv f g",
        "sed -i s/one/two/ f",
        "cp f g; rm f; mv g f; chmod 600 f",
        "python3 -c \"import os; os.setxattr('f', 'user.note', b'other'); os.setxattr('f', 'user.more', b'')\"",
        "python3 -c \"import os; os.removexattr('f', 'user.note')\"; chmod 400 f",
    ]
    .into_iter()
    .enumerate()
    {
        command(&test, &format!("c{n}"), line).await;
        taken_back(&test, of(&format!("c{n}"))).await.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!((test.content("f"), python(all).1), ("one\n".to_owned(), kept.clone()), "{line}");
    }
    // Neither do changes that do not touch them lose them, nor the permission bits.
    std::fs::set_permissions(test.root.join("f"), PermissionsExt::from_mode(0o751)).unwrap();
    test.read("f").await;
    test.ok("edit", json!({"path": "f", "old": "one", "new": "two"})).await;
    test.ok("write", json!({"path": "f", "content": "three\n"})).await;
    assert_eq!(python(all).1, kept);
    let patch = "*** Begin Patch\n*** Delete File: f\n*** End Patch";
    test.ok("apply_patch", json!({"input": patch})).await;
    taken_back(&test, Selection::All(ChangeFilter::default())).await.unwrap();
    assert_eq!((test.content("f"), python(all).1), ("one\n".to_owned(), kept));
    assert_eq!(std::fs::metadata(test.root.join("f")).unwrap().permissions().mode() & 0o777, 0o751);
}
