//! Names of files that hold secrets, and of files that control the daemon.

use std::path::{Component, Path};

use crate::cut;

const FILES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".htpasswd",
    ".s3cfg",
    ".boto",
    ".dockercfg",
    ".vault-token",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    "application_default_credentials.json",
    "service-account.json",
    "service_account.json",
    "credentials.tfrc.json",
];
const ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];
const FOLDERS: &[&str] = &[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"];
/// The last parts of a path.
const PLACES: &[&str] = &[
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".gem/credentials",
    ".m2/settings.xml",
    "etc/shadow",
    "etc/gshadow",
];

/// The pattern by which a file counts as a secret, ignoring case. Every folder on the way is
/// checked too.
pub(super) fn secret_name(path: &Path) -> Option<&'static str> {
    // As text: a walk checks every file that it visits, and parsing paths took most of that time.
    let text = path.to_string_lossy();
    let parts = || text.rsplit('/').filter(|part| !matches!(*part, "" | "."));
    let name = parts().next()?;
    let named = |known: &&&'static str| known.eq_ignore_ascii_case(name);
    if let Some(file) = FILES.iter().find(named) {
        return Some(file);
    }
    if is_environment(name) {
        return Some(".env");
    }
    if ["environ", "mem", "auxv"].contains(&name) && path.starts_with("/proc") {
        return Some("/proc/*/environ");
    }
    let ending = name.rfind('.').map_or("", |dot| cut::from(name, dot));
    let ends_as = |place: &&&'static str| {
        let mut parts = std::iter::once(name).chain(parts().skip(1));
        place.rsplit('/').all(|part| parts.next().is_some_and(|last| last.eq_ignore_ascii_case(part)))
    };
    let folder = |part: &str| FOLDERS.iter().find(|folder| part.eq_ignore_ascii_case(folder));
    ENDINGS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(ending))
        .or_else(|| PLACES.iter().find(ends_as))
        .or_else(|| parts().find_map(folder))
        .copied()
}

/// `.env`, `.envrc` and `.env.NAME`, except templates.
fn is_environment(name: &str) -> bool {
    let Some((start, rest)) = name.split_at_checked(4) else { return false };
    if !start.eq_ignore_ascii_case(".env") {
        return false;
    }
    let rest = rest.to_ascii_lowercase();
    matches!(&*rest, "" | "rc") || (rest.starts_with('.') && !is_template(&rest))
}

fn is_template(name: &str) -> bool {
    [".example", ".sample", ".template", ".dist"].into_iter().any(|ending| name.ends_with(ending))
}

/// The name by which a file controls the behaviour of the daemon; no tool writes it.
pub(super) fn control_name(path: &Path) -> Option<&'static str> {
    [".toold", ".hygge", ".aiexclude", ".toolignore"].into_iter().find(|name| has_part(path, name))
}

/// Whether a file is a memory by its place: `.toold/memories/NAME.md` of a project, or `toold/memories/NAME.md` of
/// the user's configuration.
pub(super) fn is_memory(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let above = folder.parent().and_then(Path::file_name);
    path.extension().is_some_and(|ending| ending == "md")
        && folder.file_name().is_some_and(|name| name == "memories")
        && above.is_some_and(|name| name == ".toold" || name == "toold")
        // No other control folder on the way.
        && folder.parent().and_then(Path::parent).is_some_and(|top| control_name(top).is_none())
}

fn has_part(path: &Path, name: &str) -> bool {
    path.components().any(|part| matches!(part, Component::Normal(part) if part.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_known_by_their_place() {
        assert!(is_memory(Path::new("/p/.toold/memories/a.md")));
        assert!(is_memory(Path::new("/home/u/.config/toold/memories/a.md")));
        for other in [
            "/p/.toold/plugins/a.md",
            "/p/.toold/memories/deep/a.md",
            "/p/.toold/memories/a.lua",
            "/p/.toold/plugins/.toold/memories/a.md",
            "/p/memories/a.md",
            "/memories/a.md",
        ] {
            assert!(!is_memory(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn secrets_are_known_by_name_and_place() {
        for secret in [
            "/p/.env",
            "/p/.env.local",
            "/p/.ENV",
            "/p/server.key",
            "/p/cert.PEM",
            "/home/u/.ssh/known_hosts",
            "/home/u/.aws/config",
            "/home/u/.docker/config.json",
            "/etc/shadow",
            "/proc/self/environ",
            "/proc/1/environ",
            "/home/u/id_rsa",
            "/home/u/.SSH/config",
            "/home/u/.Docker/Config.json",
            "/home/u//.config/./gh//hosts.yml",
            "/p/.envrc",
            "/p/.pem",
            "/p/.key/",
        ] {
            assert!(secret_name(Path::new(secret)).is_some(), "{secret}");
        }
        for plain in [
            "/p/.env.example",
            "/p/env",
            "/p/.env/lib/x.py",
            "/p/src/shadow",
            "/p/.docker/Dockerfile",
            "/p/key.rs",
            "/p/ssh/x",
            "/proc/cpuinfo",
            "/p/mem",
            "/p/.envious",
            "/p/\u{e4}\u{e4}\u{e4}",
            "/p/xetc/shadow",
            "/",
        ] {
            assert_eq!(secret_name(Path::new(plain)), None, "{plain}");
        }
    }

    #[test]
    fn control_files_are_known_in_any_folder() {
        assert_eq!(control_name(Path::new("/p/.toold/plugins/x.lua")), Some(".toold"));
        assert_eq!(control_name(Path::new("/p/a/.toolignore")), Some(".toolignore"));
        assert_eq!(control_name(Path::new("/p/toold/x")), None);
    }
}
