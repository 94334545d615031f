//! Suggestions for misspelt names.

/// `: did you mean X?`, or nothing without a close match.
pub(super) fn perhaps<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let near = known
        .map(|known| (strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase()), known))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map(|(_, known)| format!(": did you mean {known}?")).unwrap_or_default()
}
