//! `make`.

use toold_proto::cut;

use super::Reading;
use super::known::find;
use super::named_files::secrets_in;
use super::options::parse;
use super::runners::each_target;
use crate::shell_grammar::arg::{Arg, WordPart};

/// Values that are no program's name, and so harmless in a recipe that runs them.
const PLAIN: &str =
    "y n yes no true false on off all debug release ci dev development prod production qa staging test testing";

/// Variables on the command line reach every recipe.
pub(super) fn make(words: &[Arg]) -> Option<Reading> {
    // Also a version, such as `v1.2.0`.
    let is_plain = |value: &str| {
        let number = value.strip_prefix('v').unwrap_or(value);
        let is_version = number.starts_with(|c: char| c.is_ascii_digit());
        let is_version = is_version && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        value.is_empty() || is_version || PLAIN.split(' ').any(|plain| plain == value)
    };
    let mut words = words.to_vec();
    // `-j 4`: the number is the option's only if it is one.
    for at in 1..words.len() {
        let is_number =
            words[at].literal().is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        if is_number && matches!(words[at - 1].literal(), Some("-j" | "--jobs" | "-l" | "--load-average")) {
            words[at - 1] = Arg::text(&format!("-j{}", words[at].literal().unwrap_or_default()));
            words[at] = Arg::text("-j1");
        } else if words[at - 1].is("-j") && words[at].pieces == [WordPart::Number] {
            words[at] = Arg::text("-j1");
        }
    }
    let is_input = |word: &Arg| {
        let text = word.start();
        matches!(text, "-" | "-f-" | "--file=-" | "--makefile=-")
            || text.ends_with("/dev/stdin")
            || text.contains("/fd/")
    };
    let reads_input = words.iter().any(is_input);
    let parsed = parse(find("make")?, &words);
    let mut why = None;
    for operand in &parsed.operands {
        let odd = match operand.start().split_once('=') {
            Some((name, _)) if operand.literal().is_some() => {
                let value = cut::from(operand.start(), name.len() + 1);
                let is_name =
                    name.trim_end_matches([':', '?', '+']).chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                !is_plain(value) || !is_name || matches!(name, "SHELL" | "MAKEFLAGS" | "MAKEFILES")
            }
            Some(_) => true,
            None => operand.literal().is_none() && !matches!(operand.pieces.first(), Some(WordPart::Plain)),
        };
        if odd {
            why = Some(format!("{} sets a variable, and recipes may run what it holds", operand.raw));
        }
    }
    let targets = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    for name in ["make", "gmake"] {
        each_target(name, &targets, &mut reading);
    }
    // Texts that recipes run: `CMD='cat .env'`, `--eval='x:;cat .env'`.
    let is_text = |word: &&Arg| {
        word.start().contains(char::is_whitespace) || word.start().starts_with("-E") || word.start().starts_with("--ev")
    };
    reading.files.extend(words.iter().filter(is_text).flat_map(|word| secrets_in(word.start())));
    if let Some(why) = why {
        reading.doubt(why);
    }
    if reads_input {
        return Some(reading.open("its recipes are those of its standard input"));
    }
    Some(reading)
}
