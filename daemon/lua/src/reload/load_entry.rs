//! Loading one entry of a plugin folder: reads it, checks whether it changed and may run, and runs its script.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use toold_engine::registry::SourceScope;
use toold_engine::tool::Origin;
use toold_host::files;
use toold_proto::plugin::PluginError;

use crate::plugin::content::{Content, ContentDigest, ContentTrust, is_plugin, link_outward, stem};
use crate::plugin::host_resources::HostResources;
use crate::plugin::kept_versions::KeptVersions;
use crate::plugin::manifest::{Manifest, explain};
use crate::plugin::named_tools::named_tools;
use crate::plugin::registrations::Registrations;
use crate::plugin::state_pool::LoadedState;
use crate::plugin::version_files::VersionFiles;
use crate::plugin::{PluginPlace, PluginVersion};
use crate::reload::git_lock::{GitTrees, IndexLock};
use crate::reload::load::{LoadFailure, LoadedScript, load};

/// The result of loading an entry.
pub(crate) enum LoadOutcome {
    /// There is no plugin.
    Gone,
    /// The files are those of a known version.
    Unchanged(ContentDigest),
    /// Git is replacing the files.
    Locked(IndexLock),
    /// There is a plugin that may not run.
    Withheld {
        digest: ContentDigest,
        manifest: Manifest,
        why: WithheldReason,
        /// The tools that its text names.
        named_tools: BTreeSet<String>,
    },
    Failed {
        digest: Option<ContentDigest>,
        name: String,
        manifest: Option<Manifest>,
        error: PluginError,
        name_taken: bool,
        /// The tools that its text names.
        named_tools: BTreeSet<String>,
    },
    Loaded(LoadedVersion),
}

/// A version that is ready to serve.
pub(crate) struct LoadedVersion {
    pub(crate) plugin: Arc<PluginVersion>,
    /// `None` if its registrations are known without.
    pub(crate) loaded: Option<Box<LoadedState>>,
    pub(crate) registered: Box<Registrations>,
    /// Its registrations can be made again at any time.
    pub(crate) only_registered: bool,
    /// When an earlier daemon loaded it; `None` for what was loaded now.
    pub(crate) loaded_before: Option<SystemTime>,
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
    /// The digests of known versions; loading stops if it is one of them.
    pub(crate) known: Vec<ContentDigest>,
    /// Locks of git that nobody waits for.
    pub(crate) stale_locks: Arc<BTreeSet<IndexLock>>,
    /// Runs the script even if its registrations are known.
    pub(crate) run: bool,
    /// Where to find the last good version if the files are none; `None` if a version is in service.
    pub(crate) kept_versions: Option<KeptVersions>,
    /// Whether the plugin of this name may run.
    pub(crate) may_run: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Decides whether the content is trusted; `None` for the user's own folders.
    pub(crate) trust: Option<Arc<dyn ContentTrust>>,
    pub(crate) shared: Arc<HostResources>,
}

/// How often an entry is read again because git has replaced files meanwhile.
const READS: usize = 5;

/// Reads an entry, and loads it if it changed. If it cannot serve, and nothing else does, the second value is its last
/// good version. Blocks.
pub(crate) fn load_entry(request: &LoadRequest) -> (LoadOutcome, Option<LoadedVersion>) {
    let outcome = load_files(request);
    let digest = match &outcome {
        LoadOutcome::Failed { digest, .. } => *digest,
        LoadOutcome::Withheld { digest, why: WithheldReason::Untrusted, .. } => Some(*digest),
        LoadOutcome::Gone
        | LoadOutcome::Unchanged(_)
        | LoadOutcome::Locked(_)
        | LoadOutcome::Withheld { why: WithheldReason::Disabled, .. }
        | LoadOutcome::Loaded(_) => return (outcome, None),
    };
    let kept = last_good_version(request, digest);
    (outcome, kept)
}

/// The version that was kept, if it may run now as any other: a plugin of a project only if exactly this content is
/// trusted.
fn last_good_version(request: &LoadRequest, newest: Option<ContentDigest>) -> Option<LoadedVersion> {
    let path = &request.path;
    let kept = request.kept_versions.as_ref()?.find(path).filter(|kept| Some(kept.digest) != newest)?;
    let entry = Manifest::of_version(path, &kept.files).ok()?;
    if withheld(request, &entry.0, &kept.digest).is_some() {
        return None;
    }
    let plugin = version_of(request, kept.digest, kept.files, entry);
    match run_version(plugin, false) {
        Ok(version) => Some(LoadedVersion { loaded_before: Some(kept.loaded_at), ..version }),
        Err(failure) => {
            tracing::warn!(path = %path.display(), "the last good version does not load: {}", failure.error.message);
            None
        }
    }
}

fn load_files(request: &LoadRequest) -> LoadOutcome {
    let mut read = Err(Box::new(LoadOutcome::Gone));
    for _ in 0..READS {
        let trees = GitTrees::around(&request.path);
        let lock = || trees.lock(&request.stale_locks);
        if let Some(lock) = lock() {
            return LoadOutcome::Locked(lock);
        }
        read = read_entry(request);
        // A known version was read whole before.
        let is_known = matches!(&read, Err(outcome) if matches!(**outcome, LoadOutcome::Unchanged(_)));
        if let Some(lock) = lock().filter(|_| !is_known) {
            return LoadOutcome::Locked(lock);
        }
        if is_known || !trees.were_replaced() {
            break;
        }
    }
    match read {
        Ok((digest, files)) => load_version(request, digest, files),
        Err(outcome) => *outcome,
    }
}

/// The files of an entry that changed.
fn read_entry(request: &LoadRequest) -> Result<(ContentDigest, VersionFiles), Box<LoadOutcome>> {
    let path = &request.path;
    if !is_plugin(path) {
        return Err(Box::new(LoadOutcome::Gone));
    }
    if let (Some(_), SourceScope::Project(project)) = (&request.trust, &request.scope) {
        match link_outward(path, project) {
            Ok(None) => {}
            Ok(Some(link)) => {
                let link = link.display();
                let message =
                    format!("{link} is a link to a file outside the plugin: copy the file into the plugin's folder");
                return Err(Box::new(LoadOutcome::broken(path, &message)));
            }
            Err(error) => return Err(Box::new(unreadable(path, path, &error))),
        }
    }
    // Content that has to be trusted is read whole, so that all of it was reviewed.
    let read = match &request.trust {
        None => VersionFiles::read(path),
        Some(_) => Content::read(path).map(|content| (content.digest, VersionFiles::of_content(content))),
    };
    match read {
        Ok((digest, _)) if request.known.contains(&digest) => Err(Box::new(LoadOutcome::Unchanged(digest))),
        Ok(version) => Ok(version),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Box::new(LoadOutcome::Gone)),
        Err(error) => Err(Box::new(unreadable(path, path, &error))),
    }
}

/// Loads what was read, if it may run.
fn load_version(request: &LoadRequest, digest: ContentDigest, files: VersionFiles) -> LoadOutcome {
    let path = &request.path;
    let (manifest, script) = match Manifest::of_version(path, &files) {
        Ok(version) => version,
        Err(error) => {
            return LoadOutcome::Failed {
                digest: Some(digest),
                name: stem(path),
                manifest: None,
                error: explain(&error),
                name_taken: false,
                named_tools: BTreeSet::new(),
            };
        }
    };
    let named_tools = |files: &VersionFiles| files.lua_texts().flat_map(|(_, text)| named_tools(text)).collect();
    if let Some(why) = withheld(request, &manifest, &digest) {
        return LoadOutcome::Withheld { digest, manifest, why, named_tools: named_tools(&files) };
    }
    let plugin = version_of(request, digest, files, (manifest, script));
    plugin.shared.load_refusals.forget(&plugin.key);
    plugin.shared.engine.plugin_refusals.forget_load(&plugin.key.scope, plugin.name());
    match run_version(plugin.clone(), request.run) {
        Ok(version) => LoadOutcome::Loaded(version),
        Err(failure) => LoadOutcome::Failed {
            digest: Some(digest),
            name: plugin.name().to_owned(),
            manifest: Some(plugin.manifest.clone()),
            error: failure.error,
            name_taken: failure.name_taken,
            named_tools: named_tools(&plugin.files),
        },
    }
}

/// Why a version may not run; `None` if it may.
fn withheld(request: &LoadRequest, manifest: &Manifest, digest: &ContentDigest) -> Option<WithheldReason> {
    if !(request.may_run)(&manifest.name) {
        return Some(WithheldReason::Disabled);
    }
    let is_untrusted = request.trust.as_ref().is_some_and(|trust| !trust.is_trusted(&request.path, digest));
    is_untrusted.then_some(WithheldReason::Untrusted)
}

fn version_of(
    request: &LoadRequest,
    digest: ContentDigest,
    files: VersionFiles,
    entry: (Manifest, Arc<[u8]>),
) -> Arc<PluginVersion> {
    let real = match &request.trust {
        // The user may put a link there at any time.
        None => files::resolve(&request.path, Path::new("/")).unwrap_or_else(|_| request.path.clone()),
        Some(_) => request.path.clone(),
    };
    let (path, origin, scope) = (request.path.clone(), request.origin, request.scope.clone());
    PluginVersion::new(PluginPlace { path, real, origin, scope }, entry, digest, files, request.shared.clone())
}

/// Finds the registrations of a version in the cache, or runs its script. With `run`, its script runs in any case.
fn run_version(plugin: Arc<PluginVersion>, run: bool) -> Result<LoadedVersion, LoadFailure> {
    let cache = plugin.shared.registration_cache.clone();
    if let Some(registered) = cache.as_ref().filter(|_| !run).and_then(|cache| cache.find(&plugin, &plugin.digest))
        && !is_refused(&plugin, &registered)
    {
        let registered = Box::new(registered);
        return Ok(LoadedVersion { plugin, loaded: None, registered, only_registered: true, loaded_before: None });
    }
    let start = Instant::now();
    let LoadedScript { loaded, registered, only_registered } = load(&plugin)?;
    let registered = Box::new(registered.as_data());
    if only_registered && let Some(cache) = cache {
        cache.keep(&plugin, &plugin.digest, &registered);
    }
    // Few of a thousand plugins are called, but a slow load should not be repeated. On a busy machine all are slow.
    let has_room = plugin.shared.usage.memory.load(Ordering::Relaxed) < MOST_KEPT;
    let is_kept = !only_registered || start.elapsed() > QUICK && has_room;
    let loaded = is_kept.then(|| Box::new(loaded));
    Ok(LoadedVersion { plugin, loaded, registered, only_registered, loaded_before: None })
}

/// A load that takes at most this long can be repeated at the first call.
const QUICK: Duration = Duration::from_millis(20);
/// Bytes of all Lua states together beyond which none is kept for its first call.
const MOST_KEPT: usize = 64 << 20;

/// Whether another source has one of the names: then the script runs, so that the error has its line.
fn is_refused(plugin: &PluginVersion, registered: &Registrations) -> bool {
    let registry = &plugin.shared.engine.registry;
    registered.tools.iter().any(|(spec, _)| registry.holder(&spec.name, &plugin.key, plugin.origin).is_some())
}

impl LoadOutcome {
    /// Loading itself failed.
    pub(crate) fn broken(path: &Path, message: &str) -> Self {
        Self::unread(path, PluginError::of(message))
    }

    /// There is no version to speak of.
    fn unread(path: &Path, error: PluginError) -> Self {
        Self::Failed {
            digest: None,
            name: stem(path),
            manifest: None,
            error,
            name_taken: false,
            named_tools: BTreeSet::new(),
        }
    }
}

fn unreadable(entry: &Path, path: &Path, error: &std::io::Error) -> LoadOutcome {
    let file = path.display().to_string();
    let plain = PluginError::of(format!("can't read {file}: {error}"));
    LoadOutcome::unread(entry, PluginError { file: Some(file), ..plain })
}
