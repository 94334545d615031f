//! Where a plugin comes from, as people write it: `github:OWNER/REPO@REF`.

use std::path::Path;

use anyhow::Context;

use crate::exit::usage;

/// The forms that people can write, for help and errors.
pub(crate) const FORMS: &str = "github:OWNER/REPO, gitlab:OWNER/REPO, codeberg:OWNER/REPO, https://HOST/PATH, \
                                ssh://HOST/PATH, git@HOST:PATH or local:PATH, then @REF for a tag or a commit, or #BRANCH";

/// Prefixes that stand for a host.
const HOSTS: [(&str, &str); 3] =
    [("github:", "https://github.com/"), ("gitlab:", "https://gitlab.com/"), ("codeberg:", "https://codeberg.org/")];

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginSource {
    /// Complete: [`PluginSource::parse`] reads it in any folder.
    pub(super) text: String,
    /// The URL that Git clones.
    pub(super) url: String,
    pub(super) version: WantedVersion,
    /// The name of its folder.
    pub(super) folder: String,
}

/// The version that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedVersion {
    /// The newest commit of the repository's default branch.
    Newest,
    /// The newest commit of this branch.
    Branch(String),
    /// This tag or commit. It is never updated.
    Pinned(String),
}

impl PluginSource {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let wrong = || usage(format!("expected {FORMS}, got {text:?}"));
        let host = HOSTS.iter().find_map(|(prefix, url)| Some((*prefix, *url, text.strip_prefix(prefix)?)));
        let (before, url_before, rest) = match (host, text.strip_prefix("local:")) {
            (Some((prefix, url, rest)), _) => (prefix, url, rest),
            (None, Some(path)) => ("local:", "", path),
            (None, None) => {
                let path = path_start(text).ok_or_else(wrong)?;
                (&text[..path], &text[..path], &text[path..])
            }
        };
        let is_local = before == "local:";
        let (place, version) = split_version(rest, is_local).ok_or_else(wrong)?;
        let place = match is_local {
            true => local_path(place).context("can't find the plugin's repository")?,
            false => {
                let parts: Vec<&str> = place.trim_end_matches('/').split('/').collect();
                let count_fits = match before {
                    "github:" | "codeberg:" => parts.len() == 2,
                    "gitlab:" => parts.len() >= 2,
                    _ => true,
                };
                if !count_fits || !parts.iter().all(|part| is_part(part)) {
                    return Err(wrong());
                }
                parts.join("/")
            }
        };
        if place.is_empty() {
            return Err(wrong());
        }
        let bare = place.trim_end_matches(".git");
        let url = match host {
            Some(_) => format!("{url_before}{bare}.git"),
            None => format!("{url_before}{place}"),
        };
        let folder = folder_name(bare)?;
        let suffix = match &version {
            WantedVersion::Newest => String::new(),
            WantedVersion::Branch(branch) => format!("#{branch}"),
            WantedVersion::Pinned(reference) => format!("@{reference}"),
        };
        Ok(Self { text: format!("{before}{place}{suffix}"), url, version, folder })
    }
}

/// Where the path begins in `https://HOST/PATH`, `ssh://[USER@]HOST/PATH` and `git@HOST:PATH`.
fn path_start(text: &str) -> Option<usize> {
    let (host_at, end) = match ["https://", "ssh://"].iter().find(|scheme| text.starts_with(**scheme)) {
        Some(scheme) => (scheme.len(), '/'),
        None => ("git@".len(), text.starts_with("git@").then_some(':')?),
    };
    let length = text[host_at..].find(end)?;
    let host = &text[host_at..host_at + length];
    let fits = host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_@:".contains(c));
    fits.then_some(host_at + length + 1)
}

/// A path, and the version behind it. A folder whose name has a `#` or an `@` is that folder.
fn split_version(rest: &str, is_local: bool) -> Option<(&str, WantedVersion)> {
    if is_local && Path::new(rest).exists() {
        return Some((rest, WantedVersion::Newest));
    }
    let split = |mark: char| if is_local { rest.rsplit_once(mark) } else { rest.split_once(mark) };
    let (place, name, version) = match (split('#'), split('@')) {
        (Some((place, branch)), _) => (place, branch, WantedVersion::Branch(branch.to_owned())),
        (None, Some((place, reference))) => (place, reference, WantedVersion::Pinned(reference.to_owned())),
        (None, None) => return Some((rest, WantedVersion::Newest)),
    };
    // A name that begins with a dash would be an option of Git.
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+".contains(c))
        && !name.contains("..");
    fits.then_some((place, version))
}

fn is_part(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with(['-', '.'])
        && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~+".contains(c))
}

fn local_path(place: &str) -> anyhow::Result<String> {
    if place.is_empty() {
        return Ok(String::new());
    }
    let absolute = std::path::absolute(place)?;
    // Git reports a path that does not exist.
    let path = absolute.canonicalize().unwrap_or(absolute);
    Ok(path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?.to_owned())
}

fn folder_name(place: &str) -> anyhow::Result<String> {
    let last = place.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let folder: String = last.to_lowercase().chars().map(fits).collect();
    if !folder.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(usage(format!("{folder:?} is not a plugin name: it must begin with a letter")));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, url: &str, version: WantedVersion, folder: &str) {
        let source = PluginSource::parse(text).unwrap();
        assert_eq!((source.url.as_str(), &source.version, source.folder.as_str()), (url, &version, folder));
        assert_eq!(PluginSource::parse(&source.text).unwrap(), source, "its text says the same");
    }

    #[test]
    fn sources_are_repositories_and_versions() {
        use WantedVersion::{Branch, Newest, Pinned};
        check("github:ada/Weather.git", "https://github.com/ada/Weather.git", Newest, "weather");
        check("github:ada/toold-x@v1.2", "https://github.com/ada/toold-x.git", Pinned("v1.2".into()), "toold-x");
        check("github:ada/x#fix/wind", "https://github.com/ada/x.git", Branch("fix/wind".into()), "x");
        check("gitlab:a/group/x", "https://gitlab.com/a/group/x.git", Newest, "x");
        check("codeberg:a/x", "https://codeberg.org/a/x.git", Newest, "x");
        check("https://git.example.org/a/x.git@v1", "https://git.example.org/a/x.git", Pinned("v1".into()), "x");
        check("ssh://git@example.org:22/x", "ssh://git@example.org:22/x", Newest, "x");
        check("git@example.org:a/x.git#main", "git@example.org:a/x.git", Branch("main".into()), "x");
        check("local:/no/My Plugin", "/no/My Plugin", Newest, "my-plugin");
        check("local:/no/at@home/x@v1", "/no/at@home/x", Pinned("v1".into()), "x");
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "weather",
            "github:ada",
            "github:a/b/c",
            "github:a/--x",
            "github:a/b@",
            "github:a/b#",
            "github:a/b@-x",
            "github:a/b#a..b",
            "github:a/b#x@y",
            "http://x/y",
            "https://x",
            "ext::sh -c x",
            "git@-oProxyCommand=x:y",
            "file:///a/b",
            "local:",
            "local:/a/1",
        ] {
            assert!(PluginSource::parse(bad).is_err(), "{bad}");
        }
    }
}
