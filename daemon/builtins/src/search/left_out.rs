//! What a search says when it finds nothing: how much it searched, and what it left out.

use std::path::{Path, PathBuf};

use toold_host::read_access::ReadAccess;
use toold_host::tree::{LeftOutReason, SkippedPlaces, VisitedEntry};

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

/// Whether this is Git's own folder, or the file that stands for it: it is searched only if the caller names it. Notes that
/// it was left out.
pub(crate) fn is_repository(entry: &VisitedEntry<'_>, left_out: &SkippedPlaces) -> bool {
    let is_repository = entry.name == ".git" && entry.depth > 0;
    if is_repository {
        left_out.add(entry, LeftOutReason::Repository);
    }
    is_repository
}

/// Covers all that the caller may not read without an ask. It is said whether or not there is anything of that kind, which is nothing
/// for the caller to know.
const NOT_READ: &str = "; files that need an approval are not searched";

/// `; left out: target/ (ignored), .cache/ (hidden); include_ignored=true takes them in`, and what else is not searched in a
/// folder.
pub(crate) fn words(left_out: &[(PathBuf, bool, LeftOutReason)], cwd: &Path) -> String {
    if left_out.is_empty() {
        return NOT_READ.to_owned();
    }
    let count = |reasons: &[LeftOutReason]| left_out.iter().filter(|(_, _, reason)| reasons.contains(reason)).count();
    let taken_in = count(&[LeftOutReason::Ignored, LeftOutReason::Hidden]);
    let hint = match (taken_in, count(&[LeftOutReason::Link, LeftOutReason::Repository])) {
        (0, 0) => "",
        (_, 0) => "; include_ignored=true takes them in",
        (0, _) => "; to look into one, name it in `path`",
        _ => {
            "; include_ignored=true takes in those that are ignored or hidden; to look into others, name one in `path`"
        }
    };
    let named = left_out.iter().take(MAX_NAMES).map(|(path, is_folder, reason)| {
        let why = match reason {
            LeftOutReason::Ignored => "ignored",
            LeftOutReason::Hidden => "hidden",
            LeftOutReason::Link => "a link",
            LeftOutReason::Repository => "Git's own",
            LeftOutReason::Special => "not a file",
        };
        format!("{}{} ({why})", paths::shown(path, cwd), if *is_folder { "/" } else { "" })
    });
    let named: Vec<String> = named.collect();
    let more = left_out.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; left out: {}{more}{hint}{NOT_READ}", named.join(", "))
}
