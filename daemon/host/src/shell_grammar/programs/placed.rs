//! Where the command begins behind a program's options, also behind those that are not known to be harmless.

use super::known::{Takes, find};
use crate::shell_grammar::arg::Arg;

/// All options of a program, in the lists of the tables: words between blanks.
pub(super) struct OptionSpec {
    pub(super) flags: &'static str,
    /// Options with one value, attached or the next word.
    pub(super) values: &'static str,
}

impl OptionSpec {
    fn has(list: &str, option: &str) -> bool {
        list.split_whitespace().flat_map(|spellings| spellings.split('|')).any(|known| known == option)
    }
}

/// The position of the first word from `at` on that is no option and no value of one, and whether that is certain.
pub(super) fn skip_options(words: &[Arg], mut at: usize, options: &OptionSpec) -> (usize, bool) {
    let mut is_certain = true;
    while let Some(word) = words.get(at) {
        let text = word.start();
        if word.is("--") {
            return (at + 1, is_certain);
        }
        if text.len() < 2 || !text.starts_with('-') {
            return (at, is_certain && word.is_one() && !word.may_be_option());
        }
        let (name, is_attached) = text.split_once('=').map_or((text, false), |(name, _)| (name, true));
        let takes_next = if OptionSpec::has(options.values, name) {
            Some(!is_attached)
        } else if OptionSpec::has(options.flags, name) {
            Some(false)
        } else if name.starts_with("--") {
            None
        } else {
            bundle(text, word.literal().is_some(), options)
        };
        is_certain &= takes_next.is_some();
        at += 1;
        if takes_next == Some(true) {
            is_certain &= words.get(at).is_none_or(Arg::is_one);
            at += 1;
        }
    }
    (at.min(words.len()), is_certain)
}

/// Whether the last letter of `-abc` takes the next word; `None` if a letter is not known.
fn bundle(text: &str, is_whole: bool, options: &OptionSpec) -> Option<bool> {
    let mut letters = text.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        let name = format!("-{letter}");
        if OptionSpec::has(options.values, &name) {
            return Some(letters.peek().is_none() && is_whole);
        }
        if !OptionSpec::has(options.flags, &name) {
            return None;
        }
    }
    Some(false)
}

/// Where the words that make a program a wrapper begin, behind options of the program: `hatch -v run pytest`.
pub(super) fn verbs_at(name: &str, words: &[Arg], verbs: &str) -> Option<usize> {
    let mut verbs = verbs.split_whitespace();
    let Some(first) = verbs.next() else { return Some(0) };
    let known = find(name);
    let (mut at, mut is_certain) = (0, true);
    while let Some(text) = words.get(at).map(Arg::start).filter(|text| text.starts_with('-') && *text != "--") {
        let option = text.split('=').next().unwrap_or_default();
        at += match known.and_then(|known| known.options.get(option)) {
            Some(Takes::Nothing | Takes::Attached | Takes::WriteAttached) => 1,
            Some(_) => 1 + usize::from(option == text),
            None => {
                is_certain = false;
                1
            }
        };
    }
    // Behind an option that is not known stands its value, or not.
    let mut before =
        words.iter().skip(at).take_while(|word| !word.is("--")).take(if is_certain { 1 } else { usize::MAX });
    at += before.position(|word| word.is(first))?;
    let mut behind = words[at + 1..].iter();
    verbs.all(|verb| behind.next().is_some_and(|word| word.is(verb))).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_no_operands() {
        let options = OptionSpec { flags: "-i|--interactive -t --rm", values: "-e|--env -v --name" };
        for (line, at, is_certain) in [
            ("img ls", 0, true),
            ("-it img", 1, true),
            ("-e A=1 -v /a:/b --rm img", 5, true),
            ("-eA=1 --env=B --name x img", 4, true),
            ("-ite A img", 2, true),
            ("-- img", 1, true),
            ("--new x img", 1, false),
            ("-iz img", 1, false),
            ("-é img", 1, false),
            ("", 0, true),
            ("-e", 1, true),
        ] {
            let words: Vec<Arg> = line.split_whitespace().map(Arg::text).collect();
            assert_eq!(skip_options(&words, 0, &options), (at, is_certain), "{line}");
        }
    }
}
