//! Settings, options and variables of agents that keep installed hooks from running, and HTTP hooks that run beside them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::agents::hooks_file;
use crate::commands::hook::HookAgent;
use crate::commands::mcp::install::McpClient;
use crate::commands::mcp::{install, jsonc};
use crate::config_file;

/// An agent that has the hooks and does not run them.
pub(crate) struct SwitchedOff {
    pub(crate) agent: &'static str,
    /// The file with the setting, or the folder in which the agent runs or would be started with it.
    pub(crate) file: PathBuf,
    /// As it is written there.
    pub(crate) setting: &'static str,
}

/// When an option of a command line switches the hooks off.
#[derive(Clone, Copy)]
enum OptionValue {
    Any,
    /// Not the person's settings among the sources.
    WithoutUser,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Settings that switch the hooks off, or a file of them.
    Settings,
}

/// Options of an agent's command line with which it does not run the hooks of the person's settings.
const OFF_OPTIONS: &[(HookAgent, &str, OptionValue)] = &[
    (HookAgent::ClaudeCode, "--bare", OptionValue::Any),
    (HookAgent::ClaudeCode, "--safe-mode", OptionValue::Any),
    (HookAgent::ClaudeCode, "--setting-sources", OptionValue::WithoutUser),
    (HookAgent::ClaudeCode, "--settings", OptionValue::Settings),
    (HookAgent::Codex, "--disable", OptionValue::OneOf(&["hooks", "codex_hooks"])),
    (HookAgent::Codex, "-c", OptionValue::OneOf(CODEX_SETTINGS)),
    (HookAgent::Codex, "--config", OptionValue::OneOf(CODEX_SETTINGS)),
    (HookAgent::Opencode, "--pure", OptionValue::Any),
    (HookAgent::QwenCode, "--bare", OptionValue::Any),
    (HookAgent::QwenCode, "--safe-mode", OptionValue::Any),
];

const CODEX_SETTINGS: &[&str] = &["features.hooks=false", "features.codex_hooks=false"];

/// Variables with which an agent does not run the hooks, and how they are shown.
const OFF_VARIABLES: &[(HookAgent, &str, &str)] = &[
    (HookAgent::ClaudeCode, "CLAUDE_CODE_SAFE_MODE", "the variable CLAUDE_CODE_SAFE_MODE"),
    (HookAgent::ClaudeCode, "CLAUDE_CODE_SIMPLE", "the variable CLAUDE_CODE_SIMPLE"),
    (HookAgent::Opencode, "OPENCODE_PURE", "the variable OPENCODE_PURE"),
    (HookAgent::QwenCode, "QWEN_CODE_SAFE_MODE", "the variable QWEN_CODE_SAFE_MODE"),
];

/// Files of variables that an agent reads in its folder and in those above it; a repository can have them.
const VARIABLE_FILES: &[(HookAgent, &[&str])] = &[(HookAgent::QwenCode, &[".qwen/.env", ".env"])];

/// The file of variables that switches the hooks off for an agent in this folder.
fn off_by_file(agent: HookAgent, folder: &Path) -> Option<SwitchedOff> {
    let (_, names) = VARIABLE_FILES.iter().find(|(of, _)| *of == agent)?;
    folder.ancestors().flat_map(|folder| names.iter().map(|name| folder.join(name))).find_map(|file| {
        let text = config_file::read(&file).ok().flatten()?;
        let lines = text.lines().map(|line| line.trim_start().strip_prefix("export ").unwrap_or(line));
        let variables: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
        let value = |name: &str| {
            let (_, value) = variables.iter().rev().find(|(known, _)| known.trim() == name)?;
            Some(value.trim().trim_matches(['"', '\'', '`']).to_owned())
        };
        Some(SwitchedOff { agent: agent.name(), setting: off_variable(agent, value)?, file })
    })
}

/// The variable that switches the hooks off. `value`: what a variable has.
fn off_variable(agent: HookAgent, value: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is_set = |name: &str| value(name).is_some_and(|value| is_on(&value));
    let (_, _, shown) = OFF_VARIABLES.iter().find(|(of, name, _)| *of == agent && is_set(name))?;
    Some(shown)
}

fn is_on(value: &str) -> bool {
    !matches!(value, "" | "0" | "false")
}

/// A running agent of this user that was started with an option or a variable that switches the hooks off.
fn running_without(agent: HookAgent) -> Option<SwitchedOff> {
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let texts = |name: &str| -> Option<Vec<String>> {
            let bytes = std::fs::read(process.path().join(name)).ok()?;
            Some(bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect())
        };
        let line = texts("cmdline")?;
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let options = options_of(agent, &words)?;
        // Only processes of this user tell.
        let folder = std::fs::read_link(process.path().join("cwd")).ok()?;
        let setting = off_option(agent, options, &folder).or_else(|| {
            let variables = texts("environ")?;
            let value = |name: &str| variables.iter().find_map(|text| text.strip_prefix(name)?.strip_prefix('='));
            off_variable(agent, |name| value(name).map(str::to_owned))
        });
        let here = |setting| SwitchedOff { agent: agent.name(), file: folder.clone(), setting };
        setting.map(here).or_else(|| off_by_file(agent, &folder))
    })
}

/// The options in the command line of the agent's program, which may be run by an interpreter.
fn options_of<'a>(agent: HookAgent, words: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let is_agents = |word: &&str| Path::new(word).file_stem().is_some_and(|name| name == agent.program());
    let at = words.iter().take(2).position(is_agents)?;
    words.get(at + 1..)
}

/// The option that switches the hooks off. `folder`: where the agent runs.
fn off_option(agent: HookAgent, options: &[&str], folder: &Path) -> Option<&'static str> {
    let (_, option, _) = OFF_OPTIONS.iter().filter(|(of, _, _)| *of == agent).find(|(_, option, wanted)| {
        options.iter().enumerate().any(|(at, word)| {
            let value = match word.strip_prefix(option).map(|rest| (rest, rest.strip_prefix('='))) {
                Some(("", _)) => options.get(at + 1).copied().unwrap_or_default(),
                Some((_, Some(value))) => value,
                _ => return false,
            };
            match wanted {
                OptionValue::Any => true,
                OptionValue::WithoutUser => !value.split(',').any(|source| source.trim() == "user"),
                OptionValue::OneOf(words) => words.contains(&value),
                OptionValue::Settings => {
                    let text = match value.trim_start().starts_with('{') {
                        true => Some(value.to_owned()),
                        false => config_file::read(&folder.join(value)).ok().flatten(),
                    };
                    text.is_some_and(|text| DISABLE_ALL.is_in(jsonc::whole(&text).as_ref()))
                }
            }
        })
    })?;
    Some(option)
}

/// Where Claude Code reads the settings of an organisation.
pub(crate) const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// A setting that switches hooks off.
#[derive(Clone, Copy)]
struct OffSetting {
    path: &'static [&'static str],
    off: OffValue,
    /// As it is written.
    text: &'static str,
}

#[derive(Clone, Copy)]
enum OffValue {
    Is(bool),
    /// A text that is not one of those for no.
    On,
    /// A list with this text.
    Lists(&'static str),
}

impl OffSetting {
    fn is_in(self, settings: Option<&Value>) -> bool {
        let found = settings.and_then(|settings| self.path.iter().try_fold(settings, |value, name| value.get(name)));
        match (found, self.off) {
            (Some(Value::Bool(is)), OffValue::Is(off)) => *is == off,
            (Some(Value::String(text)), OffValue::On) => is_on(text),
            (Some(Value::Array(items)), OffValue::Lists(text)) => items.iter().any(|item| item == text),
            _ => false,
        }
    }
}

const DISABLE_ALL: OffSetting =
    OffSetting { path: &["disableAllHooks"], off: OffValue::Is(true), text: "\"disableAllHooks\": true" };
const MANAGED_ONLY: OffSetting =
    OffSetting { path: &["allowManagedHooksOnly"], off: OffValue::Is(true), text: "\"allowManagedHooksOnly\": true" };
const PLUGINS_ONLY: OffSetting = OffSetting {
    path: &["strictPluginOnlyCustomization"],
    off: OffValue::Is(true),
    text: "\"strictPluginOnlyCustomization\": true",
};
const PLUGIN_HOOKS_ONLY: OffSetting = OffSetting {
    off: OffValue::Lists("hooks"),
    text: "\"strictPluginOnlyCustomization\": [\"hooks\"]",
    ..PLUGINS_ONLY
};
const QWEN_SAFE: OffSetting = OffSetting {
    path: &["env", "QWEN_CODE_SAFE_MODE"],
    off: OffValue::On,
    text: "\"env\": {\"QWEN_CODE_SAFE_MODE\": ...}",
};
const GEMINI_OFF: OffSetting =
    OffSetting { path: &["hooksConfig", "enabled"], off: OffValue::Is(false), text: "\"hooksConfig.enabled\": false" };
const GEMINI_WITHOUT: OffSetting = OffSetting {
    path: &["hooksConfig", "disabled"],
    off: OffValue::Lists("toold"),
    text: "\"hooksConfig.disabled\": [\"toold\"]",
};
const CODEX_OFF: OffSetting =
    OffSetting { path: &["features", "hooks"], off: OffValue::Is(false), text: "features.hooks = false" };
/// The earlier name of the feature.
const CODEX_OFF_BEFORE: OffSetting =
    OffSetting { path: &["features", "codex_hooks"], off: OffValue::Is(false), text: "features.codex_hooks = false" };

const VSCODE_OFF: OffSetting =
    OffSetting { path: &["chat.useHooks"], off: OffValue::Is(false), text: "\"chat.useHooks\": false" };
const VSCODE_WITHOUT: OffSetting = OffSetting {
    path: &["chat.hookFilesLocations", "~/.copilot/hooks"],
    off: OffValue::Is(false),
    text: "\"chat.hookFilesLocations\": {\"~/.copilot/hooks\": false}",
};

/// All agents that have hooks of toold which do not run in the current folder.
pub(crate) fn switched_off() -> Vec<SwitchedOff> {
    let Ok(home) = install::home() else { return Vec::new() };
    let agents = HookAgent::ALL.into_iter().filter(|agent| hooks_file::is_installed(*agent, &home));
    agents.filter_map(|agent| switched_off_here(agent, &home)).collect()
}

/// The reason why the hooks of this agent do not run in the current folder.
pub(super) fn switched_off_here(agent: HookAgent, home: &Path) -> Option<SwitchedOff> {
    let cwd = std::env::current_dir().unwrap_or_default();
    let here = || {
        let setting = off_variable(agent, |name| std::env::var(name).ok())?;
        Some(SwitchedOff { agent: agent.name(), file: cwd.clone(), setting })
    };
    let by_file = || off_by_file(agent, &cwd);
    of(agent, home, &cwd, Path::new(MANAGED)).or_else(here).or_else(by_file).or_else(|| running_without(agent))
}

/// The setting in the files of the person and of the machine that keeps the hooks of this agent from running.
pub(crate) fn switched_off_everywhere(agent: HookAgent, home: &Path) -> Option<SwitchedOff> {
    of(agent, home, Path::new("/"), Path::new(MANAGED))
}

/// An HTTP hook of somebody else, by its event and address, and the file that has it.
pub(super) struct HttpHook {
    pub(super) file: PathBuf,
    pub(super) event: String,
    pub(super) url: String,
}

/// The HTTP hooks in the settings that the agent loads in the current folder, which are no part of an installation.
pub(super) fn http_hooks_here(agent: HookAgent, home: &Path) -> Vec<HttpHook> {
    http_hooks(agent, home, &std::env::current_dir().unwrap_or_default(), Path::new(MANAGED))
}

fn http_hooks(agent: HookAgent, home: &Path, cwd: &Path, managed: &Path) -> Vec<HttpHook> {
    let mut found = Vec::new();
    for file in settings_files(agent, home, cwd, managed).into_iter().flat_map(|(files, _)| files) {
        let settings = settings_in(&file).unwrap_or_default();
        for (event, groups) in settings["hooks"].as_object().into_iter().flatten() {
            let groups = groups.as_array().into_iter().flatten();
            let hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten();
            let urls = hooks.filter(|hook| hook["type"] == "http").filter_map(|hook| hook["url"].as_str());
            found.extend(urls.map(|url| HttpHook { file: file.clone(), event: event.clone(), url: url.to_owned() }));
        }
    }
    found
}

fn of(agent: HookAgent, home: &Path, cwd: &Path, managed: &Path) -> Option<SwitchedOff> {
    let parts = settings_files(agent, home, cwd, managed);
    parts.into_iter().flat_map(|(files, settings)| files.into_iter().map(move |file| (file, settings))).find_map(
        |(file, settings)| {
            let whole = settings_in(&file);
            let setting = settings.iter().find(|setting| setting.is_in(whole.as_ref()))?.text;
            Some(SwitchedOff { agent: agent.name(), file, setting })
        },
    )
}

fn settings_in(file: &Path) -> Option<Value> {
    let text = config_file::read(file).ok().flatten()?;
    match file.extension().is_some_and(|end| end == "toml") {
        true => text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok()),
        false => jsonc::whole(&text),
    }
}

/// Files that the agent loads, and the settings that switch the hooks off in any of them.
fn settings_files(
    agent: HookAgent,
    home: &Path,
    cwd: &Path,
    managed: &Path,
) -> Vec<(Vec<PathBuf>, &'static [OffSetting])> {
    let own = home.join(hooks_file::file(agent));
    let above = || cwd.ancestors().filter(|folder| *folder != home);
    match agent {
        HookAgent::ClaudeCode => {
            let parts = managed.with_extension("d");
            let entries = std::fs::read_dir(parts).into_iter().flatten().flatten().map(|entry| entry.path());
            let of_machine = std::iter::once(managed.to_owned()).chain(entries).collect();
            // A repository's settings count in all its folders.
            let of_projects = above().flat_map(|folder| {
                ["settings.local.json", "settings.json"].map(|name| folder.join(".claude").join(name))
            });
            let of_home = (cwd == home).then(|| home.join(".claude/settings.local.json"));
            vec![
                (of_machine, &[DISABLE_ALL, MANAGED_ONLY, PLUGINS_ONLY, PLUGIN_HOOKS_ONLY]),
                (of_projects.chain(of_home).chain([own]).collect(), &[DISABLE_ALL]),
            ]
        }
        HookAgent::Gemini => {
            let files = ["/etc/gemini-cli/settings.json".into(), cwd.join(".gemini/settings.json"), own];
            vec![(files.into(), &[GEMINI_OFF, GEMINI_WITHOUT])]
        }
        HookAgent::QwenCode => {
            let of_projects = above().map(|folder| folder.join(".qwen/settings.json"));
            let of_machine = [PathBuf::from("/etc/qwen-code/settings.json")];
            vec![(of_machine.into_iter().chain(of_projects).chain([own]).collect(), &[DISABLE_ALL, QWEN_SAFE])]
        }
        HookAgent::Codex => {
            let of_machine = ["config.toml", "managed_config.toml"].map(|name| Path::new("/etc/codex").join(name));
            let of_projects = above().map(|folder| folder.join(".codex/config.toml"));
            let own = home.join(McpClient::Codex.file());
            let files = of_machine.into_iter().chain(of_projects).chain([own]).collect();
            vec![(files, &[CODEX_OFF, CODEX_OFF_BEFORE])]
        }
        HookAgent::Vscode => {
            let of_projects = above().map(|folder| folder.join(".vscode/settings.json"));
            let own = home.join(HookAgent::Vscode.folder()).join("User/settings.json");
            vec![(of_projects.chain([own]).collect(), &[VSCODE_OFF, VSCODE_WITHOUT])]
        }
        HookAgent::Cursor | HookAgent::Copilot | HookAgent::Opencode => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_command_line_switches_hooks_off() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("off.json"), "{\"disableAllHooks\": true}").unwrap();
        std::fs::write(folder.path().join("on.json"), "{}").unwrap();
        let option = |agent, line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            off_option(agent, options_of(agent, &words)?, folder.path())
        };
        use HookAgent::{ClaudeCode, Codex, Opencode};
        for (agent, line, found) in [
            (ClaudeCode, "/usr/bin/claude -p x --bare", "--bare"),
            (ClaudeCode, "node /opt/claude.js --safe-mode", "--safe-mode"),
            (ClaudeCode, "claude --setting-sources project", "--setting-sources"),
            (ClaudeCode, "claude --setting-sources=project,local", "--setting-sources"),
            (ClaudeCode, "claude --settings off.json", "--settings"),
            (ClaudeCode, "claude --settings={\"disableAllHooks\":true}", "--settings"),
            (Codex, "codex exec --disable hooks x", "--disable"),
            (Codex, "codex --disable=codex_hooks", "--disable"),
            (Codex, "codex exec -c features.hooks=false x", "-c"),
            (Codex, "codex --config=features.codex_hooks=false", "--config"),
            (Opencode, "opencode run --pure", "--pure"),
        ] {
            assert_eq!(option(agent, line), Some(found), "{line}");
        }
        for (agent, line) in [
            (ClaudeCode, "claude"),
            (ClaudeCode, "claude --setting-sources user,project"),
            (ClaudeCode, "claude --setting-sources=user"),
            (ClaudeCode, "claude --settings on.json"),
            (ClaudeCode, "claude --settings none.json"),
            (ClaudeCode, "vi --bare"),
            (Codex, "codex --disable web_search"),
            (Codex, "codex -c model=x"),
            (Codex, "codex --pure"),
        ] {
            assert_eq!(option(agent, line), None, "{line}");
        }
    }

    #[test]
    fn a_variable_switches_hooks_off() {
        let off = |agent, name: &str, value: &str| {
            off_variable(agent, |known| (known == name).then(|| value.to_owned())).is_some()
        };
        assert!(off(HookAgent::ClaudeCode, "CLAUDE_CODE_SIMPLE", "1"));
        assert!(off(HookAgent::ClaudeCode, "CLAUDE_CODE_SAFE_MODE", "true"));
        assert!(off(HookAgent::Opencode, "OPENCODE_PURE", "1"));
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("src");
        let found = || off_by_file(HookAgent::QwenCode, &below).map(|off| off.file);
        for (name, text, is_off) in [
            (".env", "A=b\nexport QWEN_CODE_SAFE_MODE=\"1\"\n", true),
            (".qwen/.env", "QWEN_CODE_SAFE_MODE = true", true),
            (".env", "QWEN_CODE_SAFE_MODE=1\nQWEN_CODE_SAFE_MODE=0\n", false),
            (".env", "OTHER=1", false),
        ] {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            assert_eq!(found(), is_off.then(|| file.clone()), "{text}");
            assert!(off_by_file(HookAgent::ClaudeCode, &below).is_none());
            std::fs::remove_file(&file).unwrap();
        }
        assert!(!off(HookAgent::Opencode, "OPENCODE_PURE", "0") && !off(HookAgent::Codex, "OPENCODE_PURE", "1"));
    }

    #[test]
    fn http_hooks_are_found_in_the_settings_that_an_agent_loads() {
        let top = tempfile::tempdir().unwrap();
        let cwd = top.path().join("work");
        let file = cwd.join(".claude/settings.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let hook = r#"{"type": "http", "url": "http://a.test/x"}, {"type": "command", "command": "y"}"#;
        std::fs::write(&file, format!(r#"{{"hooks": {{"PreToolUse": [{{"matcher": "*", "hooks": [{hook}]}}]}}}}"#))
            .unwrap();
        let found = |agent| http_hooks(agent, &top.path().join("home"), &cwd, &top.path().join("managed.json"));
        let [hook] = &found(HookAgent::ClaudeCode)[..] else { panic!("expected one hook") };
        assert_eq!((&hook.file, &*hook.event, &*hook.url), (&file, "PreToolUse", "http://a.test/x"));
        assert!(found(HookAgent::QwenCode).is_empty());
    }

    #[test]
    fn settings_of_persons_projects_and_organisations_switch_hooks_off() {
        let top = tempfile::tempdir().unwrap();
        let (home, managed) = (top.path().join("home"), top.path().join("managed-settings.json"));
        let cwd = home.join("src/app");
        use HookAgent::{ClaudeCode, Codex, Gemini, QwenCode, Vscode};
        let found = |agent| of(agent, &home, &cwd, &managed).map(|off| (off.file, off.setting));
        let all_off = "{\"disableAllHooks\": true, // for now\n}";
        let only_plugins = "{\"strictPluginOnlyCustomization\": [\"skills\", \"hooks\"]}";
        let local = home.join(".claude/settings.local.json");
        std::fs::create_dir_all(local.parent().unwrap()).unwrap();
        std::fs::write(&local, all_off).unwrap();
        assert!(of(ClaudeCode, &home, &home, &managed).is_some() && found(ClaudeCode).is_none());
        std::fs::remove_file(&local).unwrap();
        for (agent, file, text, setting) in [
            (ClaudeCode, "home/.claude/settings.json", all_off, DISABLE_ALL),
            (ClaudeCode, "home/src/.claude/settings.json", all_off, DISABLE_ALL),
            (ClaudeCode, "home/src/app/.claude/settings.local.json", all_off, DISABLE_ALL),
            (ClaudeCode, "managed-settings.json", "{\"allowManagedHooksOnly\": true}", MANAGED_ONLY),
            (ClaudeCode, "managed-settings.json", only_plugins, PLUGIN_HOOKS_ONLY),
            (ClaudeCode, "managed-settings.json", "{\"strictPluginOnlyCustomization\": true}", PLUGINS_ONLY),
            (ClaudeCode, "managed-settings.d/10-x.json", "{\"allowManagedHooksOnly\": true}", MANAGED_ONLY),
            (Gemini, "home/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}", GEMINI_OFF),
            (Gemini, "home/.gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"toold\"]}}", GEMINI_WITHOUT),
            (Gemini, "home/src/app/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}", GEMINI_OFF),
            (QwenCode, "home/src/.qwen/settings.json", all_off, DISABLE_ALL),
            (QwenCode, "home/src/.qwen/settings.json", "{\"env\": {\"QWEN_CODE_SAFE_MODE\": \"1\"}}", QWEN_SAFE),
            (Codex, "home/.codex/config.toml", "features.hooks = false", CODEX_OFF),
            (Codex, "home/.codex/config.toml", "[features]\ncodex_hooks = false", CODEX_OFF_BEFORE),
            (Codex, "home/src/app/.codex/config.toml", "features.hooks = false", CODEX_OFF),
            (Vscode, "home/src/.vscode/settings.json", "{\"chat.useHooks\": false}", VSCODE_OFF),
            (
                Vscode,
                "home/src/app/.vscode/settings.json",
                "{\"chat.hookFilesLocations\": {\"~/.copilot/hooks\": false}}",
                VSCODE_WITHOUT,
            ),
        ] {
            let path = top.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert_eq!(found(agent), None, "before {file}");
            for on in ["{\"disableAllHooks\": false}", "{}", "{", ""] {
                std::fs::write(&path, on).unwrap();
                assert_eq!(found(agent), None, "{file}: {on}");
            }
            std::fs::write(&path, text).unwrap();
            assert_eq!(found(agent), Some((path.clone(), setting.text)), "{text}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
