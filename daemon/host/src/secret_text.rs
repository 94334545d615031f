//! Texts of the configuration with places for secrets, `${secret:NAME}`. They are filled when the text is used, so that
//! no value is stored, compared or shown with the configuration.

use std::collections::BTreeSet;

use serde::Serialize;

/// A text whose secrets are not filled in yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretText(Vec<TextPart>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
enum TextPart {
    Plain(String),
    Secret(String),
}

impl SecretText {
    /// Appends plain text. Nothing in it is a place for a secret.
    pub fn push_plain(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(TextPart::Plain(last)) => last.push_str(text),
            Some(TextPart::Secret(_)) | None if text.is_empty() => {}
            Some(TextPart::Secret(_)) | None => self.0.push(TextPart::Plain(text.to_owned())),
        }
    }

    /// Appends a place for a secret.
    pub fn push_secret(&mut self, name: &str) {
        self.0.push(TextPart::Secret(name.to_owned()));
    }

    /// The text, if it has no secrets.
    pub fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TextPart::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// The names of its secrets.
    pub fn secrets(&self) -> BTreeSet<&str> {
        let names = self.0.iter().filter_map(|part| match part {
            TextPart::Plain(_) => None,
            TextPart::Secret(name) => Some(name.as_str()),
        });
        names.collect()
    }

    /// The text with the values that `value` returns.
    ///
    /// # Errors
    /// That of `value`.
    pub fn filled<E>(&self, mut value: impl FnMut(&str) -> Result<String, E>) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                TextPart::Plain(text) => filled.push_str(text),
                TextPart::Secret(name) => filled.push_str(&value(name)?),
            }
        }
        Ok(filled)
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        let mut made = Self::default();
        made.push_plain(text);
        made
    }
}
