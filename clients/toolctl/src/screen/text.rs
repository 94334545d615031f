//! Text of others, made safe and cut to the width of the screen.

use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::output::{fold, plain};
use crate::views::Tone;

/// More lines of one text would only make the screen slow.
const MAX_LINES: usize = 5_000;

/// A line of a details pane or a dialog, before it is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PaneLine {
    pub(super) tone: Tone,
    pub(super) text: String,
}

impl PaneLine {
    pub(super) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: plain(&text.into()).replace('\n', " ").replace('\t', "    ") }
    }

    pub(super) fn empty() -> Self {
        Self { tone: Tone::Plain, text: String::new() }
    }
}

/// The lines of a text.
pub(super) fn text_lines(tone: Tone, text: &str) -> Vec<PaneLine> {
    let mut lines: Vec<PaneLine> = text.lines().take(MAX_LINES).map(|line| PaneLine::new(tone, line)).collect();
    if text.lines().nth(MAX_LINES).is_some() {
        lines.push(PaneLine::new(Tone::Warn, format!("only the first {MAX_LINES} lines are shown")));
    }
    lines
}

/// The lines of a unified diff.
pub(super) fn diff_lines(diff: &str) -> Vec<PaneLine> {
    let mut lines = text_lines(Tone::Plain, diff);
    for line in &mut lines {
        line.tone = diff_tone(&line.text);
    }
    lines
}

pub(super) fn diff_tone(line: &str) -> Tone {
    match line.as_bytes().first() {
        Some(b'+') => Tone::Good,
        Some(b'-') => Tone::Bad,
        Some(b'@') => Tone::Name,
        _ => Tone::Plain,
    }
}

/// All lines, folded so that nothing is cut off.
pub(super) fn folded(lines: &[PaneLine], width: usize, theme: Theme) -> Vec<Line<'static>> {
    let fold_one = |line: &PaneLine| {
        let style = theme.style(line.tone);
        fold(&line.text, width).into_iter().map(move |part| Line::styled(part, style))
    };
    lines.iter().flat_map(fold_one).collect()
}

/// A line, broken between words as on a terminal.
pub(super) fn fold(line: &str, width: usize) -> Vec<String> {
    fold::fold(line, width).split('\n').map(str::to_owned).collect()
}

/// A path that fits, with a mark where something is missing: its end, which has the name of the file, after what stands before
/// its first `/`.
pub(super) fn cut_path(text: &str, width: usize) -> String {
    let head = &text[..text.find('/').unwrap_or_default()];
    match width.checked_sub(cells(head)) {
        Some(room) if room >= MIN_PATH && cells(text) > width => {
            head.to_owned() + &cut_start(&text[head.len()..], room)
        }
        _ => cut_start(text, width),
    }
}

/// With less room for the path, what stands before it is left out.
const MIN_PATH: usize = 12;

fn cut_start(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += width_of(*c);
        used <= width
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    if width == 0 { String::new() } else { ['…'].into_iter().chain(end.into_iter().rev()).collect() }
}

/// The start of a text that fits, with a mark when something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = width_of(c);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// How many cells a text takes.
pub(super) fn cells(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(width_of).sum() }
}

fn width_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_continuations_are_indented() {
        assert_eq!(fold("asks for permission", 10), ["asks for", "  permissi", "  on"]);
        assert_eq!(fold("abcdefghijkl", 10), ["abcdefgh", "  ijkl"]);
        assert_eq!(fold("日本語日本語", 8), ["日本語", "  日本語"]);
        assert_eq!(fold("", 8), [""]);
    }

    #[test]
    fn a_cut_text_fits() {
        assert_eq!(
            (cut("abcdef", 6), cut("abcdef", 4), cut("日本語", 4)),
            ("abcdef".into(), "abc…".into(), "日…".into())
        );
        assert_eq!(cut("ab", 0), "");
        assert_eq!(
            (cut_start("a/b.rs", 6), cut_start("src/b.rs", 6), cut_start("日本語", 4)),
            ("a/b.rs".into(), "…/b.rs".into(), "…語".into())
        );
        assert_eq!(cut_start("ab", 0), "");
        assert_eq!(cut_path("file.write /home/you/src/b.rs", 24), "file.write …you/src/b.rs");
        assert_eq!(cut_path("file.write /home/you/src/b.rs", 16), "…me/you/src/b.rs");
        assert_eq!(cut_path("/home/you/b.rs", 6), "…/b.rs");
    }
}
