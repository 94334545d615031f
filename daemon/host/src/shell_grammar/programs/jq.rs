//! `jq`.

use super::known::find;
use super::options::parse;
use super::{FileAccess, Reading};
use crate::shell_grammar::arg::Arg;

/// A filter can read modules and data from files (jq manual, "Modules").
pub(super) fn jq(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let reads = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| matches!(word, "import" | "include" | "input_filename" | "modulemeta"))
    };
    let filter = parsed.operands.first().cloned();
    let mut reading = parsed.into_reading();
    reading.reads_only = reading.unsure.is_none() && !reading.files.iter().any(|file| file.how == FileAccess::Write);
    match filter.as_ref().map(|filter| (filter, filter.literal())) {
        Some((filter, None)) => {
            reading.doubt(format!("the shell expands the filter {}, and the result is unknown", filter.raw))
        }
        Some((_, Some(text))) if reads(text) => reading.doubt("its filter reads modules"),
        _ => {}
    }
    Some(reading)
}
