//! `find`: the commands of `-exec`, and the names that it prints.

use std::rc::Rc;

use super::known::find;
use super::options::parse;
use super::special::with_unknown;
use super::{CommandOutput, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::names::{leaves_out, wildcard};
use crate::shell_grammar::trees::TreeFilter;

pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let mut own: Vec<Arg> = Vec::new();
    let mut commands: Vec<(Vec<Arg>, bool)> = Vec::new();
    // Only the part before the first command: what follows it does not affect for which files it runs.
    let mut expression: Vec<Arg> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(option @ ("-exec" | "-execdir" | "-ok" | "-okdir")) = word.literal() else {
            if commands.is_empty() {
                expression.push(word.clone());
            }
            // Grouping is no operand, and `!` no name.
            if !matches!(word.literal(), Some("(" | ")" | "!" | ",")) {
                own.push(word.clone());
            }
            continue;
        };
        let rest = &words[at..];
        let end = rest
            .iter()
            .enumerate()
            .position(|(index, word)| word.is(";") || word.is("+") && index > 0 && rest[index - 1].is("{}"));
        let Some(end) = end else {
            return Some(Reading::default().runs_any("the command after -exec has no end"));
        };
        // A word that expands to none or several could end the command elsewhere.
        if rest[..end].iter().any(|word| !word.is_one()) {
            return Some(
                Reading::default().runs_any("the shell expands the command after -exec, and the result is unknown"),
            );
        }
        commands.push((rest[..end].to_vec(), option.ends_with("dir")));
        at += end + 1;
    }
    let parsed = parse(find("find")?, &own);
    let starts = match parsed.operands.as_slice() {
        [] => vec![Arg::text(".")],
        starts => starts.to_vec(),
    };
    let prints_otherwise = parsed.has(&["-printf", "-ls", "-fprint", "-fprint0", "-fls"]);
    let (ends_with_nul, prints) = (parsed.has(&["-print0"]), parsed.has(&["-print"]));
    let deletes = parsed.has(&["-delete"]);
    let starts_here = starts.iter().all(|start| start.is("."));
    let filter = filter(&expression, starts_here).map(Rc::new);
    let follows = parsed.has(&["-H"]);
    let is_sure = parsed.is_sure();
    let mut reading = parsed.into_reading();
    let found: Vec<FileUse> = starts
        .iter()
        .map(|start| FileUse { filter: filter.clone(), ..FileUse::new(FileAccess::Tree, start.clone()) })
        .collect();
    let printed = own.windows(2).filter(|pair| pair[0].is("-fprintf")).map(|pair| pair[1].clone());
    let written = printed.map(|file| FileUse { is_operand: false, ..FileUse::new(FileAccess::Write, file) });
    reading.files.extend(written);
    if deletes {
        reading.reads_only = false;
        let removed = |start: &Arg| FileUse {
            filter: filter.clone(),
            is_operand: false,
            is_whole: true,
            ..FileUse::new(FileAccess::Write, start.clone())
        };
        reading.files.extend(starts.iter().map(removed));
    }
    if is_sure && !prints_otherwise && !follows && commands.is_empty() {
        reading.output = match (ends_with_nul, prints) {
            (false, _) => CommandOutput::Names(found.clone()),
            (true, false) => CommandOutput::EndedNames(found.clone()),
            (true, true) => CommandOutput::Unknown,
        };
    }
    for (at, (command, in_folder)) in commands.into_iter().enumerate() {
        if in_folder {
            reading.doubt("-execdir runs its command in other folders");
        }
        if command.is_empty() {
            continue;
        }
        let plain =
            command.iter().skip(1).all(|word| word.literal().is_some_and(|text| text == "{}" || !text.contains("{}")));
        if plain && is_sure && !follows && !command[0].start().contains("{}") {
            // The tests before a later command are ignored.
            let found = match at {
                0 => found.clone(),
                _ => found.iter().map(|file| FileUse { filter: None, ..file.clone() }).collect(),
            };
            reading.on_found.push((command, found));
        } else {
            reading.command(&with_unknown(&command, |text| text.contains("{}")));
        }
    }
    Some(reading)
}

/// The name filter of the expression: `-name X -not -name Y`, or `-name X -o -name Y`. `None` for more complex
/// expressions; then any file may match.
fn filter(words: &[Arg], starts_here: bool) -> Option<TreeFilter> {
    let mut filter = TreeFilter::default();
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    let has = |texts: &[&str]| (0..words.len()).any(|at| texts.iter().any(|text| is(at, text)));
    if has(&["-o", "-or", "("]) {
        return alternatives(words);
    }
    filter.is_of_files = (0..words.len()).any(|at| is(at, "-type") && is(at + 1, "f")) && !has(&["!", "-not"]);
    for at in 0..words.len() {
        if is(at, ",") || is(at, "-prune") {
            return None;
        }
        let pattern = words.get(at + 1).and_then(Arg::literal);
        let negates = |at: usize| is(at, "!") || is(at, "-not");
        if negates(at) && negates(at + 1) {
            return None;
        }
        let negated = at > 0 && negates(at - 1);
        match (words[at].literal(), pattern) {
            // One match of several is enough here, which includes more files, not fewer.
            (Some(name @ ("-name" | "-iname")), Some(pattern)) if !negated => {
                filter.includes.push(wildcard(pattern, name == "-iname")?);
            }
            (Some("-name"), Some(pattern)) => filter.excludes.extend(leaves_out(pattern)),
            (Some("-path"), Some(pattern)) if negated => {
                // At any depth, or only at the top.
                let folder = |start: &str| pattern.strip_prefix(start).and_then(|rest| rest.strip_suffix("/*"));
                let is_name = |name: &&str| !name.contains(['/', '*', '?', '[', '\\']);
                if let Some(name) = folder("*/").filter(is_name) {
                    filter.excluded_folders.extend(leaves_out(name));
                } else if let Some(name) = folder("./").filter(is_name).filter(|_| starts_here) {
                    filter.excluded_at_top.push(name.to_owned());
                }
            }
            _ => {}
        }
    }
    Some(filter)
}

/// The names of an expression with `-o`, if each of its alternatives asks for a name and nothing is negated.
fn alternatives(words: &[Arg]) -> Option<TreeFilter> {
    let mut filter = TreeFilter::default();
    let mut waiting = words.iter().peekable();
    let mut is_named = false;
    while let Some(word) = waiting.next() {
        match word.literal()? {
            "!" | "-not" | "," | "-prune" => return None,
            "-o" | "-or" if !is_named => return None,
            "-o" | "-or" => is_named = false,
            name @ ("-name" | "-iname") => {
                filter.includes.push(wildcard(waiting.next()?.literal()?, name == "-iname")?);
                is_named = true;
            }
            _ => {}
        }
    }
    is_named.then_some(filter)
}
