//! Rules about a script, which is the same one whichever program runs it.

use crate::need::Word;
use crate::policy::pattern::wild::Wild;
use crate::policy::pattern::words::{is_option, occurs_in_order};

/// Stands before the name of a script and its words, instead of the program that runs it. No command has this name.
pub const SCRIPT: &str = "\u{1}script";

/// Programs that run the file that their first operand names, and the word that may stand before it.
pub const SCRIPT_RUNNERS: &[(&str, &str)] = &[
    ("sh", ""),
    ("bash", ""),
    ("dash", ""),
    ("ash", ""),
    ("rbash", ""),
    ("ksh", ""),
    ("mksh", ""),
    ("zsh", ""),
    ("source", ""),
    (".", ""),
    ("python", ""),
    ("pypy", ""),
    ("node", ""),
    ("nodejs", ""),
    ("bun", "run"),
    ("deno", "run"),
    ("tsx", ""),
    ("ts-node", ""),
    ("ruby", ""),
    ("perl", ""),
    ("php", ""),
    ("lua", ""),
    ("Rscript", ""),
    ("uv", "run"),
    ("npx", "tsx"),
];

/// Options of these programs by which they run no file.
pub const WITHOUT_SCRIPT: &[&str] = &["-c", "-e", "-m", "-p", "-s"];

/// Whether a pattern is about the script that `given` names, with its words. One that names only the program is not.
pub(super) fn may_match(given: &[Word], patterns: &[Wild], more: bool) -> bool {
    let Some(((file, words), (pattern, patterns))) = given.split_first().zip(script_of(patterns)) else { return false };
    let name = file.text.rsplit('/').next().unwrap_or_default();
    (pattern.matches(&file.text) || pattern.matches(name)) && occurs_in_order(words, patterns, more)
}

/// The name of the script, and the patterns behind it.
fn script_of(patterns: &[Wild]) -> Option<(&Wild, &[Wild])> {
    let program = patterns.first()?.as_literal()?.rsplit('/').next()?;
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // `.` itself ends with a dot.
    let program = if program.is_empty() { "." } else { program };
    let Some((_, verb)) = SCRIPT_RUNNERS.iter().find(|(name, _)| *name == program) else {
        return patterns.split_first();
    };
    let is_text = |pattern: &Wild| pattern.as_literal().is_some_and(|text| WITHOUT_SCRIPT.contains(&text));
    let is_skipped = |pattern: &Wild| is_option(pattern) || !verb.is_empty() && pattern.as_literal() == Some(*verb);
    let own = patterns[1..].iter().take_while(|pattern| is_skipped(pattern));
    if own.clone().any(is_text) {
        return None;
    }
    let count = own.count();
    patterns[1 + count..].split_first().filter(|(file, _)| !file.is_any())
}
