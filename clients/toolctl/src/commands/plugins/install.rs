//! `toolctl plugins install|update|remove`: third-party plugins, as plain Git clones in the user's plugin folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetStatus;

use crate::commands::author;
use crate::confirm::confirm;
use crate::connection;
use crate::exit::{NOT_RUN, OK, usage};
use crate::globals::Globals;
use crate::output::{self, BOLD, DIM};

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PluginSource {
    /// The URL that Git clones.
    url: String,
    /// A branch, a tag or a commit; the repository's default branch when absent.
    reference: Option<String>,
    /// The name of its folder.
    folder: String,
}

impl PluginSource {
    /// `github:OWNER/REPO[@REF]` or `local:PATH[@REF]`.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let expected = || usage(format!("expected github:OWNER/REPO[@REF] or local:PATH[@REF], got {text:?}"));
        let (kind, rest) = text.split_once(':').ok_or_else(expected)?;
        let (place, reference) = match rest.rsplit_once('@') {
            Some((place, reference)) => (place, Some(reference.to_owned())),
            None => (rest, None),
        };
        // A reference that begins with a dash would be an option of Git.
        if reference.as_deref().is_some_and(|reference| reference.is_empty() || reference.starts_with('-')) {
            return Err(expected());
        }
        let url = match kind {
            "github" => {
                let fits = |part: &str| {
                    !part.is_empty()
                        && !part.starts_with(['-', '.'])
                        && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
                };
                let (owner, repository) = place.split_once('/').ok_or_else(expected)?;
                if !fits(owner) || !fits(repository) {
                    return Err(expected());
                }
                format!("https://github.com/{owner}/{}.git", repository.trim_end_matches(".git"))
            }
            "local" if !place.is_empty() => {
                let absolute = std::path::absolute(place).context("can't determine the current folder")?;
                // Git reports a path that does not exist.
                let path = absolute.canonicalize().unwrap_or(absolute);
                path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?.to_owned()
            }
            _ => return Err(expected()),
        };
        let last = place.trim_end_matches('/').rsplit('/').next().unwrap_or_default().trim_end_matches(".git");
        let folder: String =
            last.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
        if !folder.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(usage(format!("{folder:?} is not a plugin name: it must begin with a letter")));
        }
        Ok(Self { url, reference, folder })
    }
}

pub(crate) async fn install(source: &str, yes: bool, globals: &Globals) -> anyhow::Result<u8> {
    let source = PluginSource::parse(source)?;
    let folder = plugin_folder(globals).await?;
    let target = folder.join(&source.folder);
    ensure!(!target.exists(), "{} already exists: update it, or remove it first", target.display());
    std::fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
    // Hidden, so that the daemon does not load it before it is complete and confirmed.
    let beside = StagingFolder(folder.join(format!(".installing-{}-{}", source.folder, std::process::id())));
    git(None, &["clone", "--quiet", "--", &source.url, text(&beside.0)?])?;
    if let Some(reference) = &source.reference {
        git(Some(&beside.0), &["checkout", "--quiet", "--detach", reference])?;
    }
    let is_plugin = beside.0.join("plugin.toml").exists() || beside.0.join("plugin.lua").exists();
    ensure!(is_plugin, "{} is not a plugin: it has neither a plugin.toml nor a plugin.lua", source.url);
    let commit = git(Some(&beside.0), &["log", "-1", "--format=%h %cs %an: %s"])?;
    writeln!(
        output::stderr(),
        "{BOLD}{}{BOLD:#} {DIM}{}{DIM:#}",
        output::one_line(&source.url),
        output::one_line(commit.trim())
    )?;
    // Loads it outside the daemon, with access to its own folder only.
    author::check(&beside.0).await?;
    if !yes && !confirm("It runs under your permission rules. Install it?").await? {
        return Ok(NOT_RUN);
    }
    std::fs::rename(&beside.0, &target).with_context(|| format!("can't move it to {}", target.display()))?;
    writeln!(output::stdout(), "{}", target.display())?;
    Ok(OK)
}

pub(crate) async fn update(name: Option<&str>, yes: bool, globals: &Globals) -> anyhow::Result<u8> {
    let folder = plugin_folder(globals).await?;
    let clones = match name {
        Some(name) => vec![entry(&folder, name)?],
        None => clones(&folder),
    };
    for clone in clones {
        let shown = clone.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ensure!(clone.join(".git").exists(), "{shown} is not a Git clone, so it cannot be updated");
        let mut err = output::stderr();
        if git(Some(&clone), &["symbolic-ref", "--quiet", "HEAD"]).is_err() {
            writeln!(err, "{shown} is pinned to the version it was installed at")?;
            continue;
        }
        git(Some(&clone), &["fetch", "--quiet"])?;
        let news = git(Some(&clone), &["log", "--oneline", "HEAD..@{upstream}"])?;
        if news.trim().is_empty() {
            writeln!(err, "{shown} is up to date")?;
            continue;
        }
        writeln!(err, "{BOLD}{shown}{BOLD:#}\n{}", output::plain(news.trim_end()))?;
        let changes = git(Some(&clone), &["diff", "--stat", "HEAD", "@{upstream}"])?;
        writeln!(err, "{}", output::plain(changes.trim_end()))?;
        if !yes && !confirm(&format!("Update {shown}?")).await? {
            return Ok(NOT_RUN);
        }
        git(Some(&clone), &["merge", "--quiet", "--ff-only", "@{upstream}"])?;
        writeln!(output::stdout(), "{}", clone.display())?;
    }
    Ok(OK)
}

pub(crate) async fn remove(name: &str, yes: bool, globals: &Globals) -> anyhow::Result<u8> {
    let folder = plugin_folder(globals).await?;
    let entry = entry(&folder, name)?;
    if !yes && !confirm(&format!("Remove {} and all its files?", entry.display())).await? {
        return Ok(NOT_RUN);
    }
    // The rename removes it at once for the daemon, however long deleting takes.
    let beside = folder.join(format!(".removing-{name}-{}", std::process::id()));
    std::fs::rename(&entry, &beside).with_context(|| format!("can't remove {}", entry.display()))?;
    // Of a symbolic link, only the link is removed.
    let removed = if beside.is_dir() && !beside.is_symlink() {
        std::fs::remove_dir_all(&beside)
    } else {
        std::fs::remove_file(&beside)
    };
    removed.with_context(|| format!("can't remove {}", beside.display()))?;
    writeln!(output::stdout(), "{}", entry.display())?;
    Ok(OK)
}

/// The user's plugin folder, which the daemon reads first.
async fn plugin_folder(globals: &Globals) -> anyhow::Result<PathBuf> {
    let client = connection::open(globals).await?;
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    status.plugin_dirs.first().map(PathBuf::from).context("the daemon has no plugin folder")
}

/// A plugin in that folder, by the name of its folder or file.
fn entry(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let found = [folder.join(name), folder.join(format!("{name}.lua"))].into_iter().find(|path| path.exists());
    match found.filter(|_| fits) {
        Some(path) => Ok(path),
        None => bail!("there is no plugin {name} in {}", folder.display()),
    }
}

fn clones(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(".git").exists() && !hidden(path)).collect();
    found.sort();
    found
}

/// Git's stdout; its stderr as the error when it fails. Git may not prompt for a password.
fn git(dir: Option<&Path>, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    if let Some(dir) = dir {
        command.arg("-C").arg(dir);
    }
    // Hooks from the user's Git template must not run here.
    command.args(["-c", "core.hooksPath=/dev/null"]).args(args).env("GIT_TERMINAL_PROMPT", "0");
    let output = command.output().context("can't run git")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", args[0], words.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))
}

/// A folder that is removed on drop unless it was moved to its place.
struct StagingFolder(PathBuf);

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // Fails when the folder was moved away, as it should be.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, url: &str, reference: Option<&str>, folder: &str) {
        let source = PluginSource::parse(text).unwrap();
        assert_eq!(
            (source.url.as_str(), source.reference.as_deref(), source.folder.as_str()),
            (url, reference, folder)
        );
    }

    #[test]
    fn sources_are_repositories() {
        check("github:ada/Weather.git", "https://github.com/ada/Weather.git", None, "weather");
        check("github:ada/toold-x@v1.2", "https://github.com/ada/toold-x.git", Some("v1.2"), "toold-x");
        check("local:/no/My Plugin", "/no/My Plugin", None, "my-plugin");
        for bad in [
            "weather",
            "github:ada",
            "github:a/b/c",
            "github:a/--x",
            "github:a/b@",
            "github:a/b@-x",
            "http://x/y",
            "local:",
            "local:/a/1",
        ] {
            assert!(PluginSource::parse(bad).is_err(), "{bad}");
        }
    }
}
