//! `fd`.

use super::Reading;
use super::known::find;
use super::options::parse;
use super::special::with_unknown;
use crate::shell_grammar::arg::Arg;

pub(super) fn fd(name: &str, words: &[Arg]) -> Option<Reading> {
    let at = words.iter().position(|word| matches!(word.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch")));
    let Some(at) = at else { return Some(parse(find(name)?, words).into_reading()) };
    let mut reading = parse(find(name)?, &words[..at]).into_reading();
    let rest = &words[at + 1..];
    if rest.iter().any(|word| word.is(";")) {
        return Some(reading.runs_any("the words after the command are unknown"));
    }
    let mut command = with_unknown(rest, |text| text.contains('{'));
    command.push(Arg::unknown("..."));
    reading.command(&command);
    Some(reading)
}
