//! `dd`, `date` and `ln`, and `flock` of util-linux.

use super::known::find;
use super::options::parse;
use super::{CommandOutput, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::{Arg, WordPart};

/// `if=FILE of=FILE bs=1M`
pub(super) fn dd(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    for word in words {
        match word.start().split_once('=') {
            Some((name @ ("if" | "of"), _)) => {
                let how = if name == "if" { FileAccess::Read } else { FileAccess::Write };
                reading.note(word, how.describe());
                reading.files.push(FileUse::new(how, word.without_start(3)));
            }
            Some((
                "bs" | "count" | "skip" | "seek" | "ibs" | "obs" | "cbs" | "conv" | "status" | "iflag" | "oflag"
                | "iseek" | "oseek",
                _,
            )) => reading.note(word, "option"),
            _ if matches!(word.literal(), Some("--help" | "--version")) => {}
            _ => reading.doubt(format!("toold does not know the operand {} of dd", word.raw)),
        }
    }
    reading
}

/// A format prints; any other operand sets the clock.
pub(super) fn date(words: &[Arg]) -> Reading {
    let Some(known) = find("date") else { return Reading::default() };
    let (formats, rest): (Vec<Arg>, Vec<Arg>) = words.iter().cloned().partition(|word| word.start().starts_with('+'));
    let parsed = parse(known, &rest);
    let sets = !parsed.operands.is_empty();
    let mut reading = parsed.into_reading();
    reading.reads_only &= !sets;
    // If the format begins with a digit or a letter and contains no blank, so does the output.
    let is_plain = |format: &Arg| {
        let text = format.literal().unwrap_or_default();
        text.starts_with("+%")
            && !text.starts_with("+%-")
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+%-_:.TZ".contains(c))
            && !["%c", "%x", "%X", "%r", "%n", "%t", "%e", "%k", "%l", "%P", "%p", "%z", "%_", "%-", "%D", "%Z"]
                .iter()
                .any(|blank| text.contains(blank))
    };
    if reading.reads_only && formats.len() == 1 && is_plain(&formats[0]) {
        reading.output = CommandOutput::Pieces(vec![WordPart::Plain]);
    }
    formats.iter().for_each(|format| reading.note(format, "format"));
    reading
}

/// A link gives its target another name, so the target is judged as read.
pub(super) fn link(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("ln")?, words);
    let is_symbolic = parsed.has(&["-s", "--symbolic"]);
    let operands = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    if !is_symbolic {
        // Whoever writes the new name writes the same file.
        let targets = reading.files.iter().filter(|file| file.how == FileAccess::Read).cloned();
        let written: Vec<FileUse> = targets.map(|file| FileUse { how: FileAccess::Write, ..file }).collect();
        reading.files.splice(0..0, written);
    }
    if let (true, [targets @ .., link]) = (is_symbolic && operands.len() > 1, operands.as_slice()) {
        // A relative target starts at the link's own folder: the folder of its name, or the folder with that name.
        reading.files.retain(|file| file.how != FileAccess::Read);
        let beside = link.literal().map(|link| match link.rsplit_once('/') {
            Some((folder, _)) if !folder.is_empty() => Arg::text(folder),
            _ => Arg::text("."),
        });
        let is_folder = link.literal().is_some_and(|link| link.ends_with('/') || matches!(link, "." | ".."));
        for target in targets {
            let folder = if is_folder { Some(link.clone()) } else { beside.clone() };
            reading.files.push(FileUse { folder, ..FileUse::new(FileAccess::Read, target.clone()) });
        }
    }
    Some(reading)
}

pub(super) fn flock(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.literal() {
            Some("-s" | "-x" | "-e" | "-n" | "-o" | "-F" | "--nonblock" | "--shared" | "--exclusive" | "--close") => {
                at += 1
            }
            Some("-w" | "--timeout" | "-E") => at += 2,
            Some(text) if text.starts_with('-') => {
                return reading.runs_any(format!("{text} is not known to be harmless"));
            }
            None if word.may_be_option() => return reading.runs_any(format!("{} may expand to an option", word.raw)),
            _ => break,
        }
    }
    if let Some(file) = words.get(at) {
        reading.files.push(FileUse::new(FileAccess::Write, file.clone()));
    }
    match words.get(at + 1..).unwrap_or_default() {
        [] => {}
        [option, script @ ..] if matches!(option.literal(), Some("-c" | "--command")) => reading.script(script),
        [first, ..] if !first.is_one() || first.may_be_option() => {
            return reading.runs_any(format!("the program that {} names is unknown", first.raw));
        }
        command => reading.command(command),
    }
    reading
}
