//! Settings of agents that keep installed hooks from running.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::agents::hooks_file;
use crate::commands::hook::HookAgent;
use crate::commands::mcp::{install, jsonc};
use crate::config_file;

/// An agent that has the hooks and does not run them.
pub(crate) struct SwitchedOff {
    pub(crate) agent: &'static str,
    /// The file with the setting.
    pub(crate) file: PathBuf,
    /// As it is written there.
    pub(crate) setting: &'static str,
}

pub(crate) fn switched_off() -> Vec<SwitchedOff> {
    let Ok(home) = install::home() else { return Vec::new() };
    let agents = HookAgent::ALL.into_iter().filter(|agent| hooks_file::is_installed(*agent, &home));
    agents.filter_map(|agent| of(agent, &home)).collect()
}

fn of(agent: HookAgent, home: &Path) -> Option<SwitchedOff> {
    let (file, path, off, setting): (_, &[&str], _, _) = match agent {
        HookAgent::ClaudeCode => (hooks_file::file(agent), &["disableAllHooks"], true, "\"disableAllHooks\": true"),
        HookAgent::Gemini => {
            (hooks_file::file(agent), &["hooksConfig", "enabled"], false, "\"hooksConfig.enabled\": false")
        }
        HookAgent::Codex => (".codex/config.toml".into(), &["features", "hooks"], false, "features.hooks = false"),
        HookAgent::Cursor | HookAgent::Copilot | HookAgent::Opencode => return None,
    };
    let file = home.join(file);
    let text = config_file::read(&file).ok().flatten()?;
    let value = match agent {
        HookAgent::Codex => {
            let settings = serde_json::to_value(text.parse::<toml::Table>().ok()?).ok()?;
            path.iter().try_fold(&settings, |value, name| value.get(name)).cloned()
        }
        _ => jsonc::member(&text, path),
    };
    (value? == Value::Bool(off)).then_some(SwitchedOff { agent: agent.name(), file, setting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_switches_hooks_off_is_found() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".claude/settings.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let is_off = |text: &str| {
            std::fs::write(&file, text).unwrap();
            of(HookAgent::ClaudeCode, home.path()).is_some()
        };
        assert!(is_off("{\"disableAllHooks\": true, // for now\n}"));
        assert!(!is_off("{\"disableAllHooks\": false}") && !is_off("{}") && !is_off("{"));
    }
}
