//! What a command on a floor may read: the session's folders, the system, programs with their libraries and settings, and
//! the files that it names. Everything else is refused, and so are the secrets in these places.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use toold_engine::need::Need;
use toold_proto::tool::Category;

use super::existing::existing;
use super::is_wide;
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
    "/var/lib",
    "/var/cache",
    "/var/log/lastlog",
    "/var/log/wtmp",
    "/run/current-system",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/run/utmp",
];
/// Temporary files of all users. Not shown where the session works in it: others come and go there.
const TEMP: &str = "/tmp";

/// What is shown of the home folder: programs with their libraries and caches of builds, and settings without tokens.
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
    ".asdfrc",
    ".clang-format",
    ".config/bat",
    ".config/fd",
    ".config/fish",
    ".config/gh/config.yml",
    ".config/go/env",
    ".config/git",
    ".config/locale.conf",
    ".config/mise",
    ".config/nix",
    ".config/pip",
    ".config/ripgrep",
    ".config/ruff",
    ".config/rustfmt",
    ".dircolors",
    ".editorconfig",
    ".gitattributes",
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".inputrc",
    ".jq",
    ".node-version",
    ".nvmrc",
    ".python-version",
    ".ripgreprc",
    ".ruby-version",
    ".rustfmt.toml",
    ".sqliterc",
    ".tool-versions",
    ".local/pipx",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".local/state/mise",
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

/// Entries of a folder with libraries that are looked at.
const MAX_LIBRARIES: usize = 4096;

/// What a floor shows: these places with everything inside, and the names in these folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownPlaces {
    pub(super) seen: Vec<PathBuf>,
    pub(super) listed: Vec<PathBuf>,
}

/// All that a command with these needs may read, but for secrets.
pub(super) fn seen(home: Option<&Path>, places: &[PathBuf], environment: &Environment, needs: &[Need]) -> Vec<PathBuf> {
    let mut seen: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain(places.iter().cloned()).collect();
    if !places.iter().any(|place| place.starts_with(TEMP)) {
        seen.push(TEMP.into());
    }
    seen.extend(home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name))));
    let named = ROOTS.iter().filter_map(|name| environment.get(name)).map(PathBuf::from);
    let path = environment.get("PATH").map(std::env::split_paths).into_iter().flatten();
    let folders: Vec<PathBuf> = path.filter(|folder| folder.is_absolute()).collect();
    let mut plain = HashSet::new();
    let mut shown = |root: PathBuf| match is_led(places, &root, &mut plain) {
        true => root.canonicalize().ok().filter(|root| is_narrow(root, home) && holds_python(root)),
        false => Some(root),
    };
    seen.extend(named.filter(|root| is_narrow(root, home)).filter_map(&mut shown));
    seen.extend(folders.iter().filter_map(|folder| installation(folder, home)).filter_map(&mut shown));
    for program in needs.iter().filter(|need| need.category() == Category::Shell).filter_map(program) {
        // A link may lead to another installation.
        let Some(found) = folders.iter().map(|folder| folder.join(program)).find(|file| file.is_file()) else {
            continue;
        };
        let Ok(file) = found.canonicalize() else { continue };
        if !seen.iter().any(|seen| file.starts_with(seen)) {
            let root = file.parent().and_then(|folder| installation(folder, home));
            seen.extend(root.filter(|root| !is_led(places, &found, &mut plain) || holds_python(root)));
        }
    }
    seen.sort();
    seen.dedup();
    existing(seen)
}

/// The places where users have files that such a command may read.
pub(super) fn read_places(places: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let at_home = home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name)));
    existing(places.iter().cloned().chain(at_home).chain([TEMP.into()]).collect())
}

/// The name of the program that a command runs, if it is looked up.
fn program(need: &Need) -> Option<&str> {
    let word = need.words()?.first().filter(|word| word.literal)?;
    (!word.text.contains('/') && !word.text.is_empty()).then_some(word.text.as_str())
}

/// These places without the covered ones. Where one lies in a place, the other entries of the folders above it are shown
/// instead: what appears there later is not. Links are left out: what they lead to is shown itself, or not. Those of `own` are
/// shown also in a covered folder.
pub(super) fn without(seen: &[PathBuf], covered: &[PathBuf], own: &[PathBuf]) -> ShownPlaces {
    let mut shown = ShownPlaces::default();
    for place in seen {
        let mut covered = Cow::Borrowed(covered);
        if own.contains(place) && covered.iter().any(|cover| place.starts_with(cover)) {
            covered.to_mut().retain(|cover| !place.starts_with(cover));
        }
        add_without(place, &covered, &mut shown);
    }
    shown
}

fn add_without(place: &Path, covered: &[PathBuf], shown: &mut ShownPlaces) {
    if covered.iter().any(|cover| place.starts_with(cover)) {
        return;
    }
    if !covered.iter().any(|cover| cover.starts_with(place)) {
        shown.seen.push(place.to_owned());
        return;
    }
    shown.listed.push(place.to_owned());
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add_without(&entry.path(), covered, shown);
        }
    }
}

/// The installation that a folder of programs belongs to, or that folder alone if the installation would be all of the home
/// folder, as for `~/bin`.
fn installation(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    [root_of_programs(folder), folder.to_owned()].into_iter().find(|root| is_narrow(root, home))
}

/// `/home/you/.cargo` for `/home/you/.cargo/bin`.
fn root_of_programs(folder: &Path) -> PathBuf {
    let is_bin = folder.file_name().is_some_and(|name| ["bin", "sbin", "shims"].iter().any(|bin| name == *bin));
    let root = folder.parent().filter(|root| is_bin && root.file_name().is_some_and(|name| name != ".local"));
    root.unwrap_or(folder).to_owned()
}

/// Whether a link in one of these places is on the way: a command may have made it, so that the next one would see what it leads
/// to.
pub(super) fn is_led_by_link(places: &[PathBuf], path: &Path) -> bool {
    is_led(places, path, &mut HashSet::new())
}

/// The same, with paths that are known to be no links.
fn is_led(places: &[PathBuf], path: &Path, plain: &mut HashSet<PathBuf>) -> bool {
    const MAX_LINKS: usize = 40;
    let parts = |path: &Path| -> Vec<OsString> { path.iter().rev().map(OsStr::to_owned).collect() };
    let (mut left, mut at, mut links) = (parts(path), PathBuf::from("/"), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(part);
        if plain.contains(&at) {
            continue;
        }
        let Ok(target) = at.read_link() else {
            plain.insert(at.clone());
            continue;
        };
        links += 1;
        if links > MAX_LINKS || places.iter().any(|place| at.starts_with(place)) {
            return true;
        }
        at.pop();
        left.extend(parts(&target));
    }
    false
}

/// Whether it is an installation of Python, to which the links of virtual environments lead.
fn holds_python(root: &Path) -> bool {
    let names = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.take(MAX_LIBRARIES).any(|name| name.as_encoded_bytes().starts_with(b"python3"))
}

fn is_narrow(root: &Path, home: Option<&Path>) -> bool {
    root.is_absolute() && !is_wide(root, home)
}

#[cfg(test)]
mod tests {
    use toold_engine::need::{JudgedCommand, Word};

    use super::*;

    #[test]
    fn only_the_session_the_system_and_programs_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for file in [
            "home/me/notes.txt",
            "home/me/.cargo/bin/cargo",
            "home/me/.cargo/credentials.toml",
            "home/me/.local/share/keyrings/a",
            "home/me/.local/bin/tool",
            "home/me/tools/x/bin/x",
            "home/me/apps/y-1/bin/y",
            "home/me/src/shop/main.rs",
            "home/me/src/shop/deep/er/.env",
            "home/me/src/shop/deep/er/code.rs",
            "home/me/src/other/main.rs",
        ] {
            let path = top.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let home = top.join("home/me");
        let below = |name: &str| home.join(name);
        std::os::unix::fs::symlink(below("apps/y-1/bin/y"), below("tools/x/bin/y")).unwrap();
        std::os::unix::fs::symlink(below("notes.txt"), below("src/shop/link")).unwrap();
        std::fs::create_dir(below("bin")).unwrap();
        let path = std::env::join_paths([below("tools/x/bin"), below("bin")]).unwrap();
        let environment = Environment::default().with([("PATH", path)]);
        let words = Some(vec![Word { text: "y".into(), literal: true }]);
        let need = Need::of_command("y x", JudgedCommand { words, ..JudgedCommand::default() });
        let seen = seen(Some(&home), &[below("src/shop")], &environment, &[need]);
        let own: Vec<&PathBuf> = seen.iter().filter(|path| path.starts_with(&home)).collect();
        assert_eq!(
            own,
            [
                &below(".cargo"),
                &below(".local/bin"),
                &below("apps/y-1"),
                &below("bin"),
                &below("src/shop"),
                &below("tools/x")
            ]
        );
        let covered = [below(".cargo/credentials.toml"), below("src/shop/deep/er/.env"), below("elsewhere")];
        let shown = without(&[below(".cargo"), below("src/shop"), below("tools/x")], &covered, &[]);
        let mut files = shown.seen;
        files.sort();
        assert_eq!(
            files,
            [below(".cargo/bin"), below("src/shop/deep/er/code.rs"), below("src/shop/main.rs"), below("tools/x")]
        );
        assert_eq!(
            shown.listed,
            [below(".cargo"), below("src/shop"), below("src/shop/deep"), below("src/shop/deep/er")]
        );
        // A session in a folder of which the rest is covered.
        let (around, place) = (below("src"), below("src/shop/deep"));
        let shown = without(&[around.clone(), place.clone()], &[below("src/shop")], std::slice::from_ref(&place));
        assert_eq!((shown.seen, shown.listed), (vec![below("src/other"), place], vec![around]));
        // A command has put links in the places of a folder of PATH, of a program, and of an environment of Python.
        for (name, target) in [("venv", "src/other"), ("bin/prog", "apps/y-1/bin/y"), ("env", "apps/py"), ("home", ".")]
        {
            std::fs::create_dir_all(below("src/shop/bin")).unwrap();
            std::os::unix::fs::symlink(below(target), below("src/shop").join(name)).unwrap();
        }
        std::fs::create_dir_all(below("apps/py/bin")).unwrap();
        std::fs::create_dir_all(below("apps/py/lib/python3.13")).unwrap();
        let shop = |name: &str| below("src/shop").join(name);
        let path = std::env::join_paths([shop("venv/bin"), shop("bin"), shop("env/bin"), shop("home/bin")]).unwrap();
        let environment = Environment::default().with([("PATH", path), ("CARGO_HOME", shop("venv").into())]);
        let words = Some(vec![Word { text: "prog".into(), literal: true }]);
        let need = Need::of_command("prog", JudgedCommand { words, ..JudgedCommand::default() });
        let seen = super::seen(Some(&home), &[below("src/shop")], &environment, &[need]);
        let own: Vec<&PathBuf> = seen.iter().filter(|path| path.starts_with(&home)).collect();
        assert_eq!(own, [&below(".cargo"), &below(".local/bin"), &below("apps/py"), &below("src/shop")]);
    }
}
