//! The text that Claude Code gives to a shell for a command line of its own (2.1.332): it reads a snapshot of the person's
//! aliases and functions, evaluates the line, and leaves the folder in a file.
//!
//! `source SNAPSHOT 2>/dev/null || true && … && eval 'LINE' < /dev/null && pwd -P >| FILE`

use std::path::{Path, PathBuf};

/// A command line of the model, or of a person who typed it after `!`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClaudeLine {
    /// As a hook sees it.
    pub(super) command: String,
    /// The file that the shell writes its last folder to.
    pub(super) folder_file: Option<PathBuf>,
}

impl ClaudeLine {
    /// `None`: it has another form.
    pub(super) fn read(text: &str) -> Option<Self> {
        let parts = split(text)?;
        let mut evaluated = parts.iter().filter_map(|part| part.strip_prefix("eval "));
        let (word, rest) = unquoted(evaluated.next()?)?;
        if evaluated.next().is_some() || !matches!(rest.trim(), "" | "< /dev/null" | "\\< /dev/null") {
            return None;
        }
        let folder_file =
            parts.last().and_then(|part| part.strip_prefix("pwd -P >| ")).map(|file| unquoted(file.trim()));
        let folder_file = match folder_file {
            Some(Some((file, ""))) => Some(PathBuf::from(file)),
            Some(_) => return None,
            None => None,
        };
        Some(Self { command: word, folder_file })
    }
}

/// The shell that the text is for: the one whose snapshot it reads.
pub(super) fn shell(text: &str) -> PathBuf {
    let named = ["CLAUDE_CODE_SHELL", "SHELL"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let name = if text.contains("/snapshot-zsh-") { "zsh" } else { "bash" };
    let is_it =
        |path: &PathBuf| path.file_name().is_some_and(|file| file == name) && path.is_absolute() && path.is_file();
    let usual = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(|folder| Path::new(folder).join(name));
    named.chain(usual).find(is_it).unwrap_or_else(|| PathBuf::from("/bin/bash"))
}

/// The commands of a line, split at `&&` outside of quotes. `None` when a quote does not end.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut begin, mut quote, mut chars) = (0, None, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(open), c) if c == open => quote = None,
            (None, '&') if text.get(at..)?.starts_with("&&") => {
                chars.next();
                parts.push(text.get(begin..at)?.trim());
                begin = at + 2;
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..)?.trim());
    quote.is_none().then_some(parts)
}

/// The first word as the shell reads it, and the rest. `None` when the shell would expand something in it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut word, mut quote, mut chars) = (String::new(), None, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t') => return Some((word, text.get(at..)?)),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.push(c),
            (Some('"'), '\\') => match chars.next()? {
                (_, next @ ('$' | '`' | '"' | '\\')) => word.push(next),
                (_, '\n') => {}
                (_, next) => word.extend(['\\', next]),
            },
            (None, '\\') => word.push(chars.next().map(|(_, next)| next).filter(|next| *next != '\n')?),
            (_, '$' | '`') => return None,
            (None, c) if "*?[]{}()<>|&;~#!\n".contains(c) => return None,
            (_, c) => word.push(c),
        }
    }
    quote.is_none().then_some((word, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "source /h/.claude/shell-snapshots/snapshot-bash-1-a.sh 2>/dev/null || true && { \\builtin shopt -u \
                          extglob || \\builtin setopt NO_EXTENDED_GLOB; } >/dev/null 2>&1 || true && { \\builtin unalias -- \
                          'which'; \\builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && ";

    #[track_caller]
    fn check(evaluated: &str, expected: &str) {
        let line = ClaudeLine::read(&format!("{BEFORE}{evaluated} && pwd -P >| /tmp/claude-3e0c-cwd")).unwrap();
        assert_eq!(line, ClaudeLine { command: expected.into(), folder_file: Some("/tmp/claude-3e0c-cwd".into()) });
    }

    /// As Claude Code 2.1.332 wrote them.
    #[test]
    fn the_line_is_what_a_hook_saw() {
        check("eval 'echo a | cat' < /dev/null", "echo a | cat");
        check("eval 'cat <<'\"'\"'E'\"'\"'\nhi $x\nE'", "cat <<'E'\nhi $x\nE");
        check("eval '# c\necho \\\n b' < /dev/null", "# c\necho \\\n b");
        check("eval '  a && eval b && pwd -P >| /x' < /dev/null", "  a && eval b && pwd -P >| /x");
        check("eval ls < /dev/null", "ls");
        check("eval \"it's \\$HOME \\\\ \\x\" < /dev/null", "it's $HOME \\ \\x");
    }

    #[test]
    fn a_line_of_another_form_is_none() {
        for text in [
            "echo hook",
            "/usr/bin/toolctl hook claude-code --fail closed --limit 610",
            "a && eval 'b' && eval 'c'",
            "a && eval \"$x\" && pwd -P >| /tmp/f",
            "a && eval 'b' > /x && pwd -P >| /tmp/f",
            "a && eval 'b && pwd -P >| /tmp/f",
            "a && eval `b`",
            "a && eval 'b' && pwd -P >| /tmp/f; rm x",
        ] {
            assert_eq!(ClaudeLine::read(text), None, "{text}");
        }
    }
}
