//! `ps`: of its letters, `e` without a dash shows the environments of processes, which hold secrets.

use super::Reading;
use super::known::find;
use super::options::parse;
use crate::shell_grammar::arg::Arg;

/// Letters behind a dash that take no value.
const DASHED: &str = "eAadfFHjlLTwyMcNZ";
/// Letters behind a dash that take a value, attached or in the next word, which no version takes for letters.
const WITH_VALUE: &str = "opCtsq";
/// Letters behind a dash whose value is a user or group.
const WITH_NAME: &str = "uUgG";
/// Letters without a dash.
const PLAIN: &str = "axufjlrwTcvhnSA";
const LONG: &[&str] = &["--forest", "--headers", "--no-headers", "--no-heading", "--version", "--help", "--deselect"];
const LONG_WITH_VALUE: &[&str] =
    &["--sort", "--pid", "--ppid", "--sid", "--format", "--cols", "--columns", "--width", "--rows"];

pub(super) fn ps(words: &[Arg]) -> Option<Reading> {
    let mut reading = parse(find("ps")?, words).into_reading();
    if let Some(word) = odd_word(words) {
        reading.doubt(format!("{} may make it show the environments of processes", word.raw));
    }
    Some(reading)
}

/// A word that is not certain to be something else. When a word with a dash is not understood, `ps` reads all of them as if
/// they had none: with a user that does not exist, `-eu x` is `eu x`.
fn odd_word(words: &[Arg]) -> Option<&Arg> {
    // A column, among those that `-o` names.
    let is_column = |word: &&Arg| word.start().to_ascii_lowercase().contains("environ");
    if let Some(word) = words.iter().find(is_column) {
        return Some(word);
    }
    let (mut has_e, mut named) = (false, None);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.literal() else { return Some(word) };
        if let Some((name, _)) = text.split_once('=').filter(|_| text.starts_with("--")) {
            if !LONG_WITH_VALUE.contains(&name) {
                return Some(word);
            }
        } else if LONG_WITH_VALUE.contains(&text) {
            at += 1;
        } else if let Some(letters) = text.strip_prefix('-').filter(|_| !LONG.contains(&text)) {
            let end = letters.find(|c: char| !DASHED.contains(c)).unwrap_or(letters.len());
            let (flags, rest) = letters.split_at(end);
            has_e |= flags.contains('e');
            let mut value = rest.chars();
            match value.next() {
                None if flags.is_empty() => return Some(word),
                None => {}
                Some(letter) if WITH_VALUE.contains(letter) => at += usize::from(value.as_str().is_empty()),
                Some(letter) if WITH_NAME.contains(letter) => {
                    let name = match value.as_str() {
                        "" => words.get(at).and_then(Arg::literal).unwrap_or("e"),
                        attached => attached,
                    };
                    at += usize::from(value.as_str().is_empty());
                    named = Some(word);
                    has_e |= name.contains('e');
                }
                Some(_) => return Some(word),
            }
        } else if !LONG.contains(&text) && !text.chars().all(|c| PLAIN.contains(c) || c.is_ascii_digit() || c == ',') {
            return Some(word);
        }
    }
    named.filter(|_| has_e)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_odd(line: &str) -> bool {
        let words: Vec<Arg> = line.split_whitespace().skip(1).map(Arg::text).collect();
        odd_word(&words).is_some()
    }

    #[test]
    fn letters_that_show_environments_are_odd() {
        for line in [
            "ps",
            "ps aux",
            "ps axu",
            "ps -ef",
            "ps -eo pid,comm",
            "ps -eopid,etime",
            "ps -p 1 -o comm=",
            "ps -ef --forest",
            "ps aux --sort=-%mem",
            "ps -A",
            "ps -u root",
            "ps 1234",
            "ps axjf",
            "ps -C toold",
            "ps -aux",
            "ps -o pid= -p 12,13",
            "ps -efL",
        ] {
            assert!(!is_odd(line), "{line}");
        }
        for line in [
            "ps e",
            "ps auxeww",
            "ps axeww -o args",
            "ps e -p 1",
            "ps -p 1 e",
            "ps -auxe",
            "ps -eu x",
            "ps -u e",
            "ps -ue",
            "ps -u deploy",
            "ps -xe",
            "ps axE",
            "ps --unknown",
            "ps -",
            "ps o pid e",
            "ps -p 1 -- e",
            "ps -o environ -p 1",
            "ps -eo pid,environ=X",
            "ps --format=ENVIRON",
        ] {
            assert!(is_odd(line), "{line}");
        }
    }
}
