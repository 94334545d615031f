//! Steps of an agent on a small repository, mistakes included. After a mistake, the next step is made from the text of the
//! error alone, and must succeed. The transcript is kept beside the test.

use regex::Regex;
use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

const CONFIG: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n\
                      [[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n\
                      [[permission.rules]]\ncategory = \"file.read\"\npattern = \"~/notes.txt\"\naction = \"allow\"\n";

const README: &str = "# Greeter\n\nGreets by name.\nRun the tests: sh tests/run.sh\nGreets by name, in capitals too.\n";
const GREET: &str = "# Greetings.\n. src/lib/strings.sh\n\ngreet() {\n    echo \"Hello $(trim \"$1\")\"\n}\n\nfarewell() {\n    \
                     echo \"Hello $(trim \"$1\")\"\n}\n";
const STRINGS: &str = "# Functions for texts.\nupper() {\n    printf '%s' \"$1\" | tr a-z A-Z\n}\n\ntrim() {\n    printf '%s' \
                       \"$1\" | sed 's/^ *//'\n}\n";
const RUN: &str = "# Runs all tests.\n. src/lib/strings.sh\nfailed=0\ncheck() {\n    [ \"$2\" = \"$3\" ] && return\n    echo \
                   \"tests/run.sh: $1: expected '$3', got '$2'\"\n    failed=1\n}\ncheck upper \"$(upper abc)\" ABC\ncheck trim \
                   \"$(trim ' a ')\" a\n[ $failed = 0 ] && echo 'all tests passed'\nexit $failed\n";
const BUILD: &str = "for part in 10 50 100; do printf '\\r%s %%' $part; done\nprintf '\\n\\033[32mbuilt\\033[0m\\n'\nmkdir -p \
                     build && echo greeter > build/greeter\n";
const SERVE: &str = "echo 'listening on 8080'\nsleep 1000\n";
const SETTINGS: &str = "[greeter]\r\nname = world\nunit = 10\u{a0}kg\r\n";
const NOTEBOOK: &str = r##"{"cells": [{"cell_type": "markdown", "source": ["# Report"]}, {"cell_type": "code", "source": ["print(total)\n"], "outputs": [{"output_type": "stream", "text": ["42\n"]}]}], "nbformat": 4}"##;

struct SteppingAgent {
    wire: Wire,
    work: String,
    top: String,
    transcript: String,
    steps: usize,
    mistakes: usize,
    /// The last step failed.
    is_lost: bool,
}

impl SteppingAgent {
    fn new(daemon: &TestDaemon) -> Self {
        let mut wire = daemon.connect();
        wire.result("session.open", json!({"session_id": "steps", "cwd": daemon.work()}));
        Self {
            wire,
            work: daemon.work().display().to_string(),
            top: daemon.setup.path("").display().to_string().trim_end_matches('/').to_owned(),
            transcript: String::new(),
            steps: 0,
            mistakes: 0,
            is_lost: false,
        }
    }

    /// A step that succeeds; gives its text.
    #[track_caller]
    fn step(&mut self, tool: &str, arguments: Value) -> String {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "step {}: {text}", self.steps);
        self.is_lost = false;
        text
    }

    /// A step that fails; gives the error's text, which is all that the next step may use.
    #[track_caller]
    fn mistake(&mut self, tool: &str, arguments: Value) -> String {
        assert!(!self.is_lost, "the mistake before this one is not made good");
        let (failed, text) = self.call(tool, arguments);
        assert!(failed, "step {}: {text}", self.steps);
        self.is_lost = true;
        self.mistakes += 1;
        text
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        self.steps += 1;
        let said = format!("{tool} {arguments}");
        let answer = self.wire.call("tools.execute", json!({"name": tool, "arguments": arguments}));
        let (failed, text) = match answer.get("error") {
            Some(error) => (true, error["message"].as_str().unwrap().to_owned()),
            None => {
                let blocks = answer["result"]["content"].as_array().unwrap();
                let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                (answer["result"]["is_error"] == true, texts.join("\n"))
            }
        };
        let mark = if failed { "failed" } else { "done" };
        let entry = format!("--- {}: {said}\n{text}\n--- {mark}\n\n", self.steps);
        self.transcript.push_str(&entry.replace(&self.work, "/home/you/greeter").replace(&self.top, "/home/you"));
        (failed, text)
    }
}

/// The part of an error that a pattern's group finds.
#[track_caller]
fn found(text: &str, pattern: &str) -> String {
    let captures = Regex::new(pattern).unwrap().captures(text);
    captures.unwrap_or_else(|| panic!("{pattern:?} is not in: {text}"))[1].to_owned()
}

/// The lines that an error shows with their numbers, as they are in the file.
fn numbered(text: &str) -> String {
    let line = Regex::new(r"^\d+: (.*)$").unwrap();
    let lines = text.lines().filter_map(|text| Some(line.captures(text)?[1].to_owned()));
    lines.collect::<Vec<String>>().join("\n")
}

fn patch(sections: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{sections}*** End Patch\n")})
}

fn daemon() -> TestDaemon {
    let setup = Setup::new()
        .file("README.md", README)
        .file("src/greet.sh", GREET)
        .file("src/lib/strings.sh", STRINGS)
        .file("tests/run.sh", RUN)
        .file("build.sh", BUILD)
        .file("serve.sh", SERVE)
        .file("config/settings.ini", SETTINGS)
        .file("data/report.ipynb", NOTEBOOK)
        .file(".gitignore", "build/\n")
        .config(CONFIG);
    std::fs::write(setup.path("home/notes.txt"), "Say hello first.\n").unwrap();
    let config = "[user]\n\tname = You\n\temail = you@example.com\n[init]\n\tdefaultBranch = main\n";
    std::fs::write(setup.path("home/.gitconfig"), config).unwrap();
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "Greeter"]] {
        assert!(setup.command("git".as_ref()).args(arguments).status().unwrap().success());
    }
    setup.start()
}

#[test]
fn every_mistake_is_made_good_by_the_next_step() {
    let daemon = daemon();
    let mut agent = SteppingAgent::new(&daemon);

    // A look around, with wrong names.
    agent.step("list", json!({"depth": 2}));
    agent.step("glob", json!({"pattern": "**/strings.sh"}));
    let text = agent.mistake("read", json!({"file_path": "README.md"}));
    agent.step("read", json!({found(&text, r"\b(path)\b"): "README.md"}));
    let text = agent.mistake("read", json!({"path": "src/strings.sh"}));
    agent.step("read", json!({"path": found(&text, r"did you mean (\S+)\?")}));
    let text = agent.mistake("read", json!({"path": "src/gret.sh"}));
    agent.step("read", json!({"path": found(&text, r"did you mean (\S+)\?")}));
    let text = agent.mistake("read", json!({"path": "src/greet.sh", "offset": 500}));
    let last: u64 = found(&text, r"has (\d+) lines").parse().unwrap();
    agent.step("read", json!({"path": "src/greet.sh", "offset": last}));
    let text = agent.mistake("read", json!({"path": "src"}));
    agent.step(&found(&text, r"use `(\w+)`"), json!({"path": "src"}));
    let text = agent.mistake("list", json!({"path": "src/libs"}));
    agent.step("list", json!({"path": found(&text, r"did you mean (\S+)\?")}));
    let text = agent.mistake("grep", json!({"pattern": "trim("}));
    agent.step("grep", json!({"pattern": "trim(", found(&text, r"set (\w+)=true"): true}));
    let text = agent.mistake("grep", json!({"pattern": "trim", "output_mode": "file"}));
    agent.step("grep", json!({"pattern": "trim", "output_mode": found(&text, r#""(files)""#)}));
    let text = agent.mistake("grep", json!({"pattern": "trim", "path": "source/lib/strings.sh"}));
    agent.step("grep", json!({"pattern": "trim", "path": found(&text, r"did you mean (\S+)\?")}));
    agent.step("read", json!({"path": "~/notes.txt"}));

    // A test that fails, and its repair.
    let text = agent.mistake("bash", json!({"command": "sh tests/run.sh"}));
    agent.step("read", json!({"path": found(&text, r"(?m)^(\S+\.sh): trim")}));
    let text = agent.mistake(
        "edit",
        json!({"path": "src/lib/strings.sh", "old": "  printf '%s' \"$1\" |  sed 's/^ *//'", "new": "x"}),
    );
    let (old, new) = (numbered(&text), numbered(&text).replace("'s/^ *//'", "'s/^ *//; s/ *$//'"));
    agent.step("edit", json!({"path": "src/lib/strings.sh", "old": old, "new": new}));
    agent.step("bash", json!({"command": "sh tests/run.sh"}));
    let text = agent.mistake("edit", json!({"path": "README.md", "old": "Greets by name", "new": "Says hello"}));
    agent.step(
        "edit",
        json!({"path": "README.md", "old": "Greets by name", "new": "Says hello", found(&text, r"set (replace_all)"): true}),
    );
    let edit = json!({"path": "config/settings.ini", "old": "name = world\nunit = 10 kg\n", "new": "name = you\nunit = 10 kg\n"});
    let text = agent.mistake("edit", edit.clone());
    agent.step("read", json!({"path": found(&text, r"^(\S+) has not been read .* read it first")}));
    agent.step("edit", edit);
    agent.step("bash", json!({"command": "echo 'See also: serve.sh' >> README.md"}));
    let edit = json!({"path": "README.md", "old": "# Greeter", "new": "# The greeter"});
    let text = agent.mistake("edit", edit.clone());
    agent.step("read", json!({"path": found(&text, r"^(\S+) has changed on disk .* read it again")}));
    agent.step("edit", edit);

    // Files that are there or not, and arguments that are missing.
    let text = agent.mistake("write", json!({"path": "notes.md", "mode": "create"}));
    agent.step("write", json!({"path": "notes.md", "mode": "create", found(&text, r"\b(content)\b"): "# Notes\n"}));
    let text = agent.mistake("write", json!({"path": "notes.md", "mode": "create", "content": "# More notes\n"}));
    agent.step(
        "write",
        json!({"path": "notes.md", "mode": found(&text, r"use mode (\w+)"), "content": "# More notes\n"}),
    );
    let text = agent.mistake("edit", json!({"path": "note.md", "old": "More", "new": "My"}));
    agent.step("edit", json!({"path": found(&text, r"did you mean (\S+?)\?"), "old": "More", "new": "My"}));

    // Patches.
    let changes = " farewell() {\n-    echo \"Hello $(trim \"$1\")\"\n+    echo \"Goodbye $(trim \"$1\")\"\n }\n";
    let text = agent.mistake(
        "apply_patch",
        json!({"input": format!("--- a/src/greet.sh\n+++ b/src/greet.sh\n@@ -8,3 +8,3 @@\n{changes}")}),
    );
    agent.step(
        "apply_patch",
        json!({
            "input": format!("{}\n{}src/greet.sh\n{changes}{}\n", found(&text, r"between (\*\*\* Begin Patch)"),
                found(&text, r"with (\*\*\* Update File: )PATH"), found(&text, r"and (\*\*\* End Patch)"))
        }),
    );
    let text = agent.mistake(
        "apply_patch",
        patch("*** Update File: src/greet.sh\n greet() {\n-  echo \"Hello $(trim \"$1\")\"\n+    echo \"Hi $(trim \"$1\")\"\n"),
    );
    let shown = numbered(&text);
    let (head, body) = shown.split_once('\n').unwrap();
    let new = body.replace("Hello", "Hi");
    agent.step("apply_patch", patch(&format!("*** Update File: src/greet.sh\n {head}\n-{body}\n+{new}\n")));
    let text = agent.mistake("apply_patch", patch("*** Update File: src/greet.sh\n }\n+# End.\n"));
    agent.step(
        "apply_patch",
        patch(&format!("*** Update File: src/greet.sh\n{}farewell() {{\n }}\n+# End.\n", found(&text, "put `(@@ )`"))),
    );
    let unfinished = "*** Begin Patch\n*** Update File: notes.md\n*** Move to: docs/notes.md\n-# My notes\n+# Notes\n";
    let text = agent.mistake("apply_patch", json!({"input": unfinished}));
    agent.step("apply_patch", json!({"input": format!("{unfinished}{}\n", found(&text, r"last line must be (.+);"))}));
    let add = "*** Add File: README.md\n+# New\n";
    let text = agent.mistake("apply_patch", patch(add));
    agent.step("apply_patch", patch(&format!("{}\n # The greeter\n+\n+A small one.\n", found(&text, r"with (.+)$"))));

    // Commands.
    agent.step("bash", json!({"command": "cd src && pwd"}));
    let text = agent.mistake("bash", json!({"command": "cat strings.sh"}));
    let name = found(&text, r"cat: (\S+): No such file");
    agent.step("bash", json!({"command": format!("cat {name} | head -2"), "cwd": "src/lib"}));
    agent.step("bash", json!({"command": "sh build.sh"}));
    let text = agent.mistake("bash", json!({"command": "sh serve.sh", "timeout_ms": 5000}));
    let text = agent.step("bash", json!({"command": "sh serve.sh", found(&text, r"or (background)"): true}));
    let shell = found(&text, r"shell_id (sh_\d+)");
    let text = agent.mistake("bash_output", json!({"shell_id": "1"}));
    assert_eq!(found(&text, r"it has (sh_\d+)"), shell);
    agent.step(
        "bash_output",
        json!({"shell_id": found(&text, r"it has (sh_\d+)"), "wait_ms": 60_000, "filter": "listening"}),
    );
    agent.step("kill_shell", json!({"shell_id": shell}));
    agent.step("bash_output", json!({"shell_id": shell}));

    // A notebook, a list, and the end.
    agent.step("read", json!({"path": "data/report.ipynb"}));
    agent.step("edit", json!({"path": "data/report.ipynb", "old": "print(total)", "new": "print(total + 1)"}));
    let todo = |status: &str| json!({"items": [{"content": "Commit", "status": status}]});
    let text = agent.mistake("todo", todo("doing"));
    agent.step("todo", todo(&found(&text, r#""(in_progress)""#)));
    agent.step(
        "bash",
        json!({"command": "sh tests/run.sh && git add -A && git commit -qm 'Trim both ends' && git status --short"}),
    );
    agent.step("bash", json!({"command": "git log --format=%s && git show --stat --format= HEAD"}));

    assert!(agent.steps >= 60 && agent.mistakes >= 20, "{} steps, {} mistakes", agent.steps, agent.mistakes);
    insta::assert_snapshot!("transcript", agent.transcript);
}
