//! Values that look like secrets, by their names or by themselves, and texts of configurations without them.

/// Whether what has this name, such as a variable, an option or a key of a file, is a secret as a rule.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_lowercase();
    // The value is the name of a variable.
    if name.ends_with("_env_var") {
        return false;
    }
    let has = |part: &&str| name.contains(*part);
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    ["token", "secret", "passw", "apikey", "credential", "authorization", "cookie", "private", "webhook"]
        .iter()
        .any(has)
        || words().any(|word| ["key", "pat", "pwd", "auth", "pass", "dsn", "pw"].contains(&word))
}

/// Whether the text looks like a key: a known beginning, or long without words.
pub(crate) fn is_secret_text(text: &str) -> bool {
    const STARTS: [&str; 16] = [
        "https://hooks.slack.com/services/",
        "https://discord.com/api/webhooks/",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "sk-",
        "sk_live_",
        "rk_live_",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "AKIA",
        "AIza",
        "eyJ",
    ];
    let is_key = || text.len() >= 24 && is_mixed(text) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    STARTS.iter().any(|start| text.len() > start.len() + 12 && text.starts_with(start))
        || text.contains("PRIVATE KEY-----")
        || is_key()
}

/// Whether a part of the path of a URL looks like a key. The names of packages, which may be as long, are lower case.
pub(crate) fn is_secret_part(part: &str) -> bool {
    let bare = part.trim_end_matches('=');
    let has = |is: fn(char) -> bool| bare.contains(is);
    let is_of = |is: fn(char) -> bool| bare.chars().all(|c| is(c) || "_-+.~".contains(c));
    let is_random = has(|c| c.is_ascii_uppercase()) && has(|c| c.is_ascii_lowercase());
    let is_id = bare.len() >= 32 && is_of(|c| c.is_ascii_hexdigit());
    is_secret_text(part)
        || bare.len() >= 24 && is_mixed(bare) && is_of(|c| c.is_ascii_alphanumeric()) && (is_random || is_id)
}

fn is_mixed(text: &str) -> bool {
    let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
    count(|c| c.is_ascii_digit()) >= 3 && count(|c| c.is_ascii_alphabetic()) >= 3
}

/// Whether the text is a URL with a password.
pub(crate) fn has_password(text: &str) -> bool {
    password(text).is_some()
}

pub(crate) fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

/// The text that is shown in place of a secret.
const HIDDEN: &str = "***";

/// The text of a file of JSON or TOML, or lines of one, with `***` for each string that looks like a secret: by its key, by the
/// option before it, or by itself.
pub(crate) fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, "");
    while let Some(at) = rest.find(['"', '\'']) {
        let (gap, string) = rest.split_at(at);
        let quote = &string[..1];
        shown.push_str(gap);
        shown.push_str(quote);
        let Some(end) = end_of_string(&string[1..], quote) else {
            // An apostrophe.
            rest = &string[1..];
            continue;
        };
        let value = &string[1..1 + end];
        shown.push_str(&without_secret(value, key_of(gap, before)));
        shown.push_str(quote);
        (rest, before) = (&string[2 + end..], value);
    }
    shown + rest
}

/// Where the string ends that begins here; a string is on one line.
fn end_of_string(text: &str, quote: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '\\' if quote == "\"" => escaped = !escaped,
            _ if text[at..].starts_with(quote) && !escaped => return Some(at),
            _ => escaped = false,
        }
    }
    None
}

/// What names a string: its key, or the option that stands before it in a list. `gap` is the text since the string `before`.
fn key_of<'t>(gap: &'t str, before: &'t str) -> &'t str {
    let signs = |text: &str| text.lines().map(|line| line.trim_start_matches(['+', '-', ' '])).collect::<String>();
    match signs(gap).trim() {
        ":" | "=" => before,
        "," if before.starts_with('-') && !before.contains('=') => before,
        _ => gap.lines().last().and_then(|line| line.trim_end().strip_suffix('=')).unwrap_or_default().trim(),
    }
}

fn without_secret(value: &str, key: &str) -> String {
    // A place for a secret is none.
    if value.is_empty() || value.contains("${") {
        return value.to_owned();
    }
    if is_secret_text(value) || is_secret_name(key) && !value.starts_with('-') {
        return HIDDEN.to_owned();
    }
    let mut shown = match password(value) {
        Some(password) => value.replacen(&format!(":{password}@"), &format!(":{HIDDEN}@"), 1),
        None => value.to_owned(),
    };
    // `--token=x`, `TOKEN=x`, `Authorization: x` and the parameters of a URL.
    if let Some((name, _)) = shown.split_once(['=', ':']).filter(|(name, _)| is_secret_name(name)) {
        shown = format!("{name}{}{HIDDEN}", &shown[name.len()..=name.len()]);
    }
    if let Some((scheme, rest)) = shown.split_once("://") {
        let (address, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
        let parts = path.split('/').map(|part| if is_secret_part(part) { HIDDEN } else { part });
        shown = format!("{scheme}://{host}{}{query}", parts.collect::<Vec<_>>().join("/"));
    }
    if let Some((address, query)) = shown.split_once('?') {
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if is_secret_name(name) || is_secret_text(value) => format!("{name}={HIDDEN}"),
            _ => parameter.to_owned(),
        });
        shown = format!("{address}?{}", parameters.collect::<Vec<_>>().join("&"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_configurations_are_shown_without_secrets() {
        for (text, shown) in [
            (r#"- "API_TOKEN": "sk-LEAK123456789","#, r#"- "API_TOKEN": "***","#),
            (r#"{"apiKey":"AIza...","url":"https://a.example"}"#, r#"{"apiKey":"***","url":"https://a.example"}"#),
            (r#"+ GITHUB_TOKEN = "x""#, r#"+ GITHUB_TOKEN = "***""#),
            (r#"+ GITHUB_TOKEN = "${secret:GITHUB_TOKEN}""#, r#"+ GITHUB_TOKEN = "${secret:GITHUB_TOKEN}""#),
            ("api_key = 'hunter2'", "api_key = '***'"),
            ("-   \"--password\",\n-   \"hunter2\",\n", "-   \"--password\",\n-   \"***\",\n"),
            (r#"["--password=hunter2", "--verbose", "x"]"#, r#"["--password=***", "--verbose", "x"]"#),
            (r#""https://me:hunter2@a.example/x?token=abc&b=c""#, r#""https://me:***@a.example/x?token=***&b=c""#),
            (r#""Authorization: Bearer abc""#, r#""Authorization:***""#),
            (r#""x": "ghp_0123456789abcdef", "y": "say \"hi\"""#, r#""x": "***", "y": "say \"hi\"""#),
            (r#"bearer_token_env_var = "TICKETS_TOKEN""#, r#"bearer_token_env_var = "TICKETS_TOKEN""#),
            (
                r#""PATH": "/usr/bin", "author": "me", "keybindings": "vim""#,
                r#""PATH": "/usr/bin", "author": "me", "keybindings": "vim""#,
            ),
            (
                r#""https://a.example/api/s/NzY1YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==/mcp?b=c""#,
                r#""https://a.example/api/s/***/mcp?b=c""#,
            ),
            (
                r#""https://a.example/chrome-devtools-mcp-2025-11-03/mcp""#,
                r#""https://a.example/chrome-devtools-mcp-2025-11-03/mcp""#,
            ),
            ("it's one line\n\"token\": \"x\"", "it's one line\n\"token\": \"***\""),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
