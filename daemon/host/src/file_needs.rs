//! The permissions that a call needs for a file: a [`Need`] with the resolved path, and the reason if ignore files of
//! tools ([`crate::exclude`]) forbid it.

use std::path::Path;

use toold_engine::need::Need;
use toold_engine::policy::is_secret;
use toold_proto::tool::Category;

use crate::credentials::{holds_credentials, is_key};
use crate::exclude::Exclusions;
use crate::files::facts;

/// The permission to read the file `resolved`.
pub fn read_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    let is_folder = may_be_folder(resolved);
    let mut need = need(Category::FileRead, resolved, is_folder, exclusions);
    // A file that is named by itself is looked at whatever its name is; those of a folder would be too many.
    if !is_folder
        && is_key(resolved)
        && let Some(file) = need.file_mut()
        && file.holds_secrets.is_empty()
    {
        file.holds_secrets.push(resolved.to_string_lossy().into_owned());
    }
    need
}

/// As [`read_need`], for a path of which the kind was just seen.
pub fn entry_read_need(resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    need(Category::FileRead, resolved, is_folder, exclusions)
}

/// The permission to write the file `resolved`.
pub fn write_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    need(Category::FileWrite, resolved, may_be_folder(resolved), exclusions)
}

/// As [`write_need`], for a path of which the kind was just seen.
pub fn entry_write_need(resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    need(Category::FileWrite, resolved, is_folder, exclusions)
}

/// Whether the path is checked against ignore files as a folder. True also if nothing exists there: otherwise the
/// answer would reveal whether an excluded folder exists.
pub(crate) fn may_be_folder(resolved: &Path) -> bool {
    facts(resolved).map_or(true, |facts| facts.is_none_or(|facts| facts.kind.is_dir()))
}

/// A longer file is no certificate, nor a bundle of them as systems have it.
const MAX_CERTIFICATE: u64 = 1 << 20;

/// Whether a file that a name makes a secret holds nothing but public certificates and keys, in the form of RFC 7468.
pub(crate) fn is_certificate(path: &Path) -> bool {
    let may_be_public = ["pem", "key"];
    let is_named = |ending: &std::ffi::OsStr| may_be_public.iter().any(|known| ending.eq_ignore_ascii_case(known));
    if !path.extension().is_some_and(is_named) || !is_secret(path) {
        return false;
    }
    let Ok(text) = crate::files::read_text(path, MAX_CERTIFICATE) else { return false };
    let labels = || text.lines().filter_map(|line| line.trim().strip_prefix("-----BEGIN "));
    let public = [
        "CERTIFICATE",
        "TRUSTED CERTIFICATE",
        "X509 CRL",
        "CERTIFICATE REQUEST",
        "PUBLIC KEY",
        "RSA PUBLIC KEY",
        "SSH2 PUBLIC KEY",
        "DH PARAMETERS",
        "EC PARAMETERS",
    ];
    let is_public = |label: &str| label.strip_suffix("-----").is_some_and(|label| public.contains(&label));
    labels().next().is_some() && labels().all(is_public) && !text.contains("PRIVATE KEY")
}

/// Names in a repository from which Git takes settings or programs. A file `HEAD`, which makes a folder a repository, is one of
/// the [protected places](toold_engine::policy::protected_writes::list) by its name.
const OF_REPOSITORY: [&str; 7] = ["config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees"];

/// Whether Git takes settings or programs from the file, in a repository whose folder may have any name. Looks at the file system
/// only for names that may be such ones.
pub(crate) fn is_of_repository(path: &Path) -> bool {
    path.ancestors().any(|own| {
        let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_own = OF_REPOSITORY.iter().any(|known| name.eq_ignore_ascii_case(known));
        is_own && own.parent().is_some_and(is_repository)
    })
}

/// Whether Git takes the folder for a repository without `.git` (`is_git_directory` in its `setup.c`), or nearly so.
fn is_repository(folder: &Path) -> bool {
    let exists = |name: &str| folder.join(name).symlink_metadata().is_ok();
    exists("HEAD") && (exists("refs") || exists("commondir"))
}

fn need(category: Category, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    let mut need = Need::new(category, resolved.to_string_lossy());
    if category == Category::FileWrite
        && is_of_repository(resolved)
        && let Some(file) = need.file_mut()
    {
        file.of_repository.push(resolved.to_string_lossy().into_owned());
    }
    if category == Category::FileRead && !is_folder && is_certificate(resolved) {
        need = need.with_file(|file| file.no_secrets.push(resolved.to_string_lossy().into_owned()));
    }
    if category == Category::FileRead && !is_folder && holds_credentials(resolved) {
        need = need.with_file(|file| file.holds_secrets.push(resolved.to_string_lossy().into_owned()));
    }
    need.forbidden = exclusions.reason(resolved, is_folder);
    // The name of another file would be judged in its place.
    if need.forbidden.is_none() && resolved.to_str().is_none() {
        need.forbidden = Some("its name, which is not UTF-8: permissions cannot be checked for it".to_owned());
    }
    need
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_known_by_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let block = |label: &str| format!("-----BEGIN {label}-----\nMIIB\n-----END {label}-----\n");
        let (certificate, key) = (block("CERTIFICATE"), block("PRIVATE KEY"));
        for (name, text, expected) in [
            ("ca.pem", certificate.clone(), true),
            ("bundle.PEM", ["# The root\n", &certificate, &certificate].concat(), true),
            ("public.pem", block("PUBLIC KEY"), true),
            ("both.pem", [certificate.as_str(), &key].concat(), false),
            ("first.pem", [key.as_str(), &certificate].concat(), false),
            ("key.pem", key.clone(), false),
            ("rsa.pem", block("RSA PRIVATE KEY"), false),
            ("ssh.pem", block("OPENSSH PRIVATE KEY"), false),
            ("inline.pem", [certificate.as_str(), "x-----BEGIN PRIVATE KEY-----\n"].concat(), false),
            ("empty.pem", String::new(), false),
            ("other.pem", "KEY=1\n".to_owned(), false),
            ("server.key", certificate.clone(), true),
            ("public.key", block("PUBLIC KEY"), true),
            ("master.key", "0123456789abcdef0123456789abcdef\n".to_owned(), false),
            ("private.key", key.clone(), false),
            // A name that may hold anything else.
            ("server.p12", certificate.clone(), false),
            ("missing.pem", String::new(), false),
        ] {
            let path = folder.path().join(name);
            if name != "missing.pem" {
                std::fs::write(&path, text).unwrap();
            }
            assert_eq!(is_certificate(&path), expected, "{name}");
        }
        std::fs::create_dir(folder.path().join("folder.pem")).unwrap();
        assert!(!is_certificate(&folder.path().join("folder.pem")));
    }
}
