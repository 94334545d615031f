//! Removes secrets from texts that are stored or shown.
//!
//! Redaction works by shape and by name, so it errs on both sides: it is a safety net for secrets
//! on command lines, not a promise that no text ever contains one.
//!
//! Values that the daemon itself keeps secret are known exactly, and [`hide`] removes them from every text that passes
//! here.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use regex::{Captures, Regex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter values and lines are not hidden: they stand in ordinary texts.
pub const MIN_HIDDEN: usize = 6;
/// The number of values that are hidden; the oldest are forgotten first.
const MAX_HIDDEN: usize = 4096;

/// The values that are removed from all texts. Of the process and not of one daemon: hiding a value in one more place
/// harms nobody.
static HIDDEN: ArcSwapOption<AhoCorasick> = ArcSwapOption::const_empty();
static HIDDEN_VALUES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// From now on removes these values from every text that is redacted, in the forms in which they stand in JSON and in
/// URLs too, and each line of a value that has several. A value stays hidden when it is no longer used, since earlier
/// messages may hold it.
pub fn hide<'v>(values: impl IntoIterator<Item = &'v str>) {
    let mut hidden = HIDDEN_VALUES.lock();
    for value in values {
        for form in std::iter::once(value).chain(value.lines()).map(str::trim).flat_map(forms) {
            hidden.retain(|known| *known != form);
            hidden.push_back(form);
        }
    }
    let surplus = hidden.len().saturating_sub(MAX_HIDDEN);
    hidden.drain(..surplus);
    let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(hidden.iter());
    // Without the matcher nothing would be hidden: values of this number and size always have one.
    let matcher = matcher.expect("a few thousand short texts have an automaton");
    HIDDEN.store(Some(Arc::new(matcher)).filter(|_| !hidden.is_empty()));
}

fn forms(value: &str) -> Vec<String> {
    if value.chars().count() < MIN_HIDDEN {
        return Vec::new();
    }
    let json = Value::from(value).to_string();
    let json = &json[1..json.len() - 1];
    let in_url = url_encoded(value);
    let mut forms = vec![value.to_owned(), json.to_owned(), json_ascii(json), in_url.replace("%20", "+"), in_url];
    forms.extend([json.replace('/', "\\/"), json_ascii(&json.replace('/', "\\/"))]);
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// JSON as programs write it that escape everything but ASCII.
fn json_ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_ascii() {
            true => escaped.push(c),
            false => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    escaped
}

fn url_encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// A text without the values that [`hide`] was given. Everything else is unchanged, also what looks like a secret.
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    match &*HIDDEN.load() {
        Some(hidden) if hidden.is_match(text) => {
            let mut cleaned = String::with_capacity(text.len());
            hidden.replace_all_with(text, &mut cleaned, |_, _, cleaned| {
                cleaned.push_str(REDACTED);
                true
            });
            Cow::Owned(cleaned)
        }
        _ => Cow::Borrowed(text),
    }
}

/// Removes the hidden values from all texts of a JSON value, and from the names of members. Returns whether there were
/// any.
pub fn clean_hidden(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match without_hidden(text) {
            Cow::Owned(cleaned) => {
                *text = cleaned;
                true
            }
            Cow::Borrowed(_) => false,
        },
        // Not `any`, which stops at the first.
        Value::Array(items) => items.iter_mut().fold(false, |found, item| clean_hidden(item) | found),
        Value::Object(members) => {
            let mut found = members.values_mut().fold(false, |found, member| clean_hidden(member) | found);
            if members.keys().any(|name| matches!(without_hidden(name), Cow::Owned(_))) {
                let before = std::mem::take(members);
                members.extend(before.into_iter().map(|(name, value)| (without_hidden(&name).into_owned(), value)));
                found = true;
            }
            found
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A message without the hidden values, as long as it can be read without them.
pub fn cleaned<T: Serialize + DeserializeOwned>(message: T) -> T {
    if HIDDEN.load().is_none() {
        return message;
    }
    let Ok(mut value) = serde_json::to_value(&message) else { return message };
    match clean_hidden(&mut value) {
        true => serde_json::from_value(value).unwrap_or(message),
        false => message,
    }
}

/// A text with likely secrets removed: the values that [`hide`] was given, tokens of well-known shapes, private keys, passwords in
/// addresses, and the values behind names such as `password=`, `--token` or `Authorization:`. The
/// rest is unchanged.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = without_hidden(text);
    for (pattern, replacement) in PATTERNS.iter() {
        let replace = |found: &Captures| {
            let mut text = String::new();
            match tells_what_is_wrong(found) {
                true => text.push_str(&found[0]),
                false => found.expand(replacement, &mut text),
            }
            text
        };
        if let Cow::Owned(changed) = pattern.replace_all(&redacted, replace)
            && changed != redacted
        {
            redacted = Cow::Owned(changed);
        }
    }
    redacted
}

/// Whether what follows the name of a secret is the beginning of an error about it, as in `notify.token: invalid type`.
fn tells_what_is_wrong(found: &Captures) -> bool {
    let value = found.get(1).map(|name| &found[0][name.len()..]);
    value.is_some_and(|value| {
        ["cannot", "duplicate", "expected", "invalid", "it", "missing", "unknown"].contains(&value)
    })
}

/// As [`redact`], on one line of at most `longest` bytes. Characters that break a line, move the cursor or turn the
/// writing direction become spaces.
pub fn one_line(text: &str, longest: usize) -> String {
    let is_unsafe = |c: char| {
        c.is_control()
            || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // Redacted before it is cut: half of a secret is still secret.
    let mut line = redact(text).replace(is_unsafe, " ");
    if line.len() > longest {
        line.truncate(line.floor_char_boundary(longest - '…'.len_utf8()));
        line.push('…');
    }
    line
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
    fn hidden_values_go_in_every_form() {
        hide(["pa\"ss ü/word", "tiny", "line one is long\nline two is long\n"]);
        assert_eq!(without_hidden(r#"a pa"ss ü/word b tiny"#), "a [redacted] b tiny");
        assert_eq!(without_hidden(r#"{"a":"pa\"ss ü/word"}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(without_hidden(r#"{"a":"pa\"ss \u00fc\/word"}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(without_hidden("https://h/?k=pa%22ss%20%C3%BC%2Fword&x=1"), "https://h/?k=[redacted]&x=1");
        assert_eq!(without_hidden("k=pa%22ss+%C3%BC%2Fword"), "k=[redacted]");
        check("x line two is long y", "x [redacted] y");
        let mut value = serde_json::json!({"a": ["pa\"ss ü/word"], "pa\"ss ü/word": 1, "b": "c"});
        assert!(clean_hidden(&mut value));
        assert_eq!(value, serde_json::json!({"a": ["[redacted]"], "[redacted]": 1, "b": "c"}));
        assert!(!clean_hidden(&mut value));
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
        unchanged("notify.token: invalid type: integer, expected a string");
        unchanged("notify.token: it is for post, which is not set");
        unchanged("ü → 🙂");
    }
}
