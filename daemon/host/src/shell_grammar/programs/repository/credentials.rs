//! Whether the settings of Git hold a password or a token, which commands that show settings would print.

use std::path::{Path, PathBuf};

use super::{MAX_CONFIG, folder_of, text_of};
use crate::credentials::git_setting_holds_secret;
use crate::git_settings;
use crate::shell_grammar::programs::CommandContext;

/// Files of settings name others, which name others.
const MAX_FILES: usize = 32;

/// The sections of all settings that hold a secret, for a command in the folder; `None` if not all of them are known.
pub(in super::super) fn sections_with_secrets(site: &CommandContext, folder: &Path) -> Option<Vec<String>> {
    let home = site.environment.get("HOME").map(PathBuf::from);
    let mut waiting = vec![PathBuf::from("/etc/gitconfig")];
    let xdg = site.environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    waiting.extend(xdg.or_else(|| home.as_ref().map(|home| home.join(".config"))).map(|base| base.join("git/config")));
    waiting.extend(home.as_ref().map(|home| home.join(".gitconfig")));
    let own = folder.ancestors().find_map(|top| {
        let git = top.join(".git");
        let metadata = git.symlink_metadata().ok()?;
        folder_of(&git, &metadata).ok()
    });
    if let Some(own) = own {
        let common = text_of(&own.join("commondir"), 4096).map_or_else(|_| own.clone(), |text| own.join(text.trim()));
        waiting.extend([common.join("config"), own.join("config.worktree")]);
    }
    let mut found = Vec::new();
    let mut read = 0;
    while let Some(file) = waiting.pop() {
        if file.symlink_metadata().is_err() {
            continue;
        }
        read += 1;
        if read > MAX_FILES {
            return None;
        }
        for setting in git_settings::all(&text_of(&file, MAX_CONFIG).ok()?)? {
            if matches!(setting.section.as_str(), "include" | "includeif") && setting.name == "path" {
                let path = setting.value.as_deref()?;
                waiting.push(match path.strip_prefix("~/") {
                    Some(below) => home.as_ref()?.join(below),
                    None => file.parent()?.join(path),
                });
            } else if git_setting_holds_secret(&setting) {
                found.push(setting.section);
            }
        }
    }
    Some(found)
}
