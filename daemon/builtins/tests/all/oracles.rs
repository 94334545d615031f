//! No answer depends on something that the caller may not read.
//!
//! Each case is a pair of worlds that differ in such a thing only: its content, or whether it exists. The same calls
//! are made in both, and the complete answers must be equal. [`calls`] makes the calls, [`CASES`] lists the pairs.

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

use crate::house::House;

/// One of the two worlds of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    A,
    B,
}

use World::{A, B};

/// A pair of worlds.
struct Case {
    name: &'static str,
    /// The paths that calls try beside the usual ones.
    paths: &'static [&'static str],
    /// Makes one of the worlds.
    make: fn(&House, World),
    /// Whether the caller may write there in `accept_edits`, and so may know what exists.
    only_default: bool,
}

/// The content of secrets in each world. The second has a line that no ignore file can have.
fn secret(world: World) -> &'static str {
    match world {
        A => "TOKEN=abc\n",
        B => "PASSWORD=zzz\nTOKEN=\n[z-a]xyz\n",
    }
}

fn outside(house: &House, path: &str, content: &str) {
    house.write(&format!("../{path}"), content);
}

fn deny(house: &House, path: &str) {
    house.rule(Category::FileRead, &format!("{}/{path}", house.root.display()), Verdict::Deny);
}

const CASES: &[Case] = &[
    Case {
        name: "the content of a secret",
        paths: &[".env", "src/../.env", "src/.env"],
        make: |house, world| {
            house.write(".env", secret(world));
            house.write("src/.env", secret(world));
        },
        only_default: false,
    },
    Case {
        name: "whether a secret exists",
        paths: &[".env", "src/.env.local", "keys/server.pem", "id_rsa"],
        make: |house, world| {
            if world == A {
                for path in [".env", "src/.env.local", "id_rsa"] {
                    house.write(path, "TOKEN=abc\n");
                }
            }
        },
        only_default: false,
    },
    Case {
        name: "the content of excluded files",
        paths: &["private", "private/notes", "private/none", "a.secret"],
        make: |house, world| {
            house.write(".aiexclude", "private/\n*.secret\n");
            house.write("private/notes", secret(world));
            house.write("a.secret", secret(world));
        },
        only_default: false,
    },
    Case {
        name: "whether excluded files exist",
        paths: &["private", "private/notes", "a.secret", "src/b.secret"],
        make: |house, world| {
            house.write(".aiexclude", "private/\n*.secret\n");
            match world {
                A => {
                    house.write("private/notes", "TOKEN=abc\n");
                    house.write("private/deep/.gitignore", "*\n");
                    house.write("src/b.secret", "TOKEN=abc\n");
                }
                B => drop(house.write("a.secret", "TOKEN=abc\n")),
            }
        },
        only_default: false,
    },
    Case {
        name: "the names in an excluded folder",
        paths: &["private", "private/TOKEN", "private/deep/b"],
        make: |house, world| {
            house.write(".toolignore", "private/\n");
            house.write(if world == A { "private/TOKEN" } else { "private/deep/b" }, "TOKEN=abc\n");
        },
        only_default: false,
    },
    Case {
        name: "the content of files that a rule denies",
        paths: &["denied", "denied/file", "denied/none"],
        make: |house, world| {
            deny(house, "denied/**");
            house.write("denied/file", secret(world));
        },
        only_default: false,
    },
    Case {
        name: "whether files that a rule denies exist",
        paths: &["denied", "denied/file", "denied/deep/x"],
        make: |house, world| {
            deny(house, "denied/**");
            if world == A {
                house.write("denied/file", "TOKEN=abc\n");
                house.write("denied/deep/x", "TOKEN=abc\n");
            }
        },
        only_default: true,
    },
    Case {
        name: "the content of a file outside",
        paths: &["../outside/file", "TOP/outside/file"],
        make: |house, world| outside(house, "outside/file", secret(world)),
        only_default: false,
    },
    Case {
        name: "whether there is something outside",
        paths: &[
            "../outside",
            "../outside/file",
            "TOP/outside/file",
            "TOP/outside/deep/../file",
            "TOP/outside/file/..",
        ],
        make: |house, world| {
            if world == A {
                outside(house, "outside/file", "TOKEN=abc\n");
                outside(house, "outside/deep/file", "TOKEN=abc\n");
            }
        },
        only_default: false,
    },
    Case {
        name: "whether it is a file or a folder outside",
        paths: &["../outside", "TOP/outside", "TOP/outside/x"],
        make: |house, world| match world {
            A => drop(house.write("../outside", "TOKEN=abc\n")),
            B => fs::create_dir(house.root.join("../outside")).unwrap(),
        },
        only_default: false,
    },
    Case {
        name: "where a link outside leads",
        paths: &[
            "../outside/link",
            "TOP/outside/link/file",
            "TOP/outside/link/../file",
            "TOP/outside/link/../../work/ok",
            "TOP/outside/ring/x",
            "through",
        ],
        make: |house, world| {
            outside(house, "outside/file", "TOKEN=abc\n");
            outside(house, "elsewhere/deep/file", "TOKEN=abc\n");
            outside(house, "home/.ssh/config", "TOKEN=abc\n");
            let place = house.root.join("../outside");
            match world {
                A => {
                    symlink("../elsewhere/deep", place.join("link")).unwrap();
                    symlink("ring", place.join("ring")).unwrap();
                }
                B => symlink("../home/.ssh", place.join("link")).unwrap(),
            }
            symlink("../outside/link/file", house.root.join("through")).unwrap();
        },
        only_default: false,
    },
    Case {
        name: "whether there is a link outside",
        paths: &["../outside/x", "TOP/outside/x/y", "TOP/outside/x/../../work/ok", "TOP/outside/x/../file"],
        make: |house, world| {
            outside(house, "outside/file", "TOKEN=abc\n");
            outside(house, "elsewhere/deep/file", "TOKEN=abc\n");
            if world == A {
                symlink("../elsewhere/deep", house.root.join("../outside/x")).unwrap();
            }
        },
        only_default: false,
    },
    Case {
        name: "a link to a secret that stands for a file of rules",
        paths: &["src", "ok", ".aiexclude"],
        make: |house, world| {
            outside(house, "home/secret", if world == A { "[y-b]abc\n" } else { "[z-a]xyz\n" });
            symlink("../../home/secret", house.root.join("src/.aiexclude")).unwrap();
        },
        only_default: false,
    },
    Case {
        name: "the lines of ignore files above, and of those that are links",
        paths: &["src"],
        make: |house, world| {
            let lines = if world == A { "[y-b]abc\n" } else { "[z-a]xyz\n" };
            outside(house, ".ignore", lines);
            outside(house, "home/secret", lines);
            symlink("../home/secret", house.root.join(".ignore")).unwrap();
            symlink("../../home/secret", house.root.join("src/.ignore")).unwrap();
        },
        only_default: false,
    },
    Case {
        name: "unsaved text over what may not be read",
        paths: &[".env", "denied/file", "../outside/file"],
        make: |house, world| {
            deny(house, "denied/**");
            for path in [".env", "denied/file", "../outside/file"] {
                let file = house.write(path, "TOKEN=abc\n");
                if world == A {
                    let buffer = Buffer {
                        path: toold_host::files::resolve(&file, &house.root).unwrap(),
                        project: house.session.project().to_owned(),
                        connection: 1,
                        owner: "nvim".to_owned(),
                        version: 1,
                        text: "TOKEN=new\n".to_owned(),
                    };
                    house.shared.buffers.set(buffer).unwrap();
                }
            }
        },
        only_default: true,
    },
    Case {
        name: "skills and memories that are links to elsewhere",
        paths: &[".claude/skills", ".toold/memories"],
        make: |house, world| {
            fs::create_dir_all(house.root.join(".agents/skills")).unwrap();
            fs::create_dir_all(house.root.join(".claude")).unwrap();
            fs::create_dir_all(house.root.join(".toold")).unwrap();
            let name = if world == A { "abc" } else { "xyz" };
            let front = format!("---\nname: {name}\ndescription: {name}\n---\n{name}\n");
            outside(house, &format!("home/notes/{name}.md"), &front);
            symlink("../../../home/notes/abc.md", house.root.join(".agents/skills/abc.md")).unwrap();
            symlink("../../home/notes", house.root.join(".claude/skills")).unwrap();
            symlink("../../home/notes", house.root.join(".toold/memories")).unwrap();
        },
        only_default: true,
    },
];

/// Files that are in every world and may be read.
fn common(house: &House) {
    house.write("ok", "match TOKEN\n");
    house.write("src/main.rs", "fn main() {}\n");
}

/// All calls of a case: each tool with each shape of its arguments, on each path.
fn calls(case: &Case) -> Vec<(&'static str, Value)> {
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

/// The frontends that can answer asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Nobody,
    /// A person who denies everything.
    Denier,
}

async fn answers(case: &Case, world: World, mode: Mode, asked: Asked) -> Vec<String> {
    let house = House::strict();
    common(&house);
    (case.make)(&house, world);
    house.session.set_mode(mode);
    // So that it is the files of redirects that are judged.
    for program in ["cat", "echo x"] {
        house.rule(Category::Shell, program, Verdict::Allow);
    }
    let denier = (asked == Asked::Denier).then(|| person(&house, Action::Deny));
    let top = house.root.parent().unwrap().to_str().unwrap().to_owned();
    let mut answers = Vec::new();
    for (tool, arguments) in calls(case) {
        let arguments: Value = serde_json::from_str(&arguments.to_string().replace("TOP", &top)).unwrap();
        set_times(&house.root);
        let mut answer = match house.run(house.prepare(tool, arguments)).await {
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

/// The calls whose answers tell the two worlds from each other.
async fn telling(case: &Case, mode: Mode, asked: Asked) -> (usize, Vec<String>) {
    let (a, b) = (answers(case, A, mode, asked).await, answers(case, B, mode, asked).await);
    let calls = calls(case);
    let differing = calls.iter().zip(a.iter().zip(&b)).filter(|(_, (a, b))| a != b);
    let told = differing.map(|((tool, arguments), (a, b))| {
        format!("{} [{mode:?}, {asked:?}]: {tool} {arguments}\n  A: {a}\n  B: {b}", case.name)
    });
    (calls.len(), told.collect())
}

#[tokio::test]
async fn what_may_not_be_read_makes_no_difference() {
    let mut pairs = 0;
    let mut told = Vec::new();
    for case in CASES {
        for (mode, asked) in
            [(Mode::Default, Asked::Nobody), (Mode::Default, Asked::Denier), (Mode::AcceptEdits, Asked::Nobody)]
        {
            if case.only_default && mode != Mode::Default {
                continue;
            }
            let (count, differing) = telling(case, mode, asked).await;
            pairs += count;
            told.extend(differing);
        }
    }
    assert!(pairs > 1000, "{pairs}");
    assert!(told.is_empty(), "{} of {pairs} pairs differ:\n{}", told.len(), told.join("\n"));
}

/// The comparison sees differences where there are any.
#[tokio::test]
async fn what_may_be_read_makes_a_difference() {
    let case = Case {
        name: "the content of a file that may be read",
        paths: &["notes"],
        make: |house, world| drop(house.write("notes", secret(world))),
        only_default: true,
    };
    let (_, told) = telling(&case, Mode::Default, Asked::Nobody).await;
    for tool in ["read", "list", "grep"] {
        let call = format!("Nobody]: {tool} ");
        assert!(told.iter().any(|line| line.contains(&call)), "{tool}: {told:?}");
    }
}

/// Answers each ask with `action`, and keeps what was asked.
fn person(house: &House, action: Action) -> (Arc<Mutex<Vec<Ask>>>, tokio::task::JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (engine, keeping) = (Arc::clone(&house.engine), kept.clone());
    let mut asks = engine.asks.subscribe(true, None);
    let answering = tokio::spawn(async move {
        loop {
            let PermissionEvent::Asked { request } = asks.next().await else { continue };
            let answer = ReplyPermission {
                request_id: request.request_id.clone(),
                action,
                scope: None,
                pattern: None,
                message: None,
                expires_in: None,
            };
            keeping.lock().unwrap().push(*request);
            let by = Answerer { client: Some("tester".to_owned()), connection: 9 };
            reply(&engine, &answer, &Replier { by, widest: Scope::Always, session: None }).unwrap();
        }
    });
    (kept, answering)
}

#[tokio::test]
async fn a_change_that_was_allowed_says_afterwards_why_it_failed() {
    let house = House::strict();
    outside(&house, "outside/file", "TOKEN=abc\n");
    let (asks, answering) = person(&house, Action::Allow);
    let edit = json!({"path": "../outside/file", "old": "nope", "new": "x"});
    assert!(house.bad("edit", edit).await.contains("has not been read in this session"));
    house.ok("read", json!({"path": "../outside/file"})).await;
    let edit = json!({"path": "../outside/file", "old": "TOKEN", "new": "KEY"});
    // One answer is enough, to somebody who has seen the diff.
    let text = house.ok("edit", edit).await;
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
    let house = House::strict();
    outside(&house, "outside/file", "far\n");
    outside(&house, "elsewhere/file", "content\n");
    symlink("../elsewhere", house.root.join("../outside/link")).unwrap();
    let (asks, answering) = person(&house, Action::Allow);
    let text = house.ok("read", json!({"path": "../outside/link/file"})).await;
    assert_eq!(text, "1: content");
    house.ok("write", json!({"path": "../outside/link/new", "content": "x"})).await;
    assert!(house.root.join("../elsewhere/new").exists());
    answering.abort();
    let top = house.root.parent().unwrap().to_owned();
    let targets: Vec<_> =
        asks.lock().unwrap().iter().map(|ask| ask.target.replace(top.to_str().unwrap(), "TOP")).collect();
    assert_eq!(targets, ["TOP/outside/link/file", "TOP/elsewhere/file", "TOP/outside/link/new", "TOP/elsewhere/new"]);
}

#[tokio::test]
async fn what_was_read_once_and_may_not_be_read_any_more_is_not_compared() {
    let mut answers = Vec::new();
    for changed in [false, true] {
        let house = House::strict();
        house.session.set_mode(Mode::AcceptEdits);
        house.write("file", "TOKEN=abc\n");
        house.read("file").await;
        deny(&house, "file");
        if changed {
            house.write("file", "TOKEN=xyz\n");
        }
        for old in ["TOKEN=abc", "TOKEN=xyz", "none"] {
            let text = house.bad("edit", json!({"path": "file", "old": old, "new": "x"})).await;
            answers.push(text.replace(house.root.to_str().unwrap(), ""));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert!(answers[0].starts_with("not allowed: file.read /file"), "{answers:?}");
}

/// Everyday work asks no more than before, and its errors still help.
#[tokio::test]
async fn errors_of_files_that_may_be_read_come_before_anybody_is_asked() {
    let house = House::strict();
    house.write("file", "fn one() {}\n");
    house.read("file").await;
    let (asks, answering) = person(&house, Action::Deny);
    let text = house.bad("edit", json!({"path": "file", "old": "fn  one()", "new": "x"})).await;
    assert!(text.contains("the same but for indentation or spaces"), "{text}");
    let text = house.bad("bash", json!({"command": "true", "cwd": "none"})).await;
    assert!(text.contains("there is no such folder"), "{text}");
    // A link to the folder, wherever it lies.
    symlink("work", house.root.join("../shortcut")).unwrap();
    assert_eq!(house.ok("read", json!({"path": "../shortcut/file"})).await, "1: fn one() {}");
    answering.abort();
    assert_eq!(asks.lock().unwrap().len(), 0);
}
