//! Whether the settings of Git hold a password or a token, which commands that show settings would print.

use std::path::{Path, PathBuf};

use super::settings::{self, Setting};
use super::{MAX_CONFIG, folder_of, text_of};
use crate::shell_grammar::programs::CommandContext;

/// Files of settings name others, which name others.
const MAX_FILES: usize = 32;

/// A name without a password is a token if it is at least so long: people's names are shorter.
const TOKEN_LENGTH: usize = 20;

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
        for setting in settings::all(&text_of(&file, MAX_CONFIG).ok()?)? {
            if matches!(setting.section.as_str(), "include" | "includeif") && setting.name == "path" {
                let path = setting.value.as_deref()?;
                waiting.push(match path.strip_prefix("~/") {
                    Some(below) => home.as_ref()?.join(below),
                    None => file.parent()?.join(path),
                });
            } else if holds_secret(&setting) {
                found.push(setting.section);
            }
        }
    }
    Some(found)
}

fn holds_secret(setting: &Setting) -> bool {
    let named = ["extraheader", "token", "password", "secret", "apikey"];
    let is_url = setting.section == "url" || setting.name.ends_with("url") || setting.name == "proxy";
    let texts = || setting.subsection.iter().chain(&setting.value);
    named.iter().any(|name| setting.name.contains(name))
        || texts().any(|text| has_credentials(text))
        || is_url && setting.value.is_none()
        || setting.section == "credential" && texts().any(|text| text.contains("password"))
}

/// Whether a file with settings of Git holds a secret; `None` if it cannot be parsed.
pub(crate) fn git_settings_hold_secret(text: &str) -> Option<bool> {
    Some(settings::all(text)?.iter().any(holds_secret))
}

/// Whether an address has a password, or a token as its user: `https://me:PASSWORD@host`.
pub(crate) fn has_credentials(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = place.rsplit_once('@') else { return false };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    !password.is_empty() || name.len() >= TOKEN_LENGTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_password_or_a_token_are_known() {
        for (text, expected) in [
            ("https://github.com/a/b", false),
            ("git@github.com:a/b.git", false),
            ("ssh://git@host:22/a", false),
            ("https://me@host/a", false),
            ("https://host/a@b:c", false),
            ("https://me:pw@host/a", true),
            ("https://x-access-token:ghs_1@github.com/", true),
            ("https://ghp_0123456789012345678901234567890123456@github.com/a", true),
            ("https://:pw@host", true),
        ] {
            assert_eq!(has_credentials(text), expected, "{text}");
        }
    }
}
