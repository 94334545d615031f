//! Names of tools of MCP servers as agents make them: characters that are no letters and digits are replaced.

use super::{PatternKind, globs, reading_tools_of};

/// Whether a pattern of category `mcp` matches a name from which an agent may have made this target, `SERVER/TOOL`.
pub(super) fn may_match(pattern: &str, target: &str) -> bool {
    let pattern = match reading_tools_of(pattern) {
        // Any tool may be one that only reads.
        Some("") => return true,
        Some(server) => format!("{server}/*"),
        None => pattern.to_owned(),
    };
    let target = plain(target, target.find('/'));
    // The names of servers and tools may contain slashes: each may be the one between them.
    pattern.match_indices('/').any(|(slash, _)| {
        let plain = plain(&pattern, Some(slash));
        let all_of_server = plain.strip_suffix("/*").map(|server| format!("{server}/**"));
        let Ok(PatternKind::Glob { glob, folder }) = globs(&all_of_server.unwrap_or(plain)) else { return true };
        glob.is_match(&target) || folder.is_some_and(|folder| folder.is_match(&target))
    })
}

/// The text with `_` for each character that an agent may replace, without those that are special in globs, and but for the slash
/// at `slash`.
fn plain(text: &str, slash: Option<usize>) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut in_class = false;
    for (at, c) in text.char_indices() {
        in_class = c == '[' || in_class && c != ']';
        plain.push(match c {
            '/' if Some(at) == slash => '/',
            '*' | '?' | '[' | ']' | '{' | '}' | ',' => c,
            '-' | '!' | '^' if in_class => c,
            // A wildcard in the place of an escaped one is about more names.
            '\\' => continue,
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_each_name_that_an_agent_may_have_changed() {
        for (pattern, target) in [
            ("my.server/*", "my_server/search"),
            ("my-server/delete.all", "my_server/delete_all"),
            ("my server/**", "my_server/a_b"),
            ("tickets/delete*", "tickets/delete_all"),
            ("io.github.me/tickets/search", "io_github_me_tickets/search"),
            ("io.github.me/tickets/*", "io_github_me_tickets/search"),
            ("docs/mcp:read", "docs/search"),
            ("a/{b.c,d}", "a/b_c"),
            ("a/resource/x://y", "a/resource_x___y"),
            ("**/delete-*", "any/delete_it"),
        ] {
            assert!(may_match(pattern, target), "{pattern} {target}");
        }
        for (pattern, target) in [
            ("my.server/*", "my_servers/search"),
            ("my.server/*", "my/server_search"),
            ("tickets/delete.all", "tickets/deleteall"),
            ("docs/mcp:read", "doc/search"),
        ] {
            assert!(!may_match(pattern, target), "{pattern} {target}");
        }
    }
}
