//! Parts of texts. Code that judges cuts texts only here: an index that falls inside a character ends the program, and a
//! judgement that ends that way is none.

use std::borrow::Cow;
use std::ops::Range;

/// The text before this byte. A place inside a character is taken for the character's beginning.
pub fn before(text: &str, at: usize) -> &str {
    text.get(..text.floor_char_boundary(at)).unwrap_or_default()
}

/// The text from this byte on. A place inside a character is taken for the character's beginning.
pub fn from(text: &str, at: usize) -> &str {
    text.get(text.floor_char_boundary(at)..).unwrap_or_default()
}

/// The text between two bytes; nothing if the second comes before the first.
pub fn between(text: &str, range: Range<usize>) -> &str {
    from(before(text, range.end), range.start)
}

/// The text without its first character.
pub fn after_first(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

/// At most so many characters of a text, and then the mark that it is cut.
pub fn cut_chars<'t>(text: &'t str, most: usize, mark: &str) -> Cow<'t, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{mark}", &text[..end]).into(),
        None => text.into(),
    }
}

/// At most so many bytes of a text, and then the mark that it is cut; never a part of a character.
pub fn cut_bytes<'t>(text: &'t str, most: usize, mark: &str) -> Cow<'t, str> {
    match text.len() > most {
        true => format!("{}{mark}", &text[..text.floor_char_boundary(most)]).into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_can_be_cut_at() {
        for text in ["", "a", "é", "aé漢✨z", "✨ feat"] {
            for at in 0..text.len() + 3 {
                assert_eq!([before(text, at), from(text, at)].concat(), text, "{text:?} at {at}");
                for end in 0..text.len() + 3 {
                    assert!(text.contains(between(text, at..end)), "{text:?} at {at}..{end}");
                }
            }
        }
        assert_eq!(between("aé漢z", 1..6), "é漢");
        assert_eq!(between("aé漢z", Range { start: 6, end: 1 }), "");
    }

    #[test]
    fn the_first_character_may_have_several_bytes() {
        for (text, rest) in [("", ""), ("-x", "x"), ("✨ feat", " feat"), ("é", "")] {
            assert_eq!(after_first(text), rest);
        }
    }

    #[test]
    fn texts_are_cut_at_characters_and_marked() {
        assert_eq!([cut_chars("äöü", 3, "…"), cut_chars("äöü", 2, "…")], ["äöü", "äö…"]);
        assert_eq!([cut_bytes("äöü", 6, "..."), cut_bytes("äöü", 5, "...")], ["äöü", "äö..."]);
    }
}
