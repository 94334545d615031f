//! Files in which programs keep their settings, and whether one of them holds a password or a token.
//!
//! What their names say is that they may hold one; only their content says whether they do. Files that hold nothing else,
//! such as `.netrc`, are secrets by their names: see [`toold_engine::policy::is_secret`].

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use toold_engine::policy::is_published;
use toold_engine::redact::redact;

use crate::git_settings::{self, Setting};

/// A name without a password is a token if it is at least so long: people's names are shorter.
const TOKEN_LENGTH: usize = 20;

/// Longer files are not looked at, and count as holding one.
const MAX_SETTINGS: u64 = 1 << 20;

/// Names of files with settings, in small letters.
const NAMES: &[&str] = &[
    ".bash_history",
    ".condarc",
    ".curlrc",
    "_curlrc",
    ".databrickscfg",
    ".dockerconfigjson",
    ".gitconfig",
    ".gitmodules",
    ".hgrc",
    ".npmrc",
    ".mcp.json",
    ".secrets.json",
    ".secrets.toml",
    ".secrets.yaml",
    ".secrets.yml",
    ".sentryclirc",
    ".terraformrc",
    ".wgetrc",
    ".yarnrc",
    ".zsh_history",
    "auth.json",
    "auth.toml",
    "bunfig.toml",
    "client_secret.json",
    "credentials",
    "credentials.ini",
    "credentials.toml",
    "credentials.yaml",
    "credentials.yml",
    "gradle.properties",
    "kubeconfig",
    "kubeconfig.yaml",
    "kubeconfig.yml",
    "local.settings.json",
    "nuget.config",
    "pip.conf",
    "pip.ini",
    "rclone.conf",
    "secrets.ini",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "settings.xml",
    "uv.toml",
];

/// The last two parts of the paths of others.
const PLACES: &[(&str, &str)] = &[
    (".bundle", "config"),
    (".cargo", "config"),
    (".cargo", "config.toml"),
    (".docker", "daemon.json"),
    (".fly", "config.yml"),
    (".oci", "config"),
    (".snowsql", "config"),
    (".cabal", "config"),
    ("default", "config.toml"),
    ("doctl", "config.yaml"),
    ("fish", "config.fish"),
    ("git", "config"),
    ("go", "env"),
    ("mise", "config.toml"),
    ("mise", "settings.toml"),
    ("nix", "nix.conf"),
    ("pip", "pip.conf"),
    ("pnpm", "rc"),
];

/// Elements of XML, in small letters.
const SECRET_ELEMENTS: &[&str] = &["password", "passphrase"];

/// Whether a file has a name under which programs keep settings, and holds a password or a token. One that cannot be read
/// holds none: whoever reads it cannot read it either.
pub(crate) fn holds_credentials(path: &Path) -> bool {
    (is_of_git(path) || is_record(path) || is_named(path)) && settings_hold_credentials(path)
}

/// The same for a file that is known to have settings, whatever its name is.
pub(crate) fn settings_hold_credentials(path: &Path) -> bool {
    match crate::files::read_whole(path, MAX_SETTINGS) {
        Ok(text) => text_holds_credentials(path, &String::from_utf8_lossy(&text)),
        Err(crate::files::OpenError::TooLarge { .. }) => true,
        Err(_) => false,
    }
}

/// The settings in a file of lines, or of XML, without those lines and elements that hold a password or a token; `None` if it
/// cannot be read, or holds one in another way.
pub(crate) fn without_credentials(path: &Path) -> Option<String> {
    let mut text = crate::files::read_text(path, MAX_SETTINGS).ok()?;
    if path.extension().is_some_and(|ending| ending == "xml") {
        text = SECRET_ELEMENTS.iter().fold(text, |text, name| without_elements(&text, name));
    }
    // A line of Git's settings means something in a section alone.
    let is_plain = |line: &&str| match is_of_git(path) {
        true => !shows_address(line) && git_settings_hold_secret(&format!("[x]\n{line}")) != Some(true),
        false => !shows_credentials(line),
    };
    let kept: String = text.split_inclusive('\n').filter(is_plain).collect();
    (!text_holds_credentials(path, &kept)).then_some(kept)
}

/// The text without these elements of XML; without all behind the start of one that does not end.
fn without_elements(text: &str, name: &str) -> String {
    let (start, end) = (format!("<{name}"), format!("</{name}"));
    let lower = text.to_ascii_lowercase();
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(from) = lower.get(at..).and_then(|rest| rest.find(&start)) {
        kept.push_str(text.get(at..at + from).unwrap_or_default());
        let behind = lower.get(at + from..).unwrap_or_default();
        let length = behind.find(&end).and_then(|end| Some(end + behind.get(end..)?.find('>')? + 1));
        at = length.map_or(text.len(), |length| at + from + length);
    }
    kept + text.get(at..).unwrap_or_default()
}

fn text_holds_credentials(path: &Path, text: &str) -> bool {
    match is_of_git(path).then(|| git_settings_hold_secret(text)).flatten() {
        Some(holds) => holds || shows_address(text),
        None if is_record(path) => shows_address(text),
        None => shows_credentials(text),
    }
}

/// A file with settings of Git: of a repository, of a submodule, of the user.
fn is_of_git(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        ".gitconfig" | ".gitmodules" => true,
        "config" | "config.worktree" => {
            let folder = path.parent().and_then(Path::file_name);
            folder.is_some_and(|folder| folder == "git" || folder == ".git")
                || path.ancestors().skip(1).any(|above| above.ends_with(".git"))
                || path.parent().is_some_and(|bare| bare.join("HEAD").exists() && bare.join("objects").exists())
        }
        _ => false,
    }
}

/// A file in which Git records the addresses that it fetched from.
fn is_record(path: &Path) -> bool {
    let mut parts = path.iter().skip_while(|part| *part != ".git").skip(1);
    parts.next().is_some_and(|part| part == "logs" || part == "FETCH_HEAD")
}

fn is_named(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let is = |given: &str, known: &str| given.eq_ignore_ascii_case(known);
    let above = || path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    NAMES.iter().any(|known| is(name, known))
        || PLACES.iter().any(|(folder, known)| is(name, known) && is(above(), folder))
        || ["kubeconfig", "tfvars"]
            .iter()
            .any(|known| path.extension().is_some_and(|ending| is(&ending.to_string_lossy(), known)))
}

/// So much of a file is looked at to see whether it is a key.
const MAX_HEAD: usize = 16 << 10;

/// Whether a file is a private key, or the credentials of an account, by its content: keys in the forms of RFC 7468, PuTTY and age,
/// those of service accounts of Google, settings of AWS and of Kubernetes. A text that only quotes one, as tests do, is none.
pub(crate) fn is_key(path: &Path) -> bool {
    if is_published(path) {
        return false;
    }
    let mut head = Vec::new();
    let read = crate::files::open(path).ok().and_then(|file| file.take(MAX_HEAD as u64).read_to_end(&mut head).ok());
    read.is_some() && is_text_of_key(&String::from_utf8_lossy(&head))
}

fn is_text_of_key(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let first = lines.clone().next().unwrap_or_default();
    let has_key = |name: &str| {
        let sets = |line: &str| {
            let (key, value) = line.split_once(['=', ':']).unwrap_or_default();
            let (key, value) = (key.trim_matches(['"', ' ', '-']), value.trim().trim_matches(['"', ',']));
            key.eq_ignore_ascii_case(name) && value.len() >= TOKEN_LENGTH && !value.contains(['{', '<', '$'])
        };
        text.lines().any(|line| sets(line.trim()))
    };
    let is_private = |line: &str| {
        line.strip_prefix("-----BEGIN ").is_some_and(|label| label.trim_end_matches('-').contains("PRIVATE KEY"))
    };
    let is_of_account = || {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        compact.contains("\"type\":\"service_account\"") && compact.contains("\"private_key\":\"")
    };
    match first.chars().next() {
        Some('-') if first.starts_with("-----BEGIN ") => lines.any(is_private),
        Some('{') => is_of_account(),
        Some('[') => has_key("aws_secret_access_key"),
        Some('P') if first.starts_with("PuTTY-User-Key-File-") => true,
        Some('A') if first.starts_with("AGE-SECRET-KEY-1") => true,
        _ => first.starts_with("apiVersion:") && has_key("client-key-data"),
    }
}

/// Whether settings in any form hold a password or a token. A value that names a variable holds none.
fn shows_credentials(text: &str) -> bool {
    let text = without_variables(&without_templates(text));
    let keys = ["auth", "_auth", "_authtoken", "identitytoken", "registrytoken", "client-key-data", "extraheader"];
    let is_key = |line: &str| {
        // Yarn 1 separates them by a blank.
        // Base64 ends with the separator of other forms.
        let line = line.trim().trim_end_matches(['"', '\'', ',', '=', '}', ']']);
        let Some((key, value)) = line.rsplit_once(['=', ':', ' ']) else { return false };
        let key = key.trim_end_matches([' ', '\t', '=', ':', '"', '\'']).to_ascii_lowercase();
        let name = key.rsplit([' ', '"', '\'', ':', '{', ',']).next().unwrap_or_default();
        let value = value.trim_matches(['"', '\'', ',', ' ']);
        keys.contains(&name) && value.len() >= 6 && !matches!(value, "store" | "helper")
    };
    // Bundler's `BUNDLE_GEMS__EXAMPLE__ORG: "user:password"`.
    let is_login = |line: &str| {
        let Some((key, value)) = line.split_once(": ") else { return false };
        let value = value.trim().trim_matches('"').split_once(':');
        key.starts_with("BUNDLE_")
            && key.contains("__")
            && value.is_some_and(|(user, rest)| !user.starts_with('-') && !rest.starts_with('/'))
    };
    // `<password>x</password>`, and `<add key="ClearTextPassword" value="x" />`.
    let lower = text.to_ascii_lowercase();
    let in_element = SECRET_ELEMENTS.iter().any(|name| lower.contains(&format!("<{name}")));
    in_element
        || lower.contains("cleartextpassword")
        || text.lines().any(|line| is_key(line) || is_login(line))
        || shows_address(&text)
        || matches!(redact(&text), Cow::Owned(redacted) if redacted != text)
}

fn shows_address(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || "\"'<>,".contains(c)).any(has_credentials)
}

/// The text with what no value begins with in place of `{{ .Values.password }}`.
fn without_templates(text: &str) -> String {
    let mut parts = text.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| match part.split_once("}}") {
        Some((_, behind)) => format!("{plain};/{behind}"),
        None => format!("{plain}{{{{{part}"),
    })
}

/// The text with what no value begins with in place of `$NAME`, `${NAME}` and `%NAME%`.
fn without_variables(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(at) = rest.find(['$', '%']) {
        let (before, from) = rest.split_at(at);
        let behind = toold_proto::cut::after_first(from);
        let end = match (from.starts_with('$'), behind.strip_prefix('{')) {
            (true, Some(_)) => behind.find('}').map(|at| at + 1),
            (is_shell, _) => {
                let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
                match is_shell {
                    true => Some(end),
                    false => behind.get(end..).filter(|tail| end > 0 && tail.starts_with('%')).map(|_| end + 1),
                }
            }
        };
        let after = end.and_then(|end| behind.get(end..)).filter(|_| end != Some(0));
        match after {
            Some(after) => {
                plain.push_str(before.trim_end_matches(['"', '\'']));
                plain.push_str(";/");
                rest = after.trim_start_matches(['"', '\'']);
            }
            None => {
                plain.push_str(before);
                plain.push('$');
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Whether a setting of Git is a password or a token, or has one in its address.
pub(crate) fn git_setting_holds_secret(setting: &Setting) -> bool {
    let named = ["extraheader", "token", "password", "secret", "apikey"];
    let is_url = setting.section == "url" || setting.name.ends_with("url") || setting.name == "proxy";
    let texts = || setting.subsection.iter().chain(&setting.value);
    named.iter().any(|name| setting.name.contains(name))
        || texts().any(|text| has_credentials(text))
        || is_url && setting.value.is_none()
        || setting.section == "credential" && texts().any(|text| text.contains("password"))
}

/// Whether a file with settings of Git holds a secret; `None` if it cannot be parsed.
fn git_settings_hold_secret(text: &str) -> Option<bool> {
    Some(git_settings::all(text)?.iter().any(git_setting_holds_secret))
}

/// Whether an address has a password, or a token as its user: `https://me:PASSWORD@host`.
fn has_credentials(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = place.rsplit_once('@') else { return false };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    !password.is_empty() || name.len() >= TOKEN_LENGTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_password_or_a_token_are_known() {
        for (text, expected) in [
            ("https://github.com/a/b", false),
            ("git@github.com:a/b.git", false),
            ("ssh://git@host:22/a", false),
            ("https://me@host/a", false),
            ("https://host/a@b:c", false),
            ("https://me:pw@host/a", true),
            ("https://x-access-token:ghs_1@github.com/", true),
            ("https://ghp_0123456789012345678901234567890123456@github.com/a", true),
            ("https://:pw@host", true),
        ] {
            assert_eq!(has_credentials(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_known_by_their_content() {
        for (text, expected) in [
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", true),
            ("\n-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nA\n", true),
            ("PuTTY-User-Key-File-3: ssh-ed25519\n", true),
            ("# created: 2026\n# public key: age1x\nAGE-SECRET-KEY-1QQQ\n", true),
            ("{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nA\"\n}", true),
            (
                "[default]\naws_access_key_id = AKIAX\naws_secret_access_key = 0123456789012345678901234567890123456789\n",
                true,
            ),
            (
                "apiVersion: v1\nusers:\n- user:\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ\n",
                true,
            ),
            ("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n", false),
            ("-----BEGIN PUBLIC KEY-----\nA\n", false),
            ("const KEY: &str = \"-----BEGIN PRIVATE KEY-----\";\n", false),
            ("# Keys\n\n    -----BEGIN PRIVATE KEY-----\n", true),
            ("# Keys\n\nPut the text after -----BEGIN PRIVATE KEY----- here.\n", false),
            ("{\"type\": \"service_account\"}", false),
            ("[default]\naws_secret_access_key = <your secret access key here>\n", false),
            ("apiVersion: v1\nkind: Service\n", false),
            ("", false),
        ] {
            assert_eq!(is_text_of_key(text), expected, "{text}");
        }
    }

    #[test]
    fn settings_with_a_password_or_a_token_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let remote = |url: &str| format!("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = {url}\n");
        for (name, text, expected) in [
            (".git/config", remote("https://github.com/a/b"), false),
            (".git/config", remote("git@github.com:a/b.git"), false),
            (".git/config", remote("https://me:pw@github.com/a/b"), true),
            (".git/config", remote("https://ghp_0123456789012345678901234567890123456@github.com/a/b"), true),
            (".git/config", "[http]\n\textraheader = AUTHORIZATION: basic eDpwYXNzd29yZA==\n".to_owned(), true),
            (".git/config", "not settings ]= https://me:pw@host\n".to_owned(), true),
            (".git/modules/sub/config", remote("https://me:pw@github.com/a/b"), true),
            ("plain/config", remote("https://me:pw@github.com/a/b"), false),
            (".git/FETCH_HEAD", "0f\t\tbranch 'main' of https://me:pw@host/a\n".to_owned(), true),
            (".git/logs/HEAD", "0 1 A <a@b> 1 +0\tcommit: password=x\n".to_owned(), false),
            (".gitmodules", "[submodule \"s\"]\n\turl = https://x:tok@host/s\n".to_owned(), true),
            ("pip.conf", "[global]\nindex-url = https://pypi.org/simple\n".to_owned(), false),
            ("pip.conf", "[global]\nindex-url = https://me:pw@pypi.example/simple\n".to_owned(), true),
            (
                "bunfig.toml",
                "[install]\nregistry = { url = \"https://r.example\", token = \"abcdef\" }\n".to_owned(),
                true,
            ),
            ("pip.conf", "[global]\nindex-url = https://me:${PW}@pypi.example/simple\n".to_owned(), false),
            ("bunfig.toml", "[install.scopes]\ntoken = \"$NPM_TOKEN\"\n".to_owned(), false),
            ("kubeconfig", "users:\n- name: u\n  user:\n    token: abcdefabcdef\n".to_owned(), true),
            ("dev.kubeconfig", "users:\n- name: u\n  user:\n    client-key-data: LS0tLS1CRUdJTg==\n".to_owned(), true),
            ("kubeconfig", "clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n".to_owned(), false),
            (".yarnrc", "\"//r.example/:_authToken\" abcdef\nregistry \"https://r\"\n".to_owned(), true),
            (".yarnrc", "registry \"https://r\"\n//r.example/:_authToken=${NPM_TOKEN}\n".to_owned(), false),
            (".yarnrc", "//r.example/:_authToken=abcdefabcdef\n".to_owned(), true),
            ("auth.json", "{\"http-basic\": {\"h\": {\"username\": \"u\", \"password\": \"p\"}}}".to_owned(), true),
            (".dockerconfigjson", "{\"auths\": {\"r\": {\"auth\": \"dTpwYXNzd29yZA==\"}}}".to_owned(), true),
            ("settings.xml", "<settings><server><password>x</password></server></settings>".to_owned(), true),
            ("settings.xml", "<settings><localRepository>/r</localRepository></settings>".to_owned(), false),
            (".cargo/config.toml", "[build]\ntarget-dir = \"t\"\n".to_owned(), false),
            (".cargo/config.toml", "[registries.r]\ntoken = \"abcdef\"\n".to_owned(), true),
            ("src/config.toml", "token = \"abcdef\"\n".to_owned(), false),
            ("secrets.yml", "password: hunter2hunter2\n".to_owned(), true),
            ("secrets.yml", "password: {{ .Values.password }}\n".to_owned(), false),
            ("client_secret.json", "{\"installed\": {\"client_secret\": \"GOCSPX-abcdefghijklm\"}}".to_owned(), true),
            ("local.settings.json", "{\"Values\": {\"FUNCTIONS_WORKER_RUNTIME\": \"node\"}}".to_owned(), false),
            ("prod.tfvars", "db_password = \"hunter2hunter2\"\n".to_owned(), true),
            ("prod.auto.tfvars", "region = \"eu\"\n".to_owned(), false),
            (".bash_history", "ls\nexport API_TOKEN=abcdefabcdef\n".to_owned(), true),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
            assert_eq!(holds_credentials(&path), expected, "{name}: {text}");
        }
        assert!(!holds_credentials(&folder.path().join("gone/pip.conf")));
    }
}
