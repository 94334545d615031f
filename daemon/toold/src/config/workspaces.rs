//! `[workspaces]`: configured folders in which clients of models may work.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::config;

/// `[workspaces]`: folders in which agents, MCP clients and clients with a token may work without an approval.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct WorkspacesConfig {
    /// Absolute paths of folders, which may begin with `~/`; everything in them is included. Neither `/` nor the whole
    /// home folder is allowed.
    pub allow: Vec<String>,
}

impl WorkspacesConfig {
    /// The folders as written, without invalid ones.
    pub fn folders(&self, home: Option<&Path>) -> Vec<PathBuf> {
        let folder = |text: &String| folder(text, home).ok();
        self.allow.iter().filter_map(folder).collect()
    }

    /// The errors of each.
    pub fn problems(&self, home: Option<&Path>) -> Vec<String> {
        self.allow.iter().filter_map(|text| folder(text, home).err()).collect()
    }
}

/// A folder that a configuration names.
///
/// # Errors
/// It cannot be a workspace, as a sentence for the user.
pub fn folder(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if text.contains(['*', '?', '[']) {
        let before = text.split(['*', '?', '[']).next().unwrap_or_default().trim_end_matches('/');
        return Err(format!(
            "{text:?} is a pattern, but a workspace is a folder and everything in it: did you mean {before:?}?"
        ));
    }
    let path = config::absolute(text, home)?;
    let lexical = without_dots(&path);
    match is_too_broad(&lexical, home) {
        true => Err(format!("{text:?} cannot be a workspace: it is too broad; name folders inside it instead")),
        false => Ok(lexical),
    }
}

/// Whether a folder cannot be a workspace: it is wide, or everybody's for temporary files.
pub(crate) fn is_too_broad(folder: &Path, home: Option<&Path>) -> bool {
    is_wide(folder, home) || ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|shared| folder == Path::new(shared))
}

/// `/`, the home folder and the folders above it: too much lies in them.
pub(crate) fn is_wide(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

/// An absolute path without `.` and `..`, taken as text: the file system is not read.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => _ = plain.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_workspace_folder_is_an_error_with_a_suggestion() {
        let home = Some(Path::new("/home/u"));
        for wrong in ["src", "/", "/home/u", "/home", "~", "~/", "/home/u/../u", "/tmp", ""] {
            assert!(folder(wrong, home).is_err(), "{wrong}");
        }
        assert!(folder("~/src/**", home).unwrap_err().contains("\"~/src\""));
        assert_eq!(folder("~/src", home).unwrap(), Path::new("/home/u/src"));
        assert_eq!(folder("/srv/x/../y/", home).unwrap(), Path::new("/srv/y"));
    }
}
