//! Names of files that hold secrets, and of files that control the daemon.

use std::path::Path;

/// The pattern by which a file counts as a secret. Every folder on the way is looked at too.
pub(super) fn secret_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let exact = [
        ".netrc",
        "_netrc",
        ".pgpass",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "credentials.json",
        "service-account.json",
        "shadow",
        "gshadow",
    ];
    if let Some(pattern) = exact.into_iter().find(|pattern| *pattern == name) {
        return Some(pattern);
    }
    if name == ".env" || (name.starts_with(".env.") && !is_template(&name)) {
        return Some(".env");
    }
    let endings = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];
    if let Some(ending) = endings.into_iter().find(|ending| name.ends_with(ending)) {
        return Some(ending);
    }
    let folders = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"];
    path.components()
        .filter_map(|part| part.as_os_str().to_str())
        .find_map(|part| folders.into_iter().find(|folder| *folder == part))
}

fn is_template(name: &str) -> bool {
    [".example", ".sample", ".template", ".dist"].into_iter().any(|ending| name.ends_with(ending))
}

/// The name by which a file controls what the daemon does; no tool writes it.
pub(super) fn control_name(path: &Path) -> Option<&'static str> {
    let folders = [".toold", ".hygge"];
    let files = [".aiexclude", ".toolignore"];
    let parts = || path.components().filter_map(|part| part.as_os_str().to_str());
    parts().find_map(|part| folders.into_iter().chain(files).find(|name| *name == part))
}
