//! `toolctl mcp install`: adds an entry to clients' files, shows it first, keeps the rest, and can undo it.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::{Value, json};
use toold_tests::{Setup, toolctl};

const JSON: &str = r#"{
  "theme": "dark",
  "HOLDER": {
    "other": {"command": "other-server", "args": ["--flag"]}
  },
  "last": [1, 2]
}
"#;
/// With extensions to JSON that editors allow in their files.
const JSONC: &str = r#"// my settings
{
  "theme": "dark", /* not light */
  "HOLDER": {
    // theirs
    "other": {"command": "other-server"},
  },
}
"#;
const TOML: &str = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"other-server\" # theirs\n";

/// Name, file below the home folder, the member that holds servers, the text before.
const CLIENTS: [(&str, &str, &str, &str); 11] = [
    ("claude-code", ".claude.json", "mcpServers", JSON),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers", JSON),
    ("codex", ".codex/config.toml", "mcp_servers", TOML),
    ("copilot", ".copilot/mcp-config.json", "mcpServers", JSON),
    ("qwen-code", ".qwen/settings.json", "mcpServers", JSON),
    ("cursor", ".cursor/mcp.json", "mcpServers", JSON),
    ("gemini-cli", ".gemini/settings.json", "mcpServers", JSON),
    ("opencode", ".config/opencode/opencode.json", "mcp", JSONC),
    ("vscode", ".config/Code/User/mcp.json", "servers", JSONC),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers", JSON),
    ("zed", ".config/zed/settings.json", "context_servers", JSONC),
];

fn run(setup: &Setup, arguments: &[&str]) -> Output {
    setup.command(toolctl()).args(["mcp", "install"]).args(arguments).output().unwrap()
}

#[track_caller]
fn done(setup: &Setup, arguments: &[&str]) -> String {
    let output = run(setup, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The entry that a client would read from a file of any of the three kinds.
fn entry(text: &str, holder: &str) -> Value {
    let read: Value = match text.starts_with('#') {
        true => toml::from_str(text).unwrap(),
        false => {
            // Comments and trailing commas are the only extensions in these files.
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let text = lines.collect::<Vec<_>>().join("\n").replace("/* not light */", "");
            let bytes: Vec<char> = text.chars().collect();
            let ends =
                |at: usize| bytes[at + 1..].iter().find(|c| !c.is_whitespace()).is_some_and(|c| "}]".contains(*c));
            let kept = bytes.iter().enumerate().filter(|(at, c)| **c != ',' || !ends(*at)).map(|(_, c)| *c);
            serde_json::from_str(&kept.collect::<String>()).unwrap()
        }
    };
    assert_eq!(read[holder]["other"]["command"], "other-server", "what was there stays: {text}");
    read[holder]["toold"].clone()
}

#[test]
fn install_keeps_other_entries_of_each_client_and_can_be_undone() {
    for (client, file, holder, before) in CLIENTS {
        let setup = Setup::new();
        let file = setup.home(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let before = before.replace("HOLDER", holder);
        std::fs::write(&file, &before).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();

        // Without a terminal, the change is shown and not made, as in a dry run.
        let refused = run(&setup, &[client]);
        assert!(!refused.status.success());
        let shown = String::from_utf8(refused.stdout).unwrap();
        assert_eq!(done(&setup, &[client, "--dry-run"]), shown, "{client}");
        assert!(shown.starts_with(file.to_str().unwrap()), "{client}: {shown}");
        assert!(shown.lines().any(|line| line.starts_with('+') && line.contains("toold")), "{client}: {shown}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

        done(&setup, &[client, "--yes"]);
        let after = std::fs::read_to_string(&file).unwrap();
        let entry = entry(&after, holder);
        // One client has the program and its arguments in one list.
        let (program, arguments) = match &entry["command"] {
            Value::Array(words) => (words[0].clone(), json!(words[1..])),
            program => (program.clone(), entry["args"].clone()),
        };
        // Without the tools that the client has itself.
        let expected = match client {
            "claude-desktop" => json!(["mcp"]),
            _ => json!(["mcp", "--profile", "without-files-and-shell"]),
        };
        assert_eq!(arguments, expected, "{client}: {after}");
        assert_eq!(shown.contains(&format!("toolctl mcp install {client} --profile all")), client != "claude-desktop");
        let program = Command::new(program.as_str().unwrap()).arg("--version").output().unwrap();
        assert!(program.status.success() && program.stdout.starts_with(b"toolctl "), "{client}: {program:?}");
        for kept in before.lines().filter(|line| line.contains("//") || line.contains('#') || line.contains("theme")) {
            assert!(after.contains(kept.trim_end_matches(',')), "{client}: {kept} is gone: {after}");
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "{client}");
        assert!(done(&setup, &[client, "--yes"]).contains("already has the entry"), "{client}");

        let undone = done(&setup, &[client, "--undo", "--yes"]);
        assert!(undone.lines().any(|line| line.starts_with('-') && line.contains("toold")), "{client}: {undone}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "{client}");
        assert!(!run(&setup, &[client, "--undo", "--yes"]).status.success(), "{client}: there is nothing to undo");

        // An entry of this name may be the person's own.
        let theirs = before.replace("\"other\"", "\"toold\"").replace(".other]", ".toold]");
        assert_ne!(theirs, before);
        std::fs::write(&file, &theirs).unwrap();
        for arguments in [&["--yes"][..], &["--profile", "all", "--yes"], &["--undo", "--yes"]] {
            done(&setup, &[&[client], arguments].concat());
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs, "{client}");
    }
}

#[test]
fn a_file_that_was_not_there_is_its_owners_alone_and_goes_again() {
    for (client, file, _, _) in CLIENTS {
        let setup = Setup::new();
        let file = setup.home(file);
        done(&setup, &[client, "--yes"]);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{client}");
        done(&setup, &[client, "--undo", "--yes"]);
        // Its folder goes too, if the file was all that it held.
        let folder = std::fs::read_dir(file.parent().unwrap()).into_iter().flatten();
        let left: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| !path.display().to_string().contains(&*file.display().to_string())), "{left:?}");
    }
}

#[test]
fn undo_takes_only_the_entry_out_of_a_file_that_its_client_has_changed_since() {
    for (client, file, holder, before) in CLIENTS {
        let setup = Setup::new();
        let file = setup.home(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let before = before.replace("HOLDER", holder);
        std::fs::write(&file, &before).unwrap();
        done(&setup, &[client, "--yes"]);
        let changed = match client {
            "codex" => std::fs::read_to_string(&file).unwrap().replace("\"x\"", "\"y\"") + "\n[new]\nof = \"theirs\"\n",
            _ => std::fs::read_to_string(&file).unwrap().replace("\"dark\"", "\"light\""),
        };
        std::fs::write(&file, &changed).unwrap();
        done(&setup, &[client, "--undo", "--yes"]);
        let after = std::fs::read_to_string(&file).unwrap();
        assert_eq!(entry(&after, holder), Value::Null, "{client}: {after}");
        let kept = if client == "codex" { "of = \"theirs\"" } else { "\"light\"" };
        assert!(after.contains(kept), "{client}: {after}");
        let again = run(&setup, &[client, "--undo", "--yes"]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("there is nothing to undo"), "{client}: {again:?}");
    }
}

#[test]
fn installing_again_keeps_what_the_user_added_to_the_entry() {
    for (client, file, holder, _) in CLIENTS {
        let setup = Setup::new();
        let file = setup.home(file);
        done(&setup, &[client, "--yes"]);
        let text = std::fs::read_to_string(&file).unwrap();
        let changed = match client {
            "codex" => format!("{text}env = {{ KEY = \"value\" }}\n").replace("toolctl\"", "elsewhere/toolctl\""),
            _ => text
                .replace("\"command\"", "\"env\": {\"KEY\": \"value\"}, \"command\"")
                .replace("toolctl\"", "elsewhere/toolctl\""),
        };
        assert_ne!(text, changed);
        std::fs::write(&file, &changed).unwrap();
        done(&setup, &[client, "--yes"]);
        let after = std::fs::read_to_string(&file).unwrap();
        let read: Value =
            if client == "codex" { toml::from_str(&after).unwrap() } else { serde_json::from_str(&after).unwrap() };
        let entry = &read[holder]["toold"];
        assert_eq!(entry["env"]["KEY"], "value", "{client}: {after}");
        let program = entry["command"].as_str().or(entry["command"][0].as_str()).unwrap();
        assert!(program.ends_with("toolctl"), "{client}: {after}");
    }
}

#[test]
fn installing_again_keeps_arguments_and_changes_the_profile_only_when_told() {
    for (client, file, holder, _) in
        CLIENTS.into_iter().filter(|(client, ..)| ["codex", "claude-desktop", "zed"].contains(client))
    {
        let setup = Setup::new();
        let file = setup.home(file);
        done(&setup, &[client, "--yes"]);
        let arguments = || {
            let text = std::fs::read_to_string(&file).unwrap();
            let read: Value =
                if client == "codex" { toml::from_str(&text).unwrap() } else { serde_json::from_str(&text).unwrap() };
            read[holder]["toold"]["args"].clone()
        };
        assert!(done(&setup, &[client, "--profile", "all", "--yes"]).contains("gets all tools"), "{client}");
        assert_eq!(arguments(), json!(["mcp", "--profile", "all"]), "{client}");
        let text = std::fs::read_to_string(&file).unwrap().replace("\"mcp\"", "\"mcp\", \"--listing\", \"deferred\"");
        std::fs::write(&file, text.replace("toolctl\"", "elsewhere/toolctl\"")).unwrap();
        done(&setup, &[client, "--yes"]);
        assert_eq!(arguments(), json!(["mcp", "--listing", "deferred", "--profile", "all"]), "{client}");
        done(&setup, &[client, "--profile", "web", "--yes"]);
        assert_eq!(arguments(), json!(["mcp", "--listing", "deferred", "--profile", "web"]), "{client}");
        assert!(!run(&setup, &[client, "--profile", "a/b", "--yes"]).status.success(), "{client}");
        done(&setup, &[client, "--undo", "--yes"]);
        let left = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!left.contains("--profile"), "{client}: {left}");
    }
}

#[test]
fn a_file_that_cannot_be_understood_is_left_alone() {
    let setup = Setup::new();
    let file = setup.path("home/.cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for broken in ["{\"mcpServers\": ", "{\"mcpServers\": []}", "[1]"] {
        std::fs::write(&file, broken).unwrap();
        let refused = run(&setup, &["cursor", "--yes"]);
        assert!(!refused.status.success(), "{broken}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    }
    // The line of the mistake is told, in each kind of file.
    for (client, file, broken, line) in [
        ("codex", ".codex/config.toml", "model = \"x\"\n[half\nnext = 1\n", "line 2"),
        ("cursor", ".cursor/mcp.json", "{\n  \"a\": 1,\n  \"b\" 2\n}\n", "line 3"),
        ("zed", ".config/zed/settings.json", "// mine\n{\n  \"a\": ,\n}\n", "line 3"),
    ] {
        let file = setup.home(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, broken).unwrap();
        for arguments in [vec![client, "--yes"], vec![client, "--undo", "--yes"]] {
            let refused = run(&setup, &arguments);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && said.contains(line), "{client}: {said}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
        }
        assert_eq!(
            std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "{client}: nothing is left beside it"
        );
    }
}

#[test]
fn doctor_lists_configured_clients_and_connects_as_they_do() {
    let config = "[mcp]\nlisten = \"127.0.0.1:0\"\n";
    let plugin = "hygge.register_tool{name = 'mine', permission = false, execute = function() return 'x' end}";
    let daemon = Setup::new().config(config).plugin("mine.lua", plugin).start();
    done(&daemon.setup, &["zed", "--yes"]);
    for (client, argument) in [("cursor", "--source=mine"), ("windsurf", "--sauce=mine")] {
        done(&daemon.setup, &[client, "--profile", "all", "--yes"]);
        let (_, file, ..) = CLIENTS.iter().find(|(name, ..)| *name == client).unwrap();
        let text = std::fs::read_to_string(daemon.setup.home(file)).unwrap();
        std::fs::write(daemon.setup.home(file), text.replace("\"mcp\",", &format!("\"mcp\", \"{argument}\",")))
            .unwrap();
    }
    let output = toold_tests::until("HTTP is served", || {
        let output = daemon.toolctl(&["mcp", "doctor"]);
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.contains("ok    HTTP: http://127.0.0.1:").then_some(printed)
    });
    assert!(output.contains("ok    stdio: revision 2025-11-25, "), "{output}");
    let zed = output.lines().find(|line| line.starts_with("ok    zed: ")).unwrap_or_else(|| panic!("{output}"));
    assert!(zed.contains("profile without-files-and-shell: ") && zed.ends_with(" tools"), "{zed}");
    assert!(output.lines().any(|line| line.starts_with("-     codex: no ")), "{output}");
    // As many as the options of the entry leave, and an entry that does not start is found.
    let cursor = output.lines().find(|line| line.starts_with("ok    cursor: ")).unwrap_or_else(|| panic!("{output}"));
    assert!(cursor.ends_with(", profile all: 1 tool"), "{cursor}");
    assert!(output.contains("bad   windsurf: ") && output.contains("unexpected argument '--sauce"), "{output}");
}

#[test]
fn a_profile_that_the_daemon_does_not_have_is_an_error() {
    let daemon = Setup::new().config("[mcp.profiles.web]\n").start();
    let refused = run(&daemon.setup, &["zed", "--profile", "wep", "--yes"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("did you mean web?"), "{refused:?}");
    done(&daemon.setup, &["zed", "--profile", "web", "--yes"]);
    let file = daemon.setup.home(".config/zed/settings.json");
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("\"web\"", "\"wep\"")).unwrap();
    let doctor = daemon.toolctl(&["mcp", "doctor"]);
    let printed = String::from_utf8(doctor.stdout).unwrap();
    assert!(!doctor.status.success() && printed.contains("profile wep: there is no profile wep"), "{printed}");
}

#[test]
fn a_source_that_nobody_knows_is_an_error_that_lists_the_sources() {
    let daemon = Setup::new().plugin("mine.lua", "").start();
    for arguments in [
        vec!["mcp", "--source", "nosuch"],
        vec!["mcp", "--without-source", "nosuch"],
        vec!["list", "--source", "nosuch"],
    ] {
        let output = daemon.toolctl(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        for words in ["there is no source nosuch", "builtin, frontend, mcp, plugin", "mine"] {
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
    assert!(daemon.toolctl(&["list", "--source", "mine"]).status.success());
}
