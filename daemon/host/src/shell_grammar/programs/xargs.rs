//! `xargs` adds words of its standard input to a command.

use super::known::find;
use super::options::parse;
use super::special::with_unknown;
use super::{CommandContext, CommandOutput, Reading};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::expand;

/// The command with the added words: the names of files if the command before the pipe prints them, otherwise unknown
/// words.
pub(super) fn read(words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let parsed = parse(find("xargs")?, words);
    let has_zero = parsed.has(&["-0", "--null"]);
    // Other options change where words end or where they come from.
    let known = [
        "-0",
        "--null",
        "-r",
        "--no-run-if-empty",
        "-n",
        "--max-args",
        "-P",
        "--max-procs",
        "-I",
        "-i",
        "--replace",
        "-t",
        "-L",
        "-x",
    ];
    let is_plain = parsed.given.iter().all(|given| known.contains(&given.name.as_str()));
    let mark = if parsed.has(&["-i", "--replace"]) || parsed.has(&["-I"]) {
        let mark = parsed.values(&["-I", "-i", "--replace"]).last();
        Some(mark.map_or(Some("{}"), Arg::literal).map(str::to_owned))
    } else {
        None
    };
    let command = parsed.command.clone();
    let mut reading = parsed.into_reading();
    reading.commands.clear();
    if command.is_empty() {
        return Some(reading);
    }
    let added = match site.input {
        CommandOutput::Lines(found) if is_plain && !has_zero && found.is_plain => expand::arg(found.clone(), "..."),
        CommandOutput::Ended(found) if is_plain && has_zero => expand::arg(found.clone(), "..."),
        _ => Arg::unknown("..."),
    };
    let command = match mark {
        None => [command, vec![added]].concat(),
        Some(None) => return Some(reading.runs_any("the text to replace is unknown")),
        Some(Some(mark)) if mark.is_empty() => return Some(reading.runs_any("the text to replace is empty")),
        Some(Some(mark)) => command
            .iter()
            .map(|word| match word.is(&mark) && added.raw == "..." && word != &command[0] {
                true => Arg { raw: word.raw.clone(), ..added.clone() },
                false => with_unknown(std::slice::from_ref(word), |text| text.contains(&mark)).remove(0),
            })
            .collect(),
    };
    reading.command(&command);
    Some(reading)
}
