//! Judging what agents do with tools of their own: `permissions.request` and `permissions.done`.

use std::cell::RefCell;
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// The rules that most of these tests judge by.
const RULES: &str = r#"
[permission]
read_only_commands = "ask"

[[permission.rules]]
category = "shell"
pattern = "make *"
action = "allow"

[[permission.rules]]
category = "shell"
pattern = "rm *"
action = "deny"

[[permission.rules]]
category = "file.write"
pattern = "**/work/src/**"
action = "allow"

[[permission.rules]]
category = "network"
pattern = "docs.rs:443"
action = "allow"

[[permission.rules]]
category = "mcp"
pattern = "tracker/list"
action = "allow"
"#;

fn daemon() -> TestDaemon {
    let setup = Setup::new().config(RULES).file("src/a.txt", "one\n").file("b.txt", "two\n");
    opened(setup.file(".env", "KEY=1\n"))
}

/// A daemon whose folder a person has opened before the agents come.
fn opened(setup: Setup) -> TestDaemon {
    let daemon = setup.start();
    drop(daemon.connect());
    daemon
}

/// A connection as a hook has it: new for each event, with no session.
fn hook(daemon: &TestDaemon) -> Wire {
    Wire::connect(&daemon.socket())
}

fn params(daemon: &TestDaemon, agent: &str, tool: &str, input: Value) -> Value {
    json!({"agent": agent, "tool": tool, "input": input, "cwd": daemon.work(), "session": "conversation"})
}

fn judge(daemon: &TestDaemon, params: Value) -> Value {
    hook(daemon).result("permissions.request", params)
}

fn bash(daemon: &TestDaemon, agent: &str, command: &str) -> Value {
    judge(daemon, params(daemon, agent, "Bash", json!({"command": command})))
}

fn done(daemon: &TestDaemon, judged: &Value, ok: bool) {
    hook(daemon).result("permissions.done", json!({"request_id": judged["request_id"], "ok": ok, "summary": "ran"}));
}

#[track_caller]
fn check(daemon: &TestDaemon, (agent, tool, input): (&str, &str, Value), decision: &str, by: &str) -> Value {
    let judged = judge(daemon, params(daemon, agent, tool, input.clone()));
    assert_eq!(
        (&judged["decision"], &judged["by"]),
        (&json!(decision), &json!(by)),
        "{agent} {tool} {input}: {judged}"
    );
    judged
}

/// The rows of agents' calls in the audit log, the oldest first.
fn audited(daemon: &TestDaemon) -> Vec<Value> {
    let list = daemon.connect().result("audit.query", json!({}));
    let entries = list["entries"].as_array().unwrap().iter();
    entries.filter(|entry| entry.get("agent").is_some()).cloned().collect()
}

#[test]
fn tools_of_agents_are_judged_by_the_rules_for_tools_that_do_the_same() {
    let daemon = daemon();
    let command = |line: &str| json!({"command": line});
    check(&daemon, ("claude-code", "Bash", command("make test")), "allow", "rule");
    check(&daemon, ("codex", "Bash", command("make test")), "allow", "rule");
    check(&daemon, ("claude-code", "Bash", command("rm -rf /")), "deny", "rule");
    let asked = check(&daemon, ("claude-code", "Bash", command("cargo publish")), "ask", "default");
    assert!(asked["reason"].as_str().unwrap().contains("toolctl permissions grant shell"), "{asked}");
    check(&daemon, ("gemini", "run_shell_command", command("make test")), "allow", "rule");
    check(&daemon, ("claude-code", "Read", json!({"file_path": "src/a.txt"})), "allow", "default");
    check(&daemon, ("claude-code", "Read", json!({"file_path": "/root/x"})), "ask", "default");
    check(&daemon, ("claude-code", "Read", json!({"file_path": ".env"})), "deny", "rule");
    check(&daemon, ("claude-code", "Grep", json!({"pattern": "x", "glob": "*.txt"})), "allow", "default");
    // It reads hidden files too.
    check(&daemon, ("claude-code", "Grep", json!({"pattern": "x"})), "deny", "rule");
    let write = json!({"file_path": "src/new.txt", "content": "x"});
    check(&daemon, ("claude-code", "Write", write), "allow", "rule");
    let edit = |path: &str| json!({"file_path": path, "old_string": "two", "new_string": "2"});
    check(&daemon, ("claude-code", "Edit", edit("b.txt")), "ask", "default");
    check(&daemon, ("claude-code", "Edit", edit("src/a.txt")), "allow", "rule");
    let patch = |text: &str| json!({"command": format!("*** Begin Patch\n{text}\n*** End Patch")});
    check(&daemon, ("codex", "apply_patch", patch("*** Add File: src/c.txt\n+c")), "allow", "rule");
    let two = patch("*** Add File: src/c.txt\n+c\n*** Delete File: b.txt");
    check(&daemon, ("codex", "apply_patch", two), "ask", "default");
    check(&daemon, ("claude-code", "WebFetch", json!({"url": "https://docs.rs/x", "prompt": "x"})), "allow", "rule");
    check(&daemon, ("claude-code", "WebFetch", json!({"url": "https://a.test/", "prompt": "x"})), "ask", "default");
    check(&daemon, ("claude-code", "mcp__tracker__list", json!({})), "allow", "rule");
    check(&daemon, ("claude-code", "mcp__tracker__delete", json!({})), "ask", "default");
    // It is not judged.
    check(&daemon, ("claude-code", "TodoWrite", json!({"todos": []})), "ask", "default");
}

#[test]
fn tools_that_agents_got_lately_are_judged() {
    let ask = "\n[[permission.rules]]\ncategory = \"mcp\"\npattern = \"tracker/resource/**\"\naction = \"ask\"\n";
    let daemon = opened(Setup::new().config(&[RULES, ask].concat()).file("src/a.txt", "one\n").file(".env", "KEY=1\n"));
    let command = |line: &str| json!({"command": line, "description": "x"});
    check(&daemon, ("qwen-code", "monitor", command("make test")), "allow", "rule");
    check(&daemon, ("qwen-code", "monitor", command("rm -rf x")), "deny", "rule");
    check(&daemon, ("qwen-code", "zoom_image", json!({"file_path": ".env"})), "deny", "rule");
    check(&daemon, ("qwen-code", "read_mcp_resource", json!({"server_name": "tracker", "uri": "x"})), "ask", "rule");
    check(&daemon, ("gemini", "read_mcp_resource", json!({"uri": "x"})), "ask", "rule");
    // A sub-agent that is another program: nothing tells of its tools.
    let agent = |kind: &str| json!({"description": "x", "prompt": "x", "subagent_type": kind});
    check(&daemon, ("qwen-code", "agent", agent("codex")), "ask", "rule");
    check(&daemon, ("qwen-code", "agent", agent("general-purpose")), "ask", "default");
    // A tool that no table has.
    check(&daemon, ("qwen-code", "later_tool", command("rm -rf x")), "deny", "rule");
    check(&daemon, ("codex", "later_tool", json!({"file_path": ".env"})), "deny", "rule");
}

#[test]
fn all_parts_of_a_line_must_be_allowed_and_a_denied_one_denies_it() {
    let daemon = daemon();
    for (line, decision) in [
        ("make a && make b", "allow"),
        ("make a && cargo publish", "ask"),
        ("cargo publish; rm -rf src", "deny"),
        ("make a > b.txt && bash -c 'rm x'", "deny"),
        ("make $(rm x)", "deny"),
        // It may become what a rule denies, but none of that rule's words occur in it.
        ("make \"$UNKNOWN\"; $RUN", "ask"),
        ("make \"$UNKNOWN\"; $RUN rm", "deny"),
    ] {
        assert_eq!(bash(&daemon, "codex", line)["decision"], decision, "{line}");
    }
}

#[test]
fn control_files_and_protected_places_are_guarded_from_edits_of_agents() {
    let config =
        [RULES, "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n"].concat();
    let daemon = opened(Setup::new().config(&config).file("src/a.txt", "one\n"));
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    check(&daemon, ("claude-code", "Write", write(".toold/config.toml")), "deny", "rule");
    let own = daemon.setup.path("config/toold/config.toml");
    check(&daemon, ("claude-code", "Write", write(own.to_str().unwrap())), "deny", "rule");
    check(&daemon, ("claude-code", "Write", write(".git/hooks/pre-commit")), "ask", "rule");
    let patch = "*** Begin Patch\n*** Update File: src/a.txt\n*** Move to: .toold/x\n@@\n-one\n+two\n*** End Patch";
    check(&daemon, ("codex", "apply_patch", json!({"command": patch})), "deny", "rule");
}

#[test]
fn paths_are_judged_where_they_lead() {
    let daemon = daemon();
    let work = daemon.work();
    std::os::unix::fs::symlink("/root", work.join("src/out")).unwrap();
    std::os::unix::fs::symlink("../.env", work.join("src/plain.txt")).unwrap();
    fs::create_dir(work.join("sub")).unwrap();
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    check(&daemon, ("claude-code", "Write", write("src/out/x")), "ask", "default");
    check(&daemon, ("claude-code", "Write", write("src/../b.txt")), "ask", "default");
    check(&daemon, ("claude-code", "Write", write("src/../src/x")), "allow", "rule");
    check(&daemon, ("claude-code", "Read", json!({"file_path": "src/plain.txt"})), "deny", "rule");
    // The same relative path in another folder is another file.
    let mut below = params(&daemon, "claude-code", "Write", write("../src/x"));
    below["cwd"] = json!(work.join("sub"));
    assert_eq!(judge(&daemon, below)["decision"], "allow");
    let mut below = params(&daemon, "claude-code", "Write", write("src/x"));
    below["cwd"] = json!(work.join("sub"));
    assert_eq!(judge(&daemon, below)["decision"], "ask");
}

#[test]
fn what_is_not_known_is_asked_about_where_a_rule_denies_something() {
    let daemon = daemon();
    let rule = "[[permission.rules]]\ncategory = \"plugin\"\npattern = \"**\"\naction = \"allow\"\n";
    fs::write(daemon.setup.path("config/toold/config.toml"), [RULES, rule].concat()).unwrap();
    daemon.connect().result("daemon.reload", json!({}));
    check(&daemon, ("stranger", "make_coffee", json!({})), "ask", "rule");
    check(&daemon, ("claude-code", "MakeCoffee", json!({})), "ask", "rule");
    check(&daemon, ("claude-code", "Bash", json!({"command": 1})), "ask", "rule");
    check(&daemon, ("claude-code", "Bash", json!("make a")), "ask", "rule");
    // Its caller may know the needs of an unknown tool, and adds to those of a known one.
    let named = |agent: &str, tool: &str, needs: Value| {
        let mut params = params(&daemon, agent, tool, json!({"command": "make a"}));
        params["needs"] = needs;
        judge(&daemon, params)["decision"].clone()
    };
    let shell = |line: &str| json!([{"category": "shell", "target": line}]);
    assert_eq!(named("stranger", "run", shell("make b")), "allow");
    assert_eq!(named("stranger", "run", shell("rm b")), "deny");
    assert_eq!(named("stranger", "run", json!([])), "ask");
    assert_eq!(named("claude-code", "MakeCoffee", shell("make b")), "allow");
    assert_eq!(named("claude-code", "Bash", shell("rm b")), "deny");
    assert_eq!(named("claude-code", "Bash", json!([])), "allow");
    assert_eq!(named("claude-code", "Bash", json!([{"category": "network", "target": "a.test:22"}])), "ask");
    let daemon = opened(Setup::new());
    check(&daemon, ("stranger", "make_coffee", json!({})), "ask", "default");
    check(&daemon, ("claude-code", "MakeCoffee", json!({})), "ask", "default");
}

/// The environment of the hook's process tells where the person's skills are.
#[test]
fn the_commands_of_a_skill_are_judged() {
    let config =
        [RULES, "[[permission.rules]]\ncategory = \"shell\"\npattern = \"touch denied*\"\naction = \"deny\"\n"]
            .concat();
    let setup = Setup::new().config(&config);
    let setup = setup.file(".claude/skills/tidy/SKILL.md", "State: !`touch pwned`\n");
    let setup = setup.file(".claude/commands/clean.md", "State: !`touch denied1`\n");
    let daemon = opened(setup.file(".claude/skills/plain/SKILL.md", "Do it.\n"));
    check(&daemon, ("claude-code", "Skill", json!({"skill": "tidy"})), "ask", "rule");
    check(&daemon, ("claude-code", "Skill", json!({"skill": "clean"})), "deny", "rule");
    check(&daemon, ("claude-code", "SlashCommand", json!({"command": "/clean up"})), "deny", "rule");
    check(&daemon, ("claude-code", "Skill", json!({"skill": "plain"})), "ask", "default");
}

#[test]
fn params_that_no_agent_sends_are_errors() {
    let daemon = daemon();
    let ok = params(&daemon, "codex", "Bash", json!({"command": "make"}));
    for (member, value) in [
        ("agent", json!("")),
        ("agent", json!("Codex")),
        ("agent", json!("a".repeat(40))),
        ("tool", json!("x".repeat(1_000))),
        ("session", json!("a\nb")),
        ("cwd", json!("work")),
        ("session_id", json!("nobody")),
        ("needs", json!([{"category": "magic", "target": "x"}])),
    ] {
        let mut params = ok.clone();
        params[member] = value.clone();
        let error = hook(&daemon).error("permissions.request", params);
        assert!([-32602, -32004].contains(&error["code"].as_i64().unwrap()), "{member} {value}: {error}");
    }
    assert!(audited(&daemon).is_empty());
}

#[test]
fn a_request_is_a_call_with_one_end_and_one_row() {
    let daemon = daemon();
    let mut watch = daemon.connect();
    watch.result("events.subscribe", json!({"kinds": ["call.started", "call.finished"]}));
    let event = |watch: &mut Wire| watch.notification("events.event")["result"].take();

    let allowed = bash(&daemon, "codex", "make a");
    let started = event(&mut watch);
    assert_eq!(
        (&started["kind"], &started["tool"], &started["agent"], &started["call_id"]),
        (&json!("call.started"), &json!("bash"), &json!("codex"), &allowed["call_id"])
    );
    done(&daemon, &allowed, true);
    let finished = event(&mut watch);
    assert_eq!((&finished["agent"], &finished["outcome"]), (&json!("codex"), &json!("ok")), "{finished}");

    let denied = bash(&daemon, "claude-code", "rm x");
    assert_eq!(event(&mut watch)["kind"], "call.started");
    assert_eq!(event(&mut watch)["outcome"], "denied");
    let asked = bash(&daemon, "codex", "cargo publish");
    assert_eq!(event(&mut watch)["kind"], "call.started");
    done(&daemon, &asked, false);
    assert_eq!(event(&mut watch)["outcome"], "error");

    let rows = audited(&daemon);
    let shown: Vec<_> =
        rows.iter().map(|row| json!([row["agent"], row["tool"], row["source"], row["outcome"]])).collect();
    assert_eq!(
        json!(shown),
        json!([
            ["codex", "bash", "agent:codex", "ok"],
            ["claude-code", "bash", "agent:claude-code", "denied"],
            ["codex", "bash", "agent:codex", "error"]
        ])
    );
    assert_eq!(rows[2]["decisions"][0]["verdict"], "ask", "{}", rows[2]);
    assert_eq!(rows[0]["client"], "codex");
    // It ends once.
    for judged in [&allowed, &denied, &asked] {
        let error = hook(&daemon).error("permissions.done", json!({"request_id": judged["request_id"], "ok": true}));
        assert_eq!(error["data"]["kind"], "unknown_request", "{error}");
    }
}

#[test]
fn a_later_process_of_the_agent_knows_the_request_by_conversation_and_call() {
    let daemon = daemon();
    let mut params = params(&daemon, "claude-code", "Bash", json!({"command": "make a"}));
    params["call_id"] = json!("toolu_1");
    let judged = judge(&daemon, params.clone());
    assert_eq!(
        (&judged["request_id"], &judged["call_id"]),
        (&json!("claude-code/conversation/toolu_1"), &json!("toolu_1"))
    );
    // A second event of the same call is the same request.
    assert_eq!(judge(&daemon, params.clone()), judged);
    // Other input is another one, and ends the first.
    params["input"]["command"] = json!("make b");
    let other = judge(&daemon, params);
    assert_eq!(other["request_id"], judged["request_id"]);
    assert_ne!(other["call_id"], judged["call_id"]);
    done(&daemon, &other, true);
    let outcomes: Vec<Value> = until("both have ended", || Some(audited(&daemon)).filter(|rows| rows.len() == 2))
        .into_iter()
        .map(|row| row["outcome"].clone())
        .collect();
    assert_eq!(outcomes, [json!("cancelled"), json!("ok")]);
}

#[test]
fn a_request_that_is_never_reported_ends_with_the_daemon_and_delays_it_by_nothing() {
    let mut daemon = daemon();
    let judged = bash(&daemon, "codex", "make a");
    daemon.restart("TERM");
    let rows = audited(&daemon);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["outcome"], &rows[0]["agent"]), (&json!("cancelled"), &json!("codex")));
    let error = hook(&daemon).error("permissions.done", json!({"request_id": judged["request_id"], "ok": true}));
    assert_eq!(error["data"]["kind"], "unknown_request");
    // After a crash, too, the conversation goes on in its session.
    bash(&daemon, "codex", "make a");
    daemon.restart("KILL");
    let judged = bash(&daemon, "codex", "make a");
    done(&daemon, &judged, true);
    let rows = audited(&daemon);
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["cancelled", "interrupted", "ok"]);
    assert!(rows.iter().all(|row| row["session_id"] == rows[0]["session_id"]), "{rows:?}");
}

#[test]
fn the_oldest_requests_of_a_conversation_end_when_there_are_too_many() {
    let daemon = daemon();
    let first = bash(&daemon, "codex", "make 0");
    for number in 1..=64 {
        bash(&daemon, "codex", &format!("make {number}"));
    }
    let rows = until("one has ended", || Some(audited(&daemon)).filter(|rows| !rows.is_empty()));
    assert_eq!((rows.len(), &rows[0]["call_id"]), (1, &first["call_id"]));
}

#[test]
fn a_rule_for_one_agent_allows_its_own_tools_alone_and_denies_by_name() {
    let rules = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"tea boil\"\naction = \"allow\"\nagent = \"codex\"\n\
                 [[permission.rules]]\ncategory = \"shell\"\npattern = \"tea spill *\"\naction = \"deny\"\n\
                 agent = \"gemini-cli\"\n";
    let daemon = opened(Setup::new().config(rules));
    let command = |line: &str| json!({"command": line});
    let allowed = check(&daemon, ("codex", "Bash", command("tea boil")), "allow", "rule");
    assert!(allowed["reason"].as_str().unwrap().contains("for codex at"), "{allowed}");
    check(&daemon, ("claude-code", "Bash", command("tea boil")), "ask", "default");
    check(&daemon, ("gemini", "run_shell_command", command("tea spill all")), "deny", "rule");
    check(&daemon, ("codex", "Bash", command("tea spill all")), "ask", "default");
    // A client gives itself its name: that denies, and allows nothing.
    let verdicts = |client: &str| {
        let mut wire = Wire::connect(&daemon.socket());
        let client = json!({"name": client, "version": "1"});
        wire.result("session.open", json!({"cwd": daemon.work(), "client": client}));
        ["tea boil", "tea spill all"].map(|line| {
            let need = json!({"category": "shell", "target": line});
            wire.result("permissions.check", need)["verdict"].take()
        })
    };
    assert_eq!(verdicts("codex"), [json!("ask"), json!("ask")]);
    assert_eq!(verdicts("gemini-cli-mcp-client"), [json!("ask"), json!("deny")]);
    // A person sees the rule, and what it does for an agent.
    let mut person = daemon.connect();
    let list = person.result("permissions.list", json!({}));
    assert_eq!(list["rules"][0]["agent"], "codex", "{list}");
    let need = |agent: &str| json!({"category": "shell", "target": "tea boil", "agent": agent});
    assert_eq!(person.result("permissions.check", need("codex-cli"))["verdict"], "allow");
    assert_eq!(person.result("permissions.check", need("gemini"))["verdict"], "ask");
    let unknown = person.error("permissions.check", need("codexx"));
    assert!(unknown["message"].as_str().unwrap().contains("expected one of"), "{unknown}");
}

const ASKING: &str = "[agents.codex]\nask = \"toold\"\n[agents.claude-code]\nask = \"toold\"\n";

fn asking() -> TestDaemon {
    opened(Setup::new().config(&[RULES, ASKING].concat()).file("b.txt", "two\n"))
}

fn person(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

fn ask_of(wire: &mut Wire) -> Value {
    let mut event = wire.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

#[test]
fn a_question_is_answered_in_another_frontend_and_the_answer_is_remembered_for_all() {
    let daemon = asking();
    let mut person = person(&daemon);
    let mut codex = hook(&daemon);
    let waiting =
        codex.request("permissions.request", params(&daemon, "codex", "Bash", json!({"command": "cargo publish"})));
    let ask = ask_of(&mut person);
    assert_eq!(
        (&ask["agent"], &ask["tool"], &ask["target"], &ask["cwd"]),
        (&json!("codex"), &json!("bash"), &json!("cargo publish"), &json!(daemon.work()))
    );
    let reply = json!({"request_id": ask["request_id"], "action": "allow", "scope": "project"});
    person.result("permissions.reply", reply);
    let judged = codex.answer(waiting)["result"].take();
    assert_eq!((&judged["decision"], &judged["by"]), (&json!("allow"), &json!("person")), "{judged}");
    done(&daemon, &judged, true);
    // Another agent, and a tool of toold.
    let other = bash(&daemon, "claude-code", "cargo publish");
    assert_eq!((&other["decision"], &other["by"]), (&json!("allow"), &json!("grant")), "{other}");
    let checked = person.result("permissions.check", json!({"category": "shell", "target": "cargo publish"}));
    assert_eq!(checked["verdict"], "allow", "{checked}");
}

#[test]
fn a_grant_for_toolds_own_bash_holds_for_agents() {
    let daemon = daemon();
    let grant = json!({"category": "shell", "pattern": "cargo publish", "scope": "always"});
    let grant = daemon.connect().result("permissions.grant", grant);
    check(&daemon, ("codex", "Bash", json!({"command": "cargo publish"})), "allow", "grant");
    daemon.connect().result("permissions.revoke", json!({"id": grant["id"]}));
    check(&daemon, ("codex", "Bash", json!({"command": "cargo publish"})), "ask", "default");
}

#[test]
fn two_agents_with_one_question_get_one_answer() {
    let daemon = asking();
    let mut person = person(&daemon);
    let mut agents: Vec<(Wire, u64)> = ["codex", "claude-code"]
        .into_iter()
        .map(|agent| {
            let mut wire = hook(&daemon);
            let params = params(&daemon, agent, "Bash", json!({"command": "cargo publish"}));
            let id = wire.request("permissions.request", params);
            (wire, id)
        })
        .collect();
    // Sent again when the second one waits, unless both did already.
    let ask = ask_of_all(&mut person, 2);
    assert_eq!(ask["agents"].as_array().map(Vec::len), Some(2), "{ask}");
    person
        .result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny", "message": "not now"}));
    for (wire, id) in &mut agents {
        let judged = wire.answer(*id)["result"].take();
        assert_eq!((&judged["decision"], &judged["by"]), (&json!("deny"), &json!("person")), "{judged}");
        assert!(judged["reason"].as_str().unwrap().contains("not now"), "{judged}");
    }
}

/// The ask as it is when so many calls wait for its answer.
fn ask_of_all(person: &mut Wire, calls: usize) -> Value {
    loop {
        let ask = ask_of(person);
        if ask["call_ids"].as_array().is_some_and(|waiting| waiting.len() == calls) {
            return ask;
        }
    }
}

#[test]
fn an_open_question_names_those_who_wait_now() {
    let daemon = asking();
    let mut person = person(&daemon);
    let waiting = |agent: &str, subagent: Option<[&str; 2]>| {
        let mut wire = hook(&daemon);
        let mut params = params(&daemon, agent, "Bash", json!({"command": "cargo publish"}));
        if let Some([kind, id]) = subagent {
            (params["agent_type"], params["agent_id"]) = (json!(kind), json!(id));
        }
        wire.request("permissions.request", params);
        wire
    };
    let mut named = |calls| {
        let ask = ask_of_all(&mut person, calls);
        json!([ask["request_id"], ask["agent"], ask["agents"], ask["subagent"]])
    };
    let codex = waiting("codex", Some(["Explore", "a1"]));
    let first = named(1);
    let id = &first[0];
    assert_eq!(first, json!([id, "codex", null, "Explore (a1)"]));
    let claude = waiting("claude-code", None);
    let both = json!(["codex, sub-agent Explore (a1)", "claude-code"]);
    assert_eq!(named(2), json!([id, "codex", both, null]), "the sub-agent is only one agent's");
    drop(codex);
    assert_eq!(named(1), json!([id, "claude-code", null, null]));
    drop(claude);
}

#[test]
fn a_question_that_nobody_answers_is_asked_as_if_a_rule_said_so() {
    let daemon = asking();
    // Nobody is there.
    let judged = check(&daemon, ("codex", "Bash", json!({"command": "cargo publish"})), "ask", "rule");
    assert!(judged["reason"].as_str().unwrap().contains("nobody to ask"), "{judged}");
    let mut person = person(&daemon);
    let mut params = params(&daemon, "codex", "Bash", json!({"command": "cargo publish"}));
    params["wait_ms"] = json!(1_500);
    params["call_id"] = json!("call-1");
    let mut codex = hook(&daemon);
    let id = codex.request("permissions.request", params);
    let waiting = codex.notification("permissions.waiting");
    assert_eq!(waiting["request"], "codex/conversation/call-1", "{waiting}");
    ask_of(&mut person);
    let judged = codex.answer(id)["result"].take();
    assert_eq!((&judged["decision"], &judged["by"]), (&json!("ask"), &json!("rule")), "{judged}");
    assert!(judged["reason"].as_str().unwrap().contains("nobody answered"), "{judged}");
    let resolved = person.notification("permissions.event")["result"].take();
    assert_eq!(resolved["action"], "expired", "{resolved}");
    assert_eq!(person.result("permissions.pending", json!({})), json!({"asks": []}));
    done(&daemon, &judged, false);
    let rows = until("it has a row", || Some(audited(&daemon)).filter(|rows| !rows.is_empty()));
    let decision = &rows.iter().find(|row| row["call_id"] == "call-1").unwrap()["decisions"][0];
    assert_eq!(decision["verdict"], "ask", "{decision}");
    assert!(decision["rule"].as_str().unwrap().starts_with("nobody answered"), "{decision}");
}

#[test]
fn a_request_that_asks_nobody_has_no_notification_before_its_answer() {
    let daemon = daemon();
    let mut codex = hook(&daemon);
    let id =
        codex.request("permissions.request", params(&daemon, "codex", "Bash", json!({"command": "cargo publish"})));
    let first = codex.next_message().unwrap();
    assert_eq!(first["id"], json!(id), "{first}");
}

#[test]
fn the_end_of_an_ask_is_that_of_the_call_that_waits_longest() {
    let daemon = asking();
    let mut person = person(&daemon);
    let mut waits: Vec<(Wire, u64)> = Vec::new();
    let mut ends = Vec::new();
    for (agent, wait) in [("codex", 60_000), ("claude-code", 500_000)] {
        let mut wire = hook(&daemon);
        let mut params = params(&daemon, agent, "Bash", json!({"command": "cargo publish"}));
        params["wait_ms"] = json!(wait);
        let id = wire.request("permissions.request", params);
        let until = wire.notification("permissions.waiting")["until"].as_str().unwrap().to_owned();
        waits.push((wire, id));
        let pending = person.result("permissions.pending", json!({}))["asks"][0]["expires_at"].take();
        ends.push((until, pending.as_str().unwrap().to_owned()));
    }
    assert!(ends[0].0 < ends[1].0 && ends[0].1 < ends[1].1, "{ends:?}");
    let ask = ask_of(&mut person);
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    for (wire, id) in &mut waits {
        assert_eq!(wire.answer(*id)["result"]["decision"], "deny");
    }
}

#[test]
fn a_question_is_withdrawn_when_its_request_is_cancelled_or_its_caller_goes() {
    let daemon = asking();
    let mut person = person(&daemon);
    let params = params(&daemon, "codex", "Bash", json!({"command": "cargo publish"}));
    let mut agent = hook(&daemon);
    let id = agent.request("permissions.request", params.clone());
    let ask = ask_of(&mut person);
    agent.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(agent.answer(id)["error"]["data"]["kind"], "cancelled");
    let resolved = person.notification("permissions.event")["result"].take();
    assert_eq!((&resolved["action"], &resolved["request_id"]), (&json!("cancelled"), &ask["request_id"]));
    agent.request("permissions.request", params);
    ask_of(&mut person);
    drop(agent);
    assert_eq!(person.notification("permissions.event")["result"]["action"], "cancelled");
    let rows = until("both have ended", || Some(audited(&daemon)).filter(|rows| rows.len() == 2));
    assert!(rows.iter().all(|row| row["outcome"] == "cancelled"), "{rows:?}");
}

/// However it ends, it is no yes.
#[test]
fn a_question_that_is_interrupted_is_recorded_with_its_end() {
    let mut daemon = asking();
    let request = |daemon: &TestDaemon| {
        let mut person = person(daemon);
        let mut agent = hook(daemon);
        agent.request("permissions.request", params(daemon, "codex", "Bash", json!({"command": "cargo publish"})));
        ask_of(&mut person);
        (person, agent)
    };
    let recorded = |daemon: &TestDaemon, outcome: &str, how: &str| {
        let row = until(how, || audited(daemon).pop().filter(|row| row["outcome"] == outcome));
        let decisions = row["decisions"].as_array().unwrap();
        assert!(decisions.iter().all(|decision| decision["verdict"] != "allow"), "{row}");
        let decision = decisions.last().unwrap();
        assert_eq!((&decision["verdict"], &decision["target"]), (&json!("ask"), &json!("cargo publish")), "{row}");
        let rule = decision["rule"].as_str().unwrap();
        assert!(rule.starts_with(&format!("{how} before an answer (")), "{rule}");
        let shown = daemon.toolctl(&["audit", "--decisions"]).stdout;
        assert!(String::from_utf8_lossy(&shown).contains(how), "{}", String::from_utf8_lossy(&shown));
    };
    let (_person, agent) = request(&daemon);
    drop(agent);
    recorded(&daemon, "cancelled", "the agent's hook ended");
    let open = request(&daemon);
    daemon.restart("TERM");
    recorded(&daemon, "cancelled", "toold stopped");
    drop(open);
    let open = request(&daemon);
    daemon.restart("KILL");
    recorded(&daemon, "interrupted", "toold ended");
    drop(open);
    assert_eq!(audited(&daemon).len(), 3);
    // A tool of toold.
    let mut person = person(&daemon);
    let mut caller = daemon.connect();
    caller.request("tools.execute", json!({"name": "bash", "arguments": {"command": "cargo publish"}}));
    ask_of(&mut person);
    daemon.restart("KILL");
    drop((person, caller));
    let list = daemon.connect().result("audit.query", json!({"tool": "bash"}));
    let row = list["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&row["outcome"], row.get("agent")), (&json!("interrupted"), None), "{list}");
    let rule = row["decisions"][0]["rule"].as_str().unwrap();
    assert!(rule.starts_with("toold ended before an answer ("), "{row}");
}

#[test]
fn a_question_that_is_answered_is_recorded_once_with_its_answer() {
    let daemon = asking();
    for action in ["allow", "deny"] {
        let mut person = person(&daemon);
        let mut agent = hook(&daemon);
        let id =
            agent.request("permissions.request", params(&daemon, "codex", "Bash", json!({"command": "cargo publish"})));
        let ask = ask_of(&mut person);
        person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": action}));
        let judged = agent.answer(id)["result"].take();
        if action == "allow" {
            done(&daemon, &judged, true);
        }
        let rows = audited(&daemon);
        let decisions = rows.last().unwrap()["decisions"].as_array().unwrap();
        let verdicts: Vec<&Value> = decisions.iter().map(|decision| &decision["verdict"]).collect();
        assert_eq!(verdicts, [action], "{rows:?}");
    }
    assert_eq!(audited(&daemon).len(), 2);
}

#[test]
fn a_person_who_is_asked_about_an_edit_sees_its_diff() {
    let daemon = asking();
    let mut person = person(&daemon);
    let mut agent = hook(&daemon);
    let input = json!({"file_path": "b.txt", "old_string": "two", "new_string": "2"});
    let id = agent.request("permissions.request", params(&daemon, "claude-code", "Edit", input));
    let ask = ask_of(&mut person);
    assert!(ask["diff"].as_str().unwrap().contains("-two\n+2"), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(agent.answer(id)["result"]["decision"], "allow");
}

#[test]
fn edits_of_agents_are_undone_by_toold() {
    let daemon = daemon();
    let file = daemon.work().join("src/a.txt");
    let edit = json!({"file_path": "src/a.txt", "old_string": "one", "new_string": "two"});
    let judged = check(&daemon, ("claude-code", "Edit", edit), "allow", "rule");
    fs::write(&file, "two\n").unwrap();
    done(&daemon, &judged, true);
    let patch =
        "*** Begin Patch\n*** Add File: src/c.txt\n+c\n*** Update File: src/a.txt\n@@\n-two\n+three\n*** End Patch";
    let patched = check(&daemon, ("codex", "apply_patch", json!({"command": patch})), "allow", "rule");
    fs::write(&file, "three\n").unwrap();
    fs::write(daemon.work().join("src/c.txt"), "c\n").unwrap();
    done(&daemon, &patched, true);
    let mut person = daemon.connect();
    let history = person.result("files.history", json!({"all": true}));
    assert_eq!(history["changes"].as_array().unwrap().len(), 3, "{history}");
    person.result("files.undo", json!({"all": true, "call_id": patched["call_id"]}));
    assert!(!daemon.work().join("src/c.txt").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    person.result("files.undo", json!({"all": true, "call_id": judged["call_id"]}));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
}

#[test]
fn a_tool_that_failed_or_changed_nothing_leaves_nothing_to_undo_and_an_unreported_one_its_change() {
    let mut daemon = daemon();
    let file = daemon.work().join("src/a.txt");
    let edit = |text: &str| json!({"file_path": "src/a.txt", "old_string": text, "new_string": "x"});
    let failed = check(&daemon, ("claude-code", "Edit", edit("nowhere")), "allow", "rule");
    done(&daemon, &failed, false);
    let same = check(&daemon, ("claude-code", "Edit", edit("one")), "allow", "rule");
    done(&daemon, &same, true);
    let changes =
        |daemon: &TestDaemon| daemon.connect().result("files.history", json!({"all": true}))["changes"].clone();
    assert_eq!(changes(&daemon), json!([]));
    check(&daemon, ("claude-code", "Edit", edit("one")), "allow", "rule");
    fs::write(&file, "x\n").unwrap();
    daemon.restart("TERM");
    let left = changes(&daemon);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    let undo = json!({"all": true, "call_id": left[0]["call_id"]});
    daemon.connect().result("files.undo", undo);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
}

#[test]
fn reads_and_writes_of_agents_count_for_the_check_of_stale_reads() {
    let daemon = Setup::new()
        .config(
            &[RULES, "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n"]
                .concat(),
        )
        .file("b.txt", "two\n")
        .start();
    let mut own = daemon.connect();
    let session = own.result("session.list", json!({}))["sessions"][0]["session_id"].clone();
    let edit = |own: &mut Wire, from: &str, to: &str| {
        let result = own.tool("edit", json!({"path": "b.txt", "old": from, "new": to}));
        (result["is_error"] == false, result["content"][0]["text"].as_str().unwrap().to_owned())
    };
    assert!(!edit(&mut own, "two", "2").0, "it has not been read");
    let request = |tool: &str, input: Value, work: &dyn Fn()| {
        let mut params = params(&daemon, "claude-code", tool, input);
        params["session_id"] = session.clone();
        let mut wire = hook(&daemon);
        let judged = wire.result("permissions.request", params);
        assert_eq!(judged["decision"], "allow", "{judged}");
        work();
        wire.result("permissions.done", json!({"request_id": judged["request_id"], "ok": true}));
    };
    request("Read", json!({"file_path": "b.txt"}), &|| {});
    assert_eq!(edit(&mut own, "two", "2").1.lines().next().unwrap(), "changed b.txt (+1 -1)");
    let file = daemon.work().join("b.txt");
    request("Write", json!({"file_path": "b.txt", "content": "three\n"}), &|| fs::write(&file, "three\n").unwrap());
    assert!(edit(&mut own, "three", "3").0, "its own agent wrote it");
}

#[test]
fn a_request_gives_its_caller_no_rights_and_takes_those_of_an_agent() {
    let daemon = daemon();
    let mut wire = hook(&daemon);
    wire.result("permissions.request", params(&daemon, "codex", "Bash", json!({"command": "make a"})));
    let grant = json!({"category": "shell", "pattern": "**", "scope": "always"});
    assert_eq!(wire.error("permissions.grant", grant)["data"]["kind"], "permission_denied");
    // An agent's mode is a claim.
    let mut bypass = params(&daemon, "codex", "Bash", json!({"command": "cargo publish"}));
    bypass["mode"] = json!("bypassPermissions");
    assert_eq!(judge(&daemon, bypass)["decision"], "ask");
    // One that narrows is believed. Reading commands are asked about here in every mode.
    for (line, decision) in [("make a", "deny"), ("cargo publish", "deny"), ("cat b.txt", "ask")] {
        let mut plan = params(&daemon, "codex", "Bash", json!({"command": line}));
        plan["mode"] = json!("plan");
        assert_eq!(judge(&daemon, plan)["decision"], decision, "{line}");
    }
}

#[test]
fn an_agents_mode_counts_where_the_configuration_trusts_it() {
    let config = [RULES, "[agents.claude-code]\ntrust_mode = true\n"].concat();
    let daemon = opened(Setup::new().config(&config).file("b.txt", "two\n"));
    let with_mode = |agent: &str, mode: &str, tool: &str, input: Value| {
        let mut params = params(&daemon, agent, tool, input);
        params["mode"] = json!(mode);
        judge(&daemon, params)["decision"].clone()
    };
    let edit = || json!({"file_path": "b.txt", "old_string": "two", "new_string": "2"});
    let command = |line: &str| json!({"command": line});
    assert_eq!(with_mode("claude-code", "acceptEdits", "Edit", edit()), "allow");
    assert_eq!(with_mode("claude-code", "default", "Edit", edit()), "ask");
    assert_eq!(with_mode("claude-code", "plan", "Bash", command("make a")), "deny");
    assert_eq!(with_mode("claude-code", "bypassPermissions", "Bash", command("cargo publish")), "allow");
    assert_eq!(with_mode("codex", "bypassPermissions", "Bash", command("cargo publish")), "ask");
}

#[test]
fn what_a_tool_started_is_judged_in_its_tools_session() {
    let script = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
def call(method, params):
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"); f.flush()
    return json.loads(f.readline())
ask = {"agent": "codex", "tool": "Bash", "cwd": sys.argv[2], "mode": "bypassPermissions", "session": "x"}
for line in ["make a", "cargo publish", "rm x"]:
    print(line, call("permissions.request", dict(ask, input={"command": line}))["result"]["decision"])
"#;
    let config = [
        RULES,
        "[agents.codex]\ntrust_mode = true\n",
        "[[permission.rules]]\ncategory = \"shell\"\npattern = \"python3 *\"\naction = \"allow\"\n",
        "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"**\"\naction = \"allow\"\n",
    ]
    .concat();
    let daemon = Setup::new().config(&config).file("try.py", script).start();
    let line = format!("python3 try.py {} {}", daemon.socket().display(), daemon.work().display());
    let result = daemon.connect().tool("bash", json!({"command": line}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.trim(), "make a allow\ncargo publish ask\nrm x deny", "{result}");
}

#[test]
fn a_tool_of_a_server_that_nobody_knows_falls_under_each_rule_about_mcp() {
    let rule = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"my.dot/*\"\naction = \"deny\"\n";
    let daemon = opened(Setup::new().config(rule));
    let named = |agent: &str, tool: &str, target: &str| {
        let mut params = params(&daemon, agent, tool, json!({}));
        params["needs"] = json!([{"category": "mcp", "target": target}]);
        judge(&daemon, params)
    };
    for (agent, start, mark) in [
        ("claude-code", "mcp__", "__"),
        ("codex", "mcp__", "__"),
        ("qwen-code", "mcp__", "__"),
        ("gemini", "mcp_", "_"),
        ("vscode", "mcp_", "_"),
        ("copilot", "", "-"),
        ("opencode", "", "_"),
    ] {
        // Agents replace letters of a server's name.
        let danger = format!("{start}my_dot{mark}danger");
        check(&daemon, (agent, &danger, json!({})), "deny", "rule");
        let other = format!("{start}other{mark}danger");
        check(&daemon, (agent, &other, json!({})), "ask", "rule");
        // The hook has found the server in the agent's configuration.
        assert_eq!(named(agent, &other, "other/danger")["by"], "default", "{agent}");
        assert_eq!(named(agent, &danger, "my.dot/danger")["decision"], "deny", "{agent}");
        // The agent may have a server besides, whose name is longer.
        let either = format!("{start}a{mark}my_dot{mark}danger");
        assert_eq!(named(agent, &either, "a/my_dot_danger")["by"], "default", "{agent}");
        let either = format!("{start}my_dot{mark}danger{mark}x");
        assert_eq!(named(agent, &either, "my/dot_danger_x")["decision"], "deny", "{agent}");
        // It may have been cut.
        let long = format!("{start}other{mark}{}", "x".repeat(63));
        assert_eq!(named(agent, &long, "other/x")["by"], "rule", "{agent}");
    }
    check(&daemon, ("claude-code", "mcp__plugin_p_other__x", json!({})), "ask", "rule");
    check(&daemon, ("cursor", "MCP:danger", json!({})), "ask", "rule");
    let reading = |server: &str| {
        let input = json!({"server": server, "uri": "x://y"});
        let mut params = params(&daemon, "claude-code", "ReadMcpResourceTool", input);
        params["needs"] = json!([{"category": "mcp", "target": format!("{server}/resource/x://y")}]);
        judge(&daemon, params)
    };
    assert_eq!(reading("other")["by"], "default");
    assert_eq!(reading("my.dot")["decision"], "deny");
    let unnamed = json!({"server": "other", "uri": "x://y"});
    check(&daemon, ("claude-code", "ReadMcpResourceTool", unnamed), "ask", "rule");
}

#[test]
fn sub_agents_are_asked_about_where_a_rule_denies_any_and_denied_where_one_denies_all() {
    let rule = |pattern: &str| {
        Setup::new().config(&format!(
            "[[permission.rules]]\ncategory = \"agent\"\npattern = \"{pattern}\"\naction = \"deny\"\n"
        ))
    };
    let (free, ruled, none) = (daemon(), opened(rule("evil")), opened(rule("**")));
    let tools = [
        ("claude-code", "Agent"),
        ("codex", "collaborationspawn_agent"),
        ("codex", "spawn_agent"),
        ("copilot", "task"),
        ("cursor", "Task"),
        ("gemini", "invoke_agent"),
        ("opencode", "task"),
        ("qwen-code", "agent"),
        ("vscode", "runSubagent"),
    ];
    for (agent, tool) in tools {
        check(&free, (agent, tool, json!({"prompt": "x"})), "ask", "default");
        check(&ruled, (agent, tool, json!({"prompt": "x"})), "ask", "rule");
        let denied = check(&none, (agent, tool, json!({"prompt": "x"})), "deny", "rule");
        assert!(denied["reason"].as_str().unwrap().contains("rule deny agent \"**\" at "), "{denied}");
    }
}

/// It is not known what such a tool touches, but everything that it could touch is denied.
#[test]
fn a_tool_that_is_not_known_is_denied_where_everything_is() {
    let rule = |category: &str| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"**\"\naction = \"deny\"\n")
    };
    let categories = ["file.read", "file.write", "shell", "network", "mcp"];
    let all: String = categories.map(rule).concat();
    let most: String = categories[..4].iter().map(|category| rule(category)).collect();
    let (all, most) = (opened(Setup::new().config(&all)), opened(Setup::new().config(&most)));
    for agent in ["claude-code", "codex", "gemini", "cursor", "copilot", "opencode", "qwen-code", "vscode"] {
        check(&all, (agent, "Something", json!({})), "deny", "rule");
        check(&most, (agent, "Something", json!({})), "ask", "rule");
    }
    let read_many = ("gemini", "read_many_files", json!({"include": ["src/**"]}));
    check(&most, read_many, "deny", "rule");
    check(&most, ("gemini", "web_fetch", json!({"prompt": "the weather"})), "deny", "rule");
    check(&most, ("vscode", "run_task", json!({})), "deny", "rule");
}

/// While everything is paused, no tool of an agent goes on by the agent's own mode, also none that toold does not know.
#[test]
fn a_pause_denies_tools_that_are_not_known() {
    let daemon = opened(Setup::new());
    person(&daemon).result("daemon.pause", json!({}));
    for (agent, tool) in [
        ("claude-code", "MakeCoffee"),
        ("claude-code", "mcp__tracker__list"),
        ("claude-code", "Agent"),
        ("copilot", "tracker-list"),
        ("cursor", "MCP:list"),
        ("opencode", "tracker_list"),
        ("stranger", "make_coffee"),
    ] {
        let judged = judge(&daemon, params(&daemon, agent, tool, json!({"prompt": "x"})));
        let reason = judged["reason"].as_str().unwrap_or_default();
        assert!(judged["decision"] == "deny" && reason.contains("toolctl resume"), "{agent} {tool}: {judged}");
    }
}

/// toold has none of their processes, so that it must not say that it ended them.
#[test]
fn a_pause_names_what_agents_still_run() {
    let daemon = opened(Setup::new());
    let judged = bash(&daemon, "claude-code", "npm run long");
    let mut person = person(&daemon);
    for kill in [false, true] {
        let paused = person.result("daemon.pause", json!({"kill": kill}));
        let running = paused["still_running"][0].as_str().unwrap_or_default();
        assert!(running.starts_with("claude-code bash command=\"npm run long\" in "), "{paused}");
        assert_eq!(paused["processes"], 0, "{paused}");
    }
    done(&daemon, &judged, true);
    person.result("daemon.resume", json!({}));
    let rows = person.result("audit.query", json!({}))["entries"].take();
    assert_eq!(rows[0]["outcome"], "ok", "{rows}");
}

/// Nobody's rules are needed for what no tool does: an agent that never asks does not run a line that may hide it.
#[test]
fn a_line_that_cannot_be_read_is_not_left_to_the_agent() {
    let daemon = opened(Setup::new());
    for line in
        ["cat ~/.ssh/id_rsa; echo '\u{b}'", "cat ~/.ssh/id_rsa\r\necho '\u{7f}'", "cat ~/.ssh/id_rsa # \u{2028}"]
    {
        for (agent, tool) in [("claude-code", "Bash"), ("codex", "Bash"), ("gemini", "run_shell_command")] {
            let judged = judge(&daemon, params(&daemon, agent, tool, json!({"command": line})));
            assert!(judged["decision"] == "deny" || judged["by"] == "rule", "{agent} {line:?}: {judged}");
        }
    }
    for line in ["cat ~/.ssh/id_rsa\u{b}", "ls (", "echo x >\u{a0}y", "x\u{0}y"] {
        let judged = bash(&daemon, "claude-code", line);
        assert!(judged["decision"] == "ask" && judged["by"] == "rule", "{line:?}: {judged}");
    }
    // Text that is quoted is only text.
    let judged = bash(&daemon, "claude-code", "grep 'a\u{a0}b\u{2028}\r' b.txt");
    assert_eq!(judged["by"], "default", "{judged}");
}

#[test]
fn a_program_that_codex_may_type_into_is_not_left_to_it() {
    let daemon = daemon();
    // Its hook is not asked about what it types.
    for line in ["bash", "less b.txt", "python3", "sqlite3 x.db", "cat b.txt | node"] {
        let judged = bash(&daemon, "codex", line);
        assert!(judged["decision"] != "allow" && judged["by"] == "rule", "{line}: {judged}");
    }
    check(&daemon, ("codex", "Bash", json!({"command": "python3 x.py"})), "ask", "default");
    check(&daemon, ("claude-code", "Bash", json!({"command": "less b.txt"})), "ask", "default");
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_leads_elsewhere_in_each_program_is_never_left_to_the_agent() {
    let rules = ["read", "write"].map(|what| {
        format!(
            "[[permission.rules]]\ncategory = \"file.{what}\"\npattern = \"**/work/{what}/**\"\naction = \"deny\"\n"
        )
    });
    let daemon = opened(Setup::new().config(&rules.concat()).file("read/f", "").file("write/f", ""));
    for (link, target) in [("cwd", "/proc/self/cwd"), ("own", "/proc/self"), ("descriptors", "/dev/fd")] {
        std::os::unix::fs::symlink(target, daemon.work().join(link)).unwrap();
    }
    let folders = ["/proc/self/cwd", "/proc/thread-self/cwd", "/dev/fd/../cwd", "cwd", "own/cwd", "descriptors/../cwd"];
    for folder in folders {
        let (read, written) = (format!("{folder}/read/f"), format!("{folder}/write/f"));
        let command = |line: &str| json!({"command": line});
        let patch = format!("*** Begin Patch\n*** Add File: {folder}/write/n\n+x\n*** End Patch");
        for (agent, tool, input) in [
            ("claude-code", "Read", json!({"file_path": read})),
            ("gemini", "read_file", json!({"file_path": read})),
            ("claude-code", "Write", json!({"file_path": written, "content": "x"})),
            ("codex", "apply_patch", command(&patch)),
            ("codex", "Bash", command(&format!("cat {read}"))),
            ("codex", "Bash", command(&format!("cd {folder} && cat read/f"))),
            ("codex", "Bash", command(&format!("echo x > {written}"))),
            ("codex", "Bash", command(&format!("cp read/g {written}"))),
        ] {
            let judged = judge(&daemon, params(&daemon, agent, tool, input.clone()));
            let is_left = judged["decision"] == "allow" || judged["by"] == "default";
            assert!(!is_left, "{agent} {tool} {input}: {judged}");
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "command",
        "file_path",
        "path",
        "content",
        "old_string",
        "new_string",
        "url",
        "pattern",
        "cwd",
        "workdir",
        "input",
        "query",
        "x",
    ]);
    let texts = prop_oneof![
        Just(json!("rm -rf /")),
        Just(json!("/root/.ssh/id_rsa")),
        Just(json!("../../etc/shadow")),
        Just(json!(".env")),
        Just(json!("http://127.0.0.1:1/")),
        Just(json!("~/\u{0}")),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from), texts];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn hostile_input_is_never_allowed() {
    // Nothing is allowed but what each request asks for: reading in the folder, which the tools below do not do.
    let daemon = opened(Setup::new().asking());
    let wire = RefCell::new(hook(&daemon));
    let tools = [
        ("claude-code", "Bash"),
        ("claude-code", "Write"),
        ("claude-code", "Edit"),
        ("claude-code", "WebFetch"),
        ("claude-code", "mcp__a__b"),
        ("claude-code", "Skill"),
        ("claude-code", "ExitPlanMode"),
        ("codex", "Bash"),
        ("codex", "apply_patch"),
        ("gemini", "run_shell_command"),
        ("gemini", "write_file"),
        ("cursor", "Shell"),
        ("copilot", "bash"),
        ("copilot", "apply_patch"),
        ("copilot", "other-shout"),
        ("opencode", "bash"),
        ("opencode", "edit"),
        ("stranger", "anything"),
    ];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::sample::select(tools.to_vec()), any_json());
    runner
        .run(&strategy, |((agent, tool), input)| {
            let answer = wire.borrow_mut().call("permissions.request", params(&daemon, agent, tool, input));
            let judged = &answer["result"];
            prop_assert!(answer.get("result").is_some() || answer["error"]["code"] == -32602, "{answer}");
            prop_assert_ne!(&judged["decision"], "allow", "{}", judged);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_hook_may_deny_what_an_agent_does() {
    let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"sh\", \"-c\", \"echo not today >&2; exit 2\"]\ntools = [\"bash\"]\n";
    let daemon = opened(Setup::new().config(&[RULES, hook].concat()));
    let denied = check(&daemon, ("codex", "Bash", json!({"command": "make a"})), "deny", "rule");
    assert!(denied["reason"].as_str().unwrap().contains("not today"), "{denied}");
    check(&daemon, ("claude-code", "Read", json!({"file_path": "x"})), "allow", "default");
}

#[test]
fn commands_of_agents_are_undone_by_toold() {
    let daemon = daemon();
    let file = daemon.work().join("src/a.txt");
    let mut person = daemon.connect();
    let mut changes =
        |diff: bool| person.result("files.history", json!({"all": true, "agent": "claude-code", "diff": diff}));
    // The first look at a folder may take longer than a command waits.
    let recorded = (0..50).find_map(|_| {
        let before = fs::read_to_string(&file).unwrap();
        let judged = check(&daemon, ("claude-code", "Bash", json!({"command": "make test"})), "allow", "rule");
        fs::write(&file, format!("{before}made\n")).unwrap();
        done(&daemon, &judged, true);
        let history = changes(false);
        let is_of_call = |change: &Value| change["call_id"] == judged["call_id"];
        history["changes"].as_array().unwrap().iter().any(is_of_call).then(|| (judged["call_id"].clone(), before))
    });
    let (call_id, before) = recorded.expect("the command's changes are recorded");
    let history = changes(true);
    assert_eq!(history["changes"][0]["command"], "make test", "{history}");
    assert!(history["diff"].as_str().unwrap().contains("of claude-code: make test\n"), "{history}");
    assert!(history["diff"].as_str().unwrap().contains("+made\n"), "{history}");
    daemon.connect().result("files.undo", json!({"all": true, "call_id": call_id}));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

/// Some agents report no end of a command that fails. It ends for what comes next when they begin something else, and if it has
/// only run beside that, it gets what it did all the same.
#[test]
fn a_command_whose_end_is_never_reported_ends_at_the_next_event_of_its_session() {
    let daemon = daemon();
    let work = daemon.work();
    let begin = |line: &str| check(&daemon, ("codex", "Bash", json!({"command": line})), "allow", "rule");
    let mut person = daemon.connect();
    let mut changes = || person.result("files.history", json!({"all": true}))["changes"].clone();
    // The first look at a folder may take longer than a command waits.
    (0..50)
        .find(|n| {
            let judged = begin("make ready");
            fs::write(work.join("ready"), n.to_string()).unwrap();
            done(&daemon, &judged, true);
            changes().as_array().is_some_and(|changes| !changes.is_empty())
        })
        .expect("the commands' changes are recorded");
    daemon.connect().result("files.forget", json!({"all": true}));

    let failed = begin("make failing");
    fs::write(work.join("a"), "by the one that fails\n").unwrap();
    let next = begin("make next");
    let of = |changes: &Value, judged: &Value| -> Vec<Value> {
        let all = changes.as_array().unwrap().iter();
        all.filter(|change| change["call_id"] == judged["call_id"]).cloned().collect()
    };
    let recorded = of(&changes(), &failed);
    assert_eq!((recorded.len(), &recorded[0]["path"]), (1, &json!(work.join("a"))), "{recorded:?}");
    fs::write(work.join("b"), "by the next\n").unwrap();
    done(&daemon, &next, true);
    // A person's change between two commands is no command's.
    fs::write(work.join("mine"), "by hand\n").unwrap();
    let last = begin("make last");
    fs::write(work.join("c"), "by the last\n").unwrap();
    done(&daemon, &last, true);
    let all = changes();
    for (judged, path) in [(&failed, "a"), (&next, "b"), (&last, "c")] {
        let own = of(&all, judged);
        assert_eq!((own.len(), &own[0]["path"]), (1, &json!(work.join(path))), "{all}");
        assert!(own[0].get("shared_with").is_none(), "{all}");
    }
    // It runs beside another one: its end comes, and either of them may have done what was done meanwhile.
    let beside = begin("make beside");
    let other = begin("make other");
    fs::write(work.join("d"), "by one of them\n").unwrap();
    done(&daemon, &other, true);
    fs::write(work.join("e"), "by the first\n").unwrap();
    done(&daemon, &beside, true);
    let all = changes();
    let shared = of(&all, &other);
    let name = shared[0]["shared_with"][0].as_str().unwrap_or_default();
    assert!(name.ends_with(beside["call_id"].as_str().unwrap()), "{all}");
    assert_eq!(of(&all, &beside)[0]["path"], json!(work.join("e")), "{all}");
    daemon.connect().result("files.undo", json!({"all": true, "agent": "codex"}));
    let left: Vec<bool> = ["a", "b", "c", "d", "e", "mine"].map(|name| work.join(name).exists()).into();
    assert_eq!(left, [false, false, false, true, false, true], "{all}");
}

#[test]
fn a_sub_agent_is_named_in_the_question_and_in_the_audit_log() {
    let daemon = opened(Setup::new().config("[agents.claude-code]\nask = \"toold\"\n"));
    let mut person = daemon.connect();
    person.result("session.open", json!({"cwd": daemon.work(), "client": {"name": "desk"}}));
    person.result("permissions.subscribe", json!({}));
    let mut params = params(&daemon, "claude-code", "Bash", json!({"command": "make a"}));
    params["agent_id"] = json!("a1b2");
    params["agent_type"] = json!("Explore");
    let judged = std::thread::scope(|scope| {
        let judging = scope.spawn(|| judge(&daemon, params));
        let ask = loop {
            let event = person.notification("permissions.event")["result"].take();
            if event["type"] == "asked" {
                break event["request"].clone();
            }
        };
        assert_eq!((&ask["agent"], &ask["subagent"]), (&json!("claude-code"), &json!("Explore (a1b2)")), "{ask}");
        person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
        judging.join().unwrap()
    });
    done(&daemon, &judged, true);
    let rows = until("it has ended", || Some(audited(&daemon)).filter(|rows| !rows.is_empty()));
    assert_eq!(
        (&rows[0]["agent"], &rows[0]["subagent"]),
        (&json!("claude-code"), &json!("Explore (a1b2)")),
        "{rows:?}"
    );
}

#[test]
fn tools_that_the_agent_refused_end_with_its_turn_its_conversation_or_itself() {
    let daemon = daemon();
    let open = |call: &str, subagent: bool| {
        let mut params = params(&daemon, "claude-code", "Bash", json!({"command": "make a"}));
        params["call_id"] = json!(call);
        if subagent {
            params["agent_id"] = json!("a1b2");
        }
        judge(&daemon, params);
    };
    let end = |scope: &str| {
        let ended = json!({"request_id": "claude-code/conversation", "ok": true, "scope": scope});
        hook(&daemon).result("permissions.done", ended);
    };
    let ended = |count: usize| until("they end", || (audited(&daemon).len() == count).then_some(()));
    open("toolu_1", false);
    open("toolu_2", true);
    end("turn");
    ended(1);
    end("conversation");
    ended(2);
    // An agent that ends without a word.
    let mut params = params(&daemon, "claude-code", "Bash", json!({"command": "make a"}));
    params["call_id"] = json!("toolu_3");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "permissions.request", "params": params});
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
                  s.sendall(sys.argv[2].encode() + b'\\n'); s.recv(65536)";
    let agent = "import subprocess, sys\nsubprocess.run([sys.executable, '-c'] + sys.argv[1:], check=True)";
    let output = daemon
        .setup
        .command("python3".as_ref())
        .args(["-c", agent, script])
        .arg(daemon.socket())
        .arg(request.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    ended(3);
}

#[test]
fn a_second_event_of_a_call_that_does_not_name_it_has_its_judgement() {
    let daemon = daemon();
    let mut params = params(&daemon, "claude-code", "Bash", json!({"command": "make a"}));
    params["call_id"] = json!("toolu_1");
    let judged = judge(&daemon, params.clone());
    params.as_object_mut().unwrap().remove("call_id");
    params["again"] = json!(true);
    assert_eq!(judge(&daemon, params), judged);
}

#[test]
fn a_question_about_a_protected_write_says_so() {
    let daemon = daemon();
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    let protected =
        |path: &str| judge(&daemon, params(&daemon, "claude-code", "Write", write(path)))["protected"].clone();
    assert_eq!((protected(".git/hooks/pre-commit"), protected("new.txt")), (json!(true), json!(null)));
}

/// However it is spelled.
#[test]
fn no_agent_runs_a_command_of_toolctl_that_decides() {
    let daemon = daemon();
    let decides = "toolctl permissions grant shell '**'";
    for line in [
        decides.to_owned(),
        format!("({decides} &)"),
        format!("env -i A=b {decides}"),
        format!("setsid {decides}"),
        format!("nohup {decides} &"),
        format!("timeout 5 {decides}"),
        format!("sh -c \"{decides}\""),
        format!("bash -lc \"cd /; {decides}\""),
        format!("systemd-run --user {decides}"),
        format!("systemd-run --user --scope -- {decides}"),
        format!("xargs {decides} < list"),
        format!("find . -exec {decides} ';'"),
        format!("exec {decides}"),
        format!("command {decides}"),
        format!("eval \"{decides}\""),
        format!("x=$({decides})"),
        format!("if true; then {decides}; fi"),
        format!("/opt/bin/{decides}"),
        format!("\\{decides}"),
        "tool\"\"ctl 'permissions' grant shell x".to_owned(),
        "t=toolctl; $t permissions grant shell x".to_owned(),
        "toolctl approve".to_owned(),
        "toolctl agents confirm 0123456789".to_owned(),
    ] {
        check(&daemon, ("claude-code", "Bash", json!({"command": line})), "deny", "rule");
    }
    for line in ["rg 'toolctl permissions grant'", "echo toolctl permissions grant", "toolctl permissions list"] {
        assert_ne!(bash(&daemon, "claude-code", line)["decision"], "deny", "{line}");
    }
}
