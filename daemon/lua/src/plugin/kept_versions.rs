//! The last good version of each plugin on disk, with its Lua files and its manifest: it serves when the plugin is broken
//! at the next start of the daemon.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use toold_host::state_file;

use crate::plugin::PluginVersion;
use crate::plugin::content::ContentDigest;
use crate::plugin::version_files::VersionFiles;

/// A folder with a file for each plugin, named by the plugin's folder, its entry there, and the digest of its content.
#[derive(Clone, Debug)]
pub struct KeptVersions {
    /// Created on first use. Only the daemon's user may be able to read and write there.
    pub dir: PathBuf,
}

/// A longer file is not read.
const MAX_FILE: u64 = 32 << 20;
/// The versions that were used least recently are removed beyond this number, and beyond this many bytes.
const MAX_VERSIONS: usize = 1_000;
const MAX_BYTES: u64 = 128 << 20;
/// How often the time of a version's last use is updated.
const TOUCH: Duration = Duration::from_secs(24 * 3_600);
/// How long a daemon that stops goes on keeping versions.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// Characters of a file's name that are the same for all versions of a plugin; see [`prefix`].
const PREFIX: usize = 66;

/// A change of a plugin, or of a folder of plugins.
pub(crate) enum VersionChange {
    /// This version serves, and was loaded at this time.
    Serves(Arc<PluginVersion>, SystemTime),
    /// The plugin was deleted.
    Gone(PathBuf),
    /// The folder has these entries, and no others.
    Entries(PathBuf, Vec<PathBuf>),
}

/// A version that was kept.
pub(crate) struct KeptVersion {
    pub(crate) digest: ContentDigest,
    pub(crate) files: VersionFiles,
    pub(crate) loaded_at: SystemTime,
}

#[derive(Serialize, Deserialize)]
struct SavedVersion {
    /// Digest of the content.
    check: String,
    content: SavedContent,
}

#[derive(Serialize, Deserialize)]
struct SavedContent {
    plugin: PathBuf,
    digest: String,
    loaded_at: SystemTime,
    /// By their paths in the plugin's folder, in Base64. The path of a plugin's only file is empty.
    files: BTreeMap<PathBuf, String>,
}

impl SavedContent {
    fn check(&self) -> Option<String> {
        Some(blake3::hash(&serde_json::to_vec(self).ok()?).to_hex().to_string())
    }
}

impl KeptVersions {
    /// The last good version of a plugin. A file that is damaged counts as absent. Blocks.
    pub(crate) fn find(&self, plugin: &Path) -> Option<KeptVersion> {
        self.of(&prefix(plugin)).into_iter().rev().find_map(|(_, path)| {
            let saved: SavedVersion = state_file::load(&path, MAX_FILE)?;
            let content = saved.content;
            let digest = ContentDigest::from_hex(&content.digest).ok()?;
            let is_whole = content.check().as_ref() == Some(&saved.check)
                && content.plugin == plugin
                && path.file_name()?.to_str()? == name(plugin, &digest);
            if !is_whole {
                return None;
            }
            let mut files = VersionFiles::default();
            for (within, text) in content.files {
                let path = if within.as_os_str().is_empty() { plugin.to_owned() } else { plugin.join(within) };
                files.keep(path, STANDARD.decode(text).ok()?.into());
            }
            Some(KeptVersion { digest, files, loaded_at: content.loaded_at })
        })
    }

    /// Keeps and removes versions. Errors are logged: a version that cannot be kept is not there at the next start.
    /// Blocks; once `stop` fires, a moment at most: the next daemon keeps what it loads.
    pub(crate) fn apply(&self, changes: Vec<VersionChange>, stop: &CancellationToken) {
        let of_versions = |change: &VersionChange| matches!(change, VersionChange::Serves(..));
        // More would be removed again.
        let mut too_many = changes.iter().filter(|change| of_versions(change)).count().saturating_sub(MAX_VERSIONS);
        // The folder is read once, and not for each version.
        let mut known: HashMap<String, Vec<PathBuf>> = HashMap::new();
        if changes.iter().any(of_versions) {
            for (_, path) in self.of("") {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                known.entry(name.get(..PREFIX).unwrap_or_default().to_owned()).or_default().push(path);
            }
        }
        let (mut has_kept, mut end) = (false, None);
        for change in changes {
            if stop.is_cancelled() && *end.get_or_insert_with(|| Instant::now() + LAST_MOMENT) < Instant::now() {
                break;
            }
            match change {
                VersionChange::Serves(..) if too_many > 0 => too_many -= 1,
                VersionChange::Serves(plugin, loaded_at) => {
                    if let Some(path) = self.keep(&plugin, loaded_at) {
                        let of_plugin = known.entry(prefix(&plugin.path)).or_default();
                        for older in std::mem::replace(of_plugin, vec![path.clone()]) {
                            if older != path {
                                // Another daemon of the user may have removed it.
                                let _ = std::fs::remove_file(older);
                            }
                        }
                        has_kept = true;
                    }
                }
                VersionChange::Gone(plugin) => remove(self.of(&prefix(&plugin))),
                VersionChange::Entries(folder, entries) => {
                    let known: Vec<String> = entries.iter().map(|entry| prefix(entry)).collect();
                    let mut files = self.of(&folder_prefix(&folder));
                    files.retain(|(_, path)| {
                        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                        !known.iter().any(|known| name.starts_with(known))
                    });
                    remove(files);
                }
            }
        }
        if has_kept {
            self.clean();
        }
    }

    /// Writes a version; returns its file if there was none.
    fn keep(&self, plugin: &PluginVersion, loaded_at: SystemTime) -> Option<PathBuf> {
        let path = self.dir.join(name(&plugin.path, &plugin.digest));
        if let Ok(file) = File::open(&path) {
            let used = file.metadata().and_then(|facts| facts.modified());
            if used.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago > TOUCH)) {
                // Fails on a file system that is read-only; then the version is removed too early.
                let _ = file.set_modified(SystemTime::now());
            }
            return None;
        }
        let texts = plugin.files.all()?;
        let entry = (plugin.manifest.entry.as_path(), &plugin.script);
        let within = |path: &Path| path.strip_prefix(&plugin.path).unwrap_or(path).to_owned();
        let files = texts.chain([entry]).map(|(path, text)| (within(path), STANDARD.encode(text))).collect();
        let digest = plugin.digest.to_hex().to_string();
        let content = SavedContent { plugin: plugin.path.clone(), digest, loaded_at, files };
        // Only text can be saved, and a path may be something else.
        let check = content.check()?;
        if let Err(error) = state_file::save(&path, &SavedVersion { check, content }) {
            tracing::warn!(plugin = plugin.name(), %error, "can't keep this version for the next start");
            return None;
        }
        Some(path)
    }

    /// Removes the versions that were used least recently, if there are too many.
    fn clean(&self) {
        let mut left = MAX_BYTES;
        let mut files = self.of("");
        files.reverse();
        let too_many = files.into_iter().enumerate().filter(|(place, (_, path))| {
            let bytes = path.metadata().map_or(0, |facts| facts.len());
            let fits = *place < MAX_VERSIONS && bytes <= left;
            left = left.saturating_sub(bytes);
            !fits
        });
        remove(too_many.map(|(_, file)| file).collect());
    }

    /// The files whose names begin like this, with the times of their last use, oldest first.
    fn of(&self, prefix: &str) -> Vec<(SystemTime, PathBuf)> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        let used = |entry: &std::fs::DirEntry| entry.metadata().and_then(|facts| facts.modified());
        let mut files: Vec<_> =
            entries.map(|entry| (used(&entry).unwrap_or(SystemTime::UNIX_EPOCH), entry.path())).collect();
        files.sort();
        files
    }
}

fn remove(files: Vec<(SystemTime, PathBuf)>) {
    for (_, path) in files {
        // Another daemon of the user may have removed it.
        let _ = std::fs::remove_file(path);
    }
}

fn name(plugin: &Path, digest: &ContentDigest) -> String {
    format!("{}{}.json", prefix(plugin), digest.to_hex())
}

fn prefix(plugin: &Path) -> String {
    format!("{}{}-", folder_prefix(plugin.parent().unwrap_or(plugin)), short(plugin))
}

fn folder_prefix(folder: &Path) -> String {
    format!("{}-", short(folder))
}

fn short(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..32].to_owned()
}
