//! Texts that look the same and are not: characters in another normal form, invisible ones, and other spaces.

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::loose::is_odd_space;

/// The text as it looks: two texts that look the same become equal.
pub(crate) fn seen(text: &str) -> String {
    let plain: String =
        text.chars().filter(|c| !is_invisible(*c)).map(|c| if is_odd_space(c) { ' ' } else { c }).collect();
    ComposingNormalizerBorrowed::new_nfc().normalize(&plain).trim_end().to_owned()
}

/// Words for what makes `there` another text than `given` although that cannot be seen, such as `U+0301, written in JSON as
/// Cafe\u0301`; `None` if nothing does.
pub(crate) fn difference(given: &str, there: &str) -> Option<String> {
    difference_of(given, there, seen(given) == seen(there))
}

/// As [`difference`]; `is_same` says that they look the same, at least where `there` has `given`.
pub(crate) fn difference_of(given: &str, there: &str, is_same: bool) -> Option<String> {
    let is_odd = |c: char| !c.is_ascii() && (c.is_whitespace() || is_invisible(c) || is_combining(c));
    let mut odd: Vec<char> =
        there.chars().filter(|c| !given.contains(*c) && (is_odd(*c) || is_same && !c.is_ascii())).collect();
    odd.sort_unstable();
    odd.dedup();
    if odd.is_empty() {
        let what = match (given.ends_with(' '), there.ends_with(' ')) {
            (false, true) => "a space at its end",
            (true, false) => "no space at its end",
            _ => return None,
        };
        return is_same.then(|| what.to_owned());
    }
    let codes: Vec<String> = odd.iter().map(|c| format!("U+{:04X}", u32::from(*c))).collect();
    let codes = codes.join(", ");
    // Of several lines, the characters say enough.
    Some(if there.contains('\n') { codes } else { format!("{codes}, written in JSON as {}", escaped(there, &odd)) })
}

/// Whether a character has no width, or changes the direction of those beside it.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}') || turns_text(c)
}

/// Whether a character changes the direction of the text after it, so that a line no longer shows what it has.
pub(crate) fn turns_text(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// The text with these characters as JSON escapes.
fn escaped(text: &str, odd: &[char]) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match odd.contains(&c) {
            true => result.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => result.push(c),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named() {
        for (given, there, expected) in [
            ("cafe\u{301}.txt", "caf\u{e9}.txt", Some("U+00E9, written in JSON as caf\\u00e9.txt")),
            ("caf\u{e9}.txt", "cafe\u{301}.txt", Some("U+0301, written in JSON as cafe\\u0301.txt")),
            (
                "\u{d55c}",
                "\u{1112}\u{1161}\u{11ab}",
                Some("U+1112, U+1161, U+11AB, written in JSON as \\u1112\\u1161\\u11ab"),
            ),
            ("10 \u{c5}", "10 \u{212b}", Some("U+212B, written in JSON as 10 \\u212b")),
            ("bidi.txt", "bidi\u{202e}.txt", Some("U+202E, written in JSON as bidi\\u202e.txt")),
            ("a b", "a\u{202f}c", Some("U+202F, written in JSON as a\\u202fc")),
            ("trail.txt", "trail.txt ", Some("a space at its end")),
            ("trail.txt ", "trail.txt", Some("no space at its end")),
            ("gr\u{fc}n", "gr\u{fc}ner", None),
        ] {
            assert_eq!(difference(given, there).as_deref(), expected, "{given:?} {there:?}");
        }
    }
}
