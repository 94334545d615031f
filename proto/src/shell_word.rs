//! Words of command lines that are shown to be typed, or written for a shell.

/// One word for a shell (POSIX, section 2.2.2: single quotes), as it is if no shell changes it.
pub fn quoted(text: &str) -> String {
    quoted_unless(text, |c| c.is_ascii_alphanumeric() || "_@%+:,./-".contains(c))
}

/// As [`quoted`], with other characters that need no quotes.
pub fn quoted_unless(text: &str, is_plain: impl Fn(char) -> bool) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        for plain in ["a", "/a/b-c_d.e", "a@b:8080", "100%"] {
            assert_eq!(quoted(plain), plain);
        }
        for (text, expected) in [("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("A=1", "'A=1'"), ("ü", "'ü'")]
        {
            assert_eq!(quoted(text), expected);
        }
        assert_eq!(quoted_unless("A=1", |c| c != ' '), "A=1");
    }
}
