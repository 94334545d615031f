//! Help for an edit whose text is not in the file: where the closest match is, and how it differs.

use std::fmt::Write;
use std::time::{Duration, Instant};

use similar::DiffOp;

use crate::bad_bytes;
use crate::comparison::{chars, steps};
use crate::look_alikes;

/// Time limit of the search for similar lines.
const MAX_TIME: Duration = Duration::from_millis(200);
/// Lines of the file that are shown.
const MAX_SHOWN: usize = 30;

/// In what texts differ that look the same.
const LOOK_ALIKES: &str = "characters that look the same";

/// A normalization: lines that differ in one respect only become equal.
type Simplify = fn(&str) -> String;

/// The number of the line that holds the byte `at`.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count()
}

/// The message for an `old` that `text` does not contain.
pub(crate) fn help(text: &str, old: &str) -> String {
    help_for("`old` is", text, old)
}

/// As [`help`], for a text that is called otherwise: `subject` ends with the verb.
pub(crate) fn help_for(subject: &str, text: &str, old: &str) -> String {
    let text = &*bad_bytes::shown(text);
    let mut words = format!("{subject} not in the file");
    if let Some(bare) = without_numbers(old)
        && text.contains(&bare)
    {
        words.push_str(": it begins with line numbers, as `read` shows them; leave them out");
        return words;
    }
    if old.contains('\\') && text.contains(&unescaped(old)) {
        words.push_str(": it has escapes such as \\n written out, where the file has the characters themselves");
        return words;
    }
    if old.contains(['\n', '\t']) && text.contains(&old.replace('\n', "\\n").replace('\t', "\\t")) {
        words.push_str(": the file has escapes such as \\n written out there, which are \\\\n in JSON");
        return words;
    }
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().collect();
    // A text that differs in one respect only is almost certainly the intended one.
    let ways: [(&str, Simplify); 5] = [
        ("indentation or spaces", squeezed),
        ("quotes or dashes", plain_quotes),
        ("line ends", |line| line.trim_end_matches('\r').to_owned()),
        (LOOK_ALIKES, look_alikes::seen),
        ("upper and lower case", str::to_lowercase),
    ];
    let found = ways.iter().find_map(|(what, simplify)| Some((*what, find(&lines, &wanted, *simplify)?, wanted.len())));
    let found = found.or_else(|| without_blank_lines(&lines, &wanted).map(|(at, count)| ("blank lines", at, count)));
    if let Some((what, at, count)) = found {
        let there = lines[at..lines.len().min(at + count)].join("\n");
        let unseen = look_alikes::difference_of(old, &there, true).filter(|_| what == LOOK_ALIKES);
        let unseen = unseen.map(|what| format!(" (the file has {what})"));
        let _ = write!(
            words,
            ", but {} only in {what}{}:\n{}",
            differing(at, count),
            unseen.unwrap_or_default(),
            shown(&lines, at, count)
        );
        return words;
    }
    match nearest(&lines, &wanted) {
        Some((at, alike)) => {
            let _ = write!(
                words,
                "; the nearest text is at {} ({} % alike):\n{}",
                range(at, wanted.len()),
                (alike * 100.0).floor(),
                shown(&lines, at, wanted.len())
            );
        }
        None => words.push_str("; nothing similar was found: read the file again"),
    }
    words
}

/// The text without the `12: ` prefixes, or those that other tools write, if all of its lines have one.
fn without_numbers(text: &str) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let bare = body.split('\n').map(|line| {
        let at = line.find([':', '\t', '\u{2192}'])?;
        let (number, rest) = line.split_at(at);
        let mark = rest.chars().next()?;
        let rest = &rest[mark.len_utf8()..];
        let is_number = !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| rest.strip_prefix(' ').filter(|_| mark == ':').unwrap_or(rest))
    });
    Some(bare.collect::<Option<Vec<&str>>>()?.join("\n") + &text[body.len()..])
}

/// The text with the characters that its escapes stand for, as a string of JSON has them.
fn unescaped(text: &str) -> String {
    let (mut plain, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            None => plain.push(c),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some(other @ ('"' | '\'' | '\\' | '/')) => plain.push(other),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    plain
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plain_quotes(line: &str) -> String {
    let plain = |c: char| match c {
        '\u{2018}' | '\u{2019}' | '`' | '"' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' => '\'',
        '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
        '\u{a0}' => ' ',
        other => other,
    };
    squeezed(&line.chars().map(plain).collect::<String>())
}

fn find(lines: &[&str], wanted: &[&str], simplify: Simplify) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().map(|line| simplify(line)).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(|line| simplify(line)).collect();
    let whole = lines.windows(wanted.len()).position(|window| window == wanted);
    // Part of one line.
    whole.or_else(|| match wanted.as_slice() {
        [only] => lines.iter().position(|line| line.contains(only.as_str())),
        _ => None,
    })
}

/// Where the lines are, and how many, if both texts had no blank lines.
fn without_blank_lines(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let filled = |lines: &[&str]| -> Vec<(usize, String)> {
        let numbered = lines.iter().enumerate().map(|(at, line)| (at, squeezed(line)));
        numbered.filter(|(_, line)| !line.is_empty()).collect()
    };
    let (lines, wanted) = (filled(lines), filled(wanted));
    let is_here = |window: &[(usize, String)]| window.iter().zip(&wanted).all(|(there, line)| there.1 == line.1);
    let found = lines.windows(wanted.len().max(1)).find(|window| wanted.len() > 1 && is_here(window))?;
    let (first, last) = (found.first()?.0, found.last()?.0);
    Some((first, last + 1 - first))
}

/// Where the lines are most similar, and how similar.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<(usize, f64)> {
    let start = Instant::now();
    let mut best: Option<(usize, f64)> = None;
    for at in 0..lines.len() {
        if start.elapsed() > MAX_TIME {
            break;
        }
        let window = &lines[at..lines.len().min(at + wanted.len())];
        let alike: f64 = wanted.iter().zip(window).map(|(a, b)| likeness(a, b)).sum::<f64>() / wanted.len() as f64;
        if best.is_none_or(|(_, most)| alike > most) {
            best = Some((at, alike));
        }
    }
    best.filter(|(_, alike)| *alike > 0.5)
}

/// From 0 to 1, by the words that both lines contain in the same order.
fn likeness<'a>(a: &'a str, b: &'a str) -> f64 {
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return 1.0;
    }
    // Long lines are slow to compare, and their beginning is enough.
    let cut = |text: &'a str| chars(text.char_indices().nth(200).map_or(text, |(end, _)| &text[..end]));
    let (a, b) = (cut(a), cut(b));
    let longest = a.len().max(b.len());
    if a.len().min(b.len()) * 3 < longest {
        return 0.0;
    }
    let same = steps(&a, &b).into_iter().map(|step| match step {
        DiffOp::Equal { len, .. } => len,
        DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => 0,
    });
    same.sum::<usize>() as f64 / longest as f64
}

fn range(at: usize, count: usize) -> String {
    if count == 1 { format!("line {}", at + 1) } else { format!("lines {} to {}", at + 1, at + count) }
}

fn differing(at: usize, count: usize) -> String {
    range(at, count) + if count == 1 { " differs" } else { " differ" }
}

fn shown(lines: &[&str], at: usize, count: usize) -> String {
    let part = &lines[at..lines.len().min(at + count.min(MAX_SHOWN))];
    part.iter().enumerate().map(|(n, line)| format!("{}: {line}", at + n + 1)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, expected: &str) {
        let help = help(text, old);
        assert!(help.contains(expected), "{help}");
    }

    #[test]
    fn escapes_on_one_side_only_are_explained() {
        for (text, old, expected) in [
            ("a\n\tb\n", "a\\n\\tb", Some("it has escapes")),
            ("say \"x\"\n", "say \\\"x\\\"", Some("it has escapes")),
            ("p(\"a\\nb\")\n", "p(\"a\nb\")", Some("the file has escapes")),
            ("a\\tb\n", "a\tb", Some("the file has escapes")),
            ("one\n", "\\d", None),
            ("one\n", "two\nlines", None),
        ] {
            let words = help(text, old);
            assert_eq!(expected.is_some(), words.contains("escapes"), "{words}");
            assert!(expected.is_none_or(|expected| words.contains(expected)), "{words}");
        }
    }

    #[test]
    fn nearest_text_is_shown_with_its_differences() {
        let text = "fn main() {\n\tlet greeting = \u{201c}hello\u{201d};\n\tprintln(greeting);\n}\n";
        check(text, "    let x;\n", "nothing similar was found");
        check(
            text,
            "fn main() {\n    let greeting = \u{201c}hello\u{201d};",
            "lines 1 to 2 differ only in indentation",
        );
        check(text, "let greeting = \"hello\";", "line 2 differs only in quotes");
        check(text, "Println(Greeting);", "upper and lower case:\n3: \tprintln(greeting);");
        check(text, "let greetings = 'hullo';", "the nearest text is at line 2");
        check(text, "1: fn main() {", "line numbers");
        check(text, "1: fn main() {\n", "line numbers");
        let text = "first line\r\nlet name = \"Cafe\u{301}\";\r\n\r\nimport sys\r\n10 \u{212b} wide\r\n\u{1112}\u{1161}\u{11ab}\r\n";
        check(
            text,
            "Caf\u{e9}",
            "line 2 differs only in characters that look the same (the file has U+0301, written in JSON as",
        );
        check(text, "10 \u{c5} wide", "line 5 differs only in characters that look the same (the file has U+212B, ");
        check(text, "\u{d55c}", "line 6 differs only in characters that look the same");
        check("Caf\u{e9} here\n", "Cafe\u{301}", "the file has U+00E9, written in JSON as Caf\\u00e9 here):");
        check(text, "let name = \"Cafe\u{301}\";\nimport sys", "lines 2 to 4 differ only in blank lines:\n2: let name");
        check(
            "def f():\n    return 1\ndef g():\n",
            "    return 1\n\ndef g():",
            "lines 2 to 3 differ only in blank lines",
        );
    }

    #[test]
    fn texts_of_any_shape_are_taken() {
        for (text, old) in [("", "a"), ("a", "\n"), ("\n\n", "b\nc\nd\ne"), ("é", "è"), ("a\r\nb", "a\nb")] {
            help(text, old);
        }
    }
}
