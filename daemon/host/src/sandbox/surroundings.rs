//! What a command that nobody approved does not see: everything around the session's folders but the system and the
//! programs, and the secrets in them. It would be read without an approval otherwise, and shown.

use std::path::{Path, PathBuf};

use toold_engine::policy::is_secret;

use crate::environment::Environment;

/// Folders of the system, which all users may read.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/dev",
    "/tmp",
    "/var/lib",
    "/var/cache",
];

/// Of the home folder: programs with their libraries and caches of builds, and settings without tokens.
const AT_HOME: &[&str] = &[
    ".asdf",
    ".bun",
    ".bundle",
    ".cabal",
    ".cargo",
    ".composer",
    ".deno",
    ".dotnet",
    ".gem",
    ".ghcup",
    ".gradle",
    ".hex",
    ".ivy2",
    ".julia",
    ".m2",
    ".mix",
    ".npm",
    ".nuget",
    ".nvm",
    ".nix-profile",
    ".opam",
    ".pnpm-store",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sbt",
    ".sdkman",
    ".stack",
    ".terminfo",
    ".volta",
    ".yarn",
    "go",
    ".gitconfig",
    ".config/git",
    ".config/nix",
    ".config/fish",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".local/state/nix",
    ".cache/bazel",
    ".cache/ccache",
    ".cache/deno",
    ".cache/go-build",
    ".cache/mypy",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/pypoetry",
    ".cache/ruff",
    ".cache/sccache",
    ".cache/uv",
    ".cache/yarn",
];

/// Variables that name folders of programs.
const ROOTS: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VOLTA_HOME",
    "GOROOT",
    "GOPATH",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "SDKMAN_DIR",
    "RBENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "GRADLE_USER_HOME",
    "M2_HOME",
];

/// More places than this are not hidden one by one.
const MAX_HIDDEN: usize = 400;
const MAX_SECRETS: usize = 64;
/// Entries of the session's folders that are looked at for secrets.
const MAX_LOOKED_AT: usize = 20_000;
/// Folders of others' code, which is no secret, and too much of it to look at.
const NOT_LOOKED_AT: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "site-packages", "__pycache__"];

/// The places to hide from a command that works in `places`; `None` if there are too many.
pub(super) fn hidden_places(
    home: Option<&Path>,
    places: &[PathBuf],
    environment: &Environment,
) -> Option<Vec<PathBuf>> {
    let mut seen: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain(places.iter().cloned()).collect();
    seen.extend(home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name))));
    let named = ROOTS.iter().filter_map(|name| environment.get(name)).map(PathBuf::from);
    let path = environment.get("PATH").map(std::env::split_paths).into_iter().flatten();
    seen.extend(named.chain(path.map(|folder| root_of_programs(&folder))).filter(|root| is_narrow(root, home)));
    let mut hidden = Vec::new();
    hide_all_but(Path::new("/"), &seen, &mut hidden)?;
    // The folder for temporary files is seen where the session works in it: others come and go there.
    for above in
        places.iter().flat_map(|place| place.ancestors()).filter(|above| above.parent() == Some(Path::new("/tmp")))
    {
        if !places.iter().any(|place| place == above) {
            hide_all_but(above, &seen[SYSTEM.len()..], &mut hidden)?;
        }
    }
    for place in places {
        secrets_in(place, &mut hidden)?;
    }
    Some(hidden)
}

/// `/home/you/.cargo` for `/home/you/.cargo/bin`.
fn root_of_programs(folder: &Path) -> PathBuf {
    let is_bin = folder.file_name().is_some_and(|name| ["bin", "sbin", "shims"].iter().any(|bin| name == *bin));
    let root = folder.parent().filter(|root| is_bin && root.file_name().is_some_and(|name| name != ".local"));
    root.unwrap_or(folder).to_owned()
}

fn is_narrow(root: &Path, home: Option<&Path>) -> bool {
    root.is_absolute() && root.parent().is_some() && !home.is_some_and(|home| home.starts_with(root))
}

/// Links are left: what they lead to is seen or hidden itself.
fn hide_all_but(folder: &Path, seen: &[PathBuf], hidden: &mut Vec<PathBuf>) -> Option<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link || seen.iter().any(|seen| path.starts_with(seen)) {
            continue;
        }
        if seen.iter().any(|seen| seen.starts_with(&path)) {
            hide_all_but(&path, seen, hidden)?;
            continue;
        }
        hidden.push(path);
        if hidden.len() > MAX_HIDDEN {
            return None;
        }
    }
    Some(())
}

/// Secrets anywhere below a folder, by their names.
fn secrets_in(place: &Path, hidden: &mut Vec<PathBuf>) -> Option<()> {
    let (mut folders, mut looked_at, before) = (vec![place.to_owned()], 0, hidden.len());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked_at += 1;
            let (path, kind) = (entry.path(), entry.file_type().ok()?);
            let is_skipped = || NOT_LOOKED_AT.iter().any(|name| entry.file_name() == *name);
            if kind.is_symlink() {
                continue;
            }
            if is_secret(&path) {
                hidden.push(path);
            } else if kind.is_dir() && !is_skipped() {
                folders.push(path);
            }
            if looked_at > MAX_LOOKED_AT || hidden.len() - before > MAX_SECRETS {
                return None;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_session_the_system_and_programs_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for file in [
            "home/me/notes.txt",
            "home/me/.cargo/bin/cargo",
            "home/me/.local/share/keyrings/a",
            "home/me/.local/bin/tool",
            "home/me/tools/x/bin/x",
            "home/me/src/shop/main.rs",
            "home/me/src/shop/deep/er/.env",
            "home/me/src/other/main.rs",
        ] {
            let path = top.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let home = top.join("home/me");
        let path = home.join("tools/x/bin");
        let environment = Environment::default().with([("PATH", path.as_os_str())]);
        let mut hidden = Vec::new();
        let places = [home.join("src/shop")];
        let mut seen: Vec<PathBuf> = AT_HOME.iter().map(|name| home.join(name)).chain(places.clone()).collect();
        seen.push(root_of_programs(&path));
        hide_all_but(&top, &seen, &mut hidden).unwrap();
        secrets_in(&places[0], &mut hidden).unwrap();
        hidden.sort();
        let below = |name: &str| home.join(name);
        assert_eq!(
            hidden,
            [below(".local/share/keyrings"), below("notes.txt"), below("src/other"), below("src/shop/deep/er/.env")]
        );
        let all = hidden_places(Some(&home), &places, &environment).unwrap();
        assert!(
            all.contains(&below("notes.txt")) && !all.iter().any(|path| below("tools/x/bin").starts_with(path)),
            "{all:?}"
        );
    }
}
