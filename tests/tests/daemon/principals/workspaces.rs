//! Folders that a client chooses, and folders that a person chooses.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, until};

use crate::principals::environment::over_http;
use crate::restarts::KilledProcess;

/// A person who is asked, and an agent that names this folder.
fn agent_in(daemon: &TestDaemon, cwd: &str) -> (Wire, Value) {
    let mut wire = Wire::connect(&daemon.socket());
    let client = json!({"name": "agent"});
    let opened = wire.result("session.open", json!({"cwd": cwd, "role": "agent", "client": client}));
    (wire, opened)
}

/// A client of this name whose process was started in the folder that it names, and that process.
fn started_in(daemon: &TestDaemon, folder: &str, client: &str) -> (Wire, Value, KilledProcess) {
    let socket = daemon.setup.path("started.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut wire = Wire::connect(&socket);
    let stream = listener.accept().unwrap().0;
    std::fs::remove_file(&socket).unwrap();
    let mut command = daemon.setup.command(toolctl());
    command.arg("connect").current_dir(folder);
    command.stdin(OwnedFd::from(stream.try_clone().unwrap())).stdout(OwnedFd::from(stream)).stderr(Stdio::null());
    let process = KilledProcess(command.spawn().unwrap());
    let opened = wire.result("session.open", json!({"cwd": folder, "role": "agent", "client": {"name": client}}));
    (wire, opened, process)
}

fn path(daemon: &TestDaemon, below: &str) -> String {
    daemon.setup.path(below).display().to_string()
}

fn setup() -> Setup {
    let setup = Setup::new();
    for folder in ["home/Documents/deep", "home/.hidden", "home/src/project/.git"] {
        std::fs::create_dir_all(setup.path(folder)).unwrap();
    }
    for file in ["home/Documents/letter.txt", "home/src/project/a.txt", "home/.hidden/a.txt", "home/top.txt"] {
        std::fs::write(setup.path(file), "private\n").unwrap();
    }
    setup
}

#[track_caller]
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn a_folder_that_an_agent_chooses_gives_no_reads() {
    let daemon = setup().start();
    let (home, state, config) = (path(&daemon, "home"), path(&daemon, "state/toold"), path(&daemon, "config/toold"));
    let spool = format!("{state}/spool");
    std::fs::create_dir_all(&spool).unwrap();
    std::fs::write(format!("{spool}/other.txt"), "private\n").unwrap();
    std::fs::write(format!("{config}/config.toml"), "# private\n").unwrap();
    for (cwd, file) in [
        ("/etc", "/etc/passwd"),
        ("/", "/etc/passwd"),
        (&*home, &*format!("{home}/top.txt")),
        (&*format!("{home}/Documents"), &*format!("{home}/Documents/letter.txt")),
        (&*format!("{home}/.hidden"), &*format!("{home}/.hidden/a.txt")),
        (&*spool, &*format!("{spool}/other.txt")),
        (&*config, &*format!("{config}/config.toml")),
        (&*format!("{home}/nosuch"), &*format!("{home}/nosuch/a")),
        ("~/Documents", &*format!("{home}/Documents/letter.txt")),
    ] {
        let (mut agent, opened) = agent_in(&daemon, cwd);
        assert_eq!(opened["workspace"], "pending", "{cwd}: {opened}");
        let root = opened["cwd"].as_str().unwrap().to_owned();
        for (tool, arguments) in [
            ("read", json!({"path": file})),
            ("list", json!({"path": root})),
            ("glob", json!({"pattern": "**"})),
            ("grep", json!({"pattern": "private"})),
        ] {
            let result = agent.tool(tool, arguments);
            assert_eq!(result["is_error"], true, "{tool} in {cwd}: {result}");
            assert!(result["metadata"]["permission"].is_object(), "{tool} in {cwd}: {result}");
            assert!(!text(&result).contains("private\n"), "{tool} in {cwd}: {result}");
        }
    }
}

#[test]
fn the_first_call_that_needs_the_folder_asks_once_and_the_answer_is_remembered() {
    let mut daemon = setup().start();
    let documents = path(&daemon, "home/Documents");
    for round in ["first", "again", "after a restart"] {
        let mut person = daemon.connect();
        person.result("permissions.subscribe", json!({}));
        let (mut agent, opened) = agent_in(&daemon, &documents);
        if round == "first" {
            assert_eq!(opened["workspace"], "pending");
            let reading = agent.request("tools.execute", json!({"name": "read", "arguments": {"path": "letter.txt"}}));
            let listing = agent.request("tools.execute", json!({"name": "list", "arguments": {}}));
            let ask = person.notification("permissions.event")["result"]["request"].take();
            assert_eq!((&ask["category"], &ask["target"]), (&json!("file.read"), &json!(documents)), "{ask}");
            assert!(ask.get("suggestions").is_none_or(|list| *list == json!([])), "{ask}");
            let reason = ask["reason"].as_str().unwrap();
            assert!(
                reason.starts_with(&format!("use {documents} as a workspace")) && reason.contains("agent"),
                "{reason}"
            );
            person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
            assert!(text(&agent.answer(reading)["result"]).contains("private"));
            assert!(text(&agent.answer(listing)["result"]).contains("letter.txt"));
        } else {
            assert_eq!(opened["workspace"], "open", "{round}");
        }
        let pending = person.result("permissions.pending", json!({}));
        assert!(text(&agent.tool("read", json!({"path": "letter.txt"}))).contains("private"), "{pending}");
        assert_eq!(pending["asks"], json!([]), "{round}");
        // It is a workspace of this client, and of no other.
        let mut other = Wire::connect(&daemon.socket());
        let params = json!({"cwd": documents, "role": "agent", "client": {"name": "other"}});
        assert_eq!(other.result("session.open", params)["workspace"], "pending");
        if round == "again" {
            daemon.restart("TERM");
        }
    }
    // The remembered answer is stored as a workspace, not as a grant.
    assert_eq!(daemon.connect().result("permissions.list", json!({}))["grants"], json!([]));
}

#[test]
fn a_person_who_refuses_a_folder_is_not_asked_again_in_the_session() {
    let daemon = setup().start();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let (mut agent, _) = agent_in(&daemon, &path(&daemon, "home/Documents"));
    let reading = agent.request("tools.execute", json!({"name": "read", "arguments": {"path": "letter.txt"}}));
    let ask = person.notification("permissions.event")["result"]["request"].take();
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(reading)["result"]["is_error"], true);
    let again = agent.tool("list", json!({}));
    assert!(text(&again).contains("toolctl workspaces allow"), "{again}");
}

#[test]
fn folder_opened_by_a_person_is_open_to_agents_with_its_contents() {
    let mut daemon = setup().start();
    let project = path(&daemon, "home/src/project");
    daemon.connect().result("session.open", json!({"cwd": project}));
    for round in 0..2 {
        for cwd in [project.clone(), format!("{project}/.git")] {
            let (mut agent, opened) = agent_in(&daemon, &cwd);
            assert_eq!(opened["workspace"], "open", "{round}: {cwd}");
            assert_eq!(agent.tool("list", json!({}))["is_error"], false);
        }
        assert_eq!(agent_in(&daemon, &path(&daemon, "home/src")).1["workspace"], "pending");
        daemon.restart("KILL");
    }
}

#[test]
fn a_home_folder_that_a_person_opened_opens_nothing() {
    let daemon = setup().start();
    daemon.connect().result("session.open", json!({"cwd": path(&daemon, "home")}));
    assert_eq!(agent_in(&daemon, &path(&daemon, "home/Documents")).1["workspace"], "pending");
}

#[test]
fn results_of_other_sessions_are_in_no_workspace() {
    let daemon = setup().start();
    let spool = daemon.setup.path("state/toold/spool/s-other");
    std::fs::create_dir_all(&spool).unwrap();
    std::fs::write(spool.join("call.txt"), "private\n").unwrap();
    // The daemon's state lies in the folder that a person opened.
    daemon.connect().result("session.open", json!({"cwd": path(&daemon, "state")}));
    let (mut agent, opened) = agent_in(&daemon, &path(&daemon, "state"));
    assert_eq!(opened["workspace"], "open");
    let read = agent.tool("read", json!({"path": spool.join("call.txt")}));
    assert!(read["metadata"]["permission"].is_object(), "{read}");
    let found = agent.tool("grep", json!({"pattern": "private"}));
    assert!(!text(&found).contains("call.txt"), "{found}");
}

#[test]
fn folders_are_allowed_on_the_command_line_and_in_the_configuration() {
    let daemon = setup().config("[workspaces]\nallow = [\"~/src\"]\n").start();
    // This test is both a person's frontend and an agent. Without the frontend, its `toolctl` would be the agent's.
    daemon.connect();
    assert_eq!(agent_in(&daemon, &path(&daemon, "home/src/project")).1["workspace"], "open");
    let documents = path(&daemon, "home/Documents");
    // The folder is now open for a session that is already running.
    let (mut agent, opened) = agent_in(&daemon, &format!("{documents}/deep"));
    assert_eq!(opened["workspace"], "pending");
    let allowed = daemon.toolctl(&["workspaces", "allow", &documents]);
    assert!(allowed.status.success(), "{allowed:?}");
    assert_eq!(agent.tool("list", json!({}))["is_error"], false);
    let listed = String::from_utf8(daemon.toolctl(&["workspaces"]).stdout).unwrap();
    assert!(listed.contains(&documents) && listed.contains("toolctl workspaces allow"), "{listed}");
    assert!(daemon.toolctl(&["workspaces", "forget", &documents]).status.success());
    assert_eq!(agent_in(&daemon, &documents).1["workspace"], "pending");
    assert!(!daemon.toolctl(&["workspaces", "forget", &documents]).status.success());
    for wrong in [path(&daemon, "home"), path(&daemon, "config/toold"), "/".to_owned(), path(&daemon, "home/none")] {
        assert!(!daemon.toolctl(&["workspaces", "allow", &wrong]).status.success(), "{wrong}");
    }
}

#[test]
fn client_without_a_folder_reads_how_a_person_opens_one() {
    let daemon = setup().config("[mcp]\nlisten = \"127.0.0.1:0\"\n").start();
    let opened = over_http(&daemon, json!({}));
    assert_eq!(opened["workspace"], "none", "{opened}");
    let opened = over_http(&daemon, json!({"cwd": path(&daemon, "home/Documents")}));
    assert_eq!(opened["workspace"], "pending", "{opened}");
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "desk", "version": "1"},
                        "_meta": {"toold/default-cwd": "/"}});
    let mut client = Wire::connect(&daemon.socket());
    client.result("initialize", params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = |client: &mut Wire, name: &str, arguments: Value| {
        client.result("tools/call", json!({"name": name, "arguments": arguments}))
    };
    let _ = call(&mut client, "todo", json!({"items": []}));
}

const EDIT: &str = "[permission]\nlevel = \"edit\"\n";

fn write(agent: &mut Wire, name: &str) -> u64 {
    agent.request("tools.execute", json!({"name": "write", "arguments": {"path": name, "content": "x"}}))
}

#[test]
fn a_folder_that_only_its_client_chose_frees_reading_and_one_answer_frees_the_rest() {
    let daemon = setup().config(EDIT).start();
    let project = path(&daemon, "home/src/project");
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let (mut agent, opened, _process) = started_in(&daemon, &project, "agent");
    assert_eq!(opened["workspace"], "open", "{opened}");
    for (tool, arguments) in [("read", json!({"path": "a.txt"})), ("bash", json!({"command": "cat a.txt"}))] {
        assert!(text(&agent.tool(tool, arguments)).contains("private"), "{tool}");
    }
    let id = opened["session_id"].clone();
    let level = |person: &mut Wire| person.result("permissions.level", json!({"session_id": id}));
    let shown = level(&mut person);
    assert_eq!(shown["level"], "read", "{shown}");
    assert!(shown["from"].as_str().unwrap().contains("toolctl workspaces allow"), "{shown}");
    let (first, second) = (write(&mut agent, "new.txt"), write(&mut agent, "other.txt"));
    let ask = person.notification("permissions.event")["result"]["request"].take();
    assert_eq!((&ask["category"], &ask["target"]), (&json!("file.read"), &json!(project)), "{ask}");
    let reason = ask["reason"].as_str().unwrap();
    assert!(reason.contains("agent works in") && reason.contains("for the first time"), "{reason}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    for id in [first, second] {
        assert_eq!(agent.answer(id)["result"]["is_error"], false);
    }
    assert_eq!(agent.tool("write", json!({"path": "third.txt", "content": "x"}))["is_error"], false);
    assert_eq!(level(&mut person)["level"], "edit");
    // It is remembered for this client.
    let (mut again, _, _another) = started_in(&daemon, &project, "agent");
    assert_eq!(again.tool("write", json!({"path": "fourth.txt", "content": "x"}))["is_error"], false);
    let pending = person.result("permissions.pending", json!({}));
    assert_eq!(pending["asks"], json!([]));
}

#[test]
fn a_person_who_opens_no_workspace_is_asked_about_each_write() {
    let daemon = setup().config(EDIT).start();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let (mut agent, _, _process) = started_in(&daemon, &path(&daemon, "home/src/project"), "agent");
    for (file, categories) in [("one.txt", &["file.read", "file.write"][..]), ("two.txt", &["file.write"])] {
        let writing = write(&mut agent, file);
        for category in categories {
            let ask = until("the next ask", || {
                let event = person.notification("permissions.event")["result"].take();
                event.get("request").cloned()
            });
            assert_eq!(ask["category"], *category, "{file}: {ask}");
            let action = if *category == "file.read" { "deny" } else { "allow" };
            person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": action}));
        }
        assert_eq!(agent.answer(writing)["result"]["is_error"], false, "{file}");
    }
}

#[test]
fn a_folder_that_a_person_trusted_in_the_agent_or_in_toold_is_a_workspace() {
    let daemon = setup().config(EDIT).start();
    let (project, home) = (path(&daemon, "home/src/project"), path(&daemon, "home"));
    // This person cannot be asked.
    let mut person = daemon.connect();
    let writes = |client: &str, file: &str| {
        let (mut agent, _, _process) = started_in(&daemon, &project, client);
        agent.tool("write", json!({"path": file, "content": "x"}))["is_error"] == false
    };
    assert!(!writes("claude-code", "a.md"));
    let trust = |folder: &str| {
        let state = json!({"projects": {folder: {"hasTrustDialogAccepted": true}}});
        std::fs::write(daemon.setup.path("home/.claude.json"), state.to_string()).unwrap();
    };
    // The home folder is none, whoever trusts it.
    trust(&home);
    assert!(!writes("claude-code", "b.md"));
    trust(&project);
    assert!(writes("claude-code", "c.md"));
    assert!(!writes("codex", "d.md"));
    std::fs::create_dir_all(daemon.setup.path("home/src/project/.toold")).unwrap();
    std::fs::write(daemon.setup.path("home/src/project/.toold/config.toml"), "").unwrap();
    person.result("plugins.trust", json!({"path": project}));
    assert!(writes("codex", "e.md"));
}

#[test]
fn several_roots_of_an_mcp_client_are_one_ask() {
    let daemon = setup().start();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let mut client = Wire::connect(&daemon.socket());
    let capabilities = json!({"roots": {}});
    let info = json!({"name": "agent", "version": "1"});
    client.result(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info}),
    );
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let (one, two) = (path(&daemon, "home/Documents"), path(&daemon, "home/src"));
    let reading = client.request("tools/call", json!({"name": "list", "arguments": {"path": two}}));
    let asked =
        until("the roots are asked for", || client.next_message().filter(|message| message["method"] == "roots/list"));
    let roots = json!({"roots": [{"uri": format!("file://{one}")}, {"uri": format!("file://{two}")}]});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": roots}));
    let ask = person.notification("permissions.event")["result"]["request"].take();
    let reason = ask["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("{one} and {two} as workspaces")), "{reason}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert!(client.answer(reading)["result"]["isError"] == false);
    let other = client.result("tools/call", json!({"name": "list", "arguments": {"path": one}}));
    assert_eq!(other["isError"], false, "{other}");
}

#[test]
fn a_workspace_that_can_match_nothing_is_an_error_of_the_check() {
    let daemon = setup().start();
    for (text, meant) in [
        ("[workspaces]\nallow = [\"src\"]\n", "absolute"),
        ("[workspaces]\nallow = [\"~/src/**\"]\n", "~/src"),
        ("[workspaces]\nallow = [\"~\"]\n", "folders inside it"),
        ("[agents]\nenv = [\"$PATH\"]\n", "PATH"),
        ("[mcp.token]\nworkspaces = [\"/\"]\n", "folders inside it"),
    ] {
        std::fs::write(daemon.setup.path("check.toml"), text).unwrap();
        let checked = daemon.toolctl(&["config", "check", &path(&daemon, "check.toml")]);
        let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        assert!(!checked.status.success() && said.contains(meant), "{text}: {said}");
    }
}

#[test]
fn project_contents_stay_hidden_until_a_person_opens_the_folder() {
    let daemon = setup().start();
    let project = path(&daemon, "home/src/project");
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"secret-tool\"\naction = \"deny\"\n";
    for (file, text) in [
        (".toold/skills/s/SKILL.md", "---\nname: secret-skill\ndescription: d\n---\nsecret-skill\n"),
        (".claude/skills/c/SKILL.md", "---\nname: secret-claude\ndescription: d\n---\nsecret-claude\n"),
        (".toold/memories/m.md", "---\n---\nsecret-memory\n"),
        (".toold/agents/a.md", "---\nname: secret-agent\ndescription: d\n---\nsecret-agent\n"),
        (".toold/config.toml", rule),
    ] {
        let file = daemon.setup.path("home/src/project").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let look = |agent: &mut Wire| {
        let calls = [
            ("skills.list", json!({})),
            ("skills.get", json!({"name": "secret-skill"})),
            ("memories.list", json!({})),
            ("subagents.list", json!({})),
            ("permissions.list", json!({})),
            ("tools.list", json!({})),
            ("prompt.render", json!({})),
            ("tools.execute", json!({"name": "skill", "arguments": {"name": "secret-claude"}})),
            ("session.list", json!({})),
        ];
        // The paths that the call itself names reveal nothing new.
        let answer = |(method, params)| agent.call(method, params).to_string().replace("there is no skill secret-", "");
        calls.map(answer).join("\n").replace("no skill secret-", "")
    };
    let (mut agent, opened) = agent_in(&daemon, &project);
    assert_eq!(opened["workspace"], "pending");
    let closed = look(&mut agent);
    assert!(!closed.contains("secret-"), "{closed}");
    daemon.connect();
    let listed = agent.result("tools.list", json!({}));
    let known = json!({"if_revision": listed["revision"], "if_epoch": listed["epoch"]});
    assert_eq!(agent.result("tools.list", known.clone())["unchanged"], true);
    assert!(daemon.toolctl(&["workspaces", "allow", &project]).status.success());
    assert_eq!(agent.tool("list", json!({}))["is_error"], false);
    assert_ne!(agent.result("tools.list", known)["unchanged"], true, "it may see other tools now");
    let open = look(&mut agent);
    for shown in ["secret-skill", "secret-claude", "secret-memory", "secret-agent", "secret-tool"] {
        assert!(open.contains(shown), "{shown}: {open}");
    }
}

#[test]
fn a_refusal_names_the_folder_as_the_client_did_and_not_where_it_leads() {
    let daemon = setup().start();
    let link = daemon.setup.path("home/link");
    std::os::unix::fs::symlink(daemon.setup.path("home/Documents"), &link).unwrap();
    let (mut agent, opened) = agent_in(&daemon, &link.display().to_string());
    assert_eq!((&opened["workspace"], &opened["cwd"]), (&json!("pending"), &json!(link)));
    for (tool, arguments) in [("read", json!({"path": "letter.txt"})), ("bash", json!({"command": "ls"}))] {
        let refused = agent.tool(tool, arguments).to_string();
        assert!(!refused.contains("Documents"), "{tool}: {refused}");
    }
}

#[test]
fn a_folder_that_can_never_be_a_workspace_is_refused_with_the_reason() {
    let daemon = setup().start();
    let (state, project) = (path(&daemon, "state/toold"), path(&daemon, "home/src/project"));
    std::fs::create_dir_all(format!("{state}/deep")).unwrap();
    std::fs::create_dir_all(format!("{project}/.toold/plugins")).unwrap();
    let mut person = daemon.connect();
    for (folder, reason) in [
        (state.clone(), "it has files of toold itself".to_owned()),
        (format!("{state}/deep"), format!("it lies in {state}, which has files of toold itself")),
        (
            format!("{project}/.toold/plugins"),
            format!("it has the configuration and plugins of a project; name {project} instead"),
        ),
    ] {
        let refused = person.error("workspaces.allow", json!({"path": folder}));
        assert_eq!(
            refused["message"],
            format!("invalid params: {folder} cannot be a workspace: {reason}"),
            "{refused}"
        );
    }
}
