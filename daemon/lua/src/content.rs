//! What a plugin consists of, as bytes: the unit that a person trusts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::unit::is_candidate;
use crate::watch::is_passing;

/// A digest over all files of a plugin and their names.
pub type Digest = blake3::Hash;

/// Files over this are known by size and time instead of content, where nobody has to trust them.
const MAX_HASHED: u64 = 8 << 20;
/// A folder with more files than this is no plugin.
const MAX_FILES: usize = 10_000;
/// What is trusted is held in memory while it is read.
const MAX_TRUSTED: u64 = 64 << 20;

/// Tells which content a person has trusted. Called on threads that may block.
pub trait Trust: Send + Sync + 'static {
    /// `plugin` is the plugin's file or folder.
    fn is_trusted(&self, plugin: &Path, digest: &Digest) -> bool;
}

/// The files of a plugin, read once: what is digested is what runs.
pub struct Content {
    pub digest: Digest,
    /// By path, sorted. Of a plugin of one file, that file.
    pub files: BTreeMap<PathBuf, Arc<[u8]>>,
}

impl Content {
    /// Reads all of a plugin's file or folder but what editors leave behind. Blocks.
    ///
    /// # Errors
    /// Something cannot be read, or there is more than 64 MiB of it.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::read_at_most(path, MAX_TRUSTED)
    }

    /// The same with another limit, in bytes.
    pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Self> {
        let mut files: BTreeMap<PathBuf, Arc<[u8]>> = BTreeMap::new();
        let mut left = limit;
        for file in files_of(path)? {
            let length = file.metadata()?.len();
            left = left.checked_sub(length).ok_or_else(|| {
                io::Error::other(format!("it has more than {} MiB: nobody can look through that", limit >> 20))
            })?;
            files.insert(file.clone(), std::fs::read(&file)?.into());
        }
        let mut hasher = blake3::Hasher::new();
        for (file, bytes) in &files {
            add_name(&mut hasher, path, file);
            add_bytes(&mut hasher, bytes);
        }
        Ok(Self { digest: hasher.finalize(), files })
    }

    pub(crate) fn file(&self, path: &Path) -> Option<&Arc<[u8]>> {
        self.files.get(path)
    }
}

/// Whether a name in a plugin folder can be a plugin at all.
pub fn is_plugin(path: &Path) -> bool {
    is_candidate(path)
}

/// Tells one state of a plugin's files from another, without holding them.
pub(crate) fn digest(path: &Path) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    for file in files_of(path)? {
        add_name(&mut hasher, path, &file);
        match add_file(&mut hasher, &file) {
            // It went away since it was listed; that is another change, told by itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path != file => {}
            other => other?,
        }
    }
    Ok(hasher.finalize())
}

/// Sorted; of a file, itself.
pub(crate) fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    files.sort();
    Ok(files)
}

fn add_name(hasher: &mut blake3::Hasher, plugin: &Path, file: &Path) {
    let within = file.strip_prefix(plugin).unwrap_or(file).as_os_str().as_encoded_bytes();
    hasher.update(&(within.len() as u64).to_le_bytes()).update(within);
}

fn add_bytes(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
}

fn add_file(hasher: &mut blake3::Hasher, path: &Path) -> io::Result<()> {
    let facts = path.metadata()?;
    if facts.len() <= MAX_HASHED {
        add_bytes(hasher, &std::fs::read(path)?);
    } else {
        let since = facts.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        hasher.update(&facts.len().to_le_bytes()).update(&since.as_nanos().to_le_bytes());
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_passing(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if entry.path().is_file() {
            files.push(entry.path());
        }
        if files.len() > MAX_FILES {
            return Err(io::Error::other(format!("the folder has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_and_every_name_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let now = || Content::read(dir.path()).unwrap().digest;
        write("plugin.lua", "a");
        write("lib.lua", "bc");
        let first = now();
        assert_eq!(digest(dir.path()).unwrap(), first);
        write("lib.lua", "bd");
        let second = now();
        std::fs::rename(dir.path().join("lib.lua"), dir.path().join("lix.lua")).unwrap();
        let third = now();
        write(".lix.lua.swp", "x");
        assert_eq!(now(), third);
        assert!(first != second && second != third);
        write("lix.lua", "b");
        write("plugin.lua", "ad");
        assert_ne!(now(), third);
    }
}
