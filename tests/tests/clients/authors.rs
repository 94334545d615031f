//! Commands for plugin authors: a new plugin works, and is checked and tested apart from any daemon.

use std::fs;

use serde_json::json;
use toold_tests::{Setup, TestDaemon, toolctl, toold};

fn run(setup: &Setup, arguments: &[&str]) -> (i32, String, String) {
    // `toolctl` finds `toold` beside itself, so it must be built.
    toold();
    let output = setup.command(toolctl()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_plugin_passes_its_check_and_its_test_and_serves() {
    let daemon = Setup::new().file("poem.txt", "one two\nthree\n").start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["plugin.loaded"]}));
    let (code, out, err) = run(&daemon.setup, &["plugins", "new", "my-words"]);
    assert_eq!(code, 0, "{err}");
    let path = daemon.plugins().join("my-words");
    assert_eq!(out.trim_end(), path.to_str().unwrap());
    assert!(err.contains("toolctl call my_words") && err.contains("toolctl plugins test"), "{err}");
    let files =
        ["plugin.toml", "plugin.lua", "plugin_test.lua", "README.md", ".gitignore", ".luarc.json", "types/hygge.lua"];
    for file in files {
        let text = fs::read_to_string(path.join(file)).unwrap();
        assert!(!text.is_empty() && !text.contains("{{"), "{file}: {text}");
    }
    wire.notification("events.event");
    let result = wire.tool("my_words", json!({"path": "poem.txt"}));
    assert_eq!(result["content"][0]["text"], "poem.txt: 2 lines, 3 words", "{result}");
    assert_eq!(fs::read_dir(daemon.plugins()).unwrap().count(), 1, "nothing lies beside it");
    passes(&daemon.setup, path.to_str().unwrap(), "plugin my-words 0.1.0");
}

#[track_caller]
fn passes(setup: &Setup, path: &str, shown: &str) {
    let (code, out, err) = run(setup, &["plugins", "check", path]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains(shown) && !out.contains("warning"), "{out}");
    let (code, out, err) = run(setup, &["plugins", "test", path]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("3 passed, 0 failed"), "{out}");
}

#[test]
fn a_new_plugin_is_one_file_if_asked_and_goes_where_it_is_told() {
    let setup = Setup::new();
    let (code, out, err) = run(&setup, &["plugins", "new", "words", "--single", "--dir", "."]);
    assert_eq!((code, out.trim_end()), (0, "./words.lua"), "{err}");
    assert!(err.contains("once it is in a plugin folder"), "{err}");
    assert_eq!(fs::read_dir(setup.path("work")).unwrap().count(), 2);
    passes(&setup, "words.lua", "plugin words");
    let (code, _, err) = run(&setup, &["plugins", "new", "words", "--dir", "."]);
    assert_eq!(code, 0, "{err}");
    passes(&setup, "words", "plugin words 0.1.0");
}

#[test]
fn a_name_that_cannot_be_is_refused_with_a_way_out() {
    let daemon = TestDaemon::start();
    let refused = |arguments: &[&str], expected: &str| {
        let (code, out, err) = run(&daemon.setup, &[&["plugins", "new"], arguments].concat());
        assert!(code != 0 && out.is_empty() && err.contains(expected), "{arguments:?}: {code} {out}{err}");
    };
    refused(
        &["Word Count"],
        "\"Word Count\" is not a plugin name: expected a lower-case letter, then letters, digits, _ and -, at most 60; word_count is one",
    );
    refused(&["--", "-9"], "at most 60\n");
    refused(&["ports"], "there is a bundled plugin ports already");
    refused(&["words", "--dir", "no/such"], "there is no folder no/such: create it first");
    fs::write(daemon.work().join("words.lua"), "mine").unwrap();
    refused(&["words", "--single", "--dir", "."], "./words.lua already exists: choose another name, or remove it");
    assert_eq!(fs::read_to_string(daemon.work().join("words.lua")).unwrap(), "mine");
    assert!(!daemon.work().join("words_test.lua").exists());
}

#[test]
fn a_broken_plugin_is_reported_with_its_line() {
    let setup = Setup::new().file("broken.lua", "local x = 1\nlocal = 2\n").file("failing.lua", "hygge.register_tool{name = \"f\", description = \"F\", execute = function() return \"a\" end}\n").file(
        "failing_test.lua",
        "describe(\"f\", function() it(\"gives b\", function() expect(call(\"f\").content).to_be(\"b\") end) end)\n",
    );
    let (code, out, _) = run(&setup, &["plugins", "check", "broken.lua"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("broken.lua:2") && out.contains("local = 2"), "{out}");
    let (code, out, _) = run(&setup, &["plugins", "test", "failing.lua"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("FAILED") && out.contains("0 passed, 1 failed"), "{out}");
}

#[test]
fn a_path_without_a_plugin_or_without_tests_is_named() {
    let setup = Setup::new().file("untested.lua", "").file("p/plugin.lua", "");
    for command in ["check", "test"] {
        let (code, out, err) = run(&setup, &["plugins", command, "no-such"]);
        assert!(code == 5 && err.contains("there is no file or folder no-such"), "{command}: {code} {out}{err}");
    }
    for (path, expected) in [("untested.lua", "untested_test.lua"), ("p", "p/plugin_test.lua")] {
        let (code, _, err) = run(&setup, &["plugins", "test", path]);
        assert!(code == 0 && err.contains(&format!("there are no tests: write some into {expected}")), "{code} {err}");
    }
}

#[test]
fn the_stubs_are_printed() {
    let (code, out, _) = run(&Setup::new(), &["plugins", "types"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("---") && out.contains("register_tool"), "{}", &out[..200]);
}

#[test]
fn coverage_is_shown_and_written() {
    let setup = Setup::new()
        .file(
            "say.lua",
            "hygge.register_tool{name = \"say\", description = \"S\", execute = function(ctx, input)\n\
             if input.loud then\n  return \"A\"\nend\nreturn \"a\"\nend}\n",
        )
        .file("say_test.lua", "it(\"says\", function() expect(call(\"say\").content).to_be(\"a\") end)\n");
    let (code, out, err) = run(&setup, &["plugins", "test", "say.lua", "--coverage", "--lcov", "say.info"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("1 passed, 0 failed\ncoverage\n  say.lua   75.0 %  3 of 4 lines  not run: 3\n"), "{out}");
    let lcov = fs::read_to_string(setup.path("work/say.info")).unwrap();
    assert!(lcov.contains("say.lua\nDA:1,1\nDA:2,1\nDA:3,0\nDA:5,1\nLF:4\nLH:3\n"), "{lcov}");
    let (code, out, err) = run(&setup, &["plugins", "test", "say.lua", "--coverage", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["passed"], 1);
    assert_eq!(report["coverage"][0]["uncovered"], json!(["3"]), "{out}");
}

/// Mistakes that authors make, each in a plugin of its own: what is wrong, the source, and what `check` says.
const MISTAKES: [(&str, &str, &str); 10] = [
    ("a missing comma", "hygge.register_tool{name = \"t\" description = \"d\"}", "Expected ','"),
    ("a capability that is missing", "EXECUTE return hygge.exec(\"ls\").stdout END", "exec"),
    ("a global that nothing sets", "EXECUTE return cuont(1) END", "cuont"),
    (
        "a misspelt member of ctx",
        "EXECUTE ctx.progres{message = \"x\"} return \"a\" END",
        "ctx has no progres; progress was meant",
    ),
    ("a misspelt function of hygge", "EXECUTE return hygge.fs.raed(\"x\") END", "hygge.fs has no raed; read was meant"),
    (
        "a type of another language",
        "hygge.register_tool{name = \"t\", description = \"d\", input_schema = {type = \"object\", \
      properties = {n = {type = \"int\", description = \"n\"}}}, execute = function() return \"a\" end}",
        "integer is meant, not int",
    ),
    ("a misspelt event", "hygge.register_hook(\"pre_tol\", function() end)", "expected pre_tool, post_tool"),
    (
        "a name with a space",
        "hygge.register_tool{name = \"My tool\", description = \"d\", execute = function() end}",
        "\"My tool\"",
    ),
    ("a module that is not there", "local m = require(\"modul\")", "no module 'modul'"),
    (
        "a misspelt option of a hook",
        "hygge.register_hook(\"pre_tool\", {tool = \"bash\"}, function() end)",
        "nothing reads the field 'tool'",
    ),
];

#[test]
fn a_check_finds_ten_planted_mistakes() {
    let mut setup = Setup::new();
    for (number, (_, source, _)) in MISTAKES.iter().enumerate() {
        let execute = "hygge.register_tool{name = \"t\", description = \"d\", execute = function(ctx, input)";
        let source = source.replace("EXECUTE", execute).replace("END", "end}");
        setup = setup.file(&format!("p{number}/plugin.lua"), format!("{source}\n"));
        let manifest = format!(
            "api = \"toold\"\nname = \"p{number}\"\n[capabilities]\ntools = true\nhooks = true\nfs_read = true\n"
        );
        setup = setup.file(&format!("p{number}/plugin.toml"), &manifest);
    }
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/GUIDE.md")).unwrap();
    for (number, (mistake, _, words)) in MISTAKES.iter().enumerate() {
        let (_, out, err) = run(&setup, &["plugins", "check", &format!("p{number}")]);
        let problems = |line: &&str| line.starts_with("error: ") || line.starts_with("warning: ");
        assert!(
            out.lines().chain(err.lines()).filter(problems).any(|line| line.contains(words)),
            "{mistake}: {out}{err}"
        );
        assert!(guide.contains(mistake), "plugins/GUIDE.md lacks {mistake}");
    }
}
