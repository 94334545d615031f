//! Projects: the settings of their configuration, and which of them apply.

use serde_json::{Value, json};
use toold::config::project::ProjectFile;
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW_TOUCH: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"touch *\"\naction = \"allow\"\n";
const DENY_ECHO: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"echo *\"\naction = \"deny\"\n";

fn open(daemon: &TestDaemon, below: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work().join(below), "client": {"name": "test"}}));
    wire
}

/// The decision about a command, and its rule.
fn check(wire: &mut Wire, command: &str) -> (String, String) {
    let answer = wire.result("permissions.check", json!({"category": "shell", "target": command}));
    let text = |key: &str| answer[key].as_str().unwrap().to_owned();
    (text("verdict"), text("rule"))
}

fn trust(wire: &mut Wire, daemon: &TestDaemon, below: &str) -> Value {
    wire.result("plugins.trust", json!({"path": daemon.work().join(below)}))
}

#[test]
fn a_project_denies_at_once_and_allows_once_it_is_trusted() {
    let config = format!("{ALLOW_TOUCH}{DENY_ECHO}");
    let daemon = Setup::new().asking().file("p/.toold/config.toml", config).file("p/deep/x", "").start();
    let mut inside = open(&daemon, "p/deep");
    assert_eq!(check(&mut inside, "touch a").0, "ask");
    let (verdict, rule) = check(&mut inside, "echo a");
    assert!(verdict == "deny" && rule.contains("p/.toold/config.toml:5"), "{verdict} {rule}");
    let mut outside = open(&daemon, "");
    assert_eq!(check(&mut outside, "echo a").0, "ask");

    trust(&mut inside, &daemon, "p");
    assert_eq!(check(&mut inside, "touch a").0, "allow");
    assert_eq!(inside.tool("bash", json!({"command": "touch made"}))["is_error"], false);
    assert_eq!(check(&mut outside, "touch a").0, "ask");
}

#[test]
fn trust_outlives_the_daemon_and_ends_with_a_change() {
    let mut daemon = Setup::new().asking().file("p/.toold/config.toml", ALLOW_TOUCH).start();
    trust(&mut open(&daemon, "p"), &daemon, "p");
    daemon.restart("TERM");
    let mut wire = open(&daemon, "p");
    assert_eq!(check(&mut wire, "touch a").0, "allow");
    let file = daemon.work().join("p/.toold/config.toml");
    std::fs::write(&file, format!("{ALLOW_TOUCH}{}", ALLOW_TOUCH.replace("touch", "rm"))).unwrap();
    daemon.restart("TERM");
    let mut wire = open(&daemon, "p");
    assert_eq!((check(&mut wire, "touch a").0, check(&mut wire, "rm a").0), ("ask".into(), "ask".into()));
}

#[test]
fn a_change_counts_at_once_where_it_denies_and_waits_where_it_allows() {
    let daemon = Setup::new().asking().file("p/.toold/config.toml", ALLOW_TOUCH).start();
    let mut wire = open(&daemon, "p");
    wire.result("events.subscribe", json!({"kinds": ["config.changed"]}));
    trust(&mut wire, &daemon, "p");
    let file = daemon.work().join("p/.toold/config.toml");
    assert_eq!(wire.notification("events.event")["result"]["project"], json!(daemon.work().join("p")));
    std::fs::write(&file, format!("{ALLOW_TOUCH}{DENY_ECHO}{}", ALLOW_TOUCH.replace("touch", "rm"))).unwrap();
    assert_eq!(wire.notification("events.event")["result"]["file"], json!(file));
    // Earlier trust still counts.
    for (command, verdict) in [("echo a", "deny"), ("rm a", "ask"), ("touch a", "allow")] {
        assert_eq!(check(&mut wire, command).0, verdict, "{command}");
    }
    trust(&mut wire, &daemon, "p");
    assert_eq!(check(&mut wire, "rm a").0, "allow");
}

#[test]
fn a_rule_holds_for_what_comes_right_after_it_was_saved() {
    let daemon = Setup::new().asking().file("p/.toold/config.toml", ALLOW_TOUCH).start();
    let mut wire = open(&daemon, "p");
    let files = [daemon.work().join("p/.toold/config.toml"), daemon.setup.path("config/toold/config.toml")];
    let own = std::fs::read_to_string(&files[1]).unwrap();
    for round in 0..5 {
        for (file, before) in files.iter().zip([ALLOW_TOUCH, own.as_str()]) {
            let command = format!("echo {round}");
            assert_eq!(check(&mut wire, &command).0, "ask");
            std::fs::write(file, format!("{before}{}", DENY_ECHO.replace("echo *", &command))).unwrap();
            match round % 2 {
                0 => assert_eq!(check(&mut wire, &command).0, "deny", "{}", file.display()),
                _ => {
                    let refused = wire.tool("bash", json!({"command": command})).to_string();
                    assert!(refused.contains("rule deny shell"), "{}: {refused}", file.display());
                }
            }
            std::fs::write(file, before).unwrap();
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_denies_in_its_project_alone() {
    let daemon = Setup::new().asking().file("p/.toold/config.toml", "[[permission.ruls]]\n").file("q/x", "").start();
    let mut inside = open(&daemon, "p");
    let (verdict, rule) = check(&mut inside, "ls");
    assert!(verdict == "deny" && rule.contains("config.toml:1") && rule.contains("did you mean rules"), "{rule}");
    let status = inside.result("daemon.status", json!({}));
    assert!(status["problems"][0].as_str().unwrap().contains("did you mean rules"), "{status}");
    assert_eq!(inside.call("plugins.trust", json!({"path": daemon.work().join("p")}))["error"]["code"], -32003);
    assert_eq!(check(&mut open(&daemon, "q"), "ls").0, "ask");
}

#[test]
fn user_only_settings_are_refused_in_a_project() {
    let daemon = Setup::new().asking().file("p/.toold/config.toml", "[limits]\ncalls = 1\n").start();
    let (verdict, rule) = check(&mut open(&daemon, "p"), "ls");
    assert!(verdict == "deny" && rule.contains("limits is for the user's configuration"), "{rule}");
}

#[test]
fn a_hook_of_a_project_runs_once_it_is_trusted_and_in_the_project_only() {
    let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"sh\", \"-c\", \"echo no >&2; exit 2\"]\n";
    let daemon =
        Setup::new().asking().file("p/.toold/config.toml", hook).file("p/a.txt", "a").file("q/a.txt", "a").start();
    let (mut inside, mut outside) = (open(&daemon, "p"), open(&daemon, "q"));
    let read = |wire: &mut Wire| wire.tool("read", json!({"path": "a.txt"}))["is_error"] == false;
    assert!(read(&mut inside));
    assert_eq!(inside.result("hooks.list", json!({}))["hooks"], json!([]));
    trust(&mut inside, &daemon, "p");
    assert!(!read(&mut inside) && read(&mut outside));
    assert_eq!(inside.result("hooks.list", json!({}))["hooks"][0]["event"], "pre_tool");
    assert_eq!(outside.result("hooks.list", json!({}))["hooks"], json!([]));
}

#[test]
fn of_two_rules_that_are_as_narrow_the_projects_counts() {
    let rule =
        |action: &str| format!("[[permission.rules]]\ncategory = \"shell\"\npattern = \"ls\"\naction = \"{action}\"\n");
    let daemon = Setup::new().config(&rule("allow")).file("p/.toold/config.toml", rule("ask")).start();
    let (verdict, rule) = check(&mut open(&daemon, "p"), "ls");
    assert!(verdict == "ask" && rule.contains("p/.toold/config.toml"), "{rule}");
    assert_eq!(check(&mut open(&daemon, ""), "ls").0, "allow");
}

#[test]
fn a_project_that_gets_a_configuration_later_is_noticed() {
    let daemon = Setup::new().asking().file("p/.git/x", "").start();
    let mut wire = open(&daemon, "p");
    assert_eq!(check(&mut wire, "echo a").0, "ask");
    std::fs::create_dir(daemon.work().join("p/.toold")).unwrap();
    std::fs::write(daemon.work().join("p/.toold/config.toml"), DENY_ECHO).unwrap();
    until("the project denies", || (check(&mut wire, "echo a").0 == "deny").then_some(()));
    std::fs::remove_file(daemon.work().join("p/.toold/config.toml")).unwrap();
    until("it denies no more", || (check(&mut wire, "echo a").0 == "ask").then_some(()));
}

#[test]
fn a_link_to_a_project_is_the_project() {
    let daemon = Setup::new().asking().file("p/.toold/config.toml", DENY_ECHO).start();
    std::os::unix::fs::symlink(daemon.work().join("p"), daemon.work().join("q")).unwrap();
    assert_eq!(check(&mut open(&daemon, "q"), "echo a").0, "deny");
}

#[test]
fn a_project_may_have_its_reading_commands_asked_about_but_not_allow_those_of_the_user() {
    let says = |value: &str| format!("[permission]\nread_only_commands = \"{value}\"\n");
    let daemon = Setup::new().file("p/.toold/config.toml", says("ask")).start();
    assert_eq!(check(&mut open(&daemon, "p"), "git status; ls").0, "ask");
    assert_eq!(check(&mut open(&daemon, ""), "ls").0, "allow");
    let daemon = Setup::new().asking().file("p/.toold/config.toml", says("allow")).start();
    trust(&mut open(&daemon, "p"), &daemon, "p");
    assert_eq!(check(&mut open(&daemon, "p"), "ls").0, "ask");
}

#[test]
fn projects_name_no_key_and_no_token() {
    let folder = tempfile::tempdir().unwrap();
    for (section, file) in [
        ("[web.search]\nkind = \"brave\"\n", "api_key_file"),
        ("[remotes.a]\nurl = \"wss://a.example/rpc\"\n", "token_file"),
        ("[fleet]\nname = \"a\"\n", "key_file"),
    ] {
        let text = format!("{section}{file} = \"/etc/hostname\"\n");
        let config = ProjectFile::of_bytes(folder.path(), text.into_bytes());
        assert!(!config.problems.is_empty(), "{section}");
    }
}
