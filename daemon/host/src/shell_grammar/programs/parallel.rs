//! `parallel`, which runs a command for each argument: the programs of GNU (`parallel gzip ::: a b`) and of moreutils
//! (`parallel gzip -- a b`).

use toold_proto::shell_word::quoted;

use super::Reading;
use super::known::find;
use super::options::parse;
use super::special::with_unknown;
use crate::shell_grammar::arg::Arg;

/// With more arguments they count as unknown.
const MAX_ARGUMENTS: usize = 40;
/// A variable that no line sets: nothing is known about the arguments that come from a file or from standard input.
const UNKNOWN: &str = "$argument_of_parallel";
/// Options that change neither the command nor how many arguments it gets.
const PLAIN: &[&str] = &[
    "-k",
    "--keep-order",
    "-u",
    "--ungroup",
    "--lb",
    "--line-buffer",
    "--bar",
    "--progress",
    "--eta",
    "--dry-run",
    "--tag",
    "--will-cite",
    "-v",
    "--verbose",
    "-r",
    "--no-run-if-empty",
    "--group",
    "-j",
    "--jobs",
    "--max-procs",
    "--timeout",
    "--delay",
    "--retries",
    "--halt",
    "--halt-on-error",
    "--joblog",
    "-l",
];

/// The command is text for a shell, in which `{}` stands for the argument; without one it comes last.
pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("parallel")?, words);
    let is_plain = parsed.given.iter().all(|given| PLAIN.contains(&given.name.as_str()));
    let takes_input = !parsed.has(&["--pipe"]);
    let operands = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    reading.other_shell = true;
    let is_source = |word: &Arg| word.start().starts_with(":::");
    let of_gnu = operands.iter().position(is_source);
    let of_moreutils = operands.iter().position(|word| word.is("--"));
    let (template, sources) = operands.split_at(of_gnu.or(of_moreutils).unwrap_or(operands.len()));
    let arguments = match sources.split_first() {
        Some((first, rest)) if (first.is(":::") || first.is("--")) && is_plain && !rest.iter().any(is_source) => {
            let literal: Option<Vec<&str>> = rest.iter().map(Arg::literal).collect();
            literal.filter(|arguments| arguments.len() <= MAX_ARGUMENTS)
        }
        _ => None,
    };
    if template.is_empty() {
        // Each argument is a command.
        return Some(match arguments {
            Some(scripts) => {
                scripts.iter().for_each(|script| reading.script(&[Arg::text(script)]));
                reading
            }
            None => reading.open("the commands that it reads are unknown"),
        });
    }
    // moreutils runs the words as they are.
    if of_gnu.is_none() && of_moreutils.is_some() {
        reading.command(&[with_unknown(template, |text| text.contains("{}")), vec![Arg::unknown("...")]].concat());
    }
    let texts: Option<Vec<&str>> = template.iter().map(Arg::literal).collect();
    let Some(text) = texts.map(|texts| texts.join(" ")) else {
        return Some(reading.runs_any("the shell expands the command that it runs, and the result is unknown"));
    };
    if !can_be_replaced(&text) {
        return Some(reading.runs_any("where its arguments stand in the command is not certain"));
    }
    match (arguments, takes_input) {
        (Some(arguments), true) => {
            for argument in arguments {
                reading.scripts.push(filled(&text, &quoted(argument)));
            }
        }
        (None, true) => reading.scripts.push(filled(&text, UNKNOWN)),
        (_, false) => reading.scripts.push(text),
    }
    Some(reading)
}

/// Whether an argument in the place of `{}` stays one word: quotes around it could end in the argument.
fn can_be_replaced(text: &str) -> bool {
    let has_mark = text.contains('{');
    !has_mark || !text.contains(['\'', '"', '\\', '`']) && !text.contains("{=") && !text.contains("$(")
}

/// The command with the argument. Parts of it (`{.}`, `{/}`, `{1}`) count as unknown.
fn filled(text: &str, argument: &str) -> String {
    if !text.contains('{') {
        return format!("{text} {argument}");
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let (mark, after) = behind.split_once('}').unwrap_or((behind, ""));
        filled.push_str(if mark.is_empty() { argument } else { UNKNOWN });
        rest = after;
    }
    filled + rest
}
