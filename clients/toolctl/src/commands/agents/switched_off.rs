//! Settings of agents that keep installed hooks from running.

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
    /// The file with the setting, or the folder of the running agent that was started with it.
    pub(crate) file: PathBuf,
    /// As it is written there.
    pub(crate) setting: &'static str,
}

/// Options of an agent's command line with which it does not run the hooks of the person's settings.
const OFF_OPTIONS: &[(HookAgent, &str)] = &[
    (HookAgent::ClaudeCode, "--bare"),
    (HookAgent::ClaudeCode, "--safe-mode"),
    (HookAgent::ClaudeCode, "--setting-sources"),
    (HookAgent::QwenCode, "--bare"),
    (HookAgent::QwenCode, "--safe-mode"),
];

/// A running agent of this user that was started with an option that switches the hooks off.
fn running_without(agent: HookAgent) -> Option<SwitchedOff> {
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        let words: Vec<&str> =
            line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok()).collect();
        let setting = off_option(agent, &words)?;
        // Only processes of this user tell.
        let folder = std::fs::read_link(process.path().join("cwd")).ok()?;
        Some(SwitchedOff { agent: agent.name(), file: folder, setting })
    })
}

/// The option in the command line of the agent's program, which may be run by an interpreter.
fn off_option(agent: HookAgent, words: &[&str]) -> Option<&'static str> {
    let is_agents = |word: &&&str| Path::new(word).file_stem().is_some_and(|name| name == agent.program());
    let at = words.iter().take(2).position(|word| is_agents(&word))?;
    let options = words.get(at + 1..)?;
    let (_, option) = OFF_OPTIONS.iter().find(|(of, option)| {
        let names =
            |word: &&str| word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        *of == agent && options.iter().any(names) && !(*option == "--setting-sources" && loads_user(options))
    })?;
    Some(option)
}

/// Whether `--setting-sources` names the person's settings.
fn loads_user(options: &[&str]) -> bool {
    let behind = options.iter().skip_while(|word| **word != "--setting-sources").nth(1).copied();
    let joined = options.iter().find_map(|word| word.strip_prefix("--setting-sources="));
    behind.or(joined).is_some_and(|sources| sources.split(',').any(|source| source.trim() == "user"))
}

/// Where Claude Code reads the settings of an organisation.
pub(crate) const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// A setting that switches hooks off.
struct OffSetting {
    path: &'static [&'static str],
    off: bool,
    /// As it is written.
    text: &'static str,
}

const DISABLE_ALL: OffSetting = OffSetting { path: &["disableAllHooks"], off: true, text: "\"disableAllHooks\": true" };
const MANAGED_ONLY: OffSetting =
    OffSetting { path: &["allowManagedHooksOnly"], off: true, text: "\"allowManagedHooksOnly\": true" };
const GEMINI_OFF: OffSetting =
    OffSetting { path: &["hooksConfig", "enabled"], off: false, text: "\"hooksConfig.enabled\": false" };
const CODEX_OFF: OffSetting = OffSetting { path: &["features", "hooks"], off: false, text: "features.hooks = false" };

/// All agents that have hooks of toold which do not run in the current folder.
pub(crate) fn switched_off() -> Vec<SwitchedOff> {
    let Ok(home) = install::home() else { return Vec::new() };
    let agents = HookAgent::ALL.into_iter().filter(|agent| hooks_file::is_installed(*agent, &home));
    agents.filter_map(|agent| switched_off_here(agent, &home)).collect()
}

/// The setting that keeps the hooks of this agent from running in the current folder.
pub(super) fn switched_off_here(agent: HookAgent, home: &Path) -> Option<SwitchedOff> {
    let cwd = std::env::current_dir().unwrap_or_default();
    of(agent, home, &cwd, Path::new(MANAGED)).or_else(|| running_without(agent))
}

fn of(agent: HookAgent, home: &Path, cwd: &Path, managed: &Path) -> Option<SwitchedOff> {
    let mut settings: Vec<(PathBuf, OffSetting)> = vec![];
    match agent {
        HookAgent::ClaudeCode => {
            settings.push((managed.to_owned(), DISABLE_ALL));
            settings.push((managed.to_owned(), MANAGED_ONLY));
            // A repository's settings count in all its folders.
            for folder in cwd.ancestors().filter(|folder| *folder != home) {
                for name in ["settings.local.json", "settings.json"] {
                    settings.push((folder.join(".claude").join(name), DISABLE_ALL));
                }
            }
            settings.push((home.join(hooks_file::file(agent)), DISABLE_ALL));
        }
        HookAgent::Gemini => settings.push((home.join(hooks_file::file(agent)), GEMINI_OFF)),
        HookAgent::QwenCode => {
            settings.push(("/etc/qwen-code/settings.json".into(), DISABLE_ALL));
            for folder in cwd.ancestors().filter(|folder| *folder != home) {
                settings.push((folder.join(".qwen/settings.json"), DISABLE_ALL));
            }
            settings.push((home.join(hooks_file::file(agent)), DISABLE_ALL));
        }
        HookAgent::Codex => settings.push((home.join(McpClient::Codex.file()), CODEX_OFF)),
        HookAgent::Cursor | HookAgent::Copilot | HookAgent::Opencode | HookAgent::Vscode => {}
    }
    let found = settings.into_iter().find(|(file, setting)| is_set(file, setting));
    found.map(|(file, setting)| SwitchedOff { agent: agent.name(), file, setting: setting.text })
}

fn is_set(file: &Path, setting: &OffSetting) -> bool {
    let Some(text) = config_file::read(file).ok().flatten() else { return false };
    let value = match file.extension().is_some_and(|end| end == "toml") {
        true => {
            let settings = text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok());
            settings
                .and_then(|settings| setting.path.iter().try_fold(&settings, |value, name| value.get(name)).cloned())
        }
        false => jsonc::member(&text, setting.path),
    };
    value == Some(Value::Bool(setting.off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_command_line_switches_hooks_off() {
        let option = |line: &str| off_option(HookAgent::ClaudeCode, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(option("/usr/bin/claude -p x --bare"), Some("--bare"));
        assert_eq!(option("node /opt/claude.js --safe-mode"), Some("--safe-mode"));
        assert_eq!(option("claude --setting-sources project"), Some("--setting-sources"));
        assert_eq!(option("claude --setting-sources=project,local"), Some("--setting-sources"));
        for line in ["claude", "claude --setting-sources user,project", "claude --setting-sources=user", "vi --bare"] {
            assert_eq!(option(line), None, "{line}");
        }
    }

    #[test]
    fn a_setting_that_switches_hooks_off_is_found() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".claude/settings.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let is_off = |text: &str| {
            std::fs::write(&file, text).unwrap();
            of(HookAgent::ClaudeCode, home.path(), Path::new("/"), Path::new("/nowhere")).is_some()
        };
        assert!(is_off("{\"disableAllHooks\": true, // for now\n}"));
        assert!(!is_off("{\"disableAllHooks\": false}") && !is_off("{}") && !is_off("{"));
    }

    #[test]
    fn settings_of_a_repository_and_of_an_organisation_switch_hooks_off_too() {
        let top = tempfile::tempdir().unwrap();
        let (home, managed) = (top.path().join("home"), top.path().join("managed.json"));
        let below = home.join("src/app/deep");
        std::fs::create_dir_all(below.join("x")).unwrap();
        let found = || of(HookAgent::ClaudeCode, &home, &below, &managed).map(|off| (off.file, off.setting));
        assert_eq!(found(), None);
        for file in ["settings.json", "settings.local.json"] {
            let file = home.join("src/app/.claude").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "{\"disableAllHooks\": true}").unwrap();
            assert_eq!(found(), Some((file.clone(), DISABLE_ALL.text)));
            std::fs::remove_file(file).unwrap();
        }
        std::fs::write(&managed, "{\"allowManagedHooksOnly\": true}").unwrap();
        assert_eq!(found(), Some((managed.clone(), MANAGED_ONLY.text)));
    }
}
