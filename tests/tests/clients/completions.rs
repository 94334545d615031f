//! Completions, in the shells that people use: bash, zsh and fish.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use toold_tests::{Setup, TestDaemon, skip_uninstalled, toolctl, until};

const PLUGIN: &str = r#"
hygge.register_tool({
  name = "count",
  description = "Counts up. Really.",
  input_schema = {
    type = "object",
    properties = {
      to = { type = "integer", description = "Where to stop. Counts up." },
      fail = { type = "boolean" },
      mode = { enum = { "fast", "slow" } },
      path = { type = "string" },
    },
    required = { "to" },
  },
  execute = function(ctx, input) return "done" end,
})
"#;

struct Shells {
    daemon: TestDaemon,
    grant: String,
}

impl Shells {
    fn new() -> Self {
        let setup = Setup::new().plugin("count.lua", PLUGIN).file("my notes.txt", "").file("folder/inner.txt", "");
        std::fs::create_dir(setup.path("home/plans")).unwrap();
        std::fs::write(setup.path("home/plans/one.txt"), "").unwrap();
        let daemon = setup.start();
        let listed = || String::from_utf8(daemon.toolctl(&["list"]).stdout).unwrap();
        until("the plugin is loaded", || listed().contains("count").then_some(()));
        let mut wire = daemon.connect();
        let opened = wire.result("session.open", json!({"cwd": daemon.work(), "session_id": "my-session"}));
        assert_eq!(opened["session_id"], "my-session");
        let granted = daemon.toolctl(&["permissions", "grant", "shell", "make *", "--json"]);
        let granted: serde_json::Value = serde_json::from_slice(&granted.stdout).unwrap();
        Self { daemon, grant: granted["id"].as_str().unwrap().to_owned() }
    }

    /// The candidates for a line, each with its description.
    fn candidates(&self, shell: &str, line: &str) -> Vec<(String, String)> {
        candidates(&self.daemon.setup, shell, line)
    }
}

/// The shell finds the toolctl under test.
fn command(setup: &Setup, shell: &str) -> Command {
    let mut command = setup.command(Path::new(shell));
    let folder = toolctl().parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{folder}:{path}")).stdin(Stdio::null());
    command
}

fn is_installed(shell: &str) -> bool {
    let found = Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        skip_uninstalled(shell);
    }
    is_there
}

/// As the shell's own completion gets them: bash and zsh call the function, fish has a command for it.
fn candidates(setup: &Setup, shell: &str, line: &str) -> Vec<(String, String)> {
    let (script, separator) = match shell {
        "bash" => (
            r#"source <(toolctl completions bash)
            COMP_LINE=$1 COMP_POINT=${#1}
            current=${1##*[ =:]}
            _toolctl toolctl "$current" ""
            printf '%s\n' "${COMPREPLY[@]}""#,
            "\t",
        ),
        "zsh" => (
            r#"compdef() { }
            compadd() {
                local shown=${@[-1]}_shown
                print -rl -- "${(@P)shown}"
            }
            source =(toolctl completions zsh)
            words=("${(@s: :)1}") CURRENT=$#words PREFIX=${words[-1]}
            _toolctl"#,
            "  -- ",
        ),
        "fish" => ("source (toolctl completions fish | psub); complete -C $argv[1]", "\t"),
        other => panic!("{other}"),
    };
    let mut command = command(setup, shell);
    match shell {
        "bash" => command.args(["--norc", "--noprofile", "-c", script, "bash", line]),
        "zsh" => command.args(["-f", "-c", script, "zsh", line]),
        _ => command.args(["--no-config", "-c", script, line]),
    };
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}: {line}");
    let text = String::from_utf8(output.stdout).unwrap();
    let split = |line: &str| {
        let (value, about) = line.split_once(separator).unwrap_or((line, ""));
        (value.to_owned(), about.to_owned())
    };
    text.lines().filter(|line| !line.is_empty()).map(split).collect()
}

fn values(candidates: &[(String, String)]) -> Vec<&str> {
    candidates.iter().map(|(value, _)| value.as_str()).collect()
}

#[track_caller]
fn check(shell: &str) {
    if !is_installed(shell) {
        return;
    }
    let shells = Shells::new();
    // bash puts its candidates in place of what stands behind the last = of the word.
    let after =
        |text: &str| if shell == "bash" { text.rsplit('=').next().unwrap().to_owned() } else { text.to_owned() };
    let space = if shell == "bash" { "\\ " } else { " " };
    let expected: &[(&str, Vec<String>)] = &[
        ("toolctl call cou", vec!["count".to_owned()]),
        ("toolctl call count t", vec!["to=".to_owned()]),
        ("toolctl call count mode=", vec![after("mode=fast"), after("mode=slow")]),
        ("toolctl call count mode=s", vec![after("mode=slow")]),
        ("toolctl call count fail=t", vec![after("fail=true")]),
        ("toolctl call count path=my", vec![after(&format!("path=my{space}notes.txt"))]),
        ("toolctl call count path=folder/", vec![after("path=folder/inner.txt")]),
        ("toolctl call count path=~/pl", vec![after("path=~/plans/")]),
        ("toolctl call count path=~/plans/", vec![after("path=~/plans/one.txt")]),
        ("toolctl call count path=@fold", vec![after("path=@folder/")]),
        ("toolctl call count --json @", vec!["@folder/".to_owned(), format!("@my{space}notes.txt")]),
        ("toolctl call count --json @folder/i", vec!["@folder/inner.txt".to_owned()]),
        ("toolctl schema cou", vec!["count".to_owned()]),
        ("toolctl plugins show cou", vec!["count".to_owned()]),
        ("toolctl sessions close my", vec!["my-session".to_owned()]),
        ("toolctl audit --session my", vec!["my-session".to_owned()]),
        ("toolctl permissions grant file.w", vec!["file.write".to_owned()]),
        ("toolctl permissions grant file.read fold", vec!["folder/".to_owned()]),
        ("toolctl permissions revoke ", vec![shells.grant.clone()]),
        ("toolctl permissions mode accept", vec!["accept_edits".to_owned()]),
        ("toolctl permissions allow r --scope p", vec!["project".to_owned()]),
        ("toolctl audit --outcome den", vec!["denied".to_owned()]),
        ("toolctl events --kinds call.s", vec!["call.started".to_owned()]),
        ("toolctl plugins rel", vec!["reload".to_owned()]),
    ];
    // A daemon that does not answer soon is not waited for: only options are offered, until the next time.
    let offered = |line: &str| {
        until(line, || {
            let candidates = shells.candidates(shell, line);
            candidates.iter().any(|(value, _)| !value.starts_with('-')).then_some(candidates)
        })
    };
    for (line, expected) in expected {
        assert_eq!(values(&offered(line)), *expected, "{line}");
    }
    let keys = offered("toolctl call count ");
    assert_eq!(keys[0].0, "to=", "the required ones come first: {keys:?}");
    assert!(keys.iter().all(|(key, _)| key.ends_with('=')), "{keys:?}");
    if shell != "bash" {
        assert_eq!(offered("toolctl call cou")[0].1, "Counts up");
        assert_eq!(keys[0].1, "(required) Where to stop");
        assert_eq!(offered("toolctl permissions revoke ")[0].1, "allow shell make * always");
    }
    let given = offered("toolctl call count to=3 ");
    assert!(!values(&given).contains(&"to="), "{given:?}");
}

/// The completed path is one that a tool takes, whether or not the shell expands it.
#[test]
fn tools_take_paths_below_the_home_folder() {
    let daemon = Setup::new().start();
    std::fs::write(daemon.setup.path("home/here.txt"), "found\n").unwrap();
    let rule = format!("{}/**", daemon.setup.path("home").display());
    assert!(daemon.toolctl(&["permissions", "grant", "file.read", &rule]).status.success());
    let read = daemon.toolctl(&["call", "read", "path=~/here.txt"]);
    assert!(String::from_utf8_lossy(&read.stdout).contains("found"), "{read:?}");
}

#[test]
fn bash_offers_values() {
    check("bash");
}

#[test]
fn zsh_offers_values() {
    check("zsh");
}

#[test]
fn fish_offers_values() {
    check("fish");
}

#[test]
fn without_a_daemon_nothing_is_offered_and_none_is_started() {
    let setup = Setup::new();
    for shell in ["bash", "zsh", "fish"] {
        if !is_installed(shell) {
            continue;
        }
        assert_eq!(candidates(&setup, shell, "toolctl call cou"), [], "{shell}");
        assert_eq!(values(&candidates(&setup, shell, "toolctl permissions mode pl")), ["plan"], "{shell}");
    }
    assert!(!setup.path("run/toold.sock").exists());
}
