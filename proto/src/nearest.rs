//! The known name that was probably meant by a misspelt one.

/// How alike two names must be, from 0 to 1 (Jaro-Winkler).
const MIN_ALIKE: f64 = 0.75;

/// The known name that is spelt most similarly, whatever its case, if one is near.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let lower = name.to_lowercase();
    let scored = known.map(|known| (strsim::jaro_winkler(&known.to_lowercase(), &lower), known));
    scored.filter(|(score, _)| *score >= MIN_ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
