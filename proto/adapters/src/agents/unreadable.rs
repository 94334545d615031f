//! Inputs of another form than a tool takes, for every tool of every agent: a known tool is never read as one that does
//! nothing, or as something else than it does.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use toold_proto::agent_names::AGENTS;

use crate::agents::{AgentAction, ContentSearch, actions, named_in};

/// The agent, a tool, an input that it takes, and the members that the actions depend on and that must be there. Tools
/// that do nothing have none.
fn tools() -> Vec<(&'static str, &'static str, Value, &'static [&'static str])> {
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    let line = || json!({"command": "ls"});
    let resource = || json!({"server": "a", "uri": "x"});
    let searched = || json!({"pattern": "*.rs", "path": "src"});
    let claude_edit = || json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true});
    let opencode_edit = json!({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": true});
    let vscode_edit = || json!({"filePath": "a", "oldString": "x", "newString": "y"});
    let vscode_search = || json!({"query": "x", "includePattern": "*.rs", "includeIgnoredFiles": true});
    let gemini_edit = json!({"file_path": "a", "old_string": "x", "new_string": "y", "allow_multiple": true});
    vec![
        ("claude-code", "Bash", line(), &["command"]),
        ("claude-code", "Monitor", line(), &["command"]),
        ("claude-code", "Read", json!({"file_path": "a"}), &["file_path"]),
        ("claude-code", "Write", json!({"file_path": "a", "content": "x"}), &["file_path", "content"]),
        ("claude-code", "Edit", claude_edit(), &["file_path"]),
        ("claude-code", "MultiEdit", json!({"file_path": "a", "edits": []}), &["file_path"]),
        ("claude-code", "NotebookEdit", json!({"notebook_path": "a"}), &["notebook_path"]),
        ("claude-code", "Glob", searched(), &["pattern"]),
        ("claude-code", "Grep", json!({"path": "a", "glob": "*.rs", "type": "rust"}), &[]),
        ("claude-code", "WebFetch", json!({"url": "https://a.test"}), &["url"]),
        ("claude-code", "WebSearch", json!({"query": "x"}), &["query"]),
        ("claude-code", "ReadMcpResourceTool", resource(), &["server", "uri"]),
        ("claude-code", "ReadMcpResourceDirTool", resource(), &["server", "uri"]),
        ("claude-code", "Agent", json!({"isolation": "remote"}), &[]),
        ("claude-code", "Task", json!({"isolation": "remote"}), &[]),
        ("claude-code", "Skill", json!({"skill": "a", "args": "b"}), &["skill"]),
        ("claude-code", "SlashCommand", json!({"command": "/a b"}), &["command"]),
        ("codex", "Bash", line(), &["command"]),
        ("codex", "apply_patch", json!({"command": patch}), &["command"]),
        ("codex", "view_image", json!({"path": "a"}), &["path"]),
        ("copilot", "bash", line(), &["command"]),
        ("copilot", "view", json!({"path": "a"}), &["path"]),
        ("copilot", "create", json!({"path": "a", "file_text": "x"}), &["path"]),
        ("copilot", "edit", json!({"path": "a", "old_str": "x", "new_str": "y"}), &["path"]),
        ("copilot", "apply_patch", json!({"input": patch}), &["input"]),
        ("copilot", "glob", json!({"pattern": "*.rs", "paths": ["src", "tests"]}), &["pattern"]),
        ("copilot", "grep", json!({"paths": ["a", "b"], "glob": "*.rs"}), &[]),
        ("copilot", "rg", json!({"path": "a", "type": "rust"}), &[]),
        ("copilot", "web_fetch", json!({"url": "https://a.test"}), &["url"]),
        ("copilot", "web_search", json!({"query": "x"}), &["query"]),
        ("copilot", "task", json!({"agent_type": "a"}), &[]),
        ("cursor", "Shell", json!({"command": "ls", "cwd": "src"}), &["command"]),
        ("cursor", "Read", json!({"file_path": "a"}), &["file_path"]),
        ("cursor", "Write", json!({"file_path": "a", "content": "x"}), &["file_path"]),
        ("cursor", "Delete", json!({"path": "a"}), &["path"]),
        ("cursor", "Grep", json!({"path": "a", "glob": "*.rs"}), &[]),
        ("cursor", "Glob", json!({"glob_pattern": "*", "path": "a"}), &["glob_pattern"]),
        ("cursor", "WebFetch", json!({"url": "https://a.test"}), &["url"]),
        ("gemini", "run_shell_command", json!({"command": "ls", "dir_path": "src"}), &["command"]),
        ("gemini", "read_file", json!({"file_path": "a"}), &["file_path"]),
        ("gemini", "read_many_files", json!({"include": ["a", "*.rs"]}), &["include"]),
        ("gemini", "write_file", json!({"file_path": "a", "content": "x"}), &["file_path", "content"]),
        ("gemini", "replace", gemini_edit, &["file_path"]),
        ("gemini", "list_directory", json!({"dir_path": "a"}), &[]),
        ("gemini", "glob", json!({"pattern": "*", "dir_path": "a"}), &["pattern"]),
        ("gemini", "grep_search", json!({"dir_path": "a", "include_pattern": "*.rs", "no_ignore": true}), &[]),
        ("gemini", "search_file_content", json!({"dir_path": "a", "include": "*.rs"}), &[]),
        ("gemini", "web_fetch", json!({"prompt": "see https://a.test"}), &["prompt"]),
        ("gemini", "google_web_search", json!({"query": "x"}), &["query"]),
        ("gemini", "invoke_agent", json!({"agent_name": "a"}), &[]),
        ("gemini", "read_mcp_resource", json!({"uri": "x"}), &["uri"]),
        ("opencode", "bash", json!({"command": "ls", "workdir": "src"}), &["command"]),
        ("opencode", "read", json!({"filePath": "a"}), &["filePath"]),
        ("opencode", "write", json!({"filePath": "a", "content": "x"}), &["filePath", "content"]),
        ("opencode", "edit", opencode_edit, &["filePath"]),
        ("opencode", "apply_patch", json!({"patchText": patch}), &["patchText"]),
        ("opencode", "glob", searched(), &["pattern"]),
        ("opencode", "grep", json!({"path": "a", "include": "*.rs"}), &[]),
        ("opencode", "list", searched(), &[]),
        ("opencode", "webfetch", json!({"url": "https://a.test"}), &["url"]),
        ("opencode", "websearch", json!({"query": "x"}), &["query"]),
        ("qwen-code", "run_shell_command", json!({"command": "ls", "directory": "src"}), &["command"]),
        ("qwen-code", "monitor", json!({"command": "ls", "directory": "src"}), &["command"]),
        ("qwen-code", "display_image", json!({"file_path": "a"}), &["file_path"]),
        ("qwen-code", "zoom_image", json!({"file_path": "a"}), &["file_path"]),
        ("qwen-code", "read_mcp_resource", json!({"server_name": "a", "uri": "x"}), &["server_name", "uri"]),
        ("qwen-code", "skill", json!({"skill": "a"}), &["skill"]),
        ("qwen-code", "agent", json!({"subagent_type": "codex"}), &[]),
        ("qwen-code", "task", json!({"subagent_type": "Claude-Code"}), &[]),
        ("qwen-code", "read_file", json!({"file_path": "a"}), &["file_path"]),
        ("qwen-code", "read_many_files", json!({"include": ["a", "*.rs"]}), &["include"]),
        ("qwen-code", "write_file", json!({"file_path": "a", "content": "x"}), &["file_path", "content"]),
        ("qwen-code", "edit", claude_edit(), &["file_path"]),
        ("qwen-code", "notebook_edit", json!({"notebook_path": "a"}), &["notebook_path"]),
        ("qwen-code", "list_directory", json!({"path": "a"}), &[]),
        ("qwen-code", "glob", searched(), &["pattern"]),
        ("qwen-code", "grep_search", json!({"path": "a", "glob": "*.rs"}), &[]),
        ("qwen-code", "web_fetch", json!({"url": "https://a.test"}), &["url"]),
        ("qwen-code", "web_search", json!({"query": "x"}), &["query"]),
        ("vscode", "run_in_terminal", line(), &["command"]),
        ("vscode", "create_and_run_task", json!({"task": {}}), &[]),
        ("vscode", "run_task", json!({"id": "a"}), &[]),
        ("vscode", "runTests", json!({"files": ["a"]}), &[]),
        ("vscode", "run_notebook_cell", json!({"filePath": "a"}), &[]),
        ("vscode", "copilot_runNotebookCell", json!({"filePath": "a"}), &[]),
        ("vscode", "create_file", json!({"filePath": "a", "content": "x"}), &["filePath", "content"]),
        ("vscode", "copilot_createFile", json!({"filePath": "a", "content": "x"}), &["filePath", "content"]),
        ("vscode", "create_directory", json!({"dirPath": "a"}), &["dirPath"]),
        ("vscode", "copilot_createDirectory", json!({"dirPath": "a"}), &["dirPath"]),
        ("vscode", "replace_string_in_file", vscode_edit(), &["filePath"]),
        ("vscode", "copilot_replaceString", vscode_edit(), &["filePath"]),
        ("vscode", "multi_replace_string_in_file", json!({"replacements": [vscode_edit()]}), &["replacements"]),
        ("vscode", "copilot_multiReplaceString", json!({"replacements": [vscode_edit()]}), &["replacements"]),
        ("vscode", "insert_edit_into_file", json!({"filePath": "a", "code": "x"}), &["filePath"]),
        ("vscode", "copilot_insertEdit", json!({"filePath": "a", "code": "x"}), &["filePath"]),
        ("vscode", "edit_notebook_file", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "copilot_editNotebook", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "apply_patch", json!({"input": patch}), &["input"]),
        ("vscode", "copilot_applyPatch", json!({"input": patch}), &["input"]),
        ("vscode", "read_file", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "copilot_readFile", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "copilot_getNotebookSummary", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "read_notebook_cell_output", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "copilot_readNotebookCellOutput", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "view_image", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "copilot_viewImage", json!({"filePath": "a"}), &["filePath"]),
        ("vscode", "runSubagent", json!({"prompt": "x", "agentName": "a"}), &[]),
        ("vscode", "list_dir", json!({"path": "a"}), &[]),
        ("vscode", "copilot_listDirectory", json!({"path": "a"}), &[]),
        ("vscode", "file_search", json!({"query": "*.rs"}), &["query"]),
        ("vscode", "copilot_findFiles", json!({"query": "*.rs"}), &["query"]),
        ("vscode", "grep_search", vscode_search(), &[]),
        ("vscode", "copilot_findTextInFiles", vscode_search(), &[]),
        ("vscode", "semantic_search", json!({"query": "x"}), &[]),
        ("vscode", "copilot_searchCodebase", json!({"query": "x"}), &[]),
        ("vscode", "get_changed_files", json!({}), &[]),
        ("vscode", "copilot_getChangedFiles", json!({}), &[]),
        ("vscode", "fetch_webpage", json!({"urls": ["https://a.test"]}), &["urls"]),
        ("vscode", "copilot_fetchWebPage", json!({"urls": ["https://a.test"]}), &["urls"]),
    ]
}

/// The names in the table of an agent's source that stand for something.
fn names_in(source: &str) -> BTreeSet<&str> {
    let (_, table) = source.split_once("match tool {").unwrap();
    let (table, _) = table.split_once("\n        _ =>").unwrap();
    let mut names = BTreeSet::new();
    let mut together = Vec::new();
    let mut lines = table.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with(['"', '|']) {
            continue;
        }
        let (before, behind) = line.split_once("=>").unwrap_or((line, ""));
        together.extend(before.split('"').skip(1).step_by(2));
        if line.contains("=>") {
            let body = if behind.trim() == "{" { lines.peek().copied().unwrap_or_default() } else { behind.trim() };
            let found = together.drain(..);
            // No member of their inputs matters.
            if !body.starts_with("AgentAction::Nothing") && !body.starts_with("SUB_AGENT") {
                names.extend(found);
            }
        }
    }
    names
}

#[test]
fn every_tool_of_an_agent_s_table_is_tried() {
    for (agent, source) in [
        ("claude-code", include_str!("claude_code.rs")),
        ("codex", include_str!("codex.rs")),
        ("copilot", include_str!("copilot.rs")),
        ("cursor", include_str!("cursor.rs")),
        ("gemini", include_str!("gemini.rs")),
        ("opencode", include_str!("opencode.rs")),
        ("qwen-code", include_str!("qwen_code.rs")),
        ("vscode", include_str!("vscode.rs")),
    ] {
        let tried: BTreeSet<&str> = tools().iter().filter(|tool| tool.0 == agent).map(|tool| tool.1).collect();
        assert_eq!(names_in(source), tried, "{agent}");
    }
    assert_eq!(AGENTS.len(), 8, "each has a source above");
}

#[test]
fn the_inputs_of_the_table_are_read() {
    for (agent, tool, input, _) in tools() {
        let read = actions(agent, tool, &input).unwrap();
        assert!(!read.is_empty() && !read.contains(&AgentAction::Nothing), "{agent} {tool}: {read:?}");
        let remote = matches!((agent, tool), ("claude-code", "Agent" | "Task") | ("qwen-code", "agent" | "task"));
        assert_eq!(read.contains(&AgentAction::Unknown), remote, "{agent} {tool}: {read:?}");
    }
}

#[test]
fn an_input_that_is_no_object_is_refused_unless_it_is_a_patch() {
    for (agent, tool, input, _) in tools() {
        for other in [json!(null), json!("ls"), json!(""), json!(["ls"]), json!([input]), json!(1), json!(true)] {
            assert!(actions(agent, tool, &other).is_err(), "{agent} {tool} {other}");
        }
    }
    let patch = json!("*** Begin Patch\n*** Delete File: a\n*** End Patch");
    for agent in ["codex", "copilot", "opencode"] {
        assert_eq!(actions(agent, "apply_patch", &patch), Ok(vec![AgentAction::Delete { path: "a".to_owned() }]));
    }
}

#[test]
fn a_member_of_another_form_is_refused_or_leaves_the_action_as_it_is() {
    for (agent, tool, input, required) in tools() {
        let expected = actions(agent, tool, &input).unwrap();
        for member in input.as_object().unwrap().keys() {
            for other in [json!(1), json!({"a": "b"}), json!([1]), json!([["ls"]]), json!({}), json!([null])] {
                let mut changed = input.clone();
                changed[member] = other;
                let read = actions(agent, tool, &changed);
                assert!(read.is_err() || read == Ok(expected.clone()), "{agent} {tool} {changed}: {read:?}");
            }
        }
        for member in required {
            for other in [None, Some(json!(null)), Some(json!(1)), Some(json!({"a": 1})), Some(json!([1]))] {
                let mut members: Map<String, Value> = input.as_object().unwrap().clone();
                members.remove(*member);
                if let Some(other) = other {
                    members.insert((*member).to_owned(), other);
                }
                let changed = Value::Object(members);
                assert!(actions(agent, tool, &changed).is_err(), "{agent} {tool} {changed}");
            }
        }
    }
}

#[test]
fn an_input_of_an_unknown_tool_names_commands_files_and_addresses() {
    let named = |input: Value| -> Vec<String> {
        let found = named_in(&input);
        found.into_iter().map(|need| format!("{} {}", need.category.as_str(), need.target)).collect()
    };
    let input =
        json!({"command": "ls", "directory": "src", "filePath": "a", "url": "https://a.test", "text": "b", "path": ""});
    assert_eq!(
        named(input),
        ["shell ls", "file.read src", "file.write src", "file.read a", "file.write a", "network https://a.test"]
    );
    let input = json!({"cmd": ["ls", 1, "pwd"], "files": ["a"], "file": {"path": "deeper"}, "uri": "x"});
    assert_eq!(named(input), ["shell ls", "shell pwd", "file.read a", "file.write a"]);
    for input in [json!(null), json!("ls"), json!([{"command": "ls"}]), json!({"command": 1})] {
        assert_eq!(named(input), [""; 0]);
    }
}

#[test]
fn searches_of_copilot_are_in_each_of_their_paths() {
    let listed = |tool: &str, input: Value| -> Vec<String> {
        let path = |action| match action {
            AgentAction::List { path } | AgentAction::Search(ContentSearch { path, .. }) => path,
            other => panic!("{other:?}"),
        };
        actions("copilot", tool, &input).unwrap().into_iter().map(path).collect()
    };
    assert_eq!(listed("rg", json!({"pattern": "x", "paths": ".env"})), [".env"]);
    assert_eq!(listed("rg", json!({"pattern": "x"})), ["."]);
    assert_eq!(listed("grep", json!({"paths": ["a", ""], "path": "b"})), ["a", "b"]);
    assert_eq!(listed("glob", json!({"pattern": "/etc/*", "paths": ["a", "b"]})), ["/etc", "/etc"]);
    assert_eq!(listed("glob", json!({"pattern": "*.rs", "paths": "a"})), ["a"]);
}

#[test]
fn members_for_one_thing_are_the_same_or_refused() {
    let patch = |path: &str| format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
    for (agent, tool, one, other, members) in [
        ("cursor", "Read", "a", ".env", ["file_path", "path"]),
        ("cursor", "Write", "a", ".env", ["file_path", "path"]),
        ("cursor", "Delete", "a", ".env", ["file_path", "path"]),
        ("cursor", "Glob", "a", "/etc/*", ["glob_pattern", "pattern"]),
        ("claude-code", "Skill", "a", "b", ["skill", "command"]),
        ("codex", "apply_patch", &patch("a"), &patch("b"), ["command", "input"]),
        ("copilot", "apply_patch", &patch("a"), &patch("b"), ["input", "patch"]),
        ("gemini", "web_fetch", "https://a.test", "https://b.test", ["url", "prompt"]),
    ] {
        let [first, second] = members;
        assert!(actions(agent, tool, &json!({first: one, second: one})).is_ok(), "{agent} {tool}");
        for (one, other) in [(one, other), (other, one)] {
            let read = actions(agent, tool, &json!({first: one, second: other}));
            assert!(read.is_err(), "{agent} {tool}: {read:?}");
        }
    }
    for members in [["working_directory", "cwd"], ["cwd", "working_directory"]] {
        let [first, second] = members;
        assert!(actions("cursor", "Shell", &json!({"command": "ls", first: "a", second: "b"})).is_err());
    }
    assert!(actions("gemini", "web_fetch", &json!({"url": "https://a.test", "prompt": "sum it up"})).is_ok());
}

#[test]
fn a_monitor_of_claude_code_has_either_a_command_or_a_socket() {
    let socket = || json!({"url": "wss://a.test/x"});
    let fetch = Ok(vec![AgentAction::Fetch { url: "https://a.test/x".to_owned() }]);
    for command in [json!(null), json!(""), json!(" \n")] {
        assert_eq!(actions("claude-code", "Monitor", &json!({"command": command, "ws": socket()})), fetch);
        assert!(actions("claude-code", "Monitor", &json!({"command": command})).is_err(), "{command}");
    }
    assert!(actions("claude-code", "Monitor", &json!({"command": "ls", "ws": socket()})).is_err());
    assert!(actions("claude-code", "Monitor", &json!({"command": "ls", "ws": null})).is_ok());
}

#[test]
fn paths_of_claude_code_have_no_blanks_at_their_ends() {
    for (tool, member) in [
        ("Read", "file_path"),
        ("Write", "file_path"),
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("NotebookEdit", "notebook_path"),
        ("Glob", "path"),
        ("Grep", "path"),
    ] {
        let read = |path: &str| actions("claude-code", tool, &json!({member: path, "content": "x", "pattern": "x"}));
        for path in [" .env", ".env\n", "\u{feff}.env", ".env\u{a0}", ".env\u{85}"] {
            assert!(read(path).is_err(), "{tool} {path:?}");
        }
        assert!(read("a b").is_ok(), "{tool}");
    }
}

#[test]
fn searches_tell_which_files_they_read() {
    let search = |agent: &str, tool: &str, input: Value| match actions(agent, tool, &input).unwrap().remove(0) {
        AgentAction::Search(ContentSearch { globs, hidden, ignored, .. }) => (globs.join(" "), hidden, ignored),
        other => panic!("{other:?}"),
    };
    let claude = |glob: &str| search("claude-code", "Grep", json!({"pattern": "x", "glob": glob})).0;
    assert_eq!(claude("*.ts,.env !a"), "*.ts .env !a");
    assert_eq!(claude("*.{ts,tsx}"), "*.{ts,tsx}");
    assert_eq!(search("copilot", "rg", json!({"glob": ["a", "b"]})), ("a b".to_owned(), None, false));
    assert_eq!(search("opencode", "grep", json!({"include": "a"})), ("a".to_owned(), Some(true), false));
    let gemini = json!({"include_pattern": "a", "no_ignore": true});
    assert_eq!(search("gemini", "grep_search", gemini), ("a".to_owned(), None, true));
    assert_eq!(search("cursor", "Grep", json!({})), (String::new(), None, false));
}
