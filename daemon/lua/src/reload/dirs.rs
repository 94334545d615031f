//! The folders in which plugins are looked for.

use std::path::{Path, PathBuf};

use toold_engine::registry::SourceScope;
use toold_engine::tool::Origin;
use toold_host::files;

use crate::plugin::content::is_plugin;
use crate::reload::options::{DirKind, PluginDir};

/// A folder with its links resolved, and the scope and origin of its plugins.
#[derive(Clone, PartialEq)]
pub(crate) struct ResolvedDir {
    pub(crate) path: PathBuf,
    pub(crate) kind: DirKind,
    /// The path is a single plugin.
    pub(crate) single: bool,
}

impl ResolvedDir {
    pub(crate) fn new(dir: PluginDir) -> Self {
        // Events name files by the watched path, so it has to be the real one.
        let real = files::resolve(&dir.path, Path::new("/")).unwrap_or_else(|_| dir.path.clone());
        let path = match &dir.kind {
            // A repository chooses where such a link leads: it is not followed, and the folder is empty.
            DirKind::Project { project } if dir.path.starts_with(project) && !real.starts_with(project) => dir.path,
            DirKind::Project { .. } | DirKind::User | DirKind::Configured | DirKind::Bundled => real,
        };
        let single = path.is_file() || (dir.kind == DirKind::Configured && is_plugin(&path));
        Self { path, kind: dir.kind, single }
    }

    /// Whether the entry at this path belongs to this folder.
    pub(crate) fn has(&self, path: &Path) -> bool {
        if self.single { self.path == path } else { path.parent() == Some(&self.path) }
    }

    /// The folder whose entries are plugins.
    pub(crate) fn folder(&self) -> &Path {
        if self.single { self.path.parent().unwrap_or(&self.path) } else { &self.path }
    }

    pub(crate) fn origin(&self) -> Origin {
        match self.kind {
            DirKind::User | DirKind::Configured | DirKind::Bundled => Origin::UserPlugin,
            DirKind::Project { .. } => Origin::ProjectPlugin,
        }
    }

    pub(crate) fn scope(&self) -> SourceScope {
        match &self.kind {
            DirKind::User | DirKind::Configured | DirKind::Bundled => SourceScope::Global,
            DirKind::Project { project } => SourceScope::Project(project.clone()),
        }
    }

    /// Entries that may be plugins.
    pub(crate) fn entries(&self) -> Vec<PathBuf> {
        if self.single {
            return vec![self.path.clone()];
        }
        let folder = match &self.kind {
            DirKind::Project { .. } => Ok(self.path.clone()),
            // The user may put a link there at any time.
            DirKind::User | DirKind::Configured | DirKind::Bundled => files::resolve(&self.path, Path::new("/")),
        };
        let Some(entries) = folder.ok().and_then(|folder| files::list(&folder, usize::MAX).ok()) else {
            return Vec::new();
        };
        entries.into_iter().map(|(name, _)| self.path.join(name)).filter(|path| is_plugin(path)).collect()
    }
}
