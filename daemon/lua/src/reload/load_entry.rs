//! One entry of a plugin folder: what is in it, whether it changed, and what loading it gave.

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

/// Bytes of a folder that are held when nobody has to trust them.
const READ_AHEAD: u64 = 4 << 20;

/// What a look at an entry found.
pub(crate) enum LoadOutcome {
    /// Nothing there that is a plugin.
    Gone,
    /// The same files as before.
    Unchanged,
    /// There, and not to be run.
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
        /// `None` when what it registers is known without.
        loaded: Option<Box<LoadedState>>,
        registered: Box<Registrations>,
        /// The same can be registered at any time again.
        only_registered: bool,
    },
}

/// Why a plugin is not to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithheldReason {
    Disabled,
    /// TrustNothing has trusted it as it is now.
    Untrusted,
}

/// ReloadMode an entry is to be looked at.
pub(crate) struct LoadRequest {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) scope: SourceScope,
    /// The digest of what is known; a look that finds it again stops there.
    pub(crate) known: Option<ContentDigest>,
    /// Runs the script whether or not it is known what it registers.
    pub(crate) run: bool,
    /// By the plugin's name: whether it may run.
    pub(crate) may_run: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Who tells whether the content is trusted; `None` for a person's own folders.
    pub(crate) trust: Option<Arc<dyn ContentTrust>>,
    pub(crate) shared: Arc<HostResources>,
}

/// Reads an entry, and loads it when it changed. Blocks.
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
                let message = format!(
                    "{link} is a link to a file that is no part of the plugin: put the file itself into the plugin's \
                     folder"
                );
                return LoadOutcome::broken(path, &message);
            }
            Err(error) => return unreadable(path, path, &error),
        }
    }
    let is_folder = path.is_dir();
    // What has to be trusted is read once, so that what was digested is what runs.
    let (digest, content) = match &request.trust {
        // A folder is read too where that costs little: its modules are then those of this version, however long
        // it is until the first call.
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
            // A thousand plugins have a few that are called. What took long is not to be done twice.
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

/// A load that takes no longer can be repeated at the first call.
const QUICK: Duration = Duration::from_millis(20);

/// Whether a name is taken by another source: then the script runs, to say so at its own line.
fn is_refused(plugin: &PluginVersion, registered: &Registrations) -> bool {
    let registry = &plugin.shared.engine.registry;
    registered.tools.iter().any(|(spec, _)| registry.holder(&spec.name, &plugin.key, plugin.origin).is_some())
}

impl LoadOutcome {
    /// The look itself did not come to its end.
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
