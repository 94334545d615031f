//! The line that a shell completes, as words.

use std::sync::OnceLock;

/// The words up to the one that is completed. Global, because the completion engine passes on only the current word.
static WORDS: OnceLock<Vec<String>> = OnceLock::new();

pub(super) fn set_words(words: &[String]) {
    // Set before only if this is called twice, and then nothing changes.
    let _ = WORDS.set(words.to_vec());
}

pub(super) fn words() -> &'static [String] {
    WORDS.get().map(Vec::as_slice).unwrap_or_default()
}

/// The value of an option, as `--name value` or `--name=value`.
pub(super) fn option(name: &str) -> Option<String> {
    let words = words();
    words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(name)? {
        "" => words.get(at + 1).cloned(),
        rest => rest.strip_prefix('=').map(str::to_owned),
    })
}

/// The last word of a line, which may be open.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OpenWord {
    /// As the program would get it.
    pub(super) text: String,
    /// As it was typed.
    pub(super) typed: String,
    /// The quote that is not closed yet.
    pub(super) quote: Option<char>,
}

/// The whole words of a line, and the last one: what a POSIX shell makes of it, without expansions.
pub(super) fn split(line: &str) -> (Vec<String>, OpenWord) {
    let mut words = Vec::new();
    let mut word = OpenWord::default();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() && word.quote.is_none() {
            if !word.typed.is_empty() {
                words.push(std::mem::take(&mut word).text);
            }
            continue;
        }
        word.typed.push(c);
        match (word.quote, c) {
            (None, '\'' | '"') => word.quote = Some(c),
            (Some(quote), c) if c == quote => word.quote = None,
            (None | Some('"'), '\\') => {
                if let Some(escaped) = chars.next() {
                    word.typed.push(escaped);
                    if word.quote.is_some() && !matches!(escaped, '"' | '\\' | '$' | '`') {
                        word.text.push('\\');
                    }
                    word.text.push(escaped);
                }
            }
            (_, c) => word.text.push(c),
        }
    }
    (words, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, words: &[&str], text: &str, typed: &str, quote: Option<char>) {
        let (found, last) = split(line);
        assert_eq!(found, words);
        assert_eq!(last, OpenWord { text: text.to_owned(), typed: typed.to_owned(), quote });
    }

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        check("toolctl call  read path=a", &["toolctl", "call", "read"], "path=a", "path=a", None);
        check("toolctl call ", &["toolctl", "call"], "", "", None);
        check("x a\\ b c\\ d", &["x", "a b"], "c d", "c\\ d", None);
        check("x 'a b' path=\"c d", &["x", "a b"], "path=c d", "path=\"c d", Some('"'));
    }
}
