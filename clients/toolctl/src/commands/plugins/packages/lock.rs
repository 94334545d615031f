//! `plugins.lock`: where each installed plugin came from, its revision, and the digest of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use toold_files::FileReplacement;

use super::source::PluginSource;

const NAME: &str = "plugins.lock";
const VERSION: u32 = 1;
const HEADER: &str =
    "# The installed plugins. toolctl writes this file; `toolctl plugins install` installs them again.\n";

/// The installed plugins, by the name of their folder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PluginLock {
    version: u32,
    #[serde(default)]
    pub(super) plugins: BTreeMap<String, LockedPlugin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedPlugin {
    /// As `toolctl plugins install` takes it, with the branch or the reference that was asked for.
    pub(super) source: String,
    /// The commit, in hexadecimal digits.
    pub(super) revision: String,
    /// The BLAKE3 digest of all its files and their names, as the daemon computes it, in hexadecimal digits.
    pub(super) digest: String,
}

impl PluginLock {
    /// Empty if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not such a file.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = path_in(folder);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
        };
        if text.is_empty() {
            return Ok(Self { version: VERSION, plugins: BTreeMap::new() });
        }
        Self::parse(&text).with_context(|| format!("can't read {}", path.display()))
    }

    /// The file may come from another machine: names and revisions become paths and arguments of Git.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let lock: Self = toml::from_str(text)?;
        ensure!(lock.version == VERSION, "expected version {VERSION}, got {}", lock.version);
        for (name, plugin) in &lock.plugins {
            let source = PluginSource::parse(&plugin.source)?;
            ensure!(source.folder == *name, "plugins.{name}: {} is named {}", plugin.source, source.folder);
            let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
            ensure!(
                is_hex(&plugin.revision) && matches!(plugin.revision.len(), 40 | 64),
                "plugins.{name}: expected a revision of 40 or 64 hexadecimal digits, got {:?}",
                plugin.revision
            );
            ensure!(
                is_hex(&plugin.digest) && plugin.digest.len() == 64,
                "plugins.{name}: expected a digest of 64 hexadecimal digits, got {:?}",
                plugin.digest
            );
        }
        Ok(lock)
    }

    /// Changes the file as a whole; two changes at once do not lose one another.
    pub(super) fn change(
        folder: &Path,
        change: impl FnOnce(&mut BTreeMap<String, LockedPlugin>),
    ) -> anyhow::Result<()> {
        let path = path_in(folder);
        let write = || -> anyhow::Result<()> {
            // Unlocked when it is closed.
            let held = File::open(folder)?;
            held.lock()?;
            let mut lock = Self::read(folder)?;
            let before = lock.plugins.clone();
            change(&mut lock.plugins);
            if lock.plugins == before {
                return Ok(());
            }
            let beside = folder.join(format!(".{NAME}.tmp"));
            let text = format!("{HEADER}{}", toml::to_string_pretty(&lock)?);
            Ok(toold_files::replace(&path, &beside, text.as_bytes(), FileReplacement::KeepsMode(0o666))?)
        };
        write().with_context(|| format!("can't write {}", path.display()))
    }
}

pub(super) fn path_in(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, revision: &str, digest: &str) -> String {
        format!(
            "version = 1\n[plugins.{name}]\nsource = \"github:ada/weather#main\"\nrevision = \"{revision}\"\ndigest = \"{digest}\"\n"
        )
    }

    #[test]
    fn it_comes_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let plugin =
            LockedPlugin { source: "github:ada/weather#main".into(), revision: "0".repeat(40), digest: "a".repeat(64) };
        PluginLock::change(dir.path(), |plugins| drop(plugins.insert("weather".into(), plugin.clone()))).unwrap();
        assert_eq!(PluginLock::read(dir.path()).unwrap().plugins["weather"], plugin);
        let text = std::fs::read_to_string(path_in(dir.path())).unwrap();
        let fields = format!(
            "version = 1\n\n[plugins.weather]\nsource = \"github:ada/weather#main\"\nrevision = \"{}\"\ndigest = \"{}\"\n",
            plugin.revision, plugin.digest
        );
        assert_eq!(text, format!("{HEADER}{fields}"));
    }

    #[test]
    fn names_and_revisions_cannot_be_paths_or_options() {
        let (revision, digest) = ("0".repeat(40), "a".repeat(64));
        assert!(PluginLock::parse(&entry("weather", &revision, &digest)).is_ok());
        for (name, revision, digest) in [
            ("\"../x\"", &*revision, &*digest),
            ("rain", &revision, &digest),
            ("weather", "--upload-pack=x", &digest),
            ("weather", &revision, "x"),
        ] {
            assert!(PluginLock::parse(&entry(name, revision, digest)).is_err(), "{name} {revision} {digest}");
        }
    }
}
