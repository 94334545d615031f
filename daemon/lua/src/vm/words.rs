//! The tokens of a source text with their texts, for comparing them.

use crate::vm::tokens::{TokenKind, tokens};

/// A token with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceWord<'a> {
    kind: TokenKind,
    text: &'a [u8],
    /// From 1.
    pub(crate) line: u32,
}

pub(crate) fn words(source: &[u8]) -> Vec<SourceWord<'_>> {
    let tokens = tokens(source).into_iter();
    tokens.map(|token| SourceWord { kind: token.kind, text: token.text(source), line: token.line }).collect()
}

impl<'a> SourceWord<'a> {
    /// A name or a keyword.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self.kind {
            TokenKind::Name => std::str::from_utf8(self.text).ok(),
            TokenKind::Literal | TokenKind::Symbol => None,
        }
    }

    /// Whether it is this keyword or symbol.
    pub(crate) fn is(self, text: &str) -> bool {
        self.kind != TokenKind::Literal && self.text == text.as_bytes()
    }

    /// The text between the quotes of a string, escapes as they are written; empty for a string in long brackets.
    pub(crate) fn quoted(self) -> Option<&'a str> {
        match (self.kind, self.text) {
            (TokenKind::Literal, [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\'']) => {
                std::str::from_utf8(inner).ok()
            }
            (TokenKind::Literal, [b'[', ..]) => Some(""),
            (TokenKind::Literal | TokenKind::Name | TokenKind::Symbol, _) => None,
        }
    }
}
