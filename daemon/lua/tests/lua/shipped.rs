//! The plugins that are shipped, the author's guide, and the type stubs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toold_engine::offers::{read, render};
use toold_lua::reload::options::StandaloneOptions;
use toold_test_kit::git;

use crate::world::{TestPlugins, TestStore, write};

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins")
}

/// A world with one of the shipped plugins in its plugin folder.
async fn with_shipped(name: &str) -> TestPlugins {
    let root = shipped();
    let mut files = Vec::new();
    if root.join(name).is_dir() {
        for entry in std::fs::read_dir(root.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            files.push((format!("{name}/{file}"), std::fs::read_to_string(&path).unwrap()));
        }
    } else {
        files.push((name.to_owned(), std::fs::read_to_string(root.join(name)).unwrap()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let world = TestPlugins::new(&files).await;
    let problems: Vec<_> = world.host.list().iter().filter_map(|plugin| plugin.error.clone()).collect();
    assert_eq!(problems, []);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn shipped_plugins_pass_their_checks_and_tests() {
    let mut count = 0;
    for entry in std::fs::read_dir(shipped()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_file = name.ends_with(".lua") && !name.ends_with("_test.lua");
        if !is_file && !path.join("plugin.toml").exists() {
            continue;
        }
        count += 1;
        let checked = toold_lua::reload::check::check(&path, StandaloneOptions::default()).await.unwrap();
        assert!(checked.is_good() && checked.warnings.is_empty(), "{name}: {checked:#?}");
        assert!(is_file || checked.capabilities.is_some(), "{name} declares no capabilities");
        let report = toold_lua::reload::plugin_tests::test(&path).await.unwrap();
        assert!(report.failed() == 0 && report.passed() >= 4, "{name}: {report:#?}");
    }
    assert_eq!(count, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn git_summary_describes_the_repository() {
    let world = with_shipped("git_summary").await;
    world.allow_all();
    let no_repository = world.call("git_summary", json!({})).await;
    assert!(
        no_repository.is_error && no_repository.text().contains("not a git repository"),
        "{}",
        no_repository.text()
    );
    git(world.work(), &["init", "-q", "-b", "main"]);
    write(&world.work().join("a b.txt"), "one\n");
    git(world.work(), &["add", "."]);
    git(world.work(), &["commit", "-qm", "first words"]);
    write(&world.work().join("a b.txt"), "one\ntwo\n");
    write(&world.work().join("new.txt"), "");
    write(&world.work().join("staged.txt"), "x");
    git(world.work(), &["add", "staged.txt"]);
    let result = world.call("git_summary", json!({})).await;
    let text = result.text();
    for part in [
        "branch: main (no upstream)",
        "staged (1):\n  A staged.txt",
        "changed (1):\n  M a b.txt",
        "untracked (1):\n  new.txt",
        "A: first words",
        "authors of the last 90 days:\n  1 A",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert_eq!(result.metadata["untracked"], 1);
    let changes = world.text("git_changes", json!({})).await;
    assert!(changes.starts_with("2 files since HEAD: +2 -0"), "{changes}");
    let refused = world.call("git_changes", json!({"since": "no-such-tag"})).await;
    assert!(refused.is_error && refused.text().contains("no-such-tag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_file_is_listed_with_both_names() {
    let world = with_shipped("git_summary").await;
    world.allow_all();
    git(world.work(), &["init", "-q", "-b", "main"]);
    write(&world.work().join("old.txt"), "some words that stay\n");
    git(world.work(), &["add", "."]);
    git(world.work(), &["commit", "-qm", "x"]);
    git(world.work(), &["mv", "old.txt", "new.txt"]);
    let text = world.text("git_summary", json!({})).await;
    assert!(text.contains("R old.txt -> new.txt") || text.contains("R new.txt -> old.txt"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_query_takes_values_out_of_files() {
    let world = with_shipped("json_query.lua").await;
    let people = json!({"users": [{"name": "Ada", "age": 36, "tags": []}, {"name": "Bo", "age": 20, "odd key": null}], "version": "1.2", "empty": {}});
    write(&world.work().join("a.json"), &people.to_string());
    write(&world.work().join("p/x/package.json"), r#"{"license": "MIT", "deep": {"license": "ISC"}}"#);
    write(&world.work().join("p/y/package.json"), r#"{"license": "MIT"}"#);
    write(&world.work().join("p/z/package.json"), "{broken");
    for (query, expected) in [
        (".version", "\"1.2\""),
        (".users[].name", "\"Ada\"\n\"Bo\""),
        (".users[-1].age", "20"),
        (".users[?age>30].name", "\"Ada\""),
        (".users[?name~d][\"age\"]", "36"),
        (".users[1] | keys", "[\"age\",\"name\",\"odd key\"]"),
        (".users | length", "2"),
        (".users[0].tags | type", "\"array\""),
        ("$.users[1][\"odd key\"]", "null"),
        (".nothing", "nothing matches .nothing"),
        ("..name | unique", "\"Ada\"\n\"Bo\""),
    ] {
        assert_eq!(world.text("json_query", json!({"path": "a.json", "query": query})).await, expected, "{query}");
    }
    let many = world.call("json_query", json!({"path": "p/*/package.json", "query": "..license"})).await;
    let lines: Vec<String> = many.text().lines().map(str::to_owned).collect();
    assert_eq!(lines[..3], ["p/x/package.json: \"MIT\"", "p/x/package.json: \"ISC\"", "p/y/package.json: \"MIT\""]);
    assert!(lines[3].contains("p/z/package.json"));
    assert_eq!(many.metadata["unreadable"], 1);
    let wrong = world.call("json_query", json!({"path": "a.json", "query": ".a[?b**3]"})).await;
    assert!(wrong.is_error && wrong.text().contains("character 3"), "{}", wrong.text());
    let none = world.call("json_query", json!({"path": "none.json", "query": "."})).await;
    assert!(none.is_error && none.text().contains("none.json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn todo_finder_finds_comments_only() {
    let world = with_shipped("todo_finder.lua").await;
    write(&world.work().join("src/a.rs"), "// TODO(ada): tidy up\nlet TODO = 1;\nfn f() {} // FIXME: broken\n");
    write(&world.work().join("b.py"), "# TODO later\nx = 'TODOS'\n# HACK(#12) - odd\n");
    write(&world.work().join("c.bin"), "\0\0# TODO hidden\n");
    let text = world.text("todo_finder", json!({})).await;
    assert_eq!(
        text,
        "b.py (2)\n  1: TODO later\n  3: HACK (#12) odd\nsrc/a.rs (2)\n  1: TODO (ada) tidy up\n  3: FIXME broken"
    );
    let by_owner = world.text("todo_finder", json!({"group_by": "owner", "glob": "**/*.rs"})).await;
    assert_eq!(by_owner, "(nobody) (1)\n  src/a.rs:3: FIXME broken\nada (1)\n  src/a.rs:1: TODO tidy up");
    let few = world.text("todo_finder", json!({"limit": 1, "tags": ["TODO"]})).await;
    assert!(few.ends_with("[1 more]"), "{few}");
}

/// One example of the guide: its text, and what is written below it.
struct GuideExample {
    line: usize,
    text: String,
    /// A file of tests for it.
    tests: Option<String>,
}

fn examples() -> Vec<GuideExample> {
    let guide = std::fs::read_to_string(shipped().join("README.md")).unwrap();
    let mut examples = Vec::new();
    let mut lines = guide.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if !line.starts_with("```lua") {
            continue;
        }
        let text: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let text = text.join("\n");
        match line {
            "```lua" => examples.push(GuideExample { line: number + 1, text, tests: None }),
            "```lua test" => examples.last_mut().unwrap().tests = Some(text),
            other => panic!("{other} at line {} of the guide is run by nothing", number + 1),
        }
    }
    examples
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_guide_work() {
    let examples = examples();
    assert!(examples.len() >= 7);
    for example in examples {
        let at = format!("plugins/README.md:{}", example.line);
        let store = Arc::<TestStore>::default();
        let files = [("example.lua", example.text.as_str())];
        let world = TestPlugins::with(&files, |options| options.store = Some(store)).await;
        assert_eq!(world.plugin("example").error, None, "{at}");
        if let Some(tests) = &example.tests {
            let folder = tempfile::TempDir::new().unwrap();
            write(&folder.path().join("example.lua"), &example.text);
            write(&folder.path().join("example_test.lua"), tests);
            let report = toold_lua::reload::plugin_tests::test(&folder.path().join("example.lua")).await.unwrap();
            assert!(report.failed() == 0 && report.passed() > 0, "{at}: {report:#?}");
        }
        let mut answer = String::new();
        for line in example.text.lines() {
            if let Some(file) = line.strip_prefix("-- file: ") {
                let (name, text) = file.split_once(' ').unwrap();
                write(&world.work().join(name), &text.replace("\\n", "\n"));
            } else if let Some(call) = line.strip_prefix("-- call: ") {
                let (name, arguments) = call.split_once(' ').unwrap();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                answer = world.call(name, arguments).await.text();
            } else if let Some(uri) = line.strip_prefix("-- read: ") {
                let contents = read(&world.engine, uri, world.call_of("", json!({}))).await.unwrap();
                answer = contents[0].text.clone().unwrap();
            } else if let Some(prompt) = line.strip_prefix("-- render: ") {
                let (name, arguments) = prompt.split_once(' ').unwrap();
                let arguments = serde_json::from_str(arguments).unwrap();
                let rendered = render(&world.engine, name, arguments, world.call_of("", json!({}))).await.unwrap();
                answer = rendered.messages[0].content.as_text().unwrap().to_owned();
            } else if let Some(expected) = line.strip_prefix("-- gives: ") {
                assert!(answer.starts_with(expected), "{at}: {answer}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stubs_match_the_host_api() {
    let stubs = std::fs::read_to_string(shipped().join("types/hygge.lua")).unwrap();
    let mut described = BTreeSet::new();
    let mut within = None;
    for line in stubs.lines() {
        if let Some(name) = line.strip_prefix("function ").and_then(|rest| rest.split('(').next()) {
            described.insert(name.to_owned());
        } else if line.starts_with("hygge.") {
            let (name, value) = line.split_once(" = ").unwrap();
            described.insert(name.to_owned());
            within = (value == "{").then(|| name.to_owned());
        } else if let (Some(table), Some((field, _))) = (&within, line.trim().split_once(" = ")) {
            described.insert(format!("{table}.{field}"));
        } else if let Some(field) = line.strip_prefix("---@field config ") {
            assert!(!field.is_empty());
            described.insert("hygge.config".to_owned());
        }
    }
    let (described, in_tests): (BTreeSet<String>, BTreeSet<String>) =
        described.into_iter().partition(|name| name.starts_with("hygge.") || name.starts_with("ctx."));
    let testing = include_str!("../../src/api/testing.lua");
    let (mut has, mut is_fake) = (BTreeSet::new(), false);
    for line in testing.lines() {
        is_fake = line == "fake = {" || (is_fake && line != "}");
        if let Some(name) = line.strip_prefix("function ").and_then(|rest| rest.split('(').next()) {
            has.insert(name.to_owned());
        } else if let Some((name, "function")) =
            line.trim().split_once(" = ").map(|(name, to)| (name, &to[..8.min(to.len())]))
        {
            if is_fake {
                has.insert(format!("fake.{name}"));
            } else if name.starts_with("to_") {
                assert!(stubs.contains(&format!("---@field {name} fun(")), "no stub for {name}");
            }
        }
    }
    assert_eq!(in_tests, has);
    let world = TestPlugins::new(&[
        ("list/plugin.toml", "name = 'list'\nversion = '1'"),
        ("list/plugin.lua",
        "local names = {}
         local function walk(name, value, depth)
           names[#names + 1] = name
           if type(value) == 'table' and depth < 2 then for k, v in pairs(value) do walk(name .. '.' .. k, v, depth + 1) end end
         end
         for k, v in pairs(hygge) do walk('hygge.' .. k, v, 1) end
         hygge.register_tool{name = 'list', execute = function(ctx)
           for k in pairs(getmetatable(ctx).__index) do names[#names + 1] = 'ctx.' .. k end
           return table.concat(names, '\\n') end}"),
    ])
    .await;
    let listed = world.text("list", json!({})).await;
    let has: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let missing: Vec<_> = has.difference(&described).collect();
    let invented: Vec<_> = described.difference(&has).collect();
    assert!(missing.is_empty() && invented.is_empty(), "without a stub: {missing:?}; only in the stubs: {invented:?}");
}
