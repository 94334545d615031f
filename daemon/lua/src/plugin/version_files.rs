//! The Lua files of one version of a plugin, read once with its digest: what was registered is what runs, no matter what
//! happens to the files later. Other files are read from disk when a script opens them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_host::files;

use crate::plugin::content::{Content, ContentDigest, add_bytes, add_name, files_of, read_file, real_path};
use crate::vm::create::MAX_SOURCE;

/// Larger files are identified by size and time instead of content, where nobody has to trust them.
const MAX_HASHED: u64 = 8 << 20;
/// Bytes of Lua files that a version keeps in memory. Further files are read again when they are needed.
const MAX_KEPT: usize = 16 << 20;

/// The files that a version can run.
#[derive(Default)]
pub(crate) struct VersionFiles {
    texts: BTreeMap<PathBuf, Arc<[u8]>>,
    /// Files that are not in memory, with the digest of each.
    others: BTreeMap<PathBuf, blake3::Hash>,
    /// Files that are too long to be read, with the bytes of each.
    too_long: BTreeMap<PathBuf, u64>,
    kept: usize,
}

impl VersionFiles {
    /// Reads all files of a plugin, one after another, and keeps those that it can run. Links that lead out of the plugin
    /// count as changes, but are not part of it. Blocks.
    ///
    /// # Errors
    /// Something cannot be read.
    pub(crate) fn read(plugin: &Path) -> io::Result<(ContentDigest, Self)> {
        let root = real_path(plugin)?;
        let mut version = Self::default();
        let mut hasher = blake3::Hasher::new();
        for path in files_of(plugin)? {
            add_name(&mut hasher, plugin, &path);
            let opened = real_path(&path).and_then(|real| Ok((files::open(&real)?, real)));
            let (file, real) = match opened {
                // It was removed after it was listed; that is another change, with an event of its own.
                Err(error) if error.kind() == io::ErrorKind::NotFound && path != plugin => continue,
                opened => opened?,
            };
            let facts = file.metadata()?;
            let mut bytes = Vec::new();
            if facts.len() <= MAX_HASHED {
                file.take(MAX_HASHED + 1).read_to_end(&mut bytes)?;
            }
            if facts.len() <= MAX_HASHED && bytes.len() as u64 <= MAX_HASHED {
                add_bytes(&mut hasher, &bytes);
                // A manifest may be shared by a link; a plugin without its manifest would be less restricted.
                if real.starts_with(&root) || path == plugin.join("plugin.toml") {
                    version.add(path, bytes.into());
                }
            } else {
                version.too_long.insert(path, facts.len());
                let since = facts.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                hasher.update(&facts.len().to_le_bytes()).update(&since.as_nanos().to_le_bytes());
            }
        }
        Ok((hasher.finalize(), version))
    }

    /// The same for content that was read to be trusted.
    pub(crate) fn of_content(content: Content) -> Self {
        let mut version = Self::default();
        content.files.into_iter().for_each(|(path, bytes)| version.add(path, bytes));
        version
    }

    fn add(&mut self, path: PathBuf, bytes: Arc<[u8]>) {
        if is_run(&path) && bytes.len() <= MAX_SOURCE && self.kept + bytes.len() <= MAX_KEPT {
            self.keep(path, bytes);
        } else {
            self.others.insert(path, blake3::hash(&bytes));
        }
    }

    /// Adds a file to keep in memory.
    pub(crate) fn keep(&mut self, path: PathBuf, text: Arc<[u8]>) {
        self.kept += text.len();
        self.texts.insert(path, text);
    }

    /// All Lua files; `None` if some are not in memory.
    pub(crate) fn all(&self) -> Option<impl Iterator<Item = (&Path, &Arc<[u8]>)>> {
        let is_complete = !self.others.keys().any(|path| is_run(path));
        is_complete.then(|| self.texts.iter().map(|(path, text)| (path.as_path(), text)))
    }

    /// The Lua files in memory.
    pub(crate) fn lua_texts(&self) -> impl Iterator<Item = (&Path, &Arc<[u8]>)> {
        let is_lua = |path: &Path| path.extension().is_some_and(|ending| ending == "lua");
        self.texts.iter().filter(move |(path, _)| is_lua(path)).map(|(path, text)| (path.as_path(), text))
    }

    /// Whether the version has this file.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.texts.contains_key(path) || self.others.contains_key(path) || self.too_long.contains_key(path)
    }

    /// The text of a file as it was when this version was read; `None` if the version has no such file. Blocks if the
    /// file is not in memory.
    ///
    /// # Errors
    /// The file is too long. A file that is not in memory changed since, or cannot be read.
    pub(crate) fn text(&self, path: &Path) -> io::Result<Option<Arc<[u8]>>> {
        if let Some(text) = self.texts.get(path) {
            return Ok(Some(text.clone()));
        }
        if let Some(length) = self.too_long.get(path) {
            return Err(io::Error::other(too_long(*length)));
        }
        let Some(digest) = self.others.get(path) else { return Ok(None) };
        let bytes = read_file(path, MAX_SOURCE)?;
        if blake3::hash(&bytes) != *digest {
            return Err(io::Error::other("it changed since this version of the plugin was loaded"));
        }
        Ok(Some(bytes.into()))
    }
}

fn too_long(bytes: u64) -> String {
    format!("it has {} MiB, and a plugin's file may have at most {} MiB", bytes >> 20, MAX_SOURCE >> 20)
}

fn is_run(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lua" || ending == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_trusted_content() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["plugin.lua", "data.bin", "lib.lua"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        assert_eq!(VersionFiles::read(dir.path()).unwrap().0, Content::read(dir.path()).unwrap().digest);
        let file = dir.path().join("lib.lua");
        assert_eq!(VersionFiles::read(&file).unwrap().0, Content::read(&file).unwrap().digest);
    }

    #[test]
    fn a_version_keeps_its_lua_files_and_refuses_others_that_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("plugin.lua"), "old").unwrap();
        std::fs::write(path("data"), "old").unwrap();
        let (_, version) = VersionFiles::read(dir.path()).unwrap();
        assert_eq!(version.text(&path("data")).unwrap().unwrap()[..], *b"old");
        std::fs::remove_file(path("plugin.lua")).unwrap();
        std::fs::write(path("data"), "new").unwrap();
        std::fs::write(path("more.lua"), "new").unwrap();
        assert_eq!(version.text(&path("plugin.lua")).unwrap().unwrap()[..], *b"old");
        assert!(version.text(&path("data")).unwrap_err().to_string().contains("changed since"));
        assert!(version.text(&path("more.lua")).unwrap().is_none());
    }

    #[test]
    fn a_file_that_is_too_long_is_there_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["plugin.lua", "lib.lua"] {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_len(MAX_HASHED + 1).unwrap();
            for plugin in [dir.path().to_owned(), dir.path().join(name)] {
                let (_, version) = VersionFiles::read(&plugin).unwrap();
                assert!(version.has(&dir.path().join(name)));
                let error = version.text(&dir.path().join(name)).unwrap_err().to_string();
                assert_eq!(error, "it has 8 MiB, and a plugin's file may have at most 4 MiB");
            }
        }
    }

    #[test]
    fn a_link_out_of_the_plugin_is_no_file_of_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("p")).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", dir.path().join("p/plugin.lua")).unwrap();
        let (_, version) = VersionFiles::read(&dir.path().join("p")).unwrap();
        assert!(version.text(&dir.path().join("p/plugin.lua")).unwrap().is_none());
    }
}
