//! Sets of files and folders, searched for the ancestors of many paths.

use std::path::{Path, PathBuf};

/// Files and folders in one normal form, so that a path is compared with each of them as text:
/// [`Path::starts_with`] parses both paths each time, and a walk checks every file that it visits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSet(Vec<PathBuf>);

impl PathSet {
    pub fn push(&mut self, place: PathBuf) {
        self.0.push(in_one_form(&place));
    }

    pub fn iter(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter()
    }

    /// The first member that the absolute path equals or lies below. The path must be
    /// [`in_one_form`], or a member may be missed.
    pub(super) fn holding(&self, path: &Path) -> Option<&Path> {
        self.0.iter().map(PathBuf::as_path).find(|place| is_at_or_below(path, place))
    }
}

impl Extend<PathBuf> for PathSet {
    fn extend<T: IntoIterator<Item = PathBuf>>(&mut self, places: T) {
        places.into_iter().for_each(|place| self.push(place));
    }
}

impl From<Vec<PathBuf>> for PathSet {
    fn from(places: Vec<PathBuf>) -> Self {
        let mut all = Self::default();
        all.extend(places);
        all
    }
}

/// Each path has one such form: no slash twice or at the end, and no `.` between.
pub(super) fn in_one_form(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Whether an absolute path is in that form, and has no `..`; false for `/`, which then takes the
/// slow path.
pub(super) fn is_in_one_form(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// As [`Path::starts_with`], of two paths in one form, the first of them absolute.
pub(super) fn is_at_or_below(path: &Path, place: &Path) -> bool {
    let (path, place) = (path.as_os_str().as_encoded_bytes(), place.as_os_str().as_encoded_bytes());
    let rest = path.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || place.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = String> {
        let part = prop_oneof!["a", "ab", "b", "[.]", "", "[.]a"];
        prop::collection::vec(part, 0..5).prop_map(|parts| format!("/{}", parts.join("/")))
    }

    proptest! {
        #[test]
        fn path_set_agrees_with_the_standard_library(path in path(), place in path()) {
            let places = PathSet::from(vec![PathBuf::from(&place)]);
            let expected = Path::new(&path).starts_with(&place);
            prop_assert_eq!(places.holding(&in_one_form(Path::new(&path))).is_some(), expected);
        }

        #[test]
        fn normalised_path_is_unchanged(path in path()) {
            let formed = in_one_form(Path::new(&path));
            prop_assert_eq!(is_in_one_form(&path), formed.to_str() == Some(&path) && path != "/");
        }
    }

    #[test]
    fn an_empty_place_holds_everything() {
        let places = PathSet::from(vec![PathBuf::new()]);
        assert!(places.holding(Path::new("/a")).is_some());
        assert!(!is_in_one_form("/a/../b") && !is_in_one_form("a") && !is_in_one_form(""));
    }
}
