//! Removes secrets from texts that are stored or shown.
//!
//! Redaction works by shape and by name, so it errs on both sides: it is a safety net for secrets
//! on command lines, not a promise that no text ever contains one.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// A text with likely secrets removed: tokens of well-known shapes, private keys, passwords in
/// addresses, and the values behind names such as `password=`, `--token` or `Authorization:`. The
/// rest is unchanged.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = Cow::Borrowed(text);
    for (pattern, replacement) in PATTERNS.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&redacted, *replacement) {
            redacted = Cow::Owned(changed);
        }
    }
    redacted
}

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compile = |(pattern, replacement): &(&str, &'static str)| {
        (Regex::new(pattern).expect("a test compiles these patterns"), *replacement)
    };
    SHAPES.iter().map(compile).collect()
});

/// A value: in quotes, perhaps escaped ones, or up to the end of a word, a URL parameter or a JSON
/// member.
macro_rules! value {
    () => {
        r#"(?:\\?"(?:[^"\\]|\\[^"])*\\?"|\\?'(?:[^'\\]|\\[^'])*\\?'|[^\s&;|,"'()<>}]+)"#
    };
}

/// In the order in which they are tried.
const SHAPES: [(&str, &str); 9] = [
    (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)", "[redacted]"),
    // Headers: all of the value, to the end of the quotes or of the line.
    (
        r#"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token)(\\?["']?\s*[:=]\s*\\?["']?)[^"'\\\r\n]+"#,
        "${1}${2}[redacted]",
    ),
    (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/-]{8,}=*", "${1} [redacted]"),
    // scheme://user:password@host
    (r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", "${1}:[redacted]@"),
    // name=value, name: value, "name": "value", with any prefix or suffix of the name.
    (
        concat!(
            r#"(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passwort|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|"#,
            r#"private[_-]?key|credentials?)(?:[_-][a-z0-9_-]*)?\\?["']?\s*[:=]\s*)"#,
            value!()
        ),
        "${1}[redacted]",
    ),
    // --password value
    (
        concat!(
            r#"(?i)(--?[a-z0-9-]*(?:passw(?:or)?d|passphrase|secret|token|api-?key|access-?key|private-?key)\s+)"#,
            value!()
        ),
        "${1}[redacted]",
    ),
    // curl -u user:password, sshpass -p password
    (concat!(r#"((?:\s|^)(?:-u|--user|--proxy-user)[\s=]\s*["']?[^\s:"']+:)"#, value!()), "${1}[redacted]"),
    (concat!(r#"(\bsshpass\s+-p\s*)"#, value!()), "${1}[redacted]"),
    // Tokens that are recognisable by their shape.
    (
        concat!(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{16,}",
            r"|sk-[A-Za-z0-9_-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|xox[abeoprs]-[A-Za-z0-9-]{10,}",
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}",
            r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{32,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
            r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)"
        ),
        "[redacted]",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected, "{text}");
    }

    #[track_caller]
    fn unchanged(text: &str) {
        assert!(matches!(redact(text), Cow::Borrowed(_)), "{text} became {}", redact(text));
    }

    #[test]
    fn headers_lose_their_value() {
        check("curl -H 'Authorization: Bearer abc.def' https://a", "curl -H 'Authorization: [redacted]' https://a");
        check("curl -H \"authorization: token x y\" a", "curl -H \"authorization: [redacted]\" a");
        check("Cookie: a=b; c=d\nAccept: x", "Cookie: [redacted]\nAccept: x");
        check(r#"{"Authorization": "Basic dTpw"}"#, r#"{"Authorization": "[redacted]"}"#);
        check("http GET a X-Api-Key:s3cr3t", "http GET a X-Api-Key:[redacted]");
        check("Bearer abcdefgh12345=", "Bearer [redacted]");
    }

    #[test]
    fn values_of_secret_names_are_removed() {
        check("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql");
        check("mysql --password='a b' db", "mysql --password=[redacted] db");
        check("login --token abc next", "login --token [redacted] next");
        check("login --api-key \"a b\" next", "login --api-key [redacted] next");
        check("https://h/p?token=abc&x=1", "https://h/p?token=[redacted]&x=1");
        check(r#"{"client_secret": "a\nb", "x": 1}"#, r#"{"client_secret": [redacted], "x": 1}"#);
        check(r#"-d "{\"password\":\"p\",\"a\":1}""#, r#"-d "{\"password\":[redacted],\"a\":1}""#);
        check("password: geheim", "password: [redacted]");
        check("AWS_SECRET_ACCESS_KEY=abc/def+ghi aws s3 ls", "AWS_SECRET_ACCESS_KEY=[redacted] aws s3 ls");
        check("export API_KEY_PROD=x; ls", "export API_KEY_PROD=[redacted]; ls");
    }

    #[test]
    fn passwords_of_users_go() {
        check("git clone https://u:p4ss@h/r.git", "git clone https://u:[redacted]@h/r.git");
        check("postgres://u:p@h:5432/d", "postgres://u:[redacted]@h:5432/d");
        check("curl -u me:pw https://a", "curl -u me:[redacted] https://a");
        check("sshpass -p pw ssh h", "sshpass -p [redacted] ssh h");
    }

    #[test]
    fn tokens_go_by_their_shape() {
        let body = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
        for token in [
            format!("ghp_{body}"),
            format!("github_pat_{body}"),
            format!("glpat-{body}"),
            format!("sk-ant-{body}"),
            format!("sk_live_{body}"),
            format!("xoxb-{body}"),
            "AKIAABCDEFGHIJKLMNOP".to_owned(),
            format!("AIza{body}"),
            format!("hf_{body}"),
            format!("npm_{body}"),
            format!("eyJ{body}.{body}.{body}"),
        ] {
            check(&format!("echo {token} | x"), "echo [redacted] | x");
        }
    }

    #[test]
    fn private_keys_go_to_their_end_or_that_of_the_text() {
        let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
        check(&format!("a {begin}\nxyz\n{end} b"), "a [redacted] b");
        check(&format!("a {begin}\nxyz"), "a [redacted]");
    }

    #[test]
    fn ordinary_texts_are_let_alone() {
        unchanged("");
        unchanged("/home/me/src/token_parser.rs");
        unchanged("cargo test -p tokenizer -- --nocapture");
        unchanged("git log --author=me -p 'secrets.md'");
        unchanged("https://example.com:8080/a@b?x=1");
        unchanged("curl -u me https://a");
        unchanged("the basic idea of a bearer of news");
        unchanged("ü → 🙂");
    }
}
