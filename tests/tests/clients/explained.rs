//! `toolctl permissions check --explain`: how a command line was read, and which rule decides each part of it.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon};

/// Rules that a person might have. Each line below once did more than they allow.
const RULES: &[&str] = &[
    "git log *",
    "git diff *",
    "git show *",
    "git archive *",
    "git grep *",
    "git fetch *",
    "sort *",
    "sed *",
    "find *",
    "tar *",
    "ssh *",
    "timeout *",
    "xargs *",
    "rsync *",
    "wget *",
    "strace *",
    "cat *",
    "jobs *",
];

/// A command line, and a part of its explanation.
const FOUND: &[(&str, &str)] = &[
    ("git log -1 --format='[[permission.rules]]' --output=CONFIG", "control files"),
    ("git diff --output=CONFIG", "control files"),
    ("git show --output=x", "ask   file.write"),
    ("git archive -o x HEAD", "ask   file.write"),
    ("sort -o x a.txt", "ask   file.write"),
    ("sed -n 'w F' a.txt", "writes a file (w)"),
    ("find . {-exec,touch,P} \\;", "ask   shell touch P"),
    ("find . -\"$x\"exec touch P \\;", "-\"$x\"exec"),
    ("find . -$'\\x65'xec touch P \\;", "ask   shell touch P"),
    ("git grep {-O\"cmd\",x}", "not certain"),
    ("git fetch --upl\"$x\"oad-pack=cmd", "not certain"),
    ("sort {--compress-program=cmd,a.txt}", "runs a program"),
    ("tar -\"$x\"I cmd -cf a b", "not certain"),
    ("ssh {-oProxyCommand=cmd,h}", "not certain"),
    ("timeout -s {KILL,5,cmd}", "ask   shell cmd"),
    ("xargs -n {1,touch}", "ask   shell touch"),
    ("sort --op=a a.txt", "not among the options"),
    ("git fetch --upload-p=cmd", "is an abbreviation of --upload-pack"),
    ("sort --compress-prog=cmd a.txt", "is an abbreviation of --compress-program"),
    ("tar --checkpoint-act=exec=cmd -cf a b", "is an abbreviation of --checkpoint-action"),
    ("git grep -nOcmd x", "not certain"),
    ("ssh -4oProxyCommand=cmd h", "not certain"),
    ("tar cIf cmd a b", "not certain"),
    ("sed 1e a.txt", "runs a command (e)"),
    ("wget --use-askpass=cmd http://h", "not certain"),
    ("strace -o '|cmd' ls", "not certain"),
    ("jobs -x cmd", "runs a command"),
    ("xargs --eof touch", "ask   shell touch"),
    ("cat .env", "secrets (.env)"),
    ("cat .e*", "secrets (.env)"),
];

/// Ways to write a command that a rule denies.
const DENIED: &[&str] = &["x=rm; $x V", "$'\\x72m' V", "{rm,V}", "trap 'rm V' EXIT", "hash -p /bin/rm ls; ls V"];

/// Commands that may become what a rule denies, in whose text that rule's words don't occur.
const DOUBTED: &[&str] = &["/bin/r? V", "echo V | xargs -I x $y x"];

fn rules(action: &str, patterns: &[&str]) -> String {
    let rule = |pattern: &&str| {
        format!("[[permission.rules]]\ncategory = \"shell\"\npattern = \"{pattern}\"\naction = \"{action}\"\n")
    };
    patterns.iter().map(rule).collect()
}

fn explained(daemon: &TestDaemon, line: &str) -> (i32, String) {
    let output = daemon.toolctl(&["permissions", "check", "--explain", line]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn explain_names_the_rule_for_each_finding() {
    let daemon = Setup::new().config(&rules("allow", RULES)).file("a.txt", "a\n").file(".env", "S=1\n").start();
    let config = daemon.setup.path("config/toold/config.toml").display().to_string();
    for (line, expected) in FOUND {
        let (status, text) = explained(&daemon, &line.replace("CONFIG", &config));
        assert!(status == 1 && text.contains(expected), "{line}: expected {expected:?} in\n{text}");
    }
}

#[test]
fn a_denied_command_is_denied_however_it_is_written() {
    let config = rules("allow", &["**"]) + &rules("deny", &["rm *"]);
    let daemon = Setup::new().config(&config).start();
    for (lines, verdict) in [(DENIED, "deny by rule deny"), (DOUBTED, "ask ")] {
        for line in lines {
            let (status, text) = explained(&daemon, line);
            assert!(status == 1 && text.starts_with(verdict) && text.contains("rule deny shell"), "{line}:\n{text}");
        }
    }
}

#[test]
fn programs_options_and_files_are_reported() {
    let daemon = Setup::new().file("a.txt", "a\n").start();
    let (status, text) = explained(&daemon, "sort -r a.txt | head -3 > out");
    assert_eq!(status, 1, "{text}");
    for expected in ["program sort (GNU coreutils", "-r", "file that is read", "only reads", "redirect", "file.write"] {
        assert!(text.contains(expected), "expected {expected:?} in\n{text}");
    }
    let params = json!({"category": "shell", "target": "FOO=1 mytool x", "explain": true});
    let checked = daemon.connect().result("permissions.check", params);
    assert_eq!(checked["commands"][0]["reads_only"], false, "{checked}");
    assert_eq!(checked["commands"][1]["known"], Value::Null, "{checked}");
    let plain = daemon.connect().result("permissions.check", json!({"category": "shell", "target": "ls"}));
    assert_eq!(plain["commands"], Value::Null, "only on request");
}
