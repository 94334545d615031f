//! A clone in a hidden folder beside the plugins, before it takes its place.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::git::{git, git_says_yes, git_with_progress};
use super::lock::LockedPlugin;
use super::source::{PluginSource, WantedVersion};
use crate::output::one_line;
use crate::program;

/// A clone that is not in service yet. Removed when this is dropped.
pub(super) struct FreshClone {
    hidden: HiddenFolder,
    /// Has the name of the plugin, so that it loads as it will when it is installed.
    pub(super) path: PathBuf,
    pub(super) locked: LockedPlugin,
}

/// A folder that the daemon ignores, removed on drop.
struct HiddenFolder(PathBuf);

impl Drop for HiddenFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays, and is ignored.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl FreshClone {
    /// Clones the source, at this revision or else at the newest one that the source names.
    pub(super) async fn make(folder: &Path, source: &PluginSource, revision: Option<&str>) -> anyhow::Result<Self> {
        let hidden = HiddenFolder(folder.join(format!(".installing-{}-{}", source.folder, std::process::id())));
        std::fs::create_dir_all(&hidden.0).with_context(|| format!("can't create {}", hidden.0.display()))?;
        let path = hidden.0.join(&source.folder);
        let place = path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?;
        let title = format!("clone {}", one_line(&source.url));
        git_with_progress(&title, &["clone", "--quiet", "--no-checkout", "--", &source.url, place]).await?;
        let revision = match revision {
            Some(revision) => {
                find(&path, revision).await?;
                revision.to_owned()
            }
            None => resolve(&path, &source.version).await?,
        };
        git(Some(&path), &["checkout", "--quiet", "--detach", &revision]).await?;
        let is_plugin = path.join("plugin.toml").exists() || path.join("plugin.lua").exists();
        ensure!(is_plugin, "{} is not a plugin: it has neither a plugin.toml nor a plugin.lua", source.url);
        let digest = digest(&path).await?;
        let locked = LockedPlugin { source: source.text.clone(), revision, digest };
        Ok(Self { hidden, path, locked })
    }

    /// The commit, on one line.
    pub(super) async fn commit(&self) -> anyhow::Result<String> {
        let text = git(Some(&self.path), &["log", "-1", "--format=%h %cs %an: %s"]).await?;
        Ok(one_line(text.trim()))
    }

    /// Whether the history leads from that revision to this one.
    pub(super) async fn follows(&self, revision: &str) -> anyhow::Result<bool> {
        git_says_yes(&self.path, &["merge-base", "--is-ancestor", revision, &self.locked.revision]).await
    }

    /// The commits since that revision, the newest first, and the files that they change.
    pub(super) async fn news(&self, since: &str) -> anyhow::Result<String> {
        let range = format!("{since}..{}", self.locked.revision);
        let commits = git(Some(&self.path), &["log", "--oneline", "--max-count=50", &range]).await?;
        let files = git(Some(&self.path), &["diff", "--no-ext-diff", "--stat", since, &self.locked.revision]).await?;
        Ok(format!("{}\n{}", commits.trim_end(), files.trim_end()))
    }

    /// Puts the clone in its place, which must be free.
    pub(super) fn install(self, target: &Path) -> anyhow::Result<()> {
        std::fs::rename(&self.path, target).with_context(|| format!("can't move it to {}", target.display()))
    }

    /// Puts the clone in the place of another version, in one step where the file system can do that: the daemon never
    /// finds half of a version.
    pub(super) fn replace(self, target: &Path) -> anyhow::Result<()> {
        let exchanged = match renameat_with(CWD, &self.path, CWD, target, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let old = self.hidden.0.join("replaced");
                std::fs::rename(target, &old).and_then(|()| {
                    let restore = |_: &std::io::Error| drop(std::fs::rename(&old, target));
                    std::fs::rename(&self.path, target).inspect_err(restore)
                })
            }
            exchanged => exchanged.map_err(Into::into),
        };
        exchanged.with_context(|| format!("can't move it to {}", target.display()))?;
        // The other version is in the hidden folder now.
        drop(self.hidden);
        Ok(())
    }
}

/// Makes sure that the clone has this revision, also one that no branch leads to any more.
async fn find(clone: &Path, revision: &str) -> anyhow::Result<()> {
    let commit = format!("{revision}^{{commit}}");
    if !git_says_yes(clone, &["cat-file", "-e", &commit]).await? {
        let fetched = git(Some(clone), &["fetch", "--quiet", "origin", revision]).await;
        fetched.with_context(|| format!("the repository no longer has the revision {revision}"))?;
    }
    Ok(())
}

/// The commit that the source names now.
async fn resolve(clone: &Path, version: &WantedVersion) -> anyhow::Result<String> {
    let names = match version {
        WantedVersion::Newest => vec!["refs/remotes/origin/HEAD".to_owned(), "HEAD".to_owned()],
        WantedVersion::Branch(branch) => vec![format!("refs/remotes/origin/{branch}")],
        WantedVersion::Pinned(name) => {
            vec![format!("refs/tags/{name}"), name.clone(), format!("refs/remotes/origin/{name}")]
        }
    };
    for name in &names {
        let commit = format!("{name}^{{commit}}");
        if let Ok(found) = git(Some(clone), &["rev-parse", "--quiet", "--verify", "--end-of-options", &commit]).await {
            return Ok(found.trim().to_owned());
        }
    }
    match version {
        WantedVersion::Newest => anyhow::bail!("the repository has no commit"),
        WantedVersion::Branch(branch) => anyhow::bail!("the repository has no branch {branch}"),
        WantedVersion::Pinned(name) => anyhow::bail!("the repository has no tag, commit or branch {name}"),
    }
}

/// The newest revision that the source names, without cloning it.
pub(super) async fn newest(source: &PluginSource) -> anyhow::Result<String> {
    let name = match &source.version {
        WantedVersion::Branch(branch) => format!("refs/heads/{branch}"),
        WantedVersion::Newest | WantedVersion::Pinned(_) => "HEAD".to_owned(),
    };
    let listed = git(None, &["ls-remote", "--", &source.url, &name]).await?;
    let line = listed.lines().find(|line| line.ends_with(&format!("\t{name}")));
    let revision = line.and_then(|line| line.split('\t').next());
    revision.map(str::to_owned).with_context(|| format!("the repository has no {name} any more"))
}

/// The digest of a plugin's files, as the daemon computes it.
pub(super) async fn digest(path: &Path) -> anyhow::Result<String> {
    let words: [&OsStr; 3] = ["plugin".as_ref(), "digest".as_ref(), path.as_ref()];
    Ok(program::text(&words).await?.trim().to_owned())
}
