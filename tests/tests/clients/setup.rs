//! `toolctl setup`: servers, secrets, hooks and denials of many agents move into toold, and everything comes back.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, toolctl};

/// A small MCP server with the tool `shout`.
const SERVER: &str = r#"import json, sys
for line in sys.stdin:
    m = json.loads(line); r = {}
    if m.get("method") == "initialize": r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif m.get("method") == "tools/list": r = {"tools": [{"name": "shout", "description": "Shouts", "inputSchema": {"type": "object"}}]}
    elif m.get("method") == "tools/call": r = {"content": [{"type": "text", "text": "HEARD"}]}
    if m.get("id") is not None: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
/// An agent: runs its hook before a tool of its server `github`, under each of these names, and then calls the tool.
const AGENT: &str = r#"import json, os, subprocess, sys
toolctl, *names = sys.argv[1:]
for name in names:
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": os.getcwd(), "permission_mode": "default",
        "tool_name": "mcp__github__shout", "tool_input": {}, "tool_use_id": "t"}
    subprocess.run([toolctl, "hook", name], input=json.dumps(call), text=True, check=True)
bridge = subprocess.Popen([toolctl, "mcp", "--source", "github"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(id, method, params):
    bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
    bridge.stdin.flush()
    while (answer := json.loads(bridge.stdout.readline())).get("id") != id: pass
    return answer
# A name that it gives itself.
client = {"name": "claude-code", "version": "2"}
ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
print(json.dumps(ask(2, "tools/call", {"name": "shout", "arguments": {}})))
bridge.stdin.close()
bridge.wait()
"#;
const TOKEN: &str = "ghp_0123456789abcdefghij";
const PASSPHRASE: &str = "a long passphrase";

/// Files of agents in all their forms: path below the home folder, and text, where `SRV` is the server and `%TOKEN%` a secret.
const FILES: [(&str, &str); 11] = [
    (
        ".claude.json",
        "{\n  \"numStartups\": 12,\n  \"mcpServers\": {\n    \"github\": {\n      \"type\": \"stdio\",\n      \"command\": \"python3\",\n      \"args\": [\"SRV\"],\n      \"env\": {\n        \"GITHUB_TOKEN\": \"%TOKEN%\"\n      }\n    }\n  },\n  \"oauthAccount\": {\"x\": 1}\n}",
    ),
    (
        ".claude/settings.json",
        "{\"permissions\": {\"deny\": [\"Bash(git push:*)\", \"WebFetch(domain:no good)\"], \"allow\": [\"Bash(npm test)\"]}}",
    ),
    (
        ".codex/config.toml",
        "model = \"o9\" # mine\n\n[mcp_servers.github]\ncommand = \"python3\"\nargs = [\"SRV\"]\n[mcp_servers.github.env]\nGITHUB_TOKEN = \"%TOKEN%\"\n\n# files\n[mcp_servers.files]\ncommand = \"python3\"\nargs = [ \"SRV\", \"--root\" ]\nstartup_timeout_sec = 20",
    ),
    (
        ".gemini/settings.json",
        "{\n  // mine\n  \"mcpServers\": {\n    \"files\": {\"command\": \"python3\", \"args\": [\"SRV\", \"--root\"], \"trust\": true},\n  },\n}\n",
    ),
    (
        ".cursor/mcp.json",
        "{\"mcpServers\":{\"ask\":{\"command\":\"x\",\"args\":[\"${input:key}\"]},\"files\":{\"command\":\"python3\",\"args\":[\"SRV\",\"--root\"]}}}",
    ),
    (
        ".config/Code/User/mcp.json",
        "{\r\n\t\"servers\": {\"files\": {\"type\": \"stdio\", \"command\": \"python3\", \"args\": [\"SRV\", \"--root\"]}}\r\n}\r\n",
    ),
    (
        ".config/zed/settings.json",
        "// zed\n{\n  \"context_servers\": {\n    \"files\": {\"command\": {\"path\": \"python3\", \"args\": [\"SRV\", \"--root\"]}, \"settings\": {}}\n  }\n}",
    ),
    (
        ".config/opencode/opencode.jsonc",
        "{ \"mcp\": { \"files\": { \"type\": \"local\", \"command\": [\"python3\", \"SRV\", \"--root\"], \"enabled\": true }, \"off\": {\"type\": \"local\", \"command\": [\"x\"], \"enabled\": false} } }\n",
    ),
    (".codeium/windsurf/mcp_config.json", ""),
    (".config/Claude/claude_desktop_config.json", "\u{feff}{}"),
    (
        ".qwen/settings.json",
        "{\"mcpServers\": {\"files\": {\"command\": \"python3\", \"args\": [\"SRV\", \"--root\"]}}}",
    ),
];

struct SetupMachine {
    daemon: TestDaemon,
}

impl SetupMachine {
    fn new() -> Self {
        let setup = Setup::new();
        Self::write_files(&setup);
        Self { daemon: setup.start() }
    }

    fn write_files(setup: &Setup) {
        let server = setup.path("server.py");
        fs::write(&server, SERVER).unwrap();
        for (path, text) in FILES {
            let path = setup.home(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text.replace("SRV", server.to_str().unwrap()).replace("%TOKEN%", TOKEN)).unwrap();
        }
    }

    fn home(&self, below: &str) -> PathBuf {
        self.daemon.setup.home(below)
    }

    fn toolctl(&self, arguments: &[&str]) -> Output {
        self.with_input(arguments, "")
    }

    fn with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.daemon.setup.command(toolctl());
        command.args(arguments).current_dir(self.daemon.work()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.toolctl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn unlock(&self) {
        let output = self.with_input(&["secrets", "unlock"], PASSPHRASE);
        assert!(output.status.success(), "{output:?}");
    }

    /// All files below the home folder and toold's configuration, with their modes.
    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.home(""), self.daemon.setup.path("config")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let mode = path.metadata().unwrap().permissions().mode();
                        files.insert(path.clone(), (fs::read(&path).unwrap(), mode));
                    }
                }
            }
        }
        files
    }

    fn json(&self, below: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.home(below)).unwrap()).unwrap()
    }
}

fn bridge(source: &str) -> Value {
    json!({"type": "stdio", "command": toolctl(), "args": ["mcp", "--source", source]})
}

#[test]
fn a_dry_run_and_json_show_everything_and_change_nothing() {
    let machine = SetupMachine::new();
    let before = machine.files();
    let page = machine.done(&["setup", "--dry-run"]);
    for shown in
        ["Claude Code", "Zed", "github", "files", "deny shell git push *", "${input:key}", "switched off", "npm test"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains(TOKEN), "{page}");
    let plan: Value = serde_json::from_str(&machine.done(&["setup", "--json"])).unwrap();
    assert_eq!(plan["servers"].as_array().unwrap().len(), 9, "{plan}");
    assert!(!plan.to_string().contains(TOKEN), "{plan}");
    let folder = machine.home("proj");
    fs::create_dir(&folder).unwrap();
    let page = machine.done(&["setup", "--dry-run", "--folder", folder.to_str().unwrap(), "--allow", "files"]);
    assert!(page.contains("Every agent may work in /") && page.contains("not ask about calls of files"), "{page}");
    for wrong in [["--folder", "/nope"], ["--allow", "nope"]] {
        let output = machine.toolctl(&[&["setup", "--dry-run"][..], &wrong].concat());
        assert!(!output.status.success(), "{wrong:?}: {output:?}");
    }
    assert_eq!(machine.files(), before);
}

#[test]
fn servers_run_once_under_their_names_and_everything_comes_back_byte_for_byte() {
    let machine = SetupMachine::new();
    machine.unlock();
    let before = machine.files();
    let told = machine.done(&["setup", "--yes", "--allow", "github"]);
    assert!(told.contains("9 servers that each agent used for itself are 2 servers now"), "{told}");
    assert!(
        told.contains("Measured, with all agents open: 9 processes of ") && told.contains(", 2 processes of "),
        "{told}"
    );
    assert_eq!(machine.json(".claude.json")["mcpServers"]["github"], bridge("github"));
    let everywhere = machine.files();
    let state = fs::read_to_string(machine.daemon.state().join("setup.json")).unwrap();
    let with_secret: Vec<_> =
        everywhere.iter().filter(|(_, (text, _))| String::from_utf8_lossy(text).contains(TOKEN)).collect();
    assert!(with_secret.is_empty() && !state.contains(TOKEN), "{with_secret:?}");
    // Again: nothing to do.
    assert!(machine.done(&["setup", "--yes"]).contains("Nothing to change"), "a second time");
    assert_eq!(machine.files(), everywhere);
    machine.done(&["setup", "--check"]);
    let undone = machine.done(&["setup", "--undo", "--yes"]);
    assert!(undone.contains(" 0 entry by entry"), "{undone}");
    let after = machine.files();
    for (path, (text, mode)) in &before {
        let (text_after, mode_after) = &after[path];
        assert_eq!(
            (String::from_utf8_lossy(text), mode),
            (String::from_utf8_lossy(text_after), mode_after),
            "{path:?}"
        );
    }
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(!machine.daemon.state().join("setup.json").exists());
    let secrets: Value = serde_json::from_str(&machine.done(&["secrets", "list", "--json"])).unwrap();
    assert_eq!(secrets["secrets"], json!([]));
    let grants: Value = serde_json::from_str(&machine.done(&["permissions", "list", "--json"])).unwrap();
    assert_eq!(grants["grants"], json!([]), "{grants}");
}

#[test]
fn a_bridge_offers_the_server_s_tools_by_their_own_names_and_no_others() {
    let machine = SetupMachine::new();
    machine.done(&["setup", "--yes", "--allow", "files"]);
    let request = |id: u64, method: &str, params: Value| {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let input = request(1, "initialize", hello)
        + &request(2, "tools/list", json!({}))
        + &request(3, "tools/call", json!({"name": "shout", "arguments": {}}))
        + &request(4, "tools/call", json!({"name": "files_shout", "arguments": {}}));
    let output = machine.with_input(&["mcp", "--source", "files"], &input);
    let answers: BTreeMap<u64, Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|answer| Some((answer["id"].as_u64()?, answer)))
        .collect();
    let names: Vec<&str> =
        answers[&2]["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["shout"], "{answers:?}");
    assert_eq!(answers[&1]["result"]["instructions"], Value::Null, "{answers:?}");
    for call in [3, 4] {
        assert_eq!(answers[&call]["result"]["content"][0]["text"], "HEARD", "{answers:?}");
    }
}

#[test]
fn a_file_that_its_agent_wrote_since_loses_only_what_setup_added() {
    let machine = SetupMachine::new();
    machine.unlock();
    machine.done(&["setup", "--yes"]);
    let mut claude = machine.json(".claude.json");
    claude["numStartups"] = json!(13);
    fs::write(machine.home(".claude.json"), serde_json::to_string_pretty(&claude).unwrap()).unwrap();
    let codex = machine.home(".codex/config.toml");
    let text = fs::read_to_string(&codex).unwrap().replace("o9", "o10");
    fs::write(&codex, text + "\n[tui]\nx = 1\n").unwrap();
    let own = machine.daemon.setup.path("config/toold/config.toml");
    fs::write(&own, format!("# mine\n{}", fs::read_to_string(&own).unwrap())).unwrap();
    let drift = machine.toolctl(&["setup", "--check"]);
    assert!(drift.status.success(), "other changes are no drift: {drift:?}");
    machine.done(&["setup", "--undo", "--yes"]);
    let claude = machine.json(".claude.json");
    assert_eq!(claude["numStartups"], 13);
    assert_eq!(claude["mcpServers"]["github"]["env"]["GITHUB_TOKEN"], TOKEN);
    assert_eq!(claude["mcpServers"].as_object().unwrap().len(), 1, "{claude}");
    let text = fs::read_to_string(&codex).unwrap();
    assert!(text.contains("model = \"o10\" # mine") && text.contains("[tui]") && text.contains(TOKEN), "{text}");
    assert!(!text.contains("toolctl"), "{text}");
    assert_eq!(fs::read_to_string(&own).unwrap().trim(), "# mine");
}

#[test]
fn settings_of_an_entry_that_were_changed_since_stay() {
    let machine = SetupMachine::new();
    machine.unlock();
    let before = machine.files();
    machine.done(&["setup", "--yes"]);
    let edit = |file: &str, change: &dyn Fn(&mut Value)| {
        let mut value = machine.json(file);
        change(&mut value);
        fs::write(machine.home(file), serde_json::to_string_pretty(&value).unwrap()).unwrap();
    };
    let replace = |file: &str, old: &str, new: &str| {
        let text = fs::read_to_string(machine.home(file)).unwrap();
        assert_eq!(text.matches(old).count(), 1, "{text}");
        fs::write(machine.home(file), text.replace(old, new)).unwrap();
    };
    edit(".claude.json", &|all| all["mcpServers"]["github"]["timeout"] = json!(5000));
    edit(".config/opencode/opencode.jsonc", &|all| all["mcp"]["files"]["enabled"] = json!(false));
    edit(".cursor/mcp.json", &|all| all["other"] = json!(1));
    replace(".gemini/settings.json", "\"trust\": true", "\"includeTools\": [\"read\"]");
    replace(".codex/config.toml", "startup_timeout_sec = 20", "startup_timeout_sec = 30\nenabled = false");
    let told = machine.done(&["setup", "--undo", "--yes"]);
    assert!(
        told.contains("files keeps the settings of its entry that were changed since: includeTools, trust"),
        "{told}"
    );
    assert!(!told.contains(TOKEN), "{told}");
    let server = machine.daemon.setup.path("server.py");
    let claude = json!({"type": "stdio", "command": "python3", "args": [server], "env": {"GITHUB_TOKEN": TOKEN}, "timeout": 5000});
    assert_eq!(machine.json(".claude.json")["mcpServers"], json!({"github": claude}));
    let opencode = json!({"type": "local", "command": ["python3", server, "--root"], "enabled": false});
    assert_eq!(machine.json(".config/opencode/opencode.jsonc")["mcp"]["files"], opencode);
    // An entry with the settings that it had is the old text.
    let cursor = fs::read_to_string(machine.home(".cursor/mcp.json")).unwrap();
    assert!(
        cursor.contains(&format!("{{\"command\":\"python3\",\"args\":[\"{}\",\"--root\"]}}", server.display())),
        "{cursor}"
    );
    let gemini = fs::read_to_string(machine.home(".gemini/settings.json")).unwrap();
    assert!(gemini.contains("// mine") && gemini.contains("\"includeTools\": [\"read\"]"), "{gemini}");
    assert!(gemini.contains("python3") && !gemini.contains("trust"), "{gemini}");
    let codex = fs::read_to_string(machine.home(".codex/config.toml")).unwrap();
    for line in ["startup_timeout_sec = 30", "enabled = false", "[mcp_servers.github.env]", "# mine"] {
        assert!(codex.contains(line), "{line}: {codex}");
    }
    assert!(!codex.contains("toolctl"), "{codex}");
    let zed = machine.home(".config/zed/settings.json");
    assert_eq!(machine.files()[&zed], before[&zed]);
}

#[test]
fn undo_is_all_or_nothing_and_wants_the_secrets_unlocked() {
    let mut machine = SetupMachine::new();
    machine.unlock();
    machine.done(&["setup", "--yes"]);
    let before = machine.files();
    machine.daemon.restart("TERM");
    let refused = machine.toolctl(&["setup", "--undo", "--yes"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("toolctl secrets unlock"), "{words}");
    assert_eq!(machine.files(), before);
    machine.unlock();
    machine.done(&["setup", "--undo", "--yes"]);
    assert!(fs::read_to_string(machine.home(".claude.json")).unwrap().contains(TOKEN));
}

#[test]
fn servers_with_secrets_wait_until_there_is_a_place_for_them() {
    let machine = SetupMachine::new();
    for arguments in [&["setup", "--dry-run", "--yes"][..], &["setup", "--yes"]] {
        let told = machine.done(arguments);
        assert!(told.contains("its secrets have no place yet"), "{arguments:?}: {told}");
    }
    assert!(fs::read_to_string(machine.home(".claude.json")).unwrap().contains(TOKEN));
    assert_eq!(machine.json(".qwen/settings.json")["mcpServers"]["files"]["args"], json!(["mcp", "--source", "files"]));
    let checked = machine.done(&["setup", "--check"]);
    assert!(checked.contains("github stays: its secrets have no place yet"), "{checked}");
    assert!(checked.ends_with("everything is as setup left it\n"), "{checked}");
    machine.unlock();
    let drift = machine.toolctl(&["setup", "--check"]);
    assert_eq!(drift.status.code(), Some(1), "{drift:?}");
    assert!(String::from_utf8_lossy(&drift.stdout).contains("github is not in toold"), "{drift:?}");
    machine.done(&["setup", "--yes"]);
    machine.done(&["setup", "--check"]);
}

/// Cursor's servers on one line, as programs write them.
const ONE_LINE: &str = r#"{ "mcpServers": { "memory": { "command": "python3", "args": ["SRV"], "env": {"TOKEN": "%TOKEN%", "CREDENTIALS": "{\"key\": \"-----BEGIN PRIVATE KEY-----\\n%TOKEN%\"}"} } } }"#;

/// A machine whose only agent is Cursor, with these servers.
fn with_cursor(text: &str) -> SetupMachine {
    let setup = Setup::new();
    let file = setup.home(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text.replace("%TOKEN%", TOKEN)).unwrap();
    SetupMachine { daemon: setup.start() }
}

#[test]
fn a_secret_stands_in_no_file_of_toold_before_and_after_it_moves() {
    let machine = with_cursor(ONE_LINE);
    let settings = format!("{{ \"env\": {{\"KEY\": \"{TOKEN}\"}}, \"hooks\": {{}} }}");
    fs::create_dir_all(machine.home(".claude")).unwrap();
    fs::write(machine.home(".claude/settings.json"), &settings).unwrap();
    let before = machine.files();
    let check = || {
        let record = fs::read_to_string(machine.daemon.setup.path("state/toold/setup.json")).unwrap();
        assert!(!record.contains(TOKEN), "{record}");
    };
    machine.done(&["setup", "--yes"]);
    check();
    machine.unlock();
    machine.done(&["setup", "--yes"]);
    check();
    let moved = machine.json(".cursor/mcp.json");
    assert_eq!(moved["mcpServers"]["memory"]["args"], json!(["mcp", "--source", "memory"]), "{moved}");
    // What a setup that was killed left beside a file goes, too. No process has such a number.
    fs::write(machine.home(".cursor/mcp.json.new-2147483646"), TOKEN).unwrap();
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(machine.files(), before);
}

#[test]
fn of_several_setups_at_once_everything_comes_back() {
    let machine = SetupMachine::new();
    machine.unlock();
    let before = machine.files();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let output = machine.toolctl(&["setup", "--yes"]);
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                let is_late = words.contains("another `toolctl setup`") || words.contains("was changed meanwhile");
                assert!(output.status.success() || is_late, "{output:?}");
            });
        }
    });
    machine.done(&["setup", "--check"]);
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(machine.files(), before);
}

#[test]
fn a_server_comes_back_with_its_secret_where_its_file_is_gone() {
    let machine = with_cursor(ONE_LINE);
    machine.unlock();
    machine.done(&["setup", "--yes"]);
    fs::remove_file(machine.home(".cursor/mcp.json")).unwrap();
    let told = machine.done(&["setup", "--undo", "--yes"]);
    assert!(told.contains("the file is gone: it is written again, with the servers that were in it"), "{told}");
    assert!(!told.contains(TOKEN), "{told}");
    let back: Value = serde_json::from_str(&ONE_LINE.replace("%TOKEN%", TOKEN)).unwrap();
    assert_eq!(machine.json(".cursor/mcp.json"), back);
}

#[test]
fn a_server_comes_back_where_its_entry_is_gone_from_all_files() {
    for (repaired, now) in [(false, Some("{}\n")), (false, Some("")), (true, None)] {
        let machine = with_cursor(ONE_LINE);
        machine.unlock();
        machine.done(&["setup", "--yes"]);
        let file = machine.home(".cursor/mcp.json");
        match now {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let check = machine.toolctl(&["setup", "--check"]);
        assert_eq!(check.status.code(), Some(1), "{check:?}");
        assert!(String::from_utf8_lossy(&check.stdout).ends_with("run `toolctl setup` to repair it\n"), "{check:?}");
        machine.done(&["setup", "--yes"]);
        machine.done(&["setup", "--check"]);
        assert_eq!(machine.json(".cursor/mcp.json")["mcpServers"].get("memory").is_some(), repaired, "{now:?}");
        let told = machine.done(&["setup", "--undo", "--yes"]);
        assert!(!told.contains(TOKEN), "{told}");
        let back: Value = serde_json::from_str(&ONE_LINE.replace("%TOKEN%", TOKEN)).unwrap();
        assert_eq!(machine.json(".cursor/mcp.json"), back, "{told}");
    }
}

#[test]
fn an_entry_that_the_person_removed_stays_so_while_another_agent_has_its_server() {
    let machine = SetupMachine::new();
    machine.unlock();
    machine.done(&["setup", "--yes"]);
    let mut claude = machine.json(".claude.json");
    claude["mcpServers"].as_object_mut().unwrap().remove("github").unwrap();
    fs::write(machine.home(".claude.json"), claude.to_string()).unwrap();
    let checked = machine.done(&["setup", "--check"]);
    assert!(checked.contains("mcpServers.github was removed; setup leaves it so\n"), "{checked}");
    let mut codex = fs::read_to_string(machine.home(".codex/config.toml")).unwrap();
    codex = codex.replace("args = [\"mcp\", \"--source\", \"files\"]", "args = [\"other\"]");
    fs::write(machine.home(".codex/config.toml"), codex).unwrap();
    let checked = String::from_utf8(machine.toolctl(&["setup", "--check"]).stdout).unwrap();
    assert!(checked.contains("mcp_servers.files starts something else now\n"), "{checked}");
    let told = machine.done(&["setup", "--undo", "--yes"]);
    assert!(told.contains("github is not put back: its entry is gone"), "{told}");
    assert_eq!(machine.json(".claude.json").get("mcpServers"), None);
    assert!(fs::read_to_string(machine.home(".codex/config.toml")).unwrap().contains(TOKEN));
}

#[test]
fn hooks_go_out_of_a_group_that_the_person_extended() {
    let machine = SetupMachine::new();
    machine.done(&["setup", "--yes"]);
    let mut settings = machine.json(".claude/settings.json");
    let group = settings["hooks"]["PreToolUse"][0]["hooks"].as_array_mut().unwrap();
    group.push(json!({"type": "command", "command": "/bin/true"}));
    fs::write(machine.home(".claude/settings.json"), settings.to_string()).unwrap();
    machine.done(&["setup", "--check"]);
    machine.done(&["setup", "--undo", "--yes"]);
    let settings = machine.json(".claude/settings.json");
    let theirs = json!({"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "/bin/true"}]}]});
    assert_eq!(settings["hooks"], theirs, "{settings}");
}

#[test]
fn hooks_that_were_changed_or_removed_are_found_and_repaired() {
    let machine = SetupMachine::new();
    machine.done(&["setup", "--yes"]);
    let file = machine.home(".claude/settings.json");
    let whole = machine.json(".claude/settings.json");
    for path in ["/hooks/PreToolUse", "/hooks/PreToolUse/0/matcher"] {
        let mut settings = whole.clone();
        *settings.pointer_mut(path).unwrap() = json!([]);
        fs::write(&file, settings.to_string()).unwrap();
        let check = machine.toolctl(&["setup", "--check"]);
        let words = String::from_utf8_lossy(&check.stdout);
        assert!(words.contains("settings.json: the hooks are not as they were installed, or an earlier"), "{words}");
        assert!(words.contains("run `toolctl setup` to repair it") && check.status.code() == Some(1), "{words}");
        assert!(machine.done(&["agents"]).contains("changed"));
        let doctor = machine.toolctl(&["agents", "doctor"]);
        assert!(String::from_utf8_lossy(&doctor.stdout).contains("not as they were installed"), "{doctor:?}");
        machine.done(&["setup", "--yes"]);
        machine.done(&["setup", "--check"]);
    }
    // Settings of the person that leave the hooks where they are, and without effect.
    let codex = machine.home(".codex/config.toml");
    let codex_on = fs::read_to_string(&codex).unwrap();
    for (path, value, words) in [
        ("/disableAllHooks", json!(true), "claude-code does not run the hooks: take \"disableAllHooks\": true out of"),
        ("/env/CLAUDE_CODE_SHELL_PREFIX", json!("/other"), "claude-code does not confine its commands any more"),
        ("", json!({}), "codex does not run the hooks: take features.hooks = false out of"),
    ] {
        let mut settings = whole.clone();
        match path {
            "" => fs::write(&codex, format!("features.hooks = false\n{codex_on}")).unwrap(),
            "/disableAllHooks" => settings["disableAllHooks"] = value,
            path => *settings.pointer_mut(path).unwrap() = value,
        }
        fs::write(&file, settings.to_string()).unwrap();
        let check = machine.toolctl(&["setup", "--check"]);
        let told = String::from_utf8_lossy(&check.stdout);
        assert!(told.contains(words) && check.status.code() == Some(1), "{told}");
    }
    fs::write(&file, whole.to_string()).unwrap();
    fs::write(&codex, codex_on).unwrap();
    machine.done(&["setup", "--check"]);
    machine.done(&["setup", "--undo", "--yes"]);
    assert!(!fs::read_to_string(&file).unwrap().contains("toolctl"));
}

#[test]
fn names_that_mean_other_sources_and_names_that_stand_twice_are_no_trap() {
    let machine = with_cursor(r#"{"mcpServers": {"toold": {"command": "x"}, "plugin": {"command": "y"}}}"#);
    machine.done(&["setup", "--yes"]);
    let servers = machine.json(".cursor/mcp.json")["mcpServers"].take();
    for name in ["toold", "plugin"] {
        assert_eq!(servers[name]["args"], json!(["mcp", "--source", format!("{name}-cursor")]), "{servers}");
    }
    // The agent reads the second one.
    let machine = with_cursor(r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}"#);
    let told = machine.done(&["setup", "--yes"]);
    assert!(told.contains("is a name in it twice?"), "{told}");
    machine.done(&["setup", "--check"]);
}

#[test]
fn entries_that_toold_cannot_take_stay_and_the_others_move() {
    let stays = [
        ("wss", json!({"type": "ws", "url": "wss://example.invalid/ws"}), "is not an http or https URL"),
        ("bare", json!({"url": "example.invalid/mcp"}), "is not an http or https URL"),
        ("empty", json!({"url": ""}), "toold does not take it"),
        ("words", json!({"command": "x", "args": "one two"}), "its args is not a list"),
    ];
    let mut servers: serde_json::Map<String, Value> =
        stays.iter().map(|(name, entry, _)| ((*name).to_owned(), entry.clone())).collect();
    servers.insert("good".to_owned(), json!({"command": "x", "args": ["--port", 8080]}));
    let machine = with_cursor(&json!({"mcpServers": servers}).to_string());
    // Servers of a project that is gone.
    let gone = json!({"projects": {machine.home("gone").to_str().unwrap(): {"mcpServers": {"old": {"command": "y"}}}}});
    fs::write(machine.home(".claude.json"), gone.to_string()).unwrap();
    // In VS Code, servers stand in one of two files, and new ones are read from the other.
    let code = machine.home(".config/Code/User/settings.json");
    fs::create_dir_all(code.parent().unwrap()).unwrap();
    fs::write(&code, r#"{"mcp": {"servers": {"coded": {"command": "z"}}}}"#).unwrap();
    let told = machine.done(&["setup", "--yes"]);
    for (name, entry, why) in stays {
        let line = told.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {told}");
        assert_eq!(machine.json(".cursor/mcp.json")["mcpServers"][name], entry);
    }
    assert!(told.contains("the folder of its project is gone"), "{told}");
    let good = machine.json(".cursor/mcp.json")["mcpServers"]["good"].take();
    assert_eq!(good["args"], json!(["mcp", "--source", "good"]), "{good}");
    let config = fs::read_to_string(machine.daemon.setup.path("config/toold/config.toml")).unwrap();
    assert!(config.contains("args = [\"--port\", \"8080\"]") && !config.contains("servers.old"), "{config}");
    let settings = machine.json(".config/Code/User/settings.json");
    assert_eq!(settings, json!({"mcp": {"servers": {"coded": bridge("coded")}}}));
    assert_ne!(machine.json(".config/Code/User/mcp.json")["servers"]["toold"], Value::Null);
}

#[test]
fn a_setup_that_was_killed_comes_back_byte_for_byte() {
    let machine = SetupMachine::new();
    machine.unlock();
    let before = machine.files();
    machine.done(&["setup", "--yes"]);
    // The record is written first: these are the files of a setup that was killed after it.
    for path in machine.files().keys().filter(|path| !before.contains_key(*path)) {
        fs::remove_file(path).unwrap();
    }
    for (path, (text, _)) in &before {
        fs::write(path, text).unwrap();
    }
    // No process has such a number.
    let config = machine.daemon.setup.path("config/toold/config.toml.new-2147483646");
    fs::write(&config, TOKEN).unwrap();
    machine.done(&["setup", "--yes"]);
    assert!(!config.exists());
    machine.done(&["setup", "--check"]);
    let undone = machine.done(&["setup", "--undo", "--yes"]);
    assert!(undone.contains(" 0 entry by entry"), "{undone}");
    assert_eq!(machine.files(), before);
}

#[test]
fn a_file_of_a_repository_elsewhere_is_never_changed_and_a_new_one_is_nobody_s() {
    let machine = SetupMachine::new();
    let git = |arguments: &[&str]| {
        let mut command = machine.daemon.setup.command(Path::new("git"));
        let output = command.current_dir(machine.home("")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let repositories = [(".dotfiles", ".gemini/settings.json"), (".local/share/yadm/repo.git", ".qwen/settings.json")];
    let mut before = Vec::new();
    for (repository, file) in repositories {
        git(&["init", "-q", "--bare", repository]);
        git(&[&format!("--git-dir={repository}"), "--work-tree=.", "add", file]);
        before.push(fs::read(machine.home(file)).unwrap());
    }
    // Its folder for plugins is not there yet.
    git(&["init", "-q", ".config/opencode"]);
    let told = machine.done(&["setup", "--yes"]);
    for ((_, file), before) in repositories.iter().zip(before) {
        assert_eq!(fs::read(machine.home(file)).unwrap(), before, "{told}");
        assert!(told.contains(&format!("{}: it is tracked by Git", machine.home(file).display())), "{told}");
    }
    assert!(machine.home(".config/opencode/plugins/toold.js").exists(), "{told}");
    assert_ne!(machine.json(".cursor/mcp.json")["mcpServers"]["toold"], Value::Null);
}

#[test]
fn a_tracked_file_is_listed_and_never_changed() {
    let machine = SetupMachine::new();
    let file = machine.home(".cursor/mcp.json");
    let git = |arguments: &[&str]| {
        let mut command = machine.daemon.setup.command(Path::new("git"));
        command.args(["-c", "user.name=x", "-c", "user.email=x@x", "-C"]).arg(machine.home(".cursor"));
        assert!(command.args(arguments).output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "mcp.json"]);
    git(&["commit", "-q", "-m", "x"]);
    let before = fs::read(&file).unwrap();
    let told = machine.done(&["setup", "--yes"]);
    assert!(told.contains("tracked by Git"), "{told}");
    assert!(!told.contains("is your own override"), "that would be the tracked file: {told}");
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(machine.home(".cursor/hooks.json").exists(), "other files beside it are not tracked");
}

#[test]
fn servers_of_projects_move_with_their_folder_unless_git_tracks_the_file() {
    let machine = SetupMachine::new();
    let server = machine.daemon.setup.path("server.py");
    for project in ["tracked", "mine"] {
        let folder = machine.home(project);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("run.py"), fs::read(&server).unwrap()).unwrap();
        let entry = json!({"mcpServers": {project: {"command": "python3", "args": ["./run.py"]}}});
        fs::write(folder.join(".mcp.json"), entry.to_string()).unwrap();
        let mut git = machine.daemon.setup.command(Path::new("git"));
        assert!(git.args(["init", "-q"]).arg(&folder).output().unwrap().status.success());
    }
    let mut git = machine.daemon.setup.command(Path::new("git"));
    let tracked = machine.home("tracked");
    assert!(git.arg("-C").arg(&tracked).args(["add", ".mcp.json"]).output().unwrap().status.success());
    let mut claude = machine.json(".claude.json");
    let local = json!({"mcpServers": {"local": {"command": "python3", "args": ["./run.py", "--local"]}}});
    claude["projects"] = json!({tracked.to_str().unwrap(): {}, machine.home("mine").to_str().unwrap(): local});
    fs::write(machine.home(".claude.json"), claude.to_string()).unwrap();
    let before = machine.files();
    let told = machine.done(&["setup", "--yes"]);
    assert!(told.contains("is your own override"), "{told}");
    assert_eq!(machine.files()[&tracked.join(".mcp.json")], before[&tracked.join(".mcp.json")]);
    assert_eq!(machine.json("mine/.mcp.json")["mcpServers"]["mine"], bridge("mine"));
    let local =
        &machine.json(".claude.json")["projects"][machine.home("mine").to_str().unwrap()]["mcpServers"]["local"];
    assert_eq!(*local, bridge("local"));
    let servers: Value = serde_json::from_str(&machine.done(&["mcp", "servers", "--json"])).unwrap();
    for name in ["mine", "local"] {
        let server = servers["servers"].as_array().unwrap().iter().find(|server| server["name"] == name).unwrap();
        assert_eq!(server["state"], "running", "{server}");
    }
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(machine.json(".claude.json"), claude);
}

#[test]
fn what_an_agent_allows_is_taken_along_for_it_alone_where_a_person_ticks_it() {
    let machine = SetupMachine::new();
    machine.unlock();
    let settings = machine.home(".claude/settings.json");
    let rules = ["Bash(make)", "Bash(git log:*)", "Read(./src/**)", "mcp__github__shout", "Bash"];
    fs::write(&settings, json!({"permissions": {"allow": rules}}).to_string()).unwrap();
    let plan: Value = serde_json::from_str(&machine.done(&["setup", "--json"])).unwrap();
    let offered: Vec<&str> =
        plan["can_be_taken"].as_array().unwrap().iter().map(|rule| rule["pattern"].as_str().unwrap()).collect();
    assert_eq!(offered, ["make", "git log *", "github/shout"], "{plan}");
    let before = machine.files();
    let mut command = machine.daemon.setup.command(toolctl());
    command.arg("setup").current_dir(machine.daemon.work());
    let mut terminal = Terminal::run_in(&mut command, 140);
    terminal.wait_for("need not ask");
    terminal.press("\r");
    terminal.wait_for("for their agent alone");
    // What it frees stands beside it.
    terminal.wait_for("runs code of the project");
    const DOWN: &str = "\u{1b}[B";
    terminal.press(&format!(" {DOWN}{DOWN} \r"));
    terminal.wait_for("What may agents do");
    // Each level with its meaning.
    terminal.wait_for("develop  And building and testing the project");
    terminal.press("\r");
    terminal.wait_for("[y/N]");
    terminal.press("y");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    let own = fs::read_to_string(machine.daemon.setup.path("config/toold/config.toml")).unwrap();
    assert!(own.contains("pattern = \"make\"") && own.contains("tools = [\"bash\"]"), "{own}");
    assert!(!own.contains("git log") && own.contains("pattern = \"github/shout\""), "{own}");
    assert_eq!(own.matches("agent = \"claude-code\"").count(), 2, "{own}");
    let check = |of: &[&str], line: &str| {
        machine.toolctl(&[&["permissions", "check", "--tool", "bash"], of, &[line]].concat()).status.success()
    };
    let claude = ["--agent", "claude-code"];
    assert!(check(&claude, "make") && !check(&claude, "make clean"));
    assert!(!check(&["--agent", "codex"], "make") && !check(&[], "make"));
    // The server is called through its bridge. The agent's hook tells the daemon whose bridge it is.
    let call = |agent: &[&str]| {
        let mut command = machine.daemon.setup.command(Path::new("python3"));
        command.args(["-c", AGENT]).arg(toolctl()).args(agent).current_dir(machine.daemon.work());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let of_claude = call(&["claude-code"]);
    assert!(of_claude.contains("HEARD"), "{of_claude}");
    for others in [&["codex"][..], &[], &["codex", "claude-code"], &["claude-code", "codex"]] {
        let answer = call(others);
        assert!(answer.contains("not allowed"), "{others:?}: {answer}");
    }
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(machine.files(), before);
}

#[test]
fn a_denial_for_a_server_counts_for_each_server_of_its_name() {
    let machine = SetupMachine::new();
    machine.unlock();
    let codex = machine.home(".codex/config.toml");
    let other = fs::read_to_string(&codex).unwrap().replacen(".py\"]", ".py\", \"--other\"]", 1);
    fs::write(&codex, other).unwrap();
    let denied = ["mcp__github__shout", "mcp__elsewhere", "Bash(github/x)"];
    let settings = json!({"permissions": {"deny": denied}});
    fs::write(machine.home(".claude/settings.json"), settings.to_string()).unwrap();
    let denials = |plan: String| -> Vec<String> {
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let all = plan["denials"].as_array().unwrap().clone();
        all.iter().map(|denial| denial["pattern"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ["github/shout", "github-codex/shout", "elsewhere/*", "github/x"];
    assert_eq!(denials(machine.done(&["setup", "--json"])), expected);
    machine.done(&["setup", "--yes"]);
    let check = |tool: &str| machine.toolctl(&["permissions", "check", "mcp", tool]);
    let said = String::from_utf8(check("github-codex/shout").stdout).unwrap();
    assert!(said.starts_with("deny by rule deny mcp \"github-codex/shout\""), "{said}");
    // A denial that comes later counts for the servers that have moved.
    let later = json!({"permissions": {"deny": ["mcp__github__whisper"]}});
    fs::write(machine.home(".claude/settings.json"), later.to_string()).unwrap();
    assert_eq!(denials(machine.done(&["setup", "--json"])), ["github/whisper", "github-codex/whisper"]);
}

#[test]
fn copies_of_earlier_installations_go_with_an_undo() {
    let machine = SetupMachine::new();
    let told = machine.done(&["agents", "install", "gemini", "--hooks", "--yes"]);
    let copy = machine.home(".gemini/settings.json.before-toold-hooks");
    assert!(told.contains(copy.to_str().unwrap()) && copy.exists(), "{told}");
    machine.done(&["agents", "install", "gemini", "--hooks", "--undo", "--yes"]);
    machine.done(&["mcp", "install", "cursor", "--yes"]);
    let copy = machine.home(".cursor/mcp.json.before-toold");
    assert!(copy.exists());
    machine.done(&["setup", "--yes"]);
    machine.done(&["mcp", "install", "cursor", "--undo", "--yes"]);
    fs::write(&copy, "x").unwrap();
    let told = machine.done(&["setup", "--undo", "--yes"]);
    assert!(told.contains(copy.to_str().unwrap()) && !copy.exists(), "{told}");
}

#[test]
fn a_link_stays_a_link() {
    let machine = SetupMachine::new();
    let (link, target) = (machine.home(".qwen/settings.json"), machine.home("dotfiles-qwen.json"));
    fs::rename(&link, &target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let before = fs::read(&target).unwrap();
    machine.done(&["setup", "--yes"]);
    assert!(link.is_symlink() && fs::read_to_string(&target).unwrap().contains("--source"));
    machine.done(&["setup", "--undo", "--yes"]);
    assert!(link.is_symlink() && fs::read(&target).unwrap() == before);
}

#[test]
fn processes_of_agents_are_refused_where_setup_writes() {
    let machine = SetupMachine::new();
    let before = machine.files();
    // An agent: the program that starts a client of a model.
    let script = "import subprocess, sys\n\
        hello = b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\\n'\n\
        mcp = subprocess.Popen([sys.argv[1], 'mcp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n\
        mcp.stdin.write(hello); mcp.stdin.flush(); mcp.stdout.readline()\n\
        sys.exit(subprocess.run([sys.argv[1], 'setup'] + sys.argv[2:]).returncode)";
    for arguments in [&["--yes"][..], &["--undo", "--yes"]] {
        let mut command: Command = machine.daemon.setup.command(Path::new("python3"));
        let output = command.args(["-c", script]).arg(toolctl()).args(arguments).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains("configurations are written by people"), "{words}");
    }
    assert_eq!(machine.files(), before);
}

#[test]
fn purge_packs_what_the_person_wrote_for_the_person_alone() {
    let setup = Setup::new().plugin("mine.lua", "-- mine\n");
    SetupMachine::write_files(&setup);
    // The daemon that toolctl starts is stopped by the purge.
    let done = |arguments: &[&str]| {
        let output = setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    done(&["setup", "--yes"]);
    let state = setup.path("state/toold");
    fs::create_dir(state.join("theirs")).unwrap();
    fs::write(state.join("theirs/mine.txt"), "mine").unwrap();
    let told = done(&["setup", "--undo", "--purge", "--yes"]);
    assert!(told.contains("/toold/theirs\n") && !told.contains("toold.db-wal"), "{told}");
    assert!(told.contains("Will be packed into") && told.contains("Will be removed:"), "{told}");
    assert!(told.contains("To remove the programs"), "{told}");
    let mut found = fs::read_dir(setup.path("home")).unwrap().map(|entry| entry.unwrap().path());
    let archive = found.find(|path| path.to_string_lossy().ends_with(".tar.gz")).unwrap();
    assert_eq!(archive.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let list = setup.command(Path::new("tar")).arg("-tzf").arg(&archive).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    for file in ["plugins/mine.lua", "toold/toold.db", "theirs/mine.txt"] {
        assert!(list.contains(file), "{file}: {list}");
    }
    assert!(!list.contains("secrets.json") && !list.contains("setup.json") && !list.contains("log/"), "{list}");
    assert!(!setup.path("config/toold").exists() && !setup.path("state/toold").exists());
    assert!(!fs::read_to_string(setup.path("home/.qwen/settings.json")).unwrap().contains("toolctl"));
    // Again: there is nothing to pack, and no daemon is started that makes something.
    done(&["setup", "--undo", "--purge", "--yes"]);
    assert!(!setup.path("config/toold").exists() && !setup.path("state/toold").exists());
    let names = fs::read_dir(setup.path("home")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".tar.gz")).count(), 1);
}

/// All folders of the person that are empty.
fn empty_folders(setup: &Setup) -> Vec<PathBuf> {
    let mut empty = Vec::new();
    let mut folders = vec![setup.path("home"), setup.path("config")];
    while let Some(folder) = folders.pop() {
        let inside: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        if inside.is_empty() {
            empty.push(folder);
        }
        folders.extend(inside.into_iter().filter(|path| path.is_dir()));
    }
    empty
}

#[test]
fn an_installation_that_is_taken_back_leaves_no_folder_and_no_agent() {
    let daemon = TestDaemon::start();
    let done = |arguments: &[&str]| {
        let mut command = daemon.setup.command(toolctl());
        let output = command.args(arguments).current_dir(daemon.work()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (before, page) = (empty_folders(&daemon.setup), done(&["setup", "--dry-run"]));
    for client in ["windsurf", "claude-desktop", "copilot", "qwen-code", "zed", "vscode", "opencode", "cursor"] {
        done(&["mcp", "install", client, "--yes"]);
        done(&["mcp", "install", client, "--undo", "--yes"]);
    }
    for agent in ["copilot", "qwen-code", "vscode", "opencode", "cursor", "gemini", "codex", "claude-code"] {
        done(&["agents", "install", agent, "--yes"]);
        done(&["agents", "install", agent, "--undo", "--yes"]);
    }
    assert_eq!(empty_folders(&daemon.setup), before);
    assert_eq!(done(&["setup", "--dry-run"]), page);
    // A folder that has been used since is its agent's.
    done(&["mcp", "install", "windsurf", "--yes"]);
    let folder = daemon.setup.path("home/.codeium/windsurf");
    fs::write(folder.join("theirs"), "").unwrap();
    done(&["mcp", "install", "windsurf", "--undo", "--yes"]);
    assert!(folder.join("theirs").exists() && done(&["setup", "--dry-run"]).contains("Windsurf"));
}

#[test]
fn a_folder_that_setup_made_for_its_own_configuration_goes_with_it() {
    let machine = with_cursor(ONE_LINE);
    machine.unlock();
    let folder = machine.daemon.setup.path("config/toold");
    fs::remove_dir_all(&folder).unwrap();
    machine.done(&["setup", "--yes"]);
    assert!(folder.join("config.toml").exists());
    machine.done(&["setup", "--undo", "--yes"]);
    assert!(!folder.exists());
    // A setup that changes nothing leaves none, either.
    let mut locked = machine.home(".cursor").metadata().unwrap().permissions();
    locked.set_mode(0o500);
    fs::set_permissions(machine.home(".cursor"), locked.clone()).unwrap();
    let failed = machine.toolctl(&["setup", "--yes"]);
    locked.set_mode(0o700);
    fs::set_permissions(machine.home(".cursor"), locked).unwrap();
    // The superuser writes everywhere.
    if !failed.status.success() {
        assert!(!folder.exists(), "{failed:?}");
    }
}

#[test]
fn the_page_says_what_happens_to_each_agent_and_counts_them() {
    let machine = SetupMachine::new();
    machine.unlock();
    for folder in [".config/nvim", ".config/opencode/plugins-of-mine"] {
        fs::create_dir_all(machine.home(folder)).unwrap();
    }
    fs::write(machine.home(".gemini/settings.json"), "{ no json").unwrap();
    let settings = json!({"permissions": {"ask": ["Bash(docker:*)"]}});
    fs::write(machine.home(".claude/settings.json"), settings.to_string()).unwrap();
    let before = empty_folders(&machine.daemon.setup);
    let page = machine.done(&["setup", "--dry-run"]);
    let line = |name: &str| {
        let mut lines = page.lines().filter(|line| line.trim_start().starts_with(name));
        lines.next().unwrap_or_else(|| panic!("{name}: {page}")).split_once(name).unwrap().1.trim()
    };
    assert_eq!(line("Qwen Code"), "gets hooks, gets an entry for toold");
    assert_eq!(line("Gemini CLI"), "is left alone: see below");
    assert_eq!(line("Neovim"), "has a client of its own: see the README");
    assert_eq!(page.matches(".gemini/settings.json").count(), 1, "{page}");
    assert!(page.contains("claude-code asks about Bash(docker:*)"), "{page}");
    let told = machine.done(&["setup", "--yes"]);
    // All of the machine's agents but Gemini CLI, and not Neovim.
    assert!(told.contains("Done: 9 agents"), "{told}");
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(empty_folders(&machine.daemon.setup), before);
    let check = machine.toolctl(&["setup", "--check"]);
    assert_eq!(check.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(check.stdout).unwrap(),
        "nothing is set up here: `toolctl setup --dry-run` shows what it would change\n"
    );
}

#[test]
fn ctrl_c_at_a_form_leaves_a_clean_line() {
    let machine = SetupMachine::new();
    machine.unlock();
    let before = machine.files();
    let mut command = machine.daemon.setup.command(toolctl());
    command.arg("setup").current_dir(machine.daemon.work());
    let mut terminal = Terminal::run_in(&mut command, 100);
    terminal.wait_for("need not ask");
    terminal.press("\u{3}");
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(130), "{written}");
    assert!(written.trim_end().ends_with("\u{1b}[Jnothing is changed"), "{written:?}");
    assert_eq!(machine.files(), before);
}

#[test]
fn a_setup_that_would_change_nothing_does_not_ask_whether_it_should() {
    let machine = SetupMachine::new();
    machine.unlock();
    let (shop, tea) = (machine.home("shop"), machine.home("tea"));
    for folder in [&shop, &tea] {
        fs::create_dir(folder).unwrap();
    }
    let projects = json!({"projects": {shop.to_str().unwrap(): {}, tea.to_str().unwrap(): {}}});
    fs::write(machine.home(".claude.json"), projects.to_string()).unwrap();
    let settings = json!({"permissions": {"allow": ["Bash(make)"]}});
    fs::write(machine.home(".claude/settings.json"), settings.to_string()).unwrap();
    machine.done(&["setup", "--yes", "--folder", shop.to_str().unwrap()]);
    fs::write(machine.daemon.setup.path("config/toold/config.toml"), {
        let file = machine.daemon.setup.path("config/toold/config.toml");
        format!("[permission]\nlevel = \"read\"\n\n{}", fs::read_to_string(file).unwrap())
    })
    .unwrap();
    let page = machine.done(&["setup", "--dry-run"]);
    // The folder of the first setup is open, and not offered again.
    assert!(page.contains(tea.to_str().unwrap()) && !page.contains(&format!("{}  ", shop.display())), "{page}");
    let mut command = machine.daemon.setup.command(toolctl());
    command.arg("setup").current_dir(machine.daemon.work());
    let mut terminal = Terminal::run_in(&mut command, 140);
    terminal.wait_for("Folders in which every agent may work");
    terminal.press("\r");
    terminal.wait_for("for their agent alone (none is fine)");
    terminal.press("\r");
    let (status, written) = terminal.end();
    assert!(status.success() && written.contains("Nothing to change."), "{written}");
    assert!(!written.contains("Set toold up like this?"), "{written}");
}

#[test]
fn a_machine_without_agents_is_told_which_ones_are_looked_for() {
    let daemon = TestDaemon::start();
    let mut command = daemon.setup.command(toolctl());
    // Without the programs of this machine.
    command.args(["setup", "--dry-run"]).env("PATH", daemon.setup.path("none"));
    let page = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(page.starts_with("No agent was found\n  looked for Claude Code, Codex, Gemini CLI,"), "{page}");
    assert!(page.ends_with("Nothing to change.\n"), "{page}");
}

/// A variable of the entry itself, which the server puts into its argument, as `mcp-remote` does.
#[test]
fn a_reference_that_the_server_fills_in_moves_as_it_is() {
    const ECHO: &str = "import sys, json, os\nopen(os.environ['OUT'], 'w').write(json.dumps([sys.argv[1:], os.environ['AUTH_HEADER']]))\n";
    let setup = Setup::new();
    let (server, out) = (setup.path("echo.py"), setup.path("out"));
    fs::write(&server, ECHO).unwrap();
    let entry = json!({
        "command": "python3",
        "args": [server, "--header", "Authorization:${AUTH_HEADER}", "--dsn", "Server=db;User Id=sa;Password=Str0ngPass!;"],
        "env": {"AUTH_HEADER": "Bearer zzzz0123456789", "OUT": out},
    });
    let file = setup.home(".config/Claude/claude_desktop_config.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, json!({"mcpServers": {"tickets": entry}}).to_string()).unwrap();
    let machine = SetupMachine { daemon: setup.start() };
    machine.unlock();
    let told = machine.done(&["setup", "--yes"]);
    // One secret for the connection, and none for the password in it.
    assert!(told.contains("secrets: TICKETS_AUTH_HEADER, TICKETS_DSN\n"), "{told}");
    let ran = toold_tests::until("the server has started", || {
        serde_json::from_str::<Value>(&fs::read_to_string(&out).ok()?).ok()
    });
    let arguments =
        json!(["--header", "Authorization:${AUTH_HEADER}", "--dsn", "Server=db;User Id=sa;Password=Str0ngPass!;"]);
    assert_eq!(ran, json!([arguments, "Bearer zzzz0123456789"]));
    machine.done(&["setup", "--undo", "--yes"]);
    assert_eq!(machine.json(".config/Claude/claude_desktop_config.json"), json!({"mcpServers": {"tickets": entry}}));
}

#[test]
fn the_pages_of_setup_and_undo_show_what_changes_and_count_the_hooks() {
    let machine = SetupMachine::new();
    machine.unlock();
    let page = machine.done(&["setup", "--dry-run"]);
    let codex = page.split("/.codex/config.toml\n").nth(1).unwrap().split("\n/").next().unwrap();
    // The comment between the two servers stays, and is no part of the difference.
    assert!(codex.contains("\n  # files\n") && !codex.contains("- # files"), "{codex}");
    machine.done(&["setup", "--yes"]);
    // Its entry is in the file that is there, of the two that opencode reads.
    let agents: Value = serde_json::from_str(&machine.done(&["agents", "--json"])).unwrap();
    let opencode = agents["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "opencode").unwrap();
    assert_eq!(opencode["mcp"], true, "{opencode}");
    let mut gemini = fs::read_to_string(machine.home(".gemini/settings.json")).unwrap();
    gemini = gemini.replace("// mine", "// mine, too");
    fs::write(machine.home(".gemini/settings.json"), gemini).unwrap();
    let undo = machine.done(&["setup", "--undo", "--dry-run"]);
    assert!(undo.contains("/.gemini/settings.json: the hooks of toold, ") && undo.contains(" lines less\n"), "{undo}");
    assert!(!undo.contains("toolctl hook "), "{undo}");
}
