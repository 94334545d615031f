//! Beginnings of texts that are too long to be shown.

use std::borrow::Cow;

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
    fn texts_are_cut_at_characters_and_marked() {
        assert_eq!([cut_chars("äöü", 3, "…"), cut_chars("äöü", 2, "…")], ["äöü", "äö…"]);
        assert_eq!([cut_bytes("äöü", 6, "..."), cut_bytes("äöü", 5, "...")], ["äöü", "äö..."]);
    }
}
