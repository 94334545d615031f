//! No answer depends on something that the caller may not read.
//!
//! Each case is a pair of worlds that differ only in such a thing: its content, or whether it exists. The same calls
//! run in both, and the complete answers must be equal. [`calls`] makes the calls, [`CASES`] lists the pairs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::{Value, json};
use toold_builtins::buffers::Buffer;
use toold_engine::asks::{Replier, reply};
use toold_proto::permission::{Action, Answerer, Ask, PermissionEvent, ReplyPermission, Scope, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use crate::builtin_test::BuiltinTest;

/// One of the two worlds of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OracleWorld {
    A,
    B,
}

use OracleWorld::{A, B};

/// A pair of worlds.
struct OracleCase {
    name: &'static str,
    /// Paths that calls use in addition to the usual ones.
    paths: &'static [&'static str],
    /// Creates one of the worlds.
    make: fn(&BuiltinTest, OracleWorld),
    /// Whether the caller may write there in `accept_edits`, and so may know what exists.
    only_default: bool,
}

/// The secrets' contents in each world. The second has a line that is invalid in an ignore file.
fn secret(world: OracleWorld) -> &'static str {
    match world {
        A => "TOKEN=abc\n",
        B => "PASSWORD=zzz\nTOKEN=\n[z-a]xyz\n",
    }
}

fn outside(test: &BuiltinTest, path: &str, content: &str) {
    test.write(&format!("../{path}"), content);
}

fn deny(test: &BuiltinTest, path: &str) {
    test.rule(Category::FileRead, &format!("{}/{path}", test.root.display()), Verdict::Deny);
}

const CASES: &[OracleCase] = &[
    OracleCase {
        name: "the content of a secret",
        paths: &[".env", "src/../.env", "src/.env"],
        make: |test, world| {
            test.write(".env", secret(world));
            test.write("src/.env", secret(world));
        },
        only_default: false,
    },
    OracleCase {
        name: "whether a secret exists",
        paths: &[".env", "src/.env.local", "keys/server.pem", "id_rsa"],
        make: |test, world| {
            if world == A {
                for path in [".env", "src/.env.local", "id_rsa"] {
                    test.write(path, "TOKEN=abc\n");
                }
            }
        },
        only_default: false,
    },
    OracleCase {
        name: "the content of excluded files",
        paths: &["private", "private/notes", "private/none", "a.secret"],
        make: |test, world| {
            test.write(".aiexclude", "private/\n*.secret\n");
            test.write("private/notes", secret(world));
            test.write("a.secret", secret(world));
        },
        only_default: false,
    },
    OracleCase {
        name: "whether excluded files exist",
        paths: &["private", "private/notes", "a.secret", "src/b.secret"],
        make: |test, world| {
            test.write(".aiexclude", "private/\n*.secret\n");
            match world {
                A => {
                    test.write("private/notes", "TOKEN=abc\n");
                    test.write("private/deep/.gitignore", "*\n");
                    test.write("src/b.secret", "TOKEN=abc\n");
                }
                B => drop(test.write("a.secret", "TOKEN=abc\n")),
            }
        },
        only_default: false,
    },
    OracleCase {
        name: "the names in an excluded folder",
        paths: &["private", "private/TOKEN", "private/deep/b"],
        make: |test, world| {
            test.write(".toolignore", "private/\n");
            test.write(if world == A { "private/TOKEN" } else { "private/deep/b" }, "TOKEN=abc\n");
        },
        only_default: false,
    },
    OracleCase {
        name: "the content of files that a rule denies",
        paths: &["denied", "denied/file", "denied/none"],
        make: |test, world| {
            deny(test, "denied/**");
            test.write("denied/file", secret(world));
        },
        only_default: false,
    },
    OracleCase {
        name: "whether files that a rule denies exist",
        paths: &["denied", "denied/file", "denied/deep/x"],
        make: |test, world| {
            deny(test, "denied/**");
            if world == A {
                test.write("denied/file", "TOKEN=abc\n");
                test.write("denied/deep/x", "TOKEN=abc\n");
            }
        },
        only_default: true,
    },
    OracleCase {
        name: "the content of a file outside",
        paths: &["../outside/file", "TOP/outside/file"],
        make: |test, world| outside(test, "outside/file", secret(world)),
        only_default: false,
    },
    OracleCase {
        name: "whether there is something outside",
        paths: &[
            "../outside",
            "../outside/file",
            "TOP/outside/file",
            "TOP/outside/deep/../file",
            "TOP/outside/file/..",
        ],
        make: |test, world| {
            if world == A {
                outside(test, "outside/file", "TOKEN=abc\n");
                outside(test, "outside/deep/file", "TOKEN=abc\n");
            }
        },
        only_default: false,
    },
    OracleCase {
        name: "whether it is a file or a folder outside",
        paths: &["../outside", "TOP/outside", "TOP/outside/x"],
        make: |test, world| match world {
            A => drop(test.write("../outside", "TOKEN=abc\n")),
            B => fs::create_dir(test.root.join("../outside")).unwrap(),
        },
        only_default: false,
    },
    OracleCase {
        name: "where a link outside leads",
        paths: &[
            "../outside/link",
            "TOP/outside/link/file",
            "TOP/outside/link/../file",
            "TOP/outside/link/../../work/ok",
            "TOP/outside/ring/x",
            "through",
        ],
        make: |test, world| {
            outside(test, "outside/file", "TOKEN=abc\n");
            outside(test, "elsewhere/deep/file", "TOKEN=abc\n");
            outside(test, "home/.ssh/config", "TOKEN=abc\n");
            let place = test.root.join("../outside");
            match world {
                A => {
                    symlink("../elsewhere/deep", place.join("link")).unwrap();
                    symlink("ring", place.join("ring")).unwrap();
                }
                B => symlink("../home/.ssh", place.join("link")).unwrap(),
            }
            symlink("../outside/link/file", test.root.join("through")).unwrap();
        },
        only_default: false,
    },
    OracleCase {
        name: "whether there is a link outside",
        paths: &["../outside/x", "TOP/outside/x/y", "TOP/outside/x/../../work/ok", "TOP/outside/x/../file"],
        make: |test, world| {
            outside(test, "outside/file", "TOKEN=abc\n");
            outside(test, "elsewhere/deep/file", "TOKEN=abc\n");
            if world == A {
                symlink("../elsewhere/deep", test.root.join("../outside/x")).unwrap();
            }
        },
        only_default: false,
    },
    OracleCase {
        name: "a link to a secret that stands for a file of rules",
        paths: &["src", "ok", ".aiexclude"],
        make: |test, world| {
            outside(test, "home/secret", if world == A { "[y-b]abc\n" } else { "[z-a]xyz\n" });
            symlink("../../home/secret", test.root.join("src/.aiexclude")).unwrap();
        },
        only_default: false,
    },
    OracleCase {
        name: "the lines of ignore files above, and of those that are links",
        paths: &["src"],
        make: |test, world| {
            let lines = if world == A { "[y-b]abc\n" } else { "[z-a]xyz\n" };
            outside(test, ".ignore", lines);
            outside(test, "home/secret", lines);
            symlink("../home/secret", test.root.join(".ignore")).unwrap();
            symlink("../../home/secret", test.root.join("src/.ignore")).unwrap();
        },
        only_default: false,
    },
    OracleCase {
        name: "unsaved text over what may not be read",
        paths: &[".env", "denied/file", "../outside/file"],
        make: |test, world| {
            deny(test, "denied/**");
            for path in [".env", "denied/file", "../outside/file"] {
                let file = test.write(path, "TOKEN=abc\n");
                if world == A {
                    let buffer = Buffer {
                        path: toold_host::files::resolve(&file, &test.root).unwrap(),
                        project: test.session.project().to_owned(),
                        connection: 1,
                        owner: "nvim".to_owned(),
                        version: 1,
                        text: "TOKEN=new\n".to_owned(),
                    };
                    test.toolkit.buffers.set(buffer).unwrap();
                }
            }
        },
        only_default: true,
    },
    OracleCase {
        name: "skills and memories that are links to elsewhere",
        paths: &[".claude/skills", ".toold/memories"],
        make: |test, world| {
            fs::create_dir_all(test.root.join(".agents/skills")).unwrap();
            fs::create_dir_all(test.root.join(".claude")).unwrap();
            fs::create_dir_all(test.root.join(".toold")).unwrap();
            let name = if world == A { "abc" } else { "xyz" };
            let front = format!("---\nname: {name}\ndescription: {name}\n---\n{name}\n");
            outside(test, &format!("home/notes/{name}.md"), &front);
            symlink("../../../home/notes/abc.md", test.root.join(".agents/skills/abc.md")).unwrap();
            symlink("../../home/notes", test.root.join(".claude/skills")).unwrap();
            symlink("../../home/notes", test.root.join(".toold/memories")).unwrap();
        },
        only_default: true,
    },
];

/// Files that exist in every world and may be read.
fn common(test: &BuiltinTest) {
    test.write("ok", "match TOKEN\n");
    test.write("src/main.rs", "fn main() {}\n");
}

/// All calls of a case: each tool with each shape of its arguments, on each path.
fn calls(case: &OracleCase) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for path in case.paths.iter().copied().chain([".", "none"]) {
        calls.push(("read", json!({"path": path})));
        calls.push(("read", json!({"path": path, "offset": 2})));
        calls.push(("list", json!({"path": path})));
        calls.push(("glob", json!({"path": path, "pattern": "*"})));
        for pattern in ["TOKEN=a", "z"] {
            calls.push(("grep", json!({"path": path, "pattern": pattern})));
        }
        calls.push(("edit", json!({"path": path, "old": "TOKEN=abc", "new": "x"})));
        calls.push(("edit", json!({"path": path, "old": "=", "new": "-"})));
        calls.push(("edit", json!({"path": path, "old": "TOKEN", "new": "x", "replace_all": true})));
        for mode in ["create", "overwrite", "append"] {
            calls.push(("write", json!({"path": path, "content": "TOKEN=abc\n", "mode": mode})));
        }
        calls.push(("bash", json!({"command": "true", "cwd": path})));
        calls.push(("bash", json!({"command": format!("cat < {path}; echo x >> {path}")})));
        calls.push(("glob", json!({"pattern": path})));
        calls.push(("glob", json!({"pattern": format!("{path}/**"), "include_ignored": true})));
        calls.push(("grep", json!({"pattern": ".", "include": path})));
    }
    calls.push(("list", json!({})));
    calls.push(("list", json!({"depth": 9})));
    for pattern in ["*", "**", "[a-t]*", ".*", "*.secret", "*/T*", "../**", "!ok"] {
        calls.push(("glob", json!({"pattern": pattern})));
        calls.push(("glob", json!({"pattern": pattern, "include_ignored": true})));
    }
    for pattern in ["TOKEN", "PASSWORD=z", "[xyz]"] {
        for mode in ["content", "files", "count"] {
            calls.push(("grep", json!({"pattern": pattern, "output_mode": mode, "max_results": 2})));
        }
        calls.push(("grep", json!({"pattern": pattern, "include": ".*", "multiline": true})));
        calls.push(("grep", json!({"pattern": pattern, "include": "**/{*.secret,*.pem,.env*,T*}"})));
    }
    for name in ["abc", "xyz"] {
        calls.push(("forget", json!({"memory_id": name})));
    }
    calls
}

/// The frontends that answer asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AskSetup {
    Nobody,
    /// A user who denies everything.
    Denier,
}

async fn answers(case: &OracleCase, world: OracleWorld, mode: Mode, asked: AskSetup) -> Vec<String> {
    let test = BuiltinTest::strict();
    common(&test);
    (case.make)(&test, world);
    test.session.set_mode(mode);
    // So that it is the files of redirects that are judged.
    for program in ["cat", "echo x"] {
        test.rule(Category::Shell, program, Verdict::Allow);
    }
    let denier = (asked == AskSetup::Denier).then(|| person(&test, Action::Deny));
    let top = test.root.parent().unwrap().to_str().unwrap().to_owned();
    let mut answers = Vec::new();
    for (tool, arguments) in calls(case) {
        let arguments: Value = serde_json::from_str(&arguments.to_string().replace("TOP", &top)).unwrap();
        set_times(&test.root);
        let mut answer = match test.run(test.prepare(tool, arguments)).await {
            Ok(result) => serde_json::to_value(&result).unwrap(),
            Err(error) => json!(error.to_string()),
        };
        if let Some(result) = answer.as_object_mut() {
            result.remove("duration_ms");
        }
        answers.push(answer.to_string().replace(&top, "TOP"));
    }
    if let Some((_, answering)) = denier {
        answering.abort();
    }
    answers
}

/// All files are of one time, or those that were made within a tick of the clock would be listed in either order.
fn set_times(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            set_times(&entry.path());
        } else if kind.is_file() {
            let file = fs::File::options().append(true).open(entry.path()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

/// The calls whose answers differ between the two worlds.
async fn differing_calls(case: &OracleCase, mode: Mode, asked: AskSetup) -> (usize, Vec<String>) {
    let (a, b) = (answers(case, A, mode, asked).await, answers(case, B, mode, asked).await);
    let calls = calls(case);
    let differing = calls.iter().zip(a.iter().zip(&b)).filter(|(_, (a, b))| a != b);
    let reported = differing.map(|((tool, arguments), (a, b))| {
        format!("{} [{mode:?}, {asked:?}]: {tool} {arguments}\n  A: {a}\n  B: {b}", case.name)
    });
    (calls.len(), reported.collect())
}

#[tokio::test]
async fn unreadable_files_make_no_difference() {
    let mut pairs = 0;
    let mut reported = Vec::new();
    for case in CASES {
        for (mode, asked) in [
            (Mode::Default, AskSetup::Nobody),
            (Mode::Default, AskSetup::Denier),
            (Mode::AcceptEdits, AskSetup::Nobody),
        ] {
            if case.only_default && mode != Mode::Default {
                continue;
            }
            let (count, differing) = differing_calls(case, mode, asked).await;
            pairs += count;
            reported.extend(differing);
        }
    }
    assert!(pairs > 1000, "{pairs}");
    assert!(reported.is_empty(), "{} of {pairs} pairs differ:\n{}", reported.len(), reported.join("\n"));
}

/// The comparison sees differences where there are any.
#[tokio::test]
async fn readable_files_make_a_difference() {
    let case = OracleCase {
        name: "the content of a file that may be read",
        paths: &["notes"],
        make: |test, world| drop(test.write("notes", secret(world))),
        only_default: true,
    };
    let (_, reported) = differing_calls(&case, Mode::Default, AskSetup::Nobody).await;
    for tool in ["read", "list", "grep"] {
        let call = format!("Nobody]: {tool} ");
        assert!(reported.iter().any(|line| line.contains(&call)), "{tool}: {reported:?}");
    }
}

/// Answers each ask with `action`, and keeps what was asked.
fn person(test: &BuiltinTest, action: Action) -> (Arc<Mutex<Vec<Ask>>>, tokio::task::JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (engine, keeping) = (Arc::clone(&test.engine), kept.clone());
    let mut asks = engine.asks.subscribe(true, None);
    let answering = tokio::spawn(async move {
        loop {
            let PermissionEvent::Asked { request } = asks.next().await else { continue };
            let answer = ReplyPermission::once(&request.request_id, action);
            keeping.lock().unwrap().push(*request);
            let by = Answerer { client: Some("tester".to_owned()), connection: 9 };
            reply(&engine, &answer, &Replier { by, widest: Scope::Always, session: None }).unwrap();
        }
    });
    (kept, answering)
}

#[tokio::test]
async fn approved_change_reports_why_it_failed() {
    let test = BuiltinTest::strict();
    outside(&test, "outside/file", "TOKEN=abc\n");
    let (asks, answering) = person(&test, Action::Allow);
    let edit = json!({"path": "../outside/file", "old": "nope", "new": "x"});
    assert!(test.bad("edit", edit).await.contains("has not been read in this session"));
    test.ok("read", json!({"path": "../outside/file"})).await;
    let edit = json!({"path": "../outside/file", "old": "TOKEN", "new": "KEY"});
    // One answer is enough, to somebody who has seen the diff.
    let text = test.ok("edit", edit).await;
    assert!(text.contains("-TOKEN=abc\n+KEY=abc"), "{text}");
    answering.abort();
    let asks = asks.lock().unwrap();
    let asked: Vec<_> = asks.iter().map(|ask| (ask.category, ask.diff.is_some(), ask.reason.is_some())).collect();
    assert_eq!(
        asked,
        [(Category::FileWrite, false, true), (Category::FileRead, false, false), (Category::FileWrite, true, false)]
    );
}

#[tokio::test]
async fn a_link_outside_is_followed_when_both_its_ends_are_allowed() {
    let test = BuiltinTest::strict();
    outside(&test, "outside/file", "far\n");
    outside(&test, "elsewhere/file", "content\n");
    symlink("../elsewhere", test.root.join("../outside/link")).unwrap();
    let (asks, answering) = person(&test, Action::Allow);
    let text = test.ok("read", json!({"path": "../outside/link/file"})).await;
    assert_eq!(text, "1: content");
    test.ok("write", json!({"path": "../outside/link/new", "content": "x"})).await;
    assert!(test.root.join("../elsewhere/new").exists());
    answering.abort();
    let top = test.root.parent().unwrap().to_owned();
    let targets: Vec<_> =
        asks.lock().unwrap().iter().map(|ask| ask.target.replace(top.to_str().unwrap(), "TOP")).collect();
    assert_eq!(targets, ["TOP/outside/link/file", "TOP/elsewhere/file", "TOP/outside/link/new", "TOP/elsewhere/new"]);
}

#[tokio::test]
async fn file_no_longer_readable_is_not_compared() {
    let mut answers = Vec::new();
    for changed in [false, true] {
        let test = BuiltinTest::strict();
        test.session.set_mode(Mode::AcceptEdits);
        test.write("file", "TOKEN=abc\n");
        test.read("file").await;
        deny(&test, "file");
        if changed {
            test.write("file", "TOKEN=xyz\n");
        }
        for old in ["TOKEN=abc", "TOKEN=xyz", "none"] {
            let text = test.bad("edit", json!({"path": "file", "old": old, "new": "x"})).await;
            answers.push(text.replace(test.root.to_str().unwrap(), ""));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert!(answers[0].starts_with("not allowed: file.read /file"), "{answers:?}");
}

/// Everyday work asks no more than before, and its errors still help.
#[tokio::test]
async fn errors_of_files_that_may_be_read_come_before_anybody_is_asked() {
    let test = BuiltinTest::strict();
    test.write("file", "fn one() {}\n");
    test.read("file").await;
    let (asks, answering) = person(&test, Action::Deny);
    let text = test.bad("edit", json!({"path": "file", "old": "fn  one()", "new": "x"})).await;
    assert!(text.contains("differs only in indentation or spaces"), "{text}");
    let text = test.bad("bash", json!({"command": "true", "cwd": "none"})).await;
    assert!(text.contains("there is no such folder"), "{text}");
    // A link to the folder, wherever it lies.
    symlink("work", test.root.join("../shortcut")).unwrap();
    assert_eq!(test.ok("read", json!({"path": "../shortcut/file"})).await, "1: fn one() {}");
    answering.abort();
    assert_eq!(asks.lock().unwrap().len(), 0);
}
