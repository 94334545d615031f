//! One entry of a plugin folder: what is in it, whether it changed, and what loading it gave.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::Origin;
use toold_proto::plugin::PluginError;
use toold_proto::tool::SourceKind;

use crate::content::{Content, Digest, Trust, digest, link_outward, read_file};
use crate::load::{Outcome, explain_manifest, load};
use crate::manifest::Manifest;
use crate::plugin::{Loaded, Plugin, Shared};
use crate::registrations::Registrations;
use crate::trouble::Sources;
use crate::vm::MAX_SOURCE;
use crate::watch::is_passing;

/// Bytes of a folder that are held when nobody has to trust them.
const READ_AHEAD: u64 = 4 << 20;

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
        why: Withheld,
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
        /// `None` when what it registers is known without.
        loaded: Option<Box<Loaded>>,
        registered: Box<Registrations>,
        /// The same can be registered at any time again.
        only_registered: bool,
    },
}

/// Why a plugin is not to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    Disabled,
    /// Nobody has trusted it as it is now.
    Untrusted,
}

/// How an entry is to be looked at.
pub(crate) struct Order {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) scope: SourceScope,
    /// The digest of what is known; a look that finds it again stops there.
    pub(crate) known: Option<Digest>,
    /// Runs the script whether or not it is known what it registers.
    pub(crate) run: bool,
    /// By the plugin's name: whether it may run.
    pub(crate) may_run: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Who tells whether the content is trusted; `None` for a person's own folders.
    pub(crate) trust: Option<Arc<dyn Trust>>,
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
    if let (Some(_), SourceScope::Project(project)) = (&order.trust, &order.scope) {
        match link_outward(path, project) {
            Ok(None) => {}
            Ok(Some(link)) => {
                let link = link.display();
                let message = format!(
                    "{link} is a link to a file that is no part of the plugin: put the file itself into the plugin's \
                     folder"
                );
                return Look::broken(path, &message);
            }
            Err(error) => return unreadable(path, path, &error),
        }
    }
    let is_folder = path.is_dir();
    // What has to be trusted is read once, so that what was digested is what runs.
    let (digest, content) = match &order.trust {
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Look::Gone,
        Err(error) => return unreadable(path, path, &error),
    };
    if order.known == Some(digest) {
        return Look::Unchanged;
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
        return Look::Withheld { digest, manifest, why: Withheld::Disabled };
    }
    if order.trust.as_ref().is_some_and(|trust| !trust.is_trusted(path, &digest)) {
        return Look::Withheld { digest, manifest, why: Withheld::Untrusted };
    }
    let script = match &content {
        None => read_file(&manifest.entry, MAX_SOURCE).map(Arc::from),
        Some(content) => content.file(&manifest.entry).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into()),
    };
    let script: Arc<[u8]> = match script {
        Ok(script) => script,
        Err(error) => return unreadable(path, &manifest.entry, &error),
    };
    let sources = Sources::default();
    for (file, text) in content.iter().flat_map(|content| &content.files) {
        if file.extension().is_some_and(|ending| ending == "lua") {
            sources.add(&manifest.shown(file), file, text.clone());
        }
    }
    let key = SourceKey { kind: SourceKind::Plugin, name: manifest.name.clone(), scope: order.scope };
    let plugin = Arc::new(Plugin {
        path: order.path,
        origin: order.origin,
        key,
        script,
        sources,
        sealed: order.trust.is_some(),
        shared: order.shared,
        manifest,
    });
    let kept = plugin.shared.kept.as_ref();
    if let Some(registered) = kept.filter(|_| !order.run).and_then(|kept| kept.find(&plugin, &digest))
        && !is_refused(&plugin, &registered)
    {
        return Look::Loaded { digest, plugin, loaded: None, registered: Box::new(registered), only_registered: true };
    }
    let start = Instant::now();
    match load(&plugin) {
        Ok(Outcome { loaded, registered, only_registered }) => {
            let registered = Box::new(registered.as_data());
            if only_registered && let Some(kept) = kept {
                kept.keep(&plugin, &digest, &registered);
            }
            // A thousand plugins have a few that are called. What took long is not to be done twice.
            let loaded = (!only_registered || start.elapsed() > QUICK).then(|| Box::new(loaded));
            Look::Loaded { digest, plugin, loaded, registered, only_registered }
        }
        Err(failure) => Look::Failed {
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
fn is_refused(plugin: &Plugin, registered: &Registrations) -> bool {
    let registry = &plugin.shared.engine.registry;
    registered.tools.iter().any(|(spec, _)| registry.holder(&spec.name, &plugin.key, plugin.origin).is_some())
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
