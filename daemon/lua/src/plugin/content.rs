//! The files of a plugin: the unit that the user trusts. A repository chooses the names and the links in a project's
//! plugin folder, so all files of plugins are opened by [`open`] here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_host::files::{self, FileType, OpenError};

/// A digest over all files of a plugin and their names.
pub type ContentDigest = blake3::Hash;

/// A folder with more files than this is not a plugin.
const MAX_FILES: usize = 10_000;
/// Trusted content is held in memory while it is read.
const MAX_TRUSTED: u64 = 32 << 20;

/// Decides whether the user has trusted some content. Called on threads that may block.
pub trait ContentTrust: Send + Sync + 'static {
    /// `plugin` is the plugin's file or folder.
    fn is_trusted(&self, plugin: &Path, digest: &ContentDigest) -> bool;
}

/// The files of a plugin, read once, so that what was digested is what runs.
pub struct Content {
    pub digest: ContentDigest,
    /// By path, sorted. For a single-file plugin, that file.
    pub files: BTreeMap<PathBuf, Arc<[u8]>>,
}

impl Content {
    /// Reads all files of a plugin, except temporary files of editors. Blocks.
    ///
    /// # Errors
    /// Something cannot be read, or there is more than 32 MiB of it.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::read_at_most(path, MAX_TRUSTED)
    }

    /// The same with another limit, in bytes.
    fn read_at_most(path: &Path, limit: u64) -> io::Result<Self> {
        let mut files: BTreeMap<PathBuf, Arc<[u8]>> = BTreeMap::new();
        let mut left = limit;
        for file in files_of(path)? {
            let too_much =
                || io::Error::other(format!("it has more than {} MiB, which is too much to review", limit >> 20));
            let opened = open(&file)?;
            let length = opened.metadata()?.len();
            if length > left {
                return Err(too_much());
            }
            let mut bytes = Vec::with_capacity(length as usize + 1);
            // Limited here too, since the file may grow after its size was read.
            opened.take(left + 1).read_to_end(&mut bytes)?;
            left = left.checked_sub(bytes.len() as u64).ok_or_else(too_much)?;
            files.insert(file, bytes.into());
        }
        let mut hasher = blake3::Hasher::new();
        for (file, bytes) in &files {
            add_name(&mut hasher, path, file);
            add_bytes(&mut hasher, bytes);
        }
        Ok(Self { digest: hasher.finalize(), files })
    }
}

/// Opens a file of a plugin. Links are followed; pipes and devices are not opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    files::open(&real_path(path)?).map_err(as_io)
}

/// Follows links. An author may give a path relative to the current folder.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    files::resolve(&std::path::absolute(path)?, Path::new("/"))
}

/// The bytes of one file of a plugin, at most `limit`.
pub(crate) fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("it is longer than {limit} bytes, the limit")));
    }
    Ok(bytes)
}

/// The first link of a project's plugin that leads out of the plugin, or out of the project together with the plugin. A
/// repository chooses where such a link leads, and errors would show lines of that file before anybody has trusted the
/// plugin.
pub(crate) fn link_outward(plugin: &Path, project: &Path) -> io::Result<Option<PathBuf>> {
    let real = real_path(plugin)?;
    let is_near = |folder: &Path| real.starts_with(folder);
    if !is_near(project) && !plugin.parent().is_some_and(is_near) {
        return Ok(Some(plugin.to_owned()));
    }
    for file in files_of(plugin)? {
        if !real_path(&file)?.starts_with(&real) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn as_io(error: OpenError) -> io::Error {
    error.into()
}

/// The digest that [`Content::read`] computes, of any amount of files. Blocks.
///
/// # Errors
/// Something cannot be read.
pub fn whole_digest(path: &Path) -> io::Result<ContentDigest> {
    let mut hasher = blake3::Hasher::new();
    for file in files_of(path)? {
        add_name(&mut hasher, path, &file);
        let opened = open(&file)?;
        hasher.update(&opened.metadata()?.len().to_le_bytes()).update_reader(opened)?;
    }
    Ok(hasher.finalize())
}

/// Sorted; for a file, the file itself.
pub(crate) fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    // The plugin itself may be a link; its folders may not.
    collect(path, &real_path(path)?, &mut files)?;
    files.sort();
    Ok(files)
}

pub(crate) fn add_name(hasher: &mut blake3::Hasher, plugin: &Path, file: &Path) {
    let within = file.strip_prefix(plugin).unwrap_or(file).as_os_str().as_encoded_bytes();
    hasher.update(&(within.len() as u64).to_le_bytes()).update(within);
}

pub(crate) fn add_bytes(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
}

/// The files below `folder`, whose resolved path is `real`.
fn collect(folder: &Path, real: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for (name, kind) in files::list(real, MAX_FILES + 1).map_err(as_io)? {
        if is_passing(&name.to_string_lossy()) {
            continue;
        }
        let path = folder.join(&name);
        if kind.is_dir() {
            collect(&path, &real.join(&name), found)?;
        } else if kind.is_file() || (kind == FileType::Symlink && leads_to_file(&path)) {
            found.push(path);
        }
        if found.len() > MAX_FILES {
            return Err(io::Error::other(format!("the folder has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

fn leads_to_file(link: &Path) -> bool {
    let facts = real_path(link).ok().and_then(|real| files::facts(&real).ok().flatten());
    facts.is_some_and(|facts| facts.kind.is_file())
}

/// Whether an entry of a plugin folder can be a plugin at all. Tests of plugins are files beside them.
pub fn is_plugin(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if is_passing(name) || name.ends_with("_test.lua") {
        return false;
    }
    match path.metadata() {
        Ok(facts) if facts.is_dir() => {
            ["plugin.toml", "plugin.lua", "init.lua"].iter().any(|file| path.join(file).exists())
        }
        Ok(facts) => facts.is_file() && name.ends_with(".lua"),
        Err(_) => false,
    }
}

/// The name of an entry before its manifest is known.
pub(crate) fn stem(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Names of backup, swap and hidden files.
pub(crate) fn is_passing(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || [".swp", ".swo", ".swx", ".tmp", ".bak", ".orig"].iter().any(|end| name.ends_with(end))
        || name == "4913"
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
        assert_eq!(whole_digest(dir.path()).unwrap(), first);
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
    #[test]
    fn pipes_are_not_opened_and_long_files_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("plugin.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read_file(&pipe, 9).unwrap_err().to_string().contains("is a named pipe"));
        assert!(whole_digest(&pipe).is_err() && Content::read(&pipe).is_err());
        assert_eq!(files_of(dir.path()).unwrap(), [] as [PathBuf; 0]);
        std::fs::write(dir.path().join("a.lua"), "0123456789").unwrap();
        assert!(read_file(&dir.path().join("a.lua"), 9).unwrap_err().to_string().contains("longer than 9 bytes"));
        assert!(Content::read_at_most(dir.path(), 9).is_err());
        assert_eq!(Content::read_at_most(dir.path(), 10).unwrap().files.len(), 1);
    }

    #[test]
    fn files_of_editors_are_no_plugins() {
        for name in [".a.lua.swp", "a.lua~", "#a.lua#", ".#a.lua", "4913", "a.lua.tmp", ".git"] {
            assert!(is_passing(name), "{name}");
        }
        assert!(!is_passing("weather.lua"));
    }
}
