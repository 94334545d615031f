//! The content that a person reviews before trusting a project, and the stored decision.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use toold_engine::time::rfc3339;
use toold_host::files::resolve;
use toold_lua::plugin::content::{Content, is_plugin};
use toold_proto::plugin::{ContentFile, TrustItem, TrustReport, TrustedBy, TrustedKind};
use toold_store::trust::{TrustKind, Trusted};

use crate::config::active_config::ActiveConfig;
use crate::config::plugins::{folders_of, paths_of};
use crate::config::project::{ProjectFile, file_of};
use crate::config::project_folder::project_of;

/// Why nothing was trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{0} is not an absolute path")]
    Relative(String),
    #[error("can't look at {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error(
        "{path} is neither a project's plugin nor its configuration: it needs no trust, or toold does not look there"
    )]
    NotOfAProject { path: String },
    #[error("{path} changed since it was shown: review it again")]
    Changed { path: String },
    #[error("{path} cannot be trusted: {problem}")]
    Broken { path: String, problem: String },
    #[error("nothing was changed: {0}")]
    Store(String),
}

impl ActiveConfig {
    /// The content at a path that can be trusted: a plugin, a configuration, or all of a project.
    /// Blocks.
    ///
    /// # Errors
    /// The path is not in a project, or cannot be read.
    pub fn trustable(&self, path: &str) -> Result<TrustReport, TrustError> {
        let given = Path::new(path);
        if !given.is_absolute() {
            return Err(TrustError::Relative(path.to_owned()));
        }
        let unreadable = |source| TrustError::Unreadable { path: path.to_owned(), source };
        // The last part is not followed if it is a link: plugins are named by their entry in the
        // folder.
        let place = match (given.parent(), given.file_name()) {
            (Some(folder), Some(name)) => resolve(folder, Path::new("/")).map_err(unreadable)?.join(name),
            _ => given.to_owned(),
        };
        place.symlink_metadata().map_err(unreadable)?;
        let project = project_around(&place).map_err(unreadable)?;
        let file = ProjectFile::read(&project);
        let report = |items: Vec<TrustItem>| TrustReport { project: project.display().to_string(), items };
        let real = place.canonicalize().map_err(unreadable)?;
        if place == file_of(&project) {
            return Ok(report(vec![self.config_item(&file)]));
        }
        let dirs = folders_of(&project).into_iter().chain(paths_of(&file, &self.options));
        let dirs: Vec<PathBuf> = dirs.map(|dir| resolve(&dir, Path::new("/")).unwrap_or(dir)).collect();
        if real.is_dir() && (real == project || !is_inside_one(&place, &dirs)) {
            // A folder of the project stands for all of it.
            let plugins = dirs.iter().flat_map(|dir| plugins_in(dir));
            let mut items: Vec<TrustItem> = file.digest.iter().map(|_| self.config_item(&file)).collect();
            for plugin in plugins {
                items.push(self.plugin_item(&plugin).map_err(unreadable)?);
            }
            return Ok(report(items));
        }
        let is_entry = dirs.iter().any(|dir| plugins_in(dir).contains(&place));
        if !is_entry {
            return Err(TrustError::NotOfAProject { path: path.to_owned() });
        }
        Ok(report(vec![self.plugin_item(&place).map_err(unreadable)?]))
    }

    /// Trusts the content at a path; with `expect`, only if it is the content that a person was
    /// shown. Blocks.
    ///
    /// # Errors
    /// As [`ActiveConfig::trustable`]; something is not what was shown, or cannot be stored. Then
    /// nothing is trusted.
    pub fn trust(
        &self,
        path: &str,
        expect: Option<&BTreeMap<String, String>>,
        by: Option<String>,
    ) -> Result<TrustReport, TrustError> {
        let report = self.trustable(path)?;
        let at = SystemTime::now();
        for item in &report.items {
            let expected = expect.map(|expect| expect.get(&item.path));
            if expected.is_some_and(|expected| expected != Some(&item.digest)) {
                return Err(TrustError::Changed { path: item.path.clone() });
            }
        }
        let project = PathBuf::from(&report.project);
        let file = ProjectFile::read(&project);
        for item in &report.items {
            let kind = match item.kind {
                TrustedKind::Config => TrustKind::Config,
                TrustedKind::Plugin => TrustKind::Plugin,
            };
            if let (TrustKind::Config, Some(problem)) = (kind, file.problems.first()) {
                return Err(TrustError::Broken { path: item.path.clone(), problem: problem.clone() });
            }
            let trusted = Trusted { digest: item.digest.clone(), by: by.clone(), at };
            let kept = self.store.set_trusted(Path::new(&item.path), kind, &trusted);
            kept.map_err(|error| TrustError::Store(error.to_string()))?;
        }
        self.reload_project(&project);
        self.decisions_changed();
        self.trustable(path)
    }

    /// Whether exactly this configuration is trusted.
    pub(crate) fn is_trusted_config(&self, file: &ProjectFile) -> bool {
        let last = self.last_trusted(&file.path, TrustKind::Config);
        file.problems.is_empty() && last.is_some_and(|last| Some(last.digest) == file.digest)
    }

    /// The person's client that last trusted a plugin of a project.
    pub(crate) fn plugin_trusted_by(&self, path: &Path) -> Option<TrustedBy> {
        self.last_trusted(path, TrustKind::Plugin).map(shown)
    }

    fn last_trusted(&self, path: &Path, kind: TrustKind) -> Option<Trusted> {
        self.store.trusted(path, kind).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "can't tell whether it is trusted");
            None
        })
    }

    fn config_item(&self, file: &ProjectFile) -> TrustItem {
        let path = file.path.display().to_string();
        TrustItem {
            kind: TrustedKind::Config,
            digest: file.digest.clone().unwrap_or_default(),
            trusted: self.is_trusted_config(file),
            last: self.last_trusted(&file.path, TrustKind::Config).map(shown),
            files: vec![ContentFile { path: path.clone(), bytes: file.bytes }],
            allows: file.allows(self.options.paths.home.as_deref()),
            settings: file.settings(),
            path,
        }
    }

    fn plugin_item(&self, path: &Path) -> io::Result<TrustItem> {
        let content = Content::read(path)?;
        let digest = content.digest.to_hex().to_string();
        let last = self.plugin_trusted_by(path);
        Ok(TrustItem {
            kind: TrustedKind::Plugin,
            path: path.display().to_string(),
            trusted: last.as_ref().is_some_and(|last| last.digest == digest),
            digest,
            last,
            files: files_of(&content),
            allows: Vec::new(),
            settings: Vec::new(),
        })
    }
}

/// The files of a plugin, as they are shown.
pub(crate) fn files_of(content: &Content) -> Vec<ContentFile> {
    let files = content.files.iter();
    files.map(|(path, text)| ContentFile { path: path.display().to_string(), bytes: text.len() as u64 }).collect()
}

fn shown(trusted: Trusted) -> TrustedBy {
    TrustedBy { client: trusted.by, at: rfc3339(trusted.at), digest: trusted.digest }
}

/// The project that a path belongs to. Content of `.toold` or `.hygge` belongs to the folder that
/// contains these.
fn project_around(place: &Path) -> io::Result<PathBuf> {
    let is_mark = |part: &Component| matches!(part.as_os_str().to_str(), Some(".toold" | ".hygge"));
    let parts: Vec<Component> = place.components().collect();
    let above: PathBuf = match parts.iter().rposition(is_mark) {
        Some(at) => parts[..at].iter().collect(),
        None => place.to_owned(),
    };
    project_of(if above.is_dir() { &above } else { above.parent().unwrap_or(&above) })
}

fn is_inside_one(place: &Path, dirs: &[PathBuf]) -> bool {
    dirs.iter().any(|dir| place != dir && place.starts_with(dir))
}

/// The plugins in a folder, or the one at the path itself; sorted.
fn plugins_in(dir: &Path) -> Vec<PathBuf> {
    if is_plugin(dir) {
        return vec![dir.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut plugins: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_plugin(path)).collect();
    plugins.sort();
    plugins
}
