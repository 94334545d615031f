//! Plugins and extensions of agents: folders that bring skills, commands and sub-agents of their own.
//!
//! Sources: the documentation of Claude Code and Copilot CLI, the code of Gemini CLI 0.61.0 and Qwen Code 0.24.4, and real runs.
//! Claude Code 2.1.332 also takes a folder of skills with a manifest for a plugin, a repository's too, and puts the plugin's name
//! in front of those that it brings.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toold_host::environment::Environment;
use toold_host::files;

use super::agent_folders::{MAX_BYTES, config_folder, folder_in, folders, names_in, plain};

/// The files in which a plugin describes itself, for any agent.
const MANIFESTS: &[&str] = &[
    ".claude-plugin/plugin.json",
    ".github/plugin/plugin.json",
    ".plugin/plugin.json",
    "gemini-extension.json",
    "plugin.json",
    "qwen-extension.json",
];

/// The files in which Gemini CLI and Qwen Code keep the place of an extension that is only linked.
const LINKS: &[&str] = &[".gemini-extension-install.json", ".qwen-extension-install.json"];

/// The folders and files of one plugin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgentPlugin {
    /// Any may stand in front of the names of what it brings.
    pub(super) names: Vec<String>,
    pub(super) skills: Vec<PathBuf>,
    pub(super) commands: Vec<PathBuf>,
    pub(super) agents: Vec<PathBuf>,
    /// Commands that the manifest names, with their files; `None` for one whose text is in the manifest.
    pub(super) named_commands: Vec<(String, Option<PathBuf>)>,
}

/// All that the agent may have loaded; those that are switched off, too.
pub(super) fn plugins(agent: &str, cwd: &Path, environment: &Environment) -> Vec<AgentPlugin> {
    match agent {
        "claude-code" => of_claude_code(cwd, environment),
        _ => extensions(agent, cwd, environment),
    }
}

impl AgentPlugin {
    /// Whether a name begins with one of the plugin's and continues with this one, as agents compare names.
    pub(super) fn gives(&self, whole: &str, name: &str) -> bool {
        let (whole, name) = (plain(whole), plain(name));
        self.names.iter().any(|own| whole.strip_prefix(&*plain(own)) == Some(&*name))
    }

    /// `described`: what is said about it elsewhere, as in the list of a marketplace.
    fn of(name: &str, folder: &Path, described: &[Value]) -> Self {
        let read = |file: &&str| read(&folder.join(file));
        let manifests: Vec<Value> = MANIFESTS.iter().filter_map(read).chain(described.iter().cloned()).collect();
        let mut plugin = Self {
            names: vec![name.to_owned()],
            // A plugin can be a single skill.
            skills: vec![folder.join("skills"), folder.to_owned()],
            commands: vec![folder.join("commands")],
            agents: vec![folder.join("agents")],
            named_commands: Vec::new(),
        };
        for manifest in &manifests {
            plugin.names.extend(manifest["name"].as_str().map(str::to_owned));
            plugin.skills.extend(paths(&manifest["skills"], folder));
            plugin.commands.extend(paths(&manifest["commands"], folder));
            plugin.agents.extend(paths(&manifest["agents"], folder));
            let named = manifest["commands"].as_object().into_iter().flatten();
            let file = |command: &Value| command["source"].as_str().map(|source| folder.join(source));
            plugin.named_commands.extend(named.map(|(name, command)| (name.clone(), file(command))));
        }
        plugin
    }
}

/// A path or a list of paths.
fn paths(value: &Value, folder: &Path) -> Vec<PathBuf> {
    let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    texts.iter().filter_map(Value::as_str).map(|path| folder.join(path)).collect()
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_str(&files::read_text(file, MAX_BYTES).ok()?).ok()
}

fn of_claude_code(cwd: &Path, environment: &Environment) -> Vec<AgentPlugin> {
    let kept = folder_in(environment, "CLAUDE_CODE_PLUGIN_CACHE_DIR");
    let kept = kept.or_else(|| Some(config_folder(environment)?.join("plugins"))).unwrap_or_default();
    let installed = read(&kept.join("installed_plugins.json")).unwrap_or_default();
    let marketplaces = read(&kept.join("known_marketplaces.json")).unwrap_or_default();
    let mut found = Vec::new();
    for (key, entry) in installed["plugins"].as_object().into_iter().flatten() {
        let (name, marketplace) = key.split_once('@').unwrap_or((key, ""));
        let list = marketplaces[marketplace]["installLocation"].as_str();
        let list = list.and_then(|folder| read(&Path::new(folder).join(".claude-plugin/marketplace.json")));
        let listed = list.as_ref().and_then(|list| list["plugins"].as_array()).into_iter().flatten();
        let described: Vec<Value> = listed.filter(|plugin| plugin["name"] == name).cloned().collect();
        let versions = entry.as_array().map_or(std::slice::from_ref(entry), Vec::as_slice);
        let folders = versions.iter().filter_map(|version| version["installPath"].as_str());
        found.extend(folders.map(|folder| AgentPlugin::of(name, Path::new(folder), &described)));
    }
    let for_session = environment.get("CLAUDE_CODE_PLUGIN_DIRS").map(std::env::split_paths).into_iter().flatten();
    let of_skills = folders("claude-code", None, cwd, environment).into_iter().map(|folder| folder.join("skills"));
    for folder in for_session.map(|folder| cwd.join(folder)).chain(of_skills) {
        let below = names_in(&folder).into_iter().map(|name| folder.join(name));
        let plugins = below.chain([folder.clone()]).filter(|folder| folder.join(MANIFESTS[0]).exists());
        found.extend(plugins.map(|folder| AgentPlugin::of(&name_of(&folder), &folder, &[])));
    }
    found
}

fn extensions(agent: &str, cwd: &Path, environment: &Environment) -> Vec<AgentPlugin> {
    let mut found = Vec::new();
    let below = |folder: PathBuf| names_in(&folder).into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    for folder in folders(agent, None, cwd, environment) {
        let by_marketplace = below(folder.join("installed-plugins")).into_iter().flat_map(below);
        for folder in below(folder.join("extensions")).into_iter().chain(by_marketplace) {
            let link = LINKS.iter().find_map(|file| read(&folder.join(file)));
            let place =
                link.filter(|link| link["type"] == "link").and_then(|link| Some(link["source"].as_str()?.into()));
            found.push(AgentPlugin::of(&name_of(&folder), &place.unwrap_or_else(|| folder.clone()), &[]));
        }
    }
    found
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn plugins_are_found_where_agents_load_them() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let write = |path: &str, value: Value| {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value.to_string()).unwrap();
        };
        let cache = |name: &str| top.join("home/.claude/plugins").join(name);
        let list = json!({"plugins": {"tools@market": [{"installPath": cache("tools-1")}]}});
        write("home/.claude/plugins/installed_plugins.json", list);
        write("home/.claude/plugins/known_marketplaces.json", json!({"market": {"installLocation": cache("market")}}));
        let listed = json!({"plugins": [{"name": "tools", "agents": "./x.md"}, {"name": "b", "agents": "./no.md"}]});
        write("home/.claude/plugins/market/.claude-plugin/marketplace.json", listed);
        let commands = json!({"go": {"source": "./go.md"}, "say": {"content": "hello"}});
        write(
            "home/.claude/plugins/tools-1/.claude-plugin/plugin.json",
            json!({"name": "Tools", "skills": ["./more"], "commands": commands}),
        );
        write("work/.claude/skills/own/.claude-plugin/plugin.json", json!({"name": "other"}));
        write("work/.claude/skills/no-plugin/SKILL.md", json!(null));
        write("session/.claude-plugin/plugin.json", json!({}));
        write("several/one/.claude-plugin/plugin.json", json!({}));
        write("home/.gemini/extensions/near/gemini-extension.json", json!({"name": "near"}));
        let link = json!({"type": "link", "source": top.join("linked")});
        write("home/.qwen/extensions/far/.qwen-extension-install.json", link);
        write("home/.copilot/installed-plugins/market/helpers/plugin.json", json!({"agents": ["mine"]}));
        let dirs = std::env::join_paths([top.join("session"), top.join("several")]).unwrap();
        let environment = Environment::default()
            .with([("HOME", top.join("home").into_os_string()), ("CLAUDE_CODE_PLUGIN_DIRS", dirs)]);
        let found = |agent: &str| plugins(agent, &top.join("work/src"), &environment);
        let agents = |agent: &str| -> Vec<String> {
            let shown = |path: PathBuf| path.strip_prefix(&top).unwrap().display().to_string();
            found(agent).into_iter().flat_map(|plugin| plugin.agents).map(shown).collect()
        };
        assert_eq!(
            agents("claude-code"),
            [
                "home/.claude/plugins/tools-1/agents",
                "home/.claude/plugins/tools-1/./x.md",
                "session/agents",
                "several/one/agents",
                "work/.claude/skills/own/agents",
            ]
        );
        assert_eq!(agents("gemini"), ["home/.gemini/extensions/near/agents"]);
        assert_eq!(agents("qwen-code"), ["linked/agents"]);
        let of_copilot = "home/.copilot/installed-plugins/market/helpers";
        assert_eq!(agents("copilot"), [format!("{of_copilot}/agents"), format!("{of_copilot}/mine")]);
        assert!(agents("codex").is_empty());
        let installed = &found("claude-code")[0];
        assert!(installed.gives("tools:go", "go") && installed.gives("TOOLS go", "Go") && !installed.gives("go", "go"));
        assert!(installed.skills.contains(&cache("tools-1").join("./more")));
        let go = ("go".to_owned(), Some(cache("tools-1").join("./go.md")));
        assert_eq!(installed.named_commands, [go, ("say".to_owned(), None)]);
    }
}
