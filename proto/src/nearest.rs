//! The known name that was probably meant by a misspelt one.

use crate::cut::cut_chars;

/// How alike two names must be, by [`likeness`], for one to be meant by the other.
pub const MIN_ALIKE: f64 = 0.75;

/// So many characters of each name are compared: the time grows with the square of their number.
const MAX_COMPARED: usize = 256;

/// How alike the beginnings of two names are, whatever their case, from 0 to 1 (Jaro-Winkler).
pub fn likeness(one: &str, other: &str) -> f64 {
    let [one, other] = [one, other].map(|name| cut_chars(name, MAX_COMPARED, "").to_lowercase());
    strsim::jaro_winkler(&one, &other)
}

/// The known name that is spelt most similarly, whatever its case, if one is near.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = known.map(|known| (likeness(known, name), known));
    scored.filter(|(score, _)| *score >= MIN_ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// The end of a message about an unknown name, `: did you mean X?`; empty where none is near.
pub fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest(name, known).map(|known| format!(": did you mean {known}?")).unwrap_or_default()
}
