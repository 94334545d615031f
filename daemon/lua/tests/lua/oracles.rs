//! Files that a call may not read make no difference to what a plugin is answered in it.
//!
//! Each case is a pair of worlds that differ in such a file only: its content, or whether it exists. A plugin calls
//! each member of its API that takes a path in both, and the complete answers must be equal. [`MEMBERS`] lists the
//! members, [`CASES`] the pairs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::json;
use toold_engine::asks::{Replier, reply};
use toold_engine::policy::pattern::Pattern;
use toold_engine::policy::{Policy, Rule};
use toold_proto::permission::{Action, Answerer, PermissionEvent, ReplyPermission, Scope, Verdict};
use toold_proto::session::Mode;
use toold_proto::tool::Category;

use crate::world::{TestPlugins, write};

/// One of the two worlds of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    A,
    B,
}

use Side::{A, B};

/// A pair of worlds.
struct LuaCase {
    name: &'static str,
    /// The paths that calls try beside the usual ones.
    paths: &'static [&'static str],
    /// Makes one of the worlds in the folder of the session.
    make: fn(&Path, Side),
    /// A pattern of files that a rule denies to read.
    denied: Option<&'static str>,
    /// Whether the plugin may write there in `accept_edits`, and so may know what exists.
    only_default: bool,
}

/// Everything in a plugin's API that takes a path.
const MEMBERS: &[(&str, &str)] = &[
    ("fs.read", "return hygge.fs.read(path)"),
    ("fs.list", "return hygge.fs.list(path)"),
    ("fs.stat", "return hygge.fs.stat(path)"),
    ("fs.exists", "return hygge.fs.exists(path)"),
    ("fs.glob", "return hygge.fs.glob(path)"),
    ("fs.glob below", "return hygge.fs.glob(path .. '/**')"),
    ("fs.glob of all", "return hygge.fs.glob('**')"),
    ("io.open r", "local file, why = io.open(path) return {file and file:read('*a'), why}"),
    ("io.lines", "return io.lines(path)()"),
    ("exec in a folder", "return hygge.exec('cat', {}, {dir = path})"),
    ("exec of a line", "return hygge.exec('sh', {'-c', 'cat < ' .. path}, {dir = path .. '/..'})"),
    ("exec that redirects", "return hygge.exec('sh', {'-c', 'cat < ' .. path .. '; echo x >> ' .. path})"),
    ("exec that is followed", "return hygge.exec('cat', {}, {dir = path, on_output = function() end})"),
    ("io.popen", "local pipe = io.popen('cat < ' .. path) return {pipe:read('*a'), pipe:close()}"),
    ("os.execute", "return os.execute('echo x >> ' .. path)"),
    ("fs.write", "hygge.fs.write(path, 'x')"),
    ("fs.append", "hygge.fs.append(path, 'x')"),
    ("fs.mkdir", "hygge.fs.mkdir(path .. '/new')"),
    ("io.open w", "local file, why = io.open(path, 'w') return {why}"),
    ("io.open a", "local file, why = io.open(path, 'a') return {file and file:write('x') and 1, why}"),
    ("io.open r+", "local file, why = io.open(path, 'r+') return {file and file:read('*a'), why}"),
    ("io.open w+", "local file, why = io.open(path, 'w+') return {why}"),
    ("io.open a+", "local file, why = io.open(path, 'a+') return {file and file:read('*a'), why}"),
    ("os.rename from", "return {os.rename(path, 'renamed')}"),
    ("os.rename to", "return {os.rename('other', path)}"),
    ("ctx.ask to read", "return ctx.ask{category = 'file.read', target = path}"),
    ("ctx.ask to write", "return ctx.ask{category = 'file.write', target = path}"),
    ("fs.remove", "return hygge.fs.remove(path)"),
    ("os.remove", "return {os.remove(path)}"),
];

/// Tools that do nothing, and say of which path they need permission.
const DECLARED: [&str; 2] = ["file.read", "file.write"];

fn plugin() -> String {
    let members: Vec<String> = MEMBERS.iter().map(|(_, body)| format!("function(ctx, path) {body} end")).collect();
    let declared = DECLARED.map(|category| {
        format!(
            "hygge.register_tool{{name = '{}', execute = function() return 'ran' end,
               permission = function(input) return {{category = '{category}', target = input.path}} end}}\n",
            category.replace('.', "_")
        )
    });
    format!(
        "local members = {{{}}}
         hygge.register_tool{{name = 't', permission = false, execute = function(ctx, input)
           local ok, value = pcall(members[input.member], ctx, input.path)
           return tostring(ok) .. ' ' .. (value ~= nil and hygge.json.encode(value) or '')
         end}}
         {}",
        members.join(",\n"),
        declared.concat()
    )
}

fn secret(side: Side) -> &'static str {
    match side {
        A => "TOKEN=abc\n",
        B => "PASSWORD=zzz\nTOKEN=\n[z-a]xyz\n",
    }
}

const CASES: &[LuaCase] = &[
    LuaCase {
        name: "the content of a secret",
        paths: &[".env", "src/../.env"],
        make: |work, side| {
            write(&work.join(".env"), secret(side));
            write(&work.join("src/.env"), secret(side));
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "whether a secret exists",
        paths: &[".env", "src/.env.local", "keys/server.pem", "id_rsa"],
        make: |work, side| {
            if side == A {
                for path in [".env", "src/.env.local", "id_rsa"] {
                    write(&work.join(path), "TOKEN=abc\n");
                }
            }
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "whether excluded files exist",
        paths: &["private", "private/notes", "a.secret", "src/b.secret"],
        make: |work, side| {
            write(&work.join(".aiexclude"), "private/\n*.secret\n");
            match side {
                A => {
                    write(&work.join("private/notes"), "TOKEN=abc\n");
                    write(&work.join("src/b.secret"), "TOKEN=abc\n");
                }
                B => write(&work.join("a.secret"), "TOKEN=abc\n"),
            }
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "the names in an excluded folder",
        paths: &["private", "private/TOKEN", "private/deep/b"],
        make: |work, side| {
            write(&work.join(".toolignore"), "private/\n");
            write(&work.join(if side == A { "private/TOKEN" } else { "private/deep/b" }), secret(side));
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "the content of files that a rule denies",
        paths: &["denied", "denied/file"],
        make: |work, side| write(&work.join("denied/file"), secret(side)),
        denied: Some("denied/**"),
        only_default: false,
    },
    LuaCase {
        name: "whether files that a rule denies exist",
        paths: &["denied", "denied/file", "denied/deep/x"],
        make: |work, side| {
            if side == A {
                write(&work.join("denied/file"), "TOKEN=abc\n");
                write(&work.join("denied/deep/x"), "TOKEN=abc\n");
            }
        },
        denied: Some("denied/**"),
        only_default: true,
    },
    LuaCase {
        name: "whether there is something outside",
        paths: &["../outside", "../outside/file", "TOP/outside/file", "TOP/outside/deep/../file", "../outside/file/.."],
        make: |work, side| {
            if side == A {
                write(&work.join("../outside/file"), "TOKEN=abc\n");
                write(&work.join("../outside/deep/file"), "TOKEN=abc\n");
            }
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "whether it is a file or a folder outside",
        paths: &["../outside", "TOP/outside/x"],
        make: |work, side| match side {
            A => write(&work.join("../outside"), "TOKEN=abc\n"),
            B => fs::create_dir(work.join("../outside")).unwrap(),
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "where a link outside leads",
        paths: &[
            "../outside/link",
            "TOP/outside/link/file",
            "TOP/outside/link/../file",
            "TOP/outside/link/../../work/ok",
            "TOP/outside/ring/x",
            "through",
        ],
        make: |work, side| {
            write(&work.join("../outside/file"), "TOKEN=abc\n");
            write(&work.join("../elsewhere/deep/file"), "TOKEN=abc\n");
            write(&work.join("../home/.ssh/config"), "TOKEN=abc\n");
            let place = work.join("../outside");
            match side {
                A => {
                    symlink("../elsewhere/deep", place.join("link")).unwrap();
                    symlink("ring", place.join("ring")).unwrap();
                }
                B => symlink("../home/.ssh", place.join("link")).unwrap(),
            }
            symlink("../outside/link/file", work.join("through")).unwrap();
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "whether there is a link outside",
        paths: &["../outside/x", "TOP/outside/x/y", "TOP/outside/x/../../work/ok", "TOP/outside/x/../file"],
        make: |work, side| {
            write(&work.join("../outside/file"), "TOKEN=abc\n");
            write(&work.join("../elsewhere/deep/file"), "TOKEN=abc\n");
            if side == A {
                symlink("../elsewhere/deep", work.join("../outside/x")).unwrap();
            }
        },
        denied: None,
        only_default: false,
    },
    LuaCase {
        name: "where links in a folder that a rule denies lead",
        paths: &["denied/link", "denied/link/file", "denied/ring/x"],
        make: |work, side| {
            write(&work.join("a/file"), "a\n");
            write(&work.join("../outside/file"), "TOKEN=abc\n");
            fs::create_dir_all(work.join("denied")).unwrap();
            match side {
                A => {
                    symlink("../../outside", work.join("denied/link")).unwrap();
                    symlink("ring", work.join("denied/ring")).unwrap();
                }
                B => symlink("../../nowhere", work.join("denied/link")).unwrap(),
            }
        },
        denied: Some("denied/**"),
        only_default: true,
    },
    LuaCase {
        name: "a link to a secret that stands for a file of rules",
        paths: &["src", "src/main.lua"],
        make: |work, side| {
            let lines = if side == A { "[y-b]abc\n" } else { "[z-a]xyz\n" };
            write(&work.join("../home/secret"), lines);
            symlink("../../home/secret", work.join("src/deep/.aiexclude")).unwrap();
        },
        denied: None,
        only_default: false,
    },
];

/// In every world, and may be read.
fn common(work: &Path) {
    write(&work.join("ok"), "match TOKEN\n");
    write(&work.join("src/main.lua"), "return 1\n");
    fs::create_dir(work.join("src/deep")).unwrap();
}

fn rule(world: &TestPlugins, category: Category, pattern: &str, action: Verdict) {
    let mut policy = Policy::clone(&world.engine.policy.load());
    policy.rules.push(Rule {
        category,
        pattern: Pattern::parse(category, pattern).unwrap(),
        action,
        tools: None,
        cwd: None,
        effect: None,
        agent: None,
        project: None,
        origin: format!("test:{}", policy.rules.len() + 1),
    });
    world.engine.policy.store(Arc::new(policy));
    world.engine.policy_changed();
}

/// Everything has one time, or folders would show when something was made in them.
fn set_times(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            set_times(&entry.path());
        } else if kind.is_file() {
            fs::File::open(entry.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
    fs::File::open(folder).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

/// The frontends that can answer asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OracleQuestion {
    Nobody,
    /// A person who denies everything.
    Denier,
}

/// Answers each ask with `action`, and keeps the targets that were asked for.
fn person(world: &TestPlugins, action: Action) -> (Arc<Mutex<Vec<String>>>, tokio::task::JoinHandle<()>) {
    let kept = Arc::<Mutex<Vec<String>>>::default();
    let (engine, keeping) = (Arc::clone(&world.engine), kept.clone());
    let mut asks = engine.asks.subscribe(true, None);
    let answering = tokio::spawn(async move {
        loop {
            let PermissionEvent::Asked { request } = asks.next().await else { continue };
            let answer = ReplyPermission::once(&request.request_id, action);
            keeping.lock().unwrap().push(request.target);
            let by = Answerer { client: Some("tester".to_owned()), connection: 9 };
            reply(&engine, &answer, &Replier { by, widest: Scope::Always, session: None }).unwrap();
        }
    });
    (kept, answering)
}

/// The answers to calls, by name.
async fn answers(case: &LuaCase, side: Side, mode: Mode, asked: OracleQuestion) -> Vec<(String, String)> {
    let world = TestPlugins::of(&plugin()).await;
    let work = world.work().to_owned();
    common(&work);
    (case.make)(&work, side);
    world.session.set_mode(mode);
    // So that it is the files of redirects and the folders of programs that are judged.
    for program in ["cat", "echo x"] {
        rule(&world, Category::Shell, program, Verdict::Allow);
    }
    if let Some(denied) = case.denied {
        rule(&world, Category::FileRead, &format!("{}/{denied}", work.display()), Verdict::Deny);
    }
    let denier = (asked == OracleQuestion::Denier).then(|| person(&world, Action::Deny));
    let top = work.parent().unwrap().to_str().unwrap().to_owned();
    let mut answers = Vec::new();
    let usual = [".", "none", "src"];
    for path in case.paths.iter().copied().chain(usual) {
        let path = path.replace("TOP", &top);
        let calls = MEMBERS.iter().enumerate().map(|(place, (member, _))| (*member, "t", place + 1));
        let declared = DECLARED.iter().map(|category| (*category, category, 0));
        for (member, tool, place) in calls.chain(declared.map(|(member, tool, place)| (member, *tool, place))) {
            set_times(&work);
            let arguments = json!({"member": place, "path": path});
            let answer = match world.execute(world.call_of(&tool.replace('.', "_"), arguments)).await {
                Ok(result) => format!("{}{}", result.text(), serde_json::Value::from(result.metadata)),
                Err(error) => error.to_string(),
            };
            let answer = without_duration(&answer);
            answers.push((format!("{member} {path}").replace(&top, "TOP"), answer.replace(&top, "TOP")));
        }
    }
    if let Some((_, answering)) = denier {
        answering.abort();
    }
    answers
}

/// The answer without the time that the call took.
fn without_duration(answer: &str) -> String {
    let Some((before, after)) = answer.split_once("\"duration_ms\":") else { return answer.to_owned() };
    format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_may_not_be_read_make_no_difference_to_a_plugin() {
    let mut pairs = 0;
    let mut different = Vec::new();
    for case in CASES {
        for (mode, asked) in [
            (Mode::Default, OracleQuestion::Nobody),
            (Mode::Default, OracleQuestion::Denier),
            (Mode::AcceptEdits, OracleQuestion::Nobody),
        ] {
            if case.only_default && mode != Mode::Default {
                continue;
            }
            let (a, b) = (answers(case, A, mode, asked).await, answers(case, B, mode, asked).await);
            assert_eq!(a.len(), b.len());
            pairs += a.len();
            different.extend(
                a.iter().zip(&b).filter(|(a, b)| a != b).map(|((call, a), (_, b))| {
                    format!("{} [{mode:?}, {asked:?}]: {call}\n  A: {a}\n  B: {b}", case.name)
                }),
            );
        }
    }
    assert!(pairs > 3000, "{pairs}");
    assert!(different.is_empty(), "{} of {pairs} pairs differ:\n{}", different.len(), different.join("\n"));
}

/// The comparison sees differences where there are any.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_may_be_read_make_a_difference_to_a_plugin() {
    let case = LuaCase {
        name: "a file and a folder that may be read",
        paths: &["notes", "folder"],
        make: |work, side| {
            write(&work.join("notes"), secret(side));
            match side {
                A => write(&work.join("folder/a"), "abc"),
                B => write(&work.join("folder"), "xyz"),
            }
        },
        denied: None,
        only_default: true,
    };
    let (a, b) = (
        answers(&case, A, Mode::Default, OracleQuestion::Nobody).await,
        answers(&case, B, Mode::Default, OracleQuestion::Nobody).await,
    );
    let different: Vec<&str> = a.iter().zip(&b).filter(|(a, b)| a != b).map(|((call, _), _)| call.as_str()).collect();
    for call in [
        "fs.read notes",
        "fs.stat notes",
        "fs.list .",
        "fs.glob below folder",
        "fs.glob of all .",
        "io.open r notes",
        "io.lines notes",
        "io.popen notes",
        "exec in a folder folder",
    ] {
        assert!(different.contains(&call), "{call}: {different:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_outside_is_followed_when_both_its_ends_are_allowed() {
    let world = TestPlugins::of(&plugin()).await;
    write(&world.work().join("../outside/file"), "far");
    write(&world.work().join("../elsewhere/file"), "content");
    symlink("../elsewhere", world.work().join("../outside/link")).unwrap();
    let (targets, answering) = person(&world, Action::Allow);
    let member = |name: &str| 1 + MEMBERS.iter().position(|(member, _)| *member == name).unwrap();
    for (name, path, answer) in [
        ("fs.read", "../outside/link/file", "true \"content\""),
        ("fs.list", "../outside/link", "true [{\"name\":\"file\",\"type\":\"file\"}]"),
        ("fs.write", "../outside/link/new", "true "),
    ] {
        assert_eq!(world.text("t", json!({"member": member(name), "path": path})).await, answer, "{name}");
    }
    answering.abort();
    let top = world.work().parent().unwrap().display().to_string();
    let targets: Vec<String> = targets.lock().unwrap().iter().map(|target| target.replace(&top, "TOP")).collect();
    let expected = ["link/file", "link", "link/new"].map(|path| {
        let path = format!("TOP/outside/{path}");
        [path.clone(), path.replace("outside/link", "elsewhere")]
    });
    assert_eq!(targets, expected.concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_sees_all_of_its_own_folder() {
    let script = "local function names()
           local names = {}
           for _, entry in ipairs(hygge.fs.list(hygge.plugin.dir)) do names[#names + 1] = entry.name end
           return table.concat(names, ' ')
         end
         local loading = names()
         hygge.register_tool{name = 't', permission = false, execute = function() return loading .. '|' .. names() end}";
    let files = [("f/plugin.lua", script), ("f/.env", "A=b"), ("f/.aiexclude", "data\n"), ("f/data", "d")];
    let world = TestPlugins::new(&files).await;
    let all = ".aiexclude .env data plugin.lua";
    assert_eq!(world.text("t", json!({})).await, format!("{all}|{all}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_be_read_gets_no_name_under_which_it_may() {
    let world = TestPlugins::of(&plugin()).await;
    write(&world.work().join("denied/file"), "TOKEN=abc");
    rule(&world, Category::FileRead, &format!("{}/denied/**", world.work().display()), Verdict::Deny);
    world.session.set_mode(Mode::AcceptEdits);
    let member = 1 + MEMBERS.iter().position(|(member, _)| *member == "os.rename from").unwrap();
    let text = world.text("t", json!({"member": member, "path": "denied/file"})).await;
    assert!(text.contains("not allowed: file.read") && !world.work().join("renamed").exists(), "{text}");
}

/// Some file systems make a folder larger for each name in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_has_no_size() {
    let world = TestPlugins::of(&plugin()).await;
    let member = 1 + MEMBERS.iter().position(|(member, _)| *member == "fs.stat").unwrap();
    let text = world.text("t", json!({"member": member, "path": "."})).await;
    assert!(text.contains("\"size\":0") && text.contains("\"type\":\"directory\""), "{text}");
}
