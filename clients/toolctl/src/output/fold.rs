//! Long lines for narrow terminals.

use std::borrow::Cow;

/// The narrowest width to fold for: below it, nothing can be read.
const NARROWEST: usize = 8;

/// How much further the continuation of a line is indented.
const HANGING: usize = 2;

/// A line, broken between words where it is longer than `width`; only a word that is longer than a whole line is broken
/// itself. Sequences that set colours take no room. The end of the line stays as it is.
pub(crate) fn fold(line: &str, width: usize) -> Cow<'_, str> {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (line, ""),
    };
    if width < NARROWEST || textwrap::core::display_width(text) <= width {
        return Cow::Borrowed(line);
    }
    let text = text.replace('\t', "    ");
    let hanging = " ".repeat(hanging(&text, width));
    let options = textwrap::Options::new(width)
        .subsequent_indent(&hanging)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    Cow::Owned(format!("{}{end}", textwrap::fill(&text, options)))
}

/// Where a continuation begins: below the text behind the line's labels, if its words fit there.
fn hanging(text: &str, width: usize) -> usize {
    let text = anstream::adapter::strip_str(text).to_string();
    let indent = text.len() - text.trim_start_matches(' ').len() + HANGING;
    let labels = text.match_indices("  ").map(|(at, _)| (at, text[at..].trim_start_matches(' ')));
    let columns = labels.map(|(_, rest)| textwrap::core::display_width(&text[..text.len() - rest.len()]));
    let label = columns.take_while(|column| *column < width / 2).last().filter(|column| *column >= indent);
    let rest = |column: usize| text.char_indices().nth(column).map_or("", |(at, _)| &text[at..]);
    let fits = |column: &usize| {
        rest(*column).split_whitespace().all(|word| textwrap::core::display_width(word) <= width - column)
    };
    match label.filter(fits) {
        Some(column) => column,
        None if indent < width / 2 => indent,
        None => HANGING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, width: usize, expected: &str) {
        assert_eq!(fold(line, width), expected);
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three\n", 20, "one two three\n");
        check("one two three\n", 10, "one two\n  three\n");
        check("  one two three", 10, "  one two\n    three");
        check("\x1b[1mone\x1b[0m two\n", 8, "\x1b[1mone\x1b[0m two\n");
        check("ok  floor  what runs is confined", 24, "ok  floor  what runs is\n           confined");
        check("floor  what /runs/is/confined", 20, "floor  what\n  /runs/is/confined");
    }

    #[test]
    fn a_word_that_no_line_can_hold_is_broken() {
        check("/a/very/long/path", 10, "/a/very/\n  long/pat\n  h");
        let narrow = fold("label      /a/very/long/path/indeed and more of it", 30);
        assert!(narrow.lines().all(|line| line.len() <= 30), "{narrow}");
    }
}
