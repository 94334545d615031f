//! The MCP servers in an agent's configuration: which of them a tool's name stands for, and whether that is toold
//! itself.
//!
//! Agents put the names of the server and the tool together, and replace characters on the way. Only the configuration
//! tells where one ends.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::hook::HookAgent;
use crate::commands::mcp::jsonc;

/// The name that toold has as a server by default; see `toolctl mcp install`. Entries of `toolctl setup` have others.
#[cfg(test)]
const OWN: &str = "toold";
/// The largest configuration that is read, in bytes. Claude Code keeps much else in its file.
const MAX_BYTES: u64 = 32 << 20;
/// How many folders above the working folder are searched.
const MAX_LEVELS: usize = 32;
/// How many extensions of one folder are read.
const MAX_EXTENSIONS: usize = 256;

/// A tool of a configured server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentServerTool {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// The server is this program, as `toolctl mcp`.
    pub(crate) is_own: bool,
}

/// A server of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentServer {
    name: String,
    is_own: bool,
}

/// The environment that places depend on.
pub(crate) struct AgentPlaces<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl AgentPlaces<'_> {
    /// The current folder, and the one that the agent was started in, which is not above it after a `cd`.
    fn folders(&self, agent: HookAgent) -> Vec<PathBuf> {
        let names: &[&str] = match agent {
            HookAgent::ClaudeCode => &["CLAUDE_PROJECT_DIR"],
            HookAgent::Gemini => &["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
            HookAgent::Cursor => &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
            HookAgent::QwenCode => &["QWEN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
            HookAgent::Codex | HookAgent::Copilot | HookAgent::Opencode | HookAgent::Vscode => &[],
        };
        let named = names.iter().filter_map(|name| (self.variable)(name)).filter(|value| !value.is_empty());
        let mut folders = vec![self.cwd.to_owned()];
        folders.extend(named.map(PathBuf::from));
        folders.dedup();
        folders
    }
}

/// The servers of the agent in this folder, from all files that it may read; a name may occur several times.
pub(crate) fn servers(agent: HookAgent, places: &AgentPlaces<'_>) -> Vec<AgentServer> {
    let mut found = Vec::new();
    for file in files(agent, places) {
        let Some(text) = read(&file) else { continue };
        collect(agent, &text, places, &mut found);
    }
    if agent == HookAgent::Opencode
        && let Some(text) = (places.variable)("OPENCODE_CONFIG_CONTENT")
    {
        collect(agent, &text, places, &mut found);
    }
    found
}

/// The servers and tools that the name of a tool can stand for.
pub(crate) fn matching(agent: HookAgent, tool: &str, servers: &[AgentServer]) -> Vec<AgentServerTool> {
    let (prefix, marks) = match agent {
        HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::Cursor | HookAgent::QwenCode => ("mcp__", &["__"][..]),
        HookAgent::Gemini | HookAgent::Vscode => ("mcp_", &["_"][..]),
        // The second is that of permissionRequest.
        HookAgent::Copilot => ("", &["-", "/"][..]),
        HookAgent::Opencode => ("", &["_"][..]),
    };
    let Some(names) = tool.strip_prefix(prefix) else { return Vec::new() };
    let mut found: Vec<AgentServerTool> = Vec::new();
    for (at, _) in names.char_indices() {
        let (server, rest) = names.split_at(at);
        let Some(tool) = marks.iter().find_map(|mark| rest.strip_prefix(mark)).filter(|tool| !tool.is_empty()) else {
            continue;
        };
        let same: Vec<&AgentServer> = servers.iter().filter(|known| plain(&known.name) == plain(server)).collect();
        // A project may put another server in the place of one of the same name.
        let is_own = !same.is_empty() && same.iter().all(|known| known.is_own);
        for known in same {
            let tool = AgentServerTool { server: known.name.clone(), tool: tool.to_owned(), is_own };
            if !found.contains(&tool) {
                found.push(tool);
            }
        }
    }
    found
}

/// The same for a resource, whose server the input names.
pub(crate) fn with_resource(server: &str, resource: &str, servers: &[AgentServer]) -> Option<AgentServerTool> {
    let mut same = servers.iter().filter(|known| known.name == server).peekable();
    same.peek()?;
    let is_own = same.all(|known| known.is_own);
    Some(AgentServerTool { server: server.to_owned(), tool: resource.to_owned(), is_own })
}

/// Whether the agent's server of this name is toold, wherever the configuration names it.
pub(crate) fn is_own(server: &str, servers: &[AgentServer]) -> bool {
    let mut same = servers.iter().filter(|known| plain(&known.name) == plain(server)).peekable();
    same.peek().is_some() && same.all(|known| known.is_own)
}

/// Agents replace other characters in names, each in its way.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// If a variable moves the agent's files, those in the usual place count too: a repository may have set the variable for the
/// hook alone.
fn files(agent: HookAgent, places: &AgentPlaces<'_>) -> Vec<PathBuf> {
    let variable = |name: &str| (places.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME").unwrap_or_default();
    let moved_or = |name: &str, usual: PathBuf| -> Vec<PathBuf> { variable(name).into_iter().chain([usual]).collect() };
    let configs = moved_or("XDG_CONFIG_HOME", home.join(".config"));
    let in_each = |folders: &[PathBuf], names: &[&str]| -> Vec<PathBuf> {
        folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
    };
    let machine_wide = |names: &[(&str, &str)]| -> Vec<PathBuf> {
        names.iter().flat_map(|(name, usual)| moved_or(name, PathBuf::from(usual))).collect()
    };
    let of_project = |names: &[&str]| -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for above in places.folders(agent).iter().flat_map(|folder| folder.ancestors().take(MAX_LEVELS)) {
            for file in names.iter().map(|name| above.join(name)) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    };
    let mut files = Vec::new();
    match agent {
        HookAgent::ClaudeCode => {
            files.extend(in_each(&moved_or("CLAUDE_CONFIG_DIR", home), &[".claude.json"]));
            files.push("/etc/claude-code/managed-mcp.json".into());
            files.extend(of_project(&[".mcp.json"]));
        }
        HookAgent::Codex => {
            files.extend(in_each(&moved_or("CODEX_HOME", home.join(".codex")), &["config.toml"]));
            files.extend(["/etc/codex/config.toml", "/etc/codex/managed_config.toml"].map(PathBuf::from));
            files.extend(of_project(&[".codex/config.toml"]));
        }
        HookAgent::Gemini => {
            let own = in_each(&moved_or("GEMINI_CLI_HOME", home), &[".gemini"]);
            files.extend(in_each(&own, &["settings.json"]));
            files.extend(machine_wide(&[
                ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json"),
                ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "/etc/gemini-cli/system-defaults.json"),
            ]));
            files.extend(of_project(&[".gemini/settings.json"]));
            let extended = own.into_iter().chain(of_project(&[".gemini"]));
            files.extend(extended.flat_map(|folder| extensions(&folder, "gemini-extension.json")));
        }
        HookAgent::QwenCode => {
            let own = moved_or("QWEN_HOME", home.join(".qwen"));
            files.extend(in_each(&own, &["settings.json"]));
            files.extend(machine_wide(&[
                ("QWEN_CODE_SYSTEM_SETTINGS_PATH", "/etc/qwen-code/settings.json"),
                ("QWEN_CODE_SYSTEM_DEFAULTS_PATH", "/etc/qwen-code/system-defaults.json"),
            ]));
            files.extend(of_project(&[".qwen/settings.json"]));
            let extended = own.into_iter().chain(of_project(&[".qwen"]));
            files.extend(extended.flat_map(|folder| extensions(&folder, "qwen-extension.json")));
        }
        HookAgent::Vscode => {
            let folders =
                if cfg!(target_os = "macos") { vec![home.join("Library/Application Support")] } else { configs };
            files.extend(in_each(&folders, &["Code/User/mcp.json"]));
            files.extend(of_project(&[".vscode/mcp.json", ".mcp.json"]));
        }
        HookAgent::Cursor => {
            files.push(home.join(".cursor/mcp.json"));
            files.extend(of_project(&[".cursor/mcp.json"]));
        }
        HookAgent::Copilot => {
            files.extend(in_each(&moved_or("COPILOT_HOME", home.join(".copilot")), &["mcp-config.json"]));
            files.extend(in_each(&configs, &["copilot/mcp-config.json"]));
            files.extend(of_project(&[".mcp.json", ".github/mcp.json", ".vscode/mcp.json"]));
        }
        HookAgent::Opencode => {
            let names = ["opencode.json", "opencode.jsonc"];
            let own = in_each(&configs, &["opencode"]);
            files.extend(in_each(&own, &["opencode.json", "opencode.jsonc", "config.json"]));
            files.extend(variable("OPENCODE_CONFIG"));
            files.extend(
                variable("OPENCODE_CONFIG_DIR").map(|folder| names.map(|name| folder.join(name))).into_iter().flatten(),
            );
            let below = names.map(|name| format!(".opencode/{name}"));
            files.extend(of_project(&[names[0], names[1], &below[0], &below[1]]));
        }
    }
    files
}

/// The files of installed extensions, which may have servers.
fn extensions(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = folder.join("extensions").read_dir().into_iter().flatten().flatten();
    entries.take(MAX_EXTENSIONS).map(|entry| entry.path().join(name)).collect()
}

/// `None` when it is no regular file, or too large.
fn read(file: &Path) -> Option<String> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

fn collect(agent: HookAgent, text: &str, places: &AgentPlaces<'_>, found: &mut Vec<AgentServer>) {
    let lists: Vec<Value> = match agent {
        HookAgent::Codex => {
            let table = text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok());
            table.into_iter().filter_map(|table| table.get("mcp_servers").cloned()).collect()
        }
        HookAgent::ClaudeCode => {
            let whole = json_in(text);
            let of_projects = whole["projects"].as_object().into_iter().flatten();
            let folders = places.folders(agent);
            let here = of_projects.filter(|(project, _)| folders.iter().any(|folder| folder.starts_with(project)));
            let here = here.map(|(_, project)| project["mcpServers"].clone());
            [whole["mcpServers"].clone()].into_iter().chain(here).collect()
        }
        HookAgent::Copilot | HookAgent::Vscode => {
            let whole = json_in(text);
            vec![whole["mcpServers"].clone(), whole["servers"].clone()]
        }
        HookAgent::Opencode => vec![json_in(text)["mcp"].clone()],
        HookAgent::Gemini | HookAgent::Cursor | HookAgent::QwenCode => vec![json_in(text)["mcpServers"].clone()],
    };
    for (name, entry) in lists.iter().filter_map(Value::as_object).flatten() {
        found.push(AgentServer { name: name.clone(), is_own: runs_this(entry) });
    }
}

/// Null when it is no JSON, not even with comments.
fn json_in(text: &str) -> Value {
    serde_json::from_str(text).ok().or_else(|| jsonc::whole(text)).unwrap_or_default()
}

/// Whether the entry starts this program with `mcp`, for the daemon that the hook asks too.
pub(crate) fn runs_this(entry: &Value) -> bool {
    let mut words: Vec<&str> = match &entry["command"] {
        Value::String(command) => vec![command],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return false,
    };
    words.extend(entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
    let [program, arguments @ ..] = words.as_slice() else { return false };
    arguments.contains(&"mcp")
        && !arguments.iter().any(|argument| argument.starts_with("--socket"))
        && entry.as_object().into_iter().flatten().all(|(name, value)| is_plain_setting(name, value))
        && is_this(Path::new(program))
}

/// Variables that change neither the program that runs nor the daemon that it reaches.
const PLAIN_VARIABLES: &[&str] = &["LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR", "RUST_LOG", "TERM", "TZ"];

/// Members that may name another server than the command, by a part of their names.
const ADDRESSES: &[&str] = &["url", "uri", "host", "tcp", "socket", "address", "proxy", "file"];

/// Whether a member of an entry changes only how the agent uses the server. Agents have more of them than can be listed: an
/// address or a path is none.
fn is_plain_setting(name: &str, value: &Value) -> bool {
    match name {
        "command" | "args" | "cwd" | "description" | "title" => true,
        "type" | "transport" => matches!(value.as_str(), Some("stdio" | "local")),
        "env" | "environment" => {
            let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
            (value.is_object() || value.is_null()) && names.all(|name| PLAIN_VARIABLES.contains(&name))
        }
        _ => {
            let name = name.to_ascii_lowercase();
            !ADDRESSES.iter().any(|part| name.contains(part)) && is_plain_value(value)
        }
    }
}

fn is_plain_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.contains([':', '/']),
        Value::Array(values) => values.iter().all(is_plain_value),
        Value::Object(members) => members.iter().all(|(name, value)| is_plain_setting(name, value)),
    }
}

/// A program without a folder is looked up as the agent does.
fn is_this(program: &Path) -> bool {
    let Ok(this) = std::env::current_exe().and_then(|this| this.canonicalize()) else { return false };
    let is_same = |path: &Path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == this);
    if program.components().count() > 1 {
        return is_same(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .is_some_and(|path| is_same(&path))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// Servers as a configuration has them; toold is itself.
    pub(crate) fn known(names: &[&str]) -> Vec<AgentServer> {
        names.iter().map(|name| AgentServer { name: (*name).to_owned(), is_own: *name == OWN }).collect()
    }

    #[track_caller]
    fn check(agent: HookAgent, tool: &str, servers: &[&str], expected: &[&str]) {
        let found = matching(agent, tool, &known(servers));
        let shown: Vec<String> = found.iter().map(|found| format!("{}/{}", found.server, found.tool)).collect();
        assert_eq!(shown, expected, "{agent:?} {tool}");
    }

    #[test]
    fn a_name_is_taken_apart_by_the_configuration() {
        check(HookAgent::Copilot, "other-shout", &["other"], &["other/shout"]);
        check(HookAgent::Copilot, "other/shout", &["other"], &["other/shout"]);
        check(HookAgent::Copilot, "my-other-shout-it", &["my-other"], &["my-other/shout-it"]);
        check(HookAgent::Copilot, "a-b-c", &["a", "a-b"], &["a/b-c", "a-b/c"]);
        check(HookAgent::Opencode, "other_shout", &["other"], &["other/shout"]);
        check(HookAgent::Opencode, "toold_x_read", &["toold", "toold_x"], &["toold/x_read", "toold_x/read"]);
        check(HookAgent::Opencode, "apply_patch", &["apply"], &["apply/patch"]);
        check(HookAgent::Opencode, "plan_exit", &["plan"], &["plan/exit"]);
        check(HookAgent::Opencode, "my_server_x", &["my.server"], &["my.server/x"]);
        check(HookAgent::ClaudeCode, "mcp__a__b__c", &["a__b"], &["a__b/c"]);
        check(HookAgent::ClaudeCode, "mcp__my_server__c", &["my server"], &["my server/c"]);
        check(HookAgent::Gemini, "mcp_my_tickets_search", &["my_tickets"], &["my_tickets/search"]);
        check(HookAgent::Codex, "mcp__other__shout", &["else"], &[]);
        check(HookAgent::Copilot, "bash", &["other"], &[]);
        check(HookAgent::Opencode, "other_", &["other"], &[]);
    }

    #[test]
    fn a_server_is_toold_if_each_entry_of_its_name_starts_this_program() {
        let this = std::env::current_exe().unwrap();
        let own = json!({"command": this, "args": ["mcp"]});
        let list = json!({"command": [this, "mcp", "--profile", "all"]});
        let set = json!({
            "type": "stdio", "command": this, "args": ["mcp"], "cwd": "/w", "enabled": true, "trust": true, "startup_timeout_sec": 20,
            "includeTools": ["read"], "env": {"NO_COLOR": "1"}, "tools": {"read": {"approval_mode": "approve"}},
        });
        assert!(runs_this(&own) && runs_this(&list) && runs_this(&set));
        for other in [
            json!({"command": this, "args": ["run"]}),
            json!({"command": "./toolctl", "args": ["mcp"]}),
            json!({"command": this, "args": ["mcp", "--socket=/tmp/x"]}),
            json!({"command": this, "args": ["mcp"], "env": {"TOOLD_SOCKET": "/tmp/x"}}),
            json!({"command": this, "args": ["mcp"], "env": {"LD_PRELOAD": "/repo/e.so"}}),
            json!({"command": this, "args": ["mcp"], "env": {"PATH": "/repo/bin"}}),
            json!({"command": this, "args": ["mcp"], "envFile": ".env"}),
            json!({"command": this, "args": ["mcp"], "type": "http"}),
            json!({"command": this, "args": ["mcp"], "url": "http://evil.test/mcp"}),
            json!({"command": this, "args": ["mcp"], "httpUrl": "http://evil.test/mcp"}),
            json!({"command": this, "args": ["mcp"], "tcp": "evil.test"}),
            json!({"command": this, "args": ["mcp"], "transport": {"type": "sse"}}),
            json!({"command": this, "args": ["mcp"], "other": {"endpoint": "ws://evil.test"}}),
            json!({"command": "/nowhere/toolctl", "args": ["mcp"]}),
            json!({"url": "http://127.0.0.1:1/mcp"}),
            json!({"command": 1, "args": ["mcp"]}),
            json!(null),
        ] {
            assert!(!runs_this(&other), "{other}");
        }
        let foreign = AgentServer { name: OWN.to_owned(), is_own: false };
        assert!(is_own(OWN, &known(&[OWN])));
        assert!(!is_own(OWN, &[known(&[OWN]), vec![foreign]].concat()) && !is_own(OWN, &[]));
    }

    #[test]
    fn servers_are_read_from_all_files_of_an_agent() {
        let top = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let json = |holder: &str, name: &str| json!({holder: {name: {"command": "x"}}}).to_string();
        let project = top.path().join("work").display().to_string();
        let of = |name: &str| json!({"mcpServers": {name: {}}});
        let claude = json!({"mcpServers": {"c1": {}}, "projects": {project: of("c2"), "/x": of("no")}});
        write("home/.claude.json", &claude.to_string());
        write("work/.mcp.json", &json("mcpServers", "m"));
        write("home/.codex/config.toml", "[mcp_servers.x1]\ncommand = \"x\"\n");
        write("work/.codex/config.toml", "[mcp_servers.\"x 2\"]\nurl = \"x\"\n");
        write("home/.gemini/settings.json", "{\n// mine\n\"mcpServers\": {\"g\": {}},\n}");
        write("work/.cursor/mcp.json", &json("mcpServers", "u"));
        write("home/.copilot/mcp-config.json", &json("mcpServers", "p1"));
        write("work/.vscode/mcp.json", &json("servers", "p2"));
        write("home/.config/opencode/opencode.jsonc", &format!("// mine\n{}", json("mcp", "o1")));
        write("work/.opencode/opencode.json", &json("mcp", "o2"));
        write("work/opencode.json", "{broken");
        let home = top.path().join("home").display().to_string();
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone()),
            "OPENCODE_CONFIG_CONTENT" => Some(json("mcp", "o3")),
            _ => None,
        };
        let cwd = top.path().join("work/src");
        let places = AgentPlaces { cwd: &cwd, variable: &variable };
        for (agent, expected) in [
            (HookAgent::ClaudeCode, &["c1", "c2", "m"][..]),
            (HookAgent::Codex, &["x1", "x 2"]),
            (HookAgent::Gemini, &["g"]),
            (HookAgent::Cursor, &["u"]),
            (HookAgent::Copilot, &["p1", "m", "p2"]),
            (HookAgent::Opencode, &["o1", "o2", "o3"]),
        ] {
            let found: Vec<String> = servers(agent, &places).into_iter().map(|server| server.name).collect();
            assert_eq!(found, expected, "{agent:?}");
        }
        // In the folder that a variable names, beside those in the usual place.
        for (name, file, text) in [
            ("CLAUDE_CONFIG_DIR", "moved/.claude.json", json("mcpServers", "moved")),
            ("CODEX_HOME", "moved/config.toml", "[mcp_servers.moved]\ncommand = \"x\"\n".to_owned()),
            ("GEMINI_CLI_HOME", "moved/.gemini/settings.json", json("mcpServers", "moved")),
            ("GEMINI_CLI_HOME", "moved/.gemini/extensions/e/gemini-extension.json", json("mcpServers", "extended")),
            ("QWEN_HOME", "moved/settings.json", json("mcpServers", "moved")),
            ("QWEN_HOME", "moved/extensions/e/qwen-extension.json", json("mcpServers", "extended")),
            ("COPILOT_HOME", "moved/mcp-config.json", json("mcpServers", "moved")),
            ("XDG_CONFIG_HOME", "moved/opencode/opencode.json", json("mcp", "moved")),
        ] {
            write(file, &text);
            let moved = top.path().join("moved").display().to_string();
            let variable = |asked: &str| match asked {
                "HOME" => Some(home.clone()),
                _ => (asked == name).then(|| moved.clone()),
            };
            let agent = match name {
                "CLAUDE_CONFIG_DIR" => HookAgent::ClaudeCode,
                "CODEX_HOME" => HookAgent::Codex,
                "GEMINI_CLI_HOME" => HookAgent::Gemini,
                "QWEN_HOME" => HookAgent::QwenCode,
                "COPILOT_HOME" => HookAgent::Copilot,
                _ => HookAgent::Opencode,
            };
            let found = servers(agent, &AgentPlaces { cwd: &cwd, variable: &variable });
            let has = |name: &str| found.iter().any(|server| server.name == name);
            assert!(has(if file.contains("extensions") { "extended" } else { "moved" }), "{name}: {found:?}");
            let usual = ["c1", "x1", "g", "p1", "o1"];
            assert!(agent == HookAgent::QwenCode || usual.iter().any(|name| has(name)), "{name}: {found:?}");
        }
        // After a `cd` out of the project.
        write("work/.gemini/settings.json", &json("mcpServers", "g2"));
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone()),
            "CLAUDE_PROJECT_DIR" | "GEMINI_PROJECT_DIR" => Some(cwd.display().to_string()),
            _ => None,
        };
        let places = AgentPlaces { cwd: &top.path().join("elsewhere"), variable: &variable };
        for (agent, expected) in [
            (HookAgent::ClaudeCode, &["c1", "c2", "m"][..]),
            (HookAgent::Gemini, &["g", "g2"]),
            (HookAgent::Codex, &["x1"]),
        ] {
            let found: Vec<String> = servers(agent, &places).into_iter().map(|server| server.name).collect();
            assert_eq!(found, expected, "{agent:?}");
        }
    }
}
