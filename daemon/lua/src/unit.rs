//! One entry of a plugin folder: what is in it, whether it changed, and what loading it gave.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toold_engine::registry::{Scope, SourceKey};
use toold_engine::tool::Origin;
use toold_proto::plugin::PluginError;
use toold_proto::tool::SourceKind;

use crate::load::{explain_manifest, load};
use crate::manifest::Manifest;
use crate::plugin::{Loaded, Plugin, Registered, Shared};
use crate::watch::is_passing;

/// What the files of an entry were when they were last looked at.
pub(crate) type Digest = blake3::Hash;

/// Files of a plugin over this are known by size and time instead of content.
const MAX_HASHED: u64 = 8 << 20;
/// A folder with more files than this is no plugin.
const MAX_FILES: usize = 10_000;

/// What a look at an entry found.
pub(crate) enum Look {
    /// Nothing there that is a plugin.
    Gone,
    /// The same files as before.
    Unchanged,
    /// There, and not to be run.
    Withheld {
        digest: Digest,
        manifest: Manifest,
    },
    Failed {
        digest: Option<Digest>,
        name: String,
        manifest: Option<Manifest>,
        error: PluginError,
        name_taken: bool,
    },
    Loaded {
        digest: Digest,
        plugin: Arc<Plugin>,
        loaded: Box<Loaded>,
        registered: Registered,
    },
}

/// How an entry is to be looked at.
pub(crate) struct Order {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) scope: Scope,
    /// The digest of what is known; a look that finds it again stops there.
    pub(crate) known: Option<Digest>,
    /// By the plugin's name: whether it may run.
    pub(crate) may_run: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    pub(crate) shared: Arc<Shared>,
}

/// Whether a name in a plugin folder can be a plugin at all. Tests of plugins lie beside them.
pub(crate) fn is_candidate(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if is_passing(name) || name.ends_with("_test.lua") {
        return false;
    }
    match path.metadata() {
        Ok(facts) if facts.is_dir() => path.join("plugin.toml").exists() || path.join("plugin.lua").exists(),
        Ok(facts) => facts.is_file() && name.ends_with(".lua"),
        Err(_) => false,
    }
}

/// Reads an entry, and loads it when it changed. Blocks.
pub(crate) fn look(order: Order) -> Look {
    let path = &order.path;
    if !is_candidate(path) {
        return Look::Gone;
    }
    let is_folder = path.is_dir();
    let digest = match digest(path, is_folder) {
        Ok(digest) => digest,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Look::Gone,
        Err(error) => return unreadable(path, path, &error),
    };
    if order.known == Some(digest) {
        return Look::Unchanged;
    }
    let manifest = if is_folder { Manifest::of_folder(path) } else { Manifest::of_file(path) };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            return Look::Failed {
                digest: Some(digest),
                name: stem(path),
                manifest: None,
                error: explain_manifest(&error),
                name_taken: false,
            };
        }
    };
    if !(order.may_run)(&manifest.name) {
        return Look::Withheld { digest, manifest };
    }
    let script = match std::fs::read(&manifest.entry) {
        Ok(script) => script,
        Err(error) => return unreadable(path, &manifest.entry, &error),
    };
    let key = SourceKey { kind: SourceKind::Plugin, name: manifest.name.clone(), scope: order.scope };
    let plugin = Arc::new(Plugin {
        path: order.path,
        origin: order.origin,
        key,
        script: script.into(),
        sources: Default::default(),
        shared: order.shared,
        manifest,
    });
    match load(&plugin) {
        Ok((loaded, registered)) => Look::Loaded { digest, plugin, loaded: Box::new(loaded), registered },
        Err(failure) => Look::Failed {
            digest: Some(digest),
            name: plugin.name().to_owned(),
            manifest: Some(plugin.manifest.clone()),
            error: failure.error,
            name_taken: failure.name_taken,
        },
    }
}

impl Look {
    /// The look itself did not come to its end.
    pub(crate) fn broken(path: &Path, message: &str) -> Self {
        let error =
            PluginError { message: message.to_owned(), file: None, line: None, source_line: None, traceback: None };
        Self::Failed { digest: None, name: stem(path), manifest: None, error, name_taken: false }
    }
}

fn unreadable(entry: &Path, path: &Path, error: &std::io::Error) -> Look {
    let error = PluginError {
        message: format!("can't read {}: {error}", path.display()),
        file: Some(path.display().to_string()),
        line: None,
        source_line: None,
        traceback: None,
    };
    Look::Failed { digest: None, name: stem(entry), manifest: None, error, name_taken: false }
}

/// The name that an entry has before anything is known of it.
pub(crate) fn stem(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn digest(path: &Path, is_folder: bool) -> std::io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    if !is_folder {
        add_file(&mut hasher, path)?;
        return Ok(hasher.finalize());
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    files.sort();
    for file in files {
        let within = file.strip_prefix(path).unwrap_or(&file).as_os_str().as_encoded_bytes();
        hasher.update(&(within.len() as u64).to_le_bytes()).update(within);
        match add_file(&mut hasher, &file) {
            // It went away since it was listed; that is another change, told by itself.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(hasher.finalize())
}

fn add_file(hasher: &mut blake3::Hasher, path: &Path) -> std::io::Result<()> {
    let facts = path.metadata()?;
    hasher.update(&facts.len().to_le_bytes());
    if facts.len() <= MAX_HASHED {
        hasher.update(&std::fs::read(path)?);
    } else {
        let since = facts.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        hasher.update(&since.as_nanos().to_le_bytes());
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
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
            return Err(std::io::Error::other(format!("the folder has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}
