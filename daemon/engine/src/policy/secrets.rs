//! Names of files that hold secrets, and of files that control the daemon.

use std::path::{Component, Path};

use toold_proto::cut;

const FILES: &[&str] = &[
    ".dev.vars",
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
    "credentials.json",
    "application_default_credentials.json",
    "service-account.json",
    "service_account.json",
    "serviceAccountKey.json",
    "credentials.tfrc.json",
    "terraform.tfvars",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "secrets.toml",
];
const KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
const KEY_ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk"];
const ENDINGS: &[&str] = &[".kdbx"];
/// Folders whose keys are published with the code in them.
const PUBLISHED: &[&str] = &[
    "tests/fixtures",
    "test/fixtures",
    "spec/fixtures",
    "__fixtures__",
    "testdata",
    "node_modules",
    "site-packages",
    "dist-packages",
];
/// The last part of the name of a template of variables, such as `.env.example` or `sample.env`.
const TEMPLATES: &[&str] =
    &["example", "sample", "template", "tpl", "tmpl", "dist", "defaults", "test", "testing", "schema", "md", "ts"];
/// Endings of templates that say their form.
const FORMS: &[&str] = &[".json", ".yaml", ".yml", ".toml", ".txt"];
/// The surroundings that a file `env.NAME` is for.
const SURROUNDINGS: &[&str] = &["local", "dev", "development", "stage", "staging", "prod", "production"];
/// Endings of copies that editors and people make.
const COPIES: &[&str] = &["~", "#", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", " copy"];
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
    let name = original_name(parts().next()?);
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
    let is_ending = |known: &&&'static str| known.eq_ignore_ascii_case(ending);
    let key = KEYS.iter().find(named).or_else(|| KEY_ENDINGS.iter().find(is_ending));
    key.filter(|_| !is_published(&text))
        .or_else(|| ENDINGS.iter().find(is_ending))
        .or_else(|| PLACES.iter().find(ends_as))
        .or_else(|| parts().find_map(folder))
        .copied()
}

/// The name of the file that this may be a copy of: `.env~`, `#.env#`, `id_rsa.bak`, `.id_rsa.swp`.
fn original_name(name: &str) -> &str {
    let mut original = name;
    while let Some(shorter) = COPIES.iter().find_map(|copy| original.strip_suffix(copy)).filter(|rest| !rest.is_empty())
    {
        original = shorter;
    }
    let is_swap = name.ends_with(".swp") || name.ends_with(".swo");
    let start = if is_swap { "." } else { "#" };
    match original.strip_prefix(start) {
        // `.env.swp` may be that of `env`, which is no secret.
        Some(rest) if original != name && (!is_swap || !original.starts_with(".env")) => rest,
        _ => original,
    }
}

/// `.env`, `.envrc`, `.env.NAME`, `.env-NAME`, `.env_NAME`, `NAME.env`, `env.prod`, `NAME.env.prod` and `.dev.vars.NAME`, except
/// templates.
fn is_environment(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is = |known: &&str| known.eq_ignore_ascii_case(last);
    let is_of_surroundings = SURROUNDINGS.iter().any(is);
    if !is(&"env") && !is_of_surroundings && !name.starts_with('.') {
        return false;
    }
    let name = name.to_ascii_lowercase();
    if is_of_surroundings && name.split('.').rev().nth(1) == Some("env") {
        return true;
    }
    if let Some(start) = name.strip_suffix(".env") {
        return !is_template(start);
    }
    let Some(rest) = name.strip_prefix(".env").or_else(|| name.strip_prefix(".dev.vars")) else { return false };
    rest == "rc" || rest.starts_with(['.', '-', '_']) && !is_template(rest)
}

fn is_template(name: &str) -> bool {
    let name = FORMS.iter().find_map(|form| name.strip_suffix(form)).unwrap_or(name);
    name.rsplit(['.', '-', '_']).next().is_some_and(|last| TEMPLATES.contains(&last))
}

/// Whether files of this name are inputs that people and agents write.
pub(super) fn is_input(name: &str) -> bool {
    name == "terraform.tfvars"
}

pub(super) fn is_published(path: &str) -> bool {
    let is_in = |folder: &&str| {
        path.match_indices(folder).any(|(at, found)| {
            let before = path.split_at_checked(at).is_some_and(|(before, _)| before.ends_with('/'));
            before && path.split_at_checked(at + found.len()).is_some_and(|(_, behind)| behind.starts_with('/'))
        })
    };
    PUBLISHED.iter().any(is_in)
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
            "/p/.dev.vars",
            "/p/.dev.vars.production",
            "/p/prod.env",
            "/p/Production.ENV",
            "/p/.env-production",
            "/p/.env_local",
            "/p/.env.test.local",
            "/p/.env.example.local",
            "/p/.streamlit/secrets.toml",
            "/p/serviceAccountKey.json",
            "/p/terraform.tfvars",
            "/p/terraform.tfstate",
            "/p/.env~",
            "/p/#.env#",
            "/p/.env copy",
            "/p/.env.bak",
            "/p/.env.swp",
            "/p/.envrc.old",
            "/p/env.prod",
            "/p/env.local",
            "/p/example.env.local",
            "/p/id_rsa.bak",
            "/p/.id_rsa.swp",
            "/p/server.key~",
            "/p/.netrc.orig",
            "/p/.env.json",
            "/p/tests/fixtures/.env",
            "/p/tests/fixtures/.ssh/config",
            "/p/tests/key.pem",
            "/p/mytests/fixtures2/key.pem",
            "/p/node_modules.key",
            "/p/my_node_modules/a.key",
            "/home/u/.ssh/tests/fixtures/id_rsa",
        ] {
            assert!(secret_name(Path::new(secret)).is_some(), "{secret}");
        }
        for plain in [
            "/p/.env.example",
            "/p/.env.sample",
            "/p/.env.template",
            "/p/.env.defaults",
            "/p/.env.test",
            "/p/.env.local.example",
            "/p/.env-example",
            "/p/.env_sample",
            "/p/.dev.vars.example",
            "/p/example.env",
            "/p/test.env",
            "/p/app.sample.env",
            "/p/.env.schema",
            "/p/.env.d.ts",
            "/p/.env.md",
            "/p/.env.tpl",
            "/p/.env.tmpl",
            "/p/.env.sample.json",
            "/p/.env.testing",
            "/p/.env.example~",
            "/p/env.d.ts",
            "/p/env.rs",
            "/p/env.bak",
            "/p/notes~",
            "/p/#notes#",
            "/p/~",
            "/p/src/local",
            "/p/tests/fixtures/server.key",
            "/p/tests/fixtures/tls/id_rsa",
            "/p/testdata/key.pem",
            "/p/node_modules/tls/test/key.pem",
            "/p/.venv/lib/python3.13/site-packages/certifi/cacert.pem",
            "/p/terraform.tfvars.example",
            "/p/secrets.rs",
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
