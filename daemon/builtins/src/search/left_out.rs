//! What a search says when it finds nothing: how much it searched, and what it left out.

use std::path::{Path, PathBuf};

use toold_host::read_access::ReadAccess;
use toold_host::tree::{LeftOutReason, SkippedPlaces};

use crate::paths;

/// How many names are shown.
const MAX_NAMES: usize = 5;

/// The places that the caller may know of.
pub(crate) fn readable(left_out: &SkippedPlaces, access: &ReadAccess) -> Vec<(PathBuf, bool, LeftOutReason)> {
    let mut exclusions = access.exclusions();
    let mut all = left_out.take();
    all.retain(|(path, is_folder, _)| access.may_read(path, *is_folder, &mut exclusions));
    all
}

/// `; left out: target/ (ignored), .cache/ (hidden); include_ignored=true takes them in`, or nothing.
pub(crate) fn words(left_out: &[(PathBuf, bool, LeftOutReason)], cwd: &Path) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let named = left_out.iter().take(MAX_NAMES).map(|(path, is_folder, reason)| {
        let why = match reason {
            LeftOutReason::Ignored => "ignored",
            LeftOutReason::Hidden => "hidden",
        };
        format!("{}{} ({why})", paths::shown(path, cwd), if *is_folder { "/" } else { "" })
    });
    let named: Vec<String> = named.collect();
    let more = left_out.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; left out: {}{more}; include_ignored=true takes them in", named.join(", "))
}
