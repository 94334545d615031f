//! Suggestions for misspelt names.

use toold_proto::nearest::nearest;

/// `: did you mean X?`, or nothing without a close match.
pub(super) fn perhaps<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest(name, known).map(|known| format!(": did you mean {known}?")).unwrap_or_default()
}
