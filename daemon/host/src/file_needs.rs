//! The permissions that a call needs for a file: a [`Need`] with the resolved path, and the reason if ignore files of
//! tools ([`crate::exclude`]) forbid it.

use std::path::Path;

use toold_engine::need::Need;
use toold_proto::tool::Category;

use crate::exclude::Exclusions;
use crate::files::facts;

/// The permission to read the file `resolved`.
pub fn read_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    need(Category::FileRead, resolved, may_be_folder(resolved), exclusions)
}

/// As [`read_need`], for a path that a walk has just visited.
pub fn entry_read_need(resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    need(Category::FileRead, resolved, is_folder, exclusions)
}

/// The permission to write the file `resolved`.
pub fn write_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    need(Category::FileWrite, resolved, may_be_folder(resolved), exclusions)
}

/// Whether the path is checked against ignore files as a folder. True also if nothing exists there: otherwise the
/// answer would reveal whether an excluded folder exists.
pub(crate) fn may_be_folder(resolved: &Path) -> bool {
    facts(resolved).map_or(true, |facts| facts.is_none_or(|facts| facts.kind.is_dir()))
}

fn need(category: Category, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    let mut need = Need::new(category, resolved.to_string_lossy());
    need.forbidden = exclusions.reason(resolved, is_folder);
    // The name of another file would be judged in its place.
    if need.forbidden.is_none() && resolved.to_str().is_none() {
        need.forbidden = Some("permissions cannot be checked for names that are not UTF-8".to_owned());
    }
    need
}
