//! Names of branches and remotes, for rules about what a push changes.

use std::path::Path;

use super::{Repository, common_of, text_of};

/// The names of branches that are packed are searched no further.
const MAX_PACKED: u64 = 4 * 1024 * 1024;
/// More branches are not looked at.
const MAX_BRANCHES: usize = 1_000;

impl Repository {
    /// The branch that is checked out.
    pub(in crate::shell_grammar::programs) fn current_branch(&self) -> Option<String> {
        let head = text_of(&self.own.join("HEAD"), 4096).ok()?;
        head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    pub(in crate::shell_grammar::programs) fn branches(&self) -> Vec<String> {
        let common = common_of(&self.own);
        let mut found: Vec<String> = self.current_branch().into_iter().collect();
        add_loose(&common.join("refs/heads"), "", &mut found);
        let packed = text_of(&common.join("packed-refs"), MAX_PACKED).unwrap_or_default();
        let names = packed.lines().filter_map(|line| line.split_once(" refs/heads/")).map(|(_, name)| name.to_owned());
        found.extend(names.take(MAX_BRANCHES));
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(in crate::shell_grammar::programs) fn remotes(&self) -> Vec<String> {
        let config = text_of(&common_of(&self.own).join("config"), super::MAX_CONFIG).unwrap_or_default();
        let names = config.lines().filter_map(|line| line.trim().strip_prefix("[remote \"")?.strip_suffix("\"]"));
        names.map(str::to_owned).collect()
    }
}

/// The branches below a folder, whose own name they begin with.
fn add_loose(folder: &Path, start: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if found.len() > MAX_BRANCHES {
            return;
        }
        let whole = format!("{start}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_loose(&entry.path(), &format!("{whole}/"), found),
            _ => found.push(whole),
        }
    }
}
