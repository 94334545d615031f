//! Loading one entry of a plugin folder: reads it, checks whether it changed and may run, and runs its script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::plugin::PluginError;
use toold_proto::tool::SourceKind;

use crate::plugin::PluginVersion;
use crate::plugin::content::{Content, ContentDigest, ContentTrust, digest, is_plugin, link_outward, read_file, stem};
use crate::plugin::host_resources::HostResources;
use crate::plugin::manifest::{Manifest, explain};
use crate::plugin::registrations::Registrations;
use crate::plugin::state_pool::LoadedState;
use crate::reload::load::{LoadedScript, load};
use crate::vm::create::MAX_SOURCE;
use crate::vm::diagnostics::SourceTexts;

/// Bytes of a folder that are read in advance if nobody has to trust them.
const READ_AHEAD: u64 = 4 << 20;

/// The result of loading an entry.
pub(crate) enum LoadOutcome {
    /// There is no plugin.
    Gone,
    /// The files are the same as before.
    Unchanged,
    /// There is a plugin that may not run.
    Withheld { digest: ContentDigest, manifest: Manifest, why: WithheldReason },
    Failed {
        digest: Option<ContentDigest>,
        name: String,
        manifest: Option<Manifest>,
        error: PluginError,
        name_taken: bool,
    },
    Loaded {
        digest: ContentDigest,
        plugin: Arc<PluginVersion>,
        /// `None` if its registrations are known without.
        loaded: Option<Box<LoadedState>>,
        registered: Box<Registrations>,
        /// Its registrations can be made again at any time.
        only_registered: bool,
    },
}

/// Why a plugin may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithheldReason {
    Disabled,
    /// Nobody has trusted its current content.
    Untrusted,
}

/// Describes what to load, and how.
pub(crate) struct LoadRequest {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) scope: SourceScope,
    /// The digest of the known version; loading stops if it is the same.
    pub(crate) known: Option<ContentDigest>,
    /// Runs the script even if its registrations are known.
    pub(crate) run: bool,
    /// Whether the plugin of this name may run.
    pub(crate) may_run: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Decides whether the content is trusted; `None` for the user's own folders.
    pub(crate) trust: Option<Arc<dyn ContentTrust>>,
    pub(crate) shared: Arc<HostResources>,
}

/// Reads an entry, and loads it if it changed. Blocks.
pub(crate) fn load_entry(request: LoadRequest) -> LoadOutcome {
    let path = &request.path;
    if !is_plugin(path) {
        return LoadOutcome::Gone;
    }
    if let (Some(_), SourceScope::Project(project)) = (&request.trust, &request.scope) {
        match link_outward(path, project) {
            Ok(None) => {}
            Ok(Some(link)) => {
                let link = link.display();
                let message =
                    format!("{link} is a link to a file outside the plugin: copy the file into the plugin's folder");
                return LoadOutcome::broken(path, &message);
            }
            Err(error) => return unreadable(path, path, &error),
        }
    }
    let is_folder = path.is_dir();
    // Content that has to be trusted is read once, so that what was digested is what runs.
    let (digest, content) = match &request.trust {
        // Other folders are read too if that is cheap: their modules then belong to this version, no matter how long it
        // takes until the first call.
        None if is_folder => match Content::read_at_most(path, READ_AHEAD) {
            Ok(content) => (Ok(content.digest), Some(content)),
            Err(_) => (digest(path), None),
        },
        None => (digest(path), None),
        Some(_) => match Content::read(path) {
            Ok(content) => (Ok(content.digest), Some(content)),
            Err(error) => (Err(error), None),
        },
    };
    let digest = match digest {
        Ok(digest) => digest,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return LoadOutcome::Gone,
        Err(error) => return unreadable(path, path, &error),
    };
    if request.known == Some(digest) {
        return LoadOutcome::Unchanged;
    }
    let manifest = match (is_folder, &content) {
        (false, _) => Manifest::of_file(path),
        (true, None) => Manifest::of_folder(path),
        (true, Some(content)) => {
            let text = content.file(&path.join("plugin.toml"));
            Manifest::of_text(path, text.map(|bytes| String::from_utf8_lossy(bytes)).as_deref())
        }
    };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            return LoadOutcome::Failed {
                digest: Some(digest),
                name: stem(path),
                manifest: None,
                error: explain(&error),
                name_taken: false,
            };
        }
    };
    if !(request.may_run)(&manifest.name) {
        return LoadOutcome::Withheld { digest, manifest, why: WithheldReason::Disabled };
    }
    if request.trust.as_ref().is_some_and(|trust| !trust.is_trusted(path, &digest)) {
        return LoadOutcome::Withheld { digest, manifest, why: WithheldReason::Untrusted };
    }
    let script = match &content {
        None => read_file(&manifest.entry, MAX_SOURCE).map(Arc::from),
        Some(content) => content.file(&manifest.entry).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into()),
    };
    let script: Arc<[u8]> = match script {
        Ok(script) => script,
        Err(error) => return unreadable(path, &manifest.entry, &error),
    };
    let sources = SourceTexts::default();
    for (file, text) in content.iter().flat_map(|content| &content.files) {
        if file.extension().is_some_and(|ending| ending == "lua") {
            sources.add(&manifest.shown(file), file, text.clone());
        }
    }
    let key = SourceKey { kind: SourceKind::Plugin, name: manifest.name.clone(), scope: request.scope };
    let plugin = Arc::new(PluginVersion {
        path: request.path,
        origin: request.origin,
        key,
        script,
        sources,
        sealed: request.trust.is_some(),
        shared: request.shared,
        manifest,
    });
    let kept = plugin.shared.registration_cache.as_ref();
    if let Some(registered) = kept.filter(|_| !request.run).and_then(|kept| kept.find(&plugin, &digest))
        && !is_refused(&plugin, &registered)
    {
        return LoadOutcome::Loaded {
            digest,
            plugin,
            loaded: None,
            registered: Box::new(registered),
            only_registered: true,
        };
    }
    let start = Instant::now();
    match load(&plugin) {
        Ok(LoadedScript { loaded, registered, only_registered }) => {
            let registered = Box::new(registered.as_data());
            if only_registered && let Some(kept) = kept {
                kept.keep(&plugin, &digest, &registered);
            }
            // Of a thousand plugins only a few are called, but a slow load should not be repeated.
            let loaded = (!only_registered || start.elapsed() > QUICK).then(|| Box::new(loaded));
            LoadOutcome::Loaded { digest, plugin, loaded, registered, only_registered }
        }
        Err(failure) => LoadOutcome::Failed {
            digest: Some(digest),
            name: plugin.name().to_owned(),
            manifest: Some(plugin.manifest.clone()),
            error: failure.error,
            name_taken: failure.name_taken,
        },
    }
}

/// A load that takes at most this long can be repeated at the first call.
const QUICK: Duration = Duration::from_millis(20);

/// Whether another source has one of the names: then the script runs, so that the error has its line.
fn is_refused(plugin: &PluginVersion, registered: &Registrations) -> bool {
    let registry = &plugin.shared.engine.registry;
    registered.tools.iter().any(|(spec, _)| registry.holder(&spec.name, &plugin.key, plugin.origin).is_some())
}

impl LoadOutcome {
    /// Loading itself failed.
    pub(crate) fn broken(path: &Path, message: &str) -> Self {
        let error =
            PluginError { message: message.to_owned(), file: None, line: None, source_line: None, traceback: None };
        Self::Failed { digest: None, name: stem(path), manifest: None, error, name_taken: false }
    }
}

fn unreadable(entry: &Path, path: &Path, error: &std::io::Error) -> LoadOutcome {
    let error = PluginError {
        message: format!("can't read {}: {error}", path.display()),
        file: Some(path.display().to_string()),
        line: None,
        source_line: None,
        traceback: None,
    };
    LoadOutcome::Failed { digest: None, name: stem(entry), manifest: None, error, name_taken: false }
}
