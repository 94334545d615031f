//! Settings of programs in the home folder that may hold a password or a token. A command on a floor reads them without it,
//! so that its programs do what they do elsewhere.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::existing::existing;
use crate::credentials::{settings_hold_credentials, without_credentials};
use crate::environment::Environment;

/// Below the home folder. All of them consist of lines, or are XML.
const SETTINGS: &[&str] = &[
    ".bundle/config",
    ".cabal/config",
    ".cargo/config",
    ".cargo/config.toml",
    ".config/fish/config.fish",
    ".config/go/env",
    ".config/mise/config.toml",
    ".config/mise/settings.toml",
    ".config/nix/nix.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".gitconfig",
    ".gradle/gradle.properties",
    ".gradle/init.gradle",
    ".gradle/init.gradle.kts",
    ".local/share/pnpm/rc",
    ".m2/settings.xml",
    ".npmrc",
    ".nvm/.npmrc",
    ".sbt/repositories",
    ".yarnrc",
];
/// Folders of such files, below the home folder.
const FOLDERS: &[&str] =
    &[".config/fish/conf.d", ".config/git", ".config/mise/conf.d", ".gradle/init.d", ".sbt/1.0", ".sbt/1.0/plugins"];
/// Files of such a folder that are looked at. The folder is hidden if it has more.
const MAX_FILES: usize = 64;
/// The same in folders that variables name in place of those in the home folder.
const MOVED: &[(&str, &[&str])] =
    &[("CARGO_HOME", &["config", "config.toml"]), ("GRADLE_USER_HOME", &["gradle.properties"])];
/// Files and folders that hold little else, below the home folder and below these folders.
const HIDDEN: &[&str] = &[
    ".composer/auth.json",
    ".config/fish/fish_variables",
    ".config/git/credentials",
    ".config/nix/netrc",
    ".hex/hex.config",
    ".ivy2/.credentials",
    ".julia/servers",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".nuget/NuGet/NuGet.Config",
    ".sbt/.credentials",
    ".sbt/1.0/.credentials",
    ".sbt/1.0/credentials",
    ".sbt/credentials",
];
const HIDDEN_MOVED: &[(&str, &[&str])] = &[("CARGO_HOME", &["credentials", "credentials.toml"])];
/// Longer settings with a token are hidden: what stands in for them is handed over as an argument.
const MAX_TEXT: usize = 32 << 10;

/// A file's device, number, size, and time of change.
type SettingsState = (u64, u64, u64, (i64, i64));

/// What a command on a floor sees of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ShownSettings {
    AsTheyAre,
    Without(String),
    Hidden,
}

/// What is known of such files. One per daemon.
#[derive(Debug, Default)]
pub(super) struct HomeSettings(Mutex<HashMap<PathBuf, (SettingsState, ShownSettings)>>);

/// The settings that a command on a floor sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsOnFloor {
    /// Those that it sees, as they are or with another text.
    pub(super) seen: Vec<PathBuf>,
    /// What it sees in place of those with a password or a token.
    pub(super) replaced: Vec<(PathBuf, String)>,
    pub(super) hidden: Vec<PathBuf>,
}

impl HomeSettings {
    /// Reads those that have changed since the last time.
    pub(super) fn on_floor(&self, home: Option<&Path>, environment: &Environment) -> SettingsOnFloor {
        let of = |at_home: &[&str], moved: &[(&str, &[&str])]| {
            let own = home.into_iter().flat_map(|home| at_home.iter().map(|name| home.join(name)));
            let moved = moved.iter().flat_map(|(variable, names)| {
                let folder = environment.get(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
                folder.into_iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            });
            existing(own.chain(moved).collect())
        };
        let mut found = SettingsOnFloor { hidden: of(HIDDEN, HIDDEN_MOVED), ..SettingsOnFloor::default() };
        let mut settings = of(SETTINGS, MOVED);
        for folder in home.into_iter().flat_map(|home| FOLDERS.iter().map(|name| home.join(name))) {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let files: Vec<PathBuf> = entries.map(|entry| entry.path()).take(MAX_FILES + 1).collect();
            match files.len() > MAX_FILES {
                true => found.hidden.push(folder),
                false => settings.extend(files.into_iter().filter(|file| !found.hidden.contains(file))),
            }
        }
        for path in settings {
            match self.shown(&path) {
                Some(ShownSettings::AsTheyAre) => found.seen.push(path),
                Some(ShownSettings::Without(text)) => {
                    // What is mounted covers what a link leads to.
                    found.replaced.extend(path.canonicalize().ok().map(|real| (real, text)));
                    found.seen.push(path);
                }
                Some(ShownSettings::Hidden) => found.hidden.push(path),
                None => {}
            }
        }
        found
    }

    /// `None` if it is no file.
    fn shown(&self, path: &Path) -> Option<ShownSettings> {
        let facts = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let state = (facts.dev(), facts.ino(), facts.size(), (facts.ctime(), facts.ctime_nsec()));
        let mut known = self.0.lock();
        if let Some((_, shown)) = known.get(path).filter(|(of, _)| *of == state) {
            return Some(shown.clone());
        }
        let shown = match settings_hold_credentials(path) {
            false => ShownSettings::AsTheyAre,
            true => {
                let text = without_credentials(path).filter(|text| text.len() <= MAX_TEXT && !text.contains('\0'));
                text.map_or(ShownSettings::Hidden, ShownSettings::Without)
            }
        };
        known.insert(path.to_owned(), (state, shown.clone()));
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_without_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let files = [
            (
                ".gitconfig",
                "[user]\n\tname = n\n[github]\n\ttoken = ghp_abcdefghijklmnopqrstuvwxyz0123456789\n[core]\n\tpager = cat\n",
                Some("[user]\n\tname = n\n[github]\n[core]\n\tpager = cat\n"),
            ),
            (
                ".config/git/config",
                "[url \"https://me:pw@host/\"]\n\tinsteadOf = https://host/\n",
                Some("\tinsteadOf = https://host/\n"),
            ),
            (
                ".npmrc",
                "registry=https://npm.example.org/\n//npm.example.org/:_authToken=npm_0123456789abcdef\nfund=false\n",
                Some("registry=https://npm.example.org/\nfund=false\n"),
            ),
            (".yarnrc", "registry \"https://npm.example.org/\"\n", None),
            (
                ".cargo/config.toml",
                "[registries.x]\nindex = \"sparse+https://x/\"\ntoken = \"Bearer abcdef0123456789\"\n[build]\njobs = 2\n",
                Some("[registries.x]\nindex = \"sparse+https://x/\"\n[build]\njobs = 2\n"),
            ),
            (
                ".config/pip/pip.conf",
                "[global]\nindex-url = https://user:hunter2@pypi.example.org/simple\ntimeout = 3\n",
                Some("[global]\ntimeout = 3\n"),
            ),
            (
                ".config/nix/nix.conf",
                "cores = 2\naccess-tokens = github.com=ghp_abcdefghijklmnopqrstuvwxyz0123456789\n",
                Some("cores = 2\n"),
            ),
            (
                ".gradle/gradle.properties",
                "org.gradle.daemon=true\nossrhPassword=hunter3\n",
                Some("org.gradle.daemon=true\n"),
            ),
            (
                ".bundle/config",
                "---\nBUNDLE_JOBS: \"2\"\nBUNDLE_GEMS__X__ORG: \"user:bundlesecret\"\n",
                Some("---\nBUNDLE_JOBS: \"2\"\n"),
            ),
            (
                ".config/mise/config.toml",
                "[tools]\nnode = \"22\"\n[env]\nAWS_SECRET_ACCESS_KEY = \"abcdefgh12345678\"\n",
                Some("[tools]\nnode = \"22\"\n[env]\n"),
            ),
            (
                ".config/go/env",
                "GOFLAGS=-mod=mod\nGOPROXY=https://user:hunter4@proxy.example.org\n",
                Some("GOFLAGS=-mod=mod\n"),
            ),
            (
                ".config/git/work",
                "[user]\n\tname = n\n[github]\n\ttoken = abcdefgh12345678\n",
                Some("[user]\n\tname = n\n[github]\n"),
            ),
            (
                ".m2/settings.xml",
                "<settings><servers>\n<server><id>a</id><password>x</password></server>\n<server><id>b</id>\n\
                 <Passphrase>\nx\n</Passphrase ></server>\n</servers></settings>\n",
                Some(
                    "<settings><servers>\n<server><id>a</id></server>\n<server><id>b</id>\n</server>\n</servers></settings>\n",
                ),
            ),
            (".config/mise/conf.d/a.toml", "[env]\nA_TOKEN = \"abcdefgh12345678\"\n", Some("[env]\n")),
        ];
        files.iter().for_each(|(name, text, _)| write(name, text));
        write(".config/git/credentials", "https://bob:x@github.com\n");
        let settings = HomeSettings::default();
        let shown = settings.on_floor(Some(&home), &Environment::default());
        for (name, _, expected) in files {
            let path = home.join(name);
            let replaced = shown.replaced.iter().find(|(of, _)| *of == path).map(|(_, text)| text.as_str());
            assert_eq!(replaced, expected, "{name}");
            assert!(shown.seen.contains(&path), "{name}");
        }
        assert_eq!(shown.hidden, [home.join(".config/git/credentials")]);
        // A change counts, and what cannot be taken apart is hidden.
        write(".npmrc", "_password=\n  abcdefgh\n_auth = abcdefgh\n");
        write(".yarnrc", &"x".repeat(2 << 20));
        let shown = settings.on_floor(Some(&home), &Environment::default());
        assert!(shown.hidden.contains(&home.join(".yarnrc")), "{shown:?}");
    }
}
