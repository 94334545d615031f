//! Caches of what tools have downloaded, which appear with a [layer](crate::launcher::order::Confinement::layers) above where a
//! program may download something.

use std::path::{Path, PathBuf};

use super::is_wide;
use super::surroundings::is_led_by_link;
use crate::environment::Environment;

/// The variable that names the folder of a tool, where it is otherwise, below the home folder, and the parts of it that are
/// caches; none: all of it. The launcher's `CACHES` knows the same folders.
const FOLDERS: [(&str, &str, &[&str]); 9] = [
    ("CARGO_HOME", ".cargo", &["registry", "git"]),
    ("GOCACHE", ".cache/go-build", &[]),
    ("GOPATH", "go", &["pkg"]),
    // It is in that folder, unless it is named.
    ("GOMODCACHE", "go/pkg/mod", &[]),
    ("GRADLE_USER_HOME", ".gradle", &[".tmp", "caches", "daemon", "native", "notifications", "workers", "wrapper"]),
    // No variable names it.
    ("", ".m2", &["repository"]),
    ("PIP_CACHE_DIR", ".cache/pip", &[]),
    ("UV_CACHE_DIR", ".cache/uv", &[]),
    ("npm_config_cache", ".npm", &[]),
];

/// The folders with caches, and the places in them that a program may change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LayeredCaches {
    pub(super) folders: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
}

/// The folders that exist, and that have nothing to do with the session's own.
pub(super) fn of(home: Option<&Path>, environment: &Environment, places: &[PathBuf]) -> LayeredCaches {
    let mut found = LayeredCaches::default();
    for (variable, usual, parts) in FOLDERS {
        let named = environment.get(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = named.or_else(|| Some(home?.join(usual))).filter(|folder| !is_led_by_link(places, folder));
        let folder = folder.and_then(|folder| folder.canonicalize().ok());
        let Some(folder) = folder.filter(|folder| folder.is_dir() && !is_wide(folder, home)) else { continue };
        if places.iter().any(|place| place.starts_with(&folder) || folder.starts_with(place)) {
            continue;
        }
        match parts {
            [] => found.writable.push(folder.clone()),
            parts => found.writable.extend(parts.iter().map(|part| folder.join(part))),
        }
        found.folders.push(folder);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_tools_have_a_layer_and_the_sessions_own_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in [".cargo", ".m2", ".npm", "work/cache"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let work = [home.join("work")];
        let found = of(Some(&home), &Environment::default(), &work);
        assert_eq!(found.folders, [".cargo", ".m2", ".npm"].map(|name| home.join(name)));
        let writable = [".cargo/registry", ".cargo/git", ".m2/repository", ".npm"].map(|name| home.join(name));
        assert_eq!(found.writable, writable);
        let own = Environment::default().with([("CARGO_HOME", home.join("work/cache"))]);
        assert_eq!(of(Some(&home), &own, &work).folders, [home.join(".m2"), home.join(".npm")]);
        // A command has put a link in the place of its own cache.
        std::os::unix::fs::symlink(home.join(".npm"), home.join("work/link")).unwrap();
        let linked = Environment::default().with([("CARGO_HOME", home.join("work/link"))]);
        assert_eq!(of(Some(&home), &linked, &work).folders, [home.join(".m2"), home.join(".npm")]);
        let wide = Environment::default().with([("CARGO_HOME", &home)]);
        assert_eq!(of(Some(&home), &wide, &[]).folders, [home.join(".m2"), home.join(".npm")]);
    }
}
