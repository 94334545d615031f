//! Text with `*` in it.

use toold_proto::cut;

/// The literal pieces between the stars; one piece is literal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Wild(Vec<String>);

impl Wild {
    pub(in crate::policy) fn parse(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    pub(super) fn from_pieces(pieces: Vec<String>) -> Self {
        Self(pieces)
    }

    pub(in crate::policy) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [text] => Some(text),
            _ => None,
        }
    }

    /// The literal text between the stars.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// `*` alone.
    pub(super) fn is_any(&self) -> bool {
        self.0.len() > 1 && self.0.iter().all(String::is_empty)
    }

    /// Whether it can match a text that begins with `known`.
    pub(super) fn may_begin_with(&self, known: &str) -> bool {
        let first = self.0.first().map(String::as_str).unwrap_or_default();
        first.starts_with(known) || known.starts_with(first) && self.stars() > 0
    }

    pub(super) fn stars(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Whether it matches all texts that a word such as `a*.rs` may become: the stars and question marks of the word lie in its
    /// own stars.
    pub(super) fn covers_wild(&self, word: &str) -> bool {
        self.pieces().all(|piece| !piece.contains(['*', '?'])) && self.matches(word)
    }

    /// Takes time in proportion to the text: each piece is taken where it first fits.
    pub(in crate::policy) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str())) else {
            return false;
        };
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = cut::from(rest, at + piece.len());
        }
        true
    }
}
