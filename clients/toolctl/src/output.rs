//! Output for people and for programs.
//!
//! Styles are always written; anstream removes them for a pipe, for `NO_COLOR`, for `--plain` and for terminals without
//! colours.

pub(crate) mod fold;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anstream::AutoStream;
use anstream::stream::{AsLockedWrite, RawStream};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::output::fold::fold;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Blue.on_default().bold();

/// How this process shows things to a person.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presentation {
    /// No colours, no columns, nothing that is overwritten: for screen readers and logs.
    pub(crate) plain: bool,
    /// The terminal knows no control sequences (`TERM=dumb`).
    pub(crate) dumb: bool,
    /// Times in UTC instead of the local zone.
    pub(crate) utc: bool,
}

impl Presentation {
    fn overwrites(self) -> bool {
        !self.plain && !self.dumb
    }
}

/// Global, as the terminal is: every line that is written depends on it, and it never changes.
static PRESENTATION: OnceLock<Presentation> = OnceLock::new();

/// Called once, before anything is written.
pub(crate) fn present(presentation: Presentation) {
    let mut forms = inquire::ui::RenderConfig::default();
    if presentation.plain {
        anstream::ColorChoice::Never.write_global();
        forms = inquire::ui::RenderConfig::empty();
    }
    // As everywhere else.
    forms.canceled_prompt_indicator.content = "<cancelled>";
    inquire::set_global_render_config(forms);
    // Set before only if this is called twice, and then nothing changes.
    let _ = PRESENTATION.set(presentation);
}

pub(crate) fn presentation() -> Presentation {
    PRESENTATION.get().copied().unwrap_or_default()
}

/// The width of the terminal that stdout is; `None` for a pipe or a file.
pub(crate) fn terminal_width() -> Option<u16> {
    width_of(&io::stdout())
}

/// The same of stderr, where progress is shown.
pub(crate) fn stderr_width() -> Option<u16> {
    width_of(&io::stderr())
}

fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<u16> {
    if !stream.is_terminal() {
        return None;
    }
    let width = rustix::termios::tcgetwinsize(stream).ok()?.ws_col;
    // A terminal that does not know its size says 0.
    (width > 0).then_some(width)
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether lines of stdout can be overwritten.
pub(crate) fn overwrites_stdout() -> bool {
    io::stdout().is_terminal() && presentation().overwrites()
}

/// Whether lines of stderr can be overwritten, as progress is.
pub(crate) fn overwrites_stderr() -> bool {
    io::stderr().is_terminal() && presentation().overwrites()
}

/// Text for people. On a terminal, lines that are longer than it is wide break between words, and whatever gets into
/// them, styles are the only sequences that steer the terminal. What moves the cursor goes through [`Self::control`].
pub(crate) struct LineWriter<S: TextStream> {
    out: AutoStream<S>,
    /// Where it writes to a terminal.
    lines: Option<TerminalLines>,
    /// The line that has not ended yet, on a terminal.
    open: Vec<u8>,
}

/// Stdout or stderr.
pub(crate) trait TextStream: RawStream + AsLockedWrite {
    /// Writes past the stream that removes styles.
    fn write_past(&self, bytes: &[u8]) -> io::Result<()>;
}

impl TextStream for io::Stdout {
    fn write_past(&self, bytes: &[u8]) -> io::Result<()> {
        self.lock().write_all(bytes)
    }
}

impl TextStream for io::Stderr {
    fn write_past(&self, bytes: &[u8]) -> io::Result<()> {
        self.lock().write_all(bytes)
    }
}

/// Control sequences of toolctl's own. They are never part of a text, because a text shows every control character that
/// is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TerminalControl {
    /// The current line begins again: it is erased, or, where nothing is overwritten, the next one begins.
    RestartLine,
    /// The screen is erased.
    ClearScreen,
    /// The cursor goes to the top of the screen.
    Home,
    /// The cursor goes to the start of the line that is so many lines above.
    Up(u16),
    /// The rest of the line is erased.
    EraseLineEnd,
    /// Everything from the cursor on is erased.
    EraseBelow,
}

impl TerminalControl {
    /// ECMA-48.
    fn sequence(self) -> Cow<'static, str> {
        match self {
            Self::RestartLine if presentation().overwrites() => "\r\x1b[K".into(),
            // The terminal may be in raw mode.
            Self::RestartLine => "\r\n".into(),
            Self::ClearScreen => "\x1b[2J".into(),
            Self::Home => "\x1b[H".into(),
            Self::Up(0) => "\r".into(),
            Self::Up(lines) => format!("\x1b[{lines}F").into(),
            Self::EraseLineEnd => "\x1b[K".into(),
            Self::EraseBelow => "\x1b[J".into(),
        }
    }
}

#[derive(Clone, Copy)]
enum TerminalLines {
    Whole,
    Folded(usize),
}

pub(crate) type StdoutWriter = LineWriter<io::Stdout>;
pub(crate) type StderrWriter = LineWriter<io::Stderr>;

pub(crate) fn stdout() -> StdoutWriter {
    LineWriter::new(anstream::stdout(), TerminalLines::of(&io::stdout()))
}

/// For programs, and for output whose lines are another program's: lines stay as they are.
pub(crate) fn unfolded_stdout() -> StdoutWriter {
    LineWriter::new(anstream::stdout(), TerminalLines::whole(&io::stdout()))
}

pub(crate) fn stderr() -> StderrWriter {
    LineWriter::new(anstream::stderr(), TerminalLines::of(&io::stderr()))
}

/// As [`unfolded_stdout`], and for a terminal in raw mode.
pub(crate) fn unfolded_stderr() -> StderrWriter {
    LineWriter::new(anstream::stderr(), TerminalLines::whole(&io::stderr()))
}

impl TerminalLines {
    fn of(stream: &(impl IsTerminal + AsFd)) -> Option<Self> {
        let whole = Self::whole(stream)?;
        Some(width_of(stream).map_or(whole, |width| Self::Folded(width.into())))
    }

    fn whole(stream: &impl IsTerminal) -> Option<Self> {
        stream.is_terminal().then_some(Self::Whole)
    }
}

impl<S: TextStream> LineWriter<S> {
    fn new(out: AutoStream<S>, lines: Option<TerminalLines>) -> Self {
        Self { out, lines, open: Vec::new() }
    }

    /// Steers the terminal, after the text that was written before; does nothing where there is none.
    pub(crate) fn control(&mut self, control: TerminalControl) -> io::Result<()> {
        if self.lines.is_none() {
            return Ok(());
        }
        self.write_open()?;
        self.out.as_inner().write_past(control.sequence().as_bytes())
    }

    fn write_open(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.open);
        let line = String::from_utf8_lossy(&line);
        let line = only_styles(&line);
        match self.lines {
            Some(TerminalLines::Folded(width)) => self.out.write_all(fold(&line, width).as_bytes()),
            Some(TerminalLines::Whole) | None => self.out.write_all(line.as_bytes()),
        }
    }
}

impl<S: TextStream> Write for LineWriter<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.lines.is_none() {
            return self.out.write(bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.write_open()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_open()?;
        self.out.flush()
    }
}

impl<S: TextStream> Drop for LineWriter<S> {
    fn drop(&mut self) {
        // Whoever must know whether it was written has flushed.
        let _ = self.flush();
    }
}

/// A text with its lines folded for the terminal of stderr, for who writes there in raw mode.
pub(crate) fn folded_for_stderr(text: &str) -> String {
    match stderr_width() {
        Some(width) => text.split_inclusive('\n').map(|line| fold(line, width.into())).collect(),
        None => text.to_owned(),
    }
}

/// A text for people, as one piece.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A text for programs, or one whose lines another program made: lines stay as they are.
pub(crate) fn print_unfolded(text: &str) -> anyhow::Result<()> {
    let mut out = unfolded_stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Another program's text, its last line ended: unchanged for programs; on a terminal, its lines as [`tame`] makes them.
pub(crate) fn print_foreign(text: &str) -> io::Result<()> {
    match stdout_is_terminal() {
        true => write_tamed(&mut unfolded_stdout(), text),
        false => write_unchanged(&mut io::stdout().lock(), text),
    }
}

/// As [`print_foreign`], on stderr.
pub(crate) fn print_foreign_on_stderr(text: &str) -> io::Result<()> {
    match io::stderr().is_terminal() {
        true => write_tamed(&mut unfolded_stderr(), text),
        false => write_unchanged(&mut io::stderr().lock(), text),
    }
}

fn write_tamed(out: &mut impl Write, text: &str) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "{}", tame(line)))?;
    out.flush()
}

fn write_unchanged(out: &mut impl Write, text: &str) -> io::Result<()> {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    out.write_all(format!("{text}{end}").as_bytes())?;
    out.flush()
}

/// The answer of the daemon with `--json`; otherwise the text for people, as wide as this.
pub(crate) fn print_answer<T: Serialize>(
    json: bool,
    answer: &T,
    text: impl FnOnce(&T, Option<u16>) -> String,
) -> anyhow::Result<()> {
    match json {
        true => print_json(answer),
        false => print(&text(answer, terminal_width())),
    }
}

/// One JSON document, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_document(&serde_json::to_string_pretty(value)?)
}

fn print_document(json: &str) -> anyhow::Result<()> {
    match stdout_is_terminal() {
        true => print_unfolded(&format!("{}\n", plain_json(json))),
        false => print_unfolded(&format!("{json}\n")),
    }
}

/// The same document; characters that [`plain`] replaces are JSON escapes.
fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        // All of them are of the basic plane, and JSON itself escapes those below U+0020.
        if is_unsafe(c) { plain.push_str(&format!("\\u{:04x}", u32::from(c))) } else { plain.push(c) }
    }
    plain
}

/// Makes foreign text safe to show: characters that move the cursor, change colours or turn the writing direction
/// appear as escapes. Line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { plain.extend(c.escape_unicode()) } else { plain.push(c) }
    }
    Cow::Owned(plain)
}

/// A name or a path, as [`plain`] and on one line: line breaks and tabs are escapes, too, and spaces stay.
pub(crate) fn plain_name(name: &str) -> String {
    plain(name).replace('\n', "\\n").replace('\t', "\\t")
}

/// As [`plain`], on one line: runs of white space become one space.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" ")).into_owned()
}

/// A line of a tool's output for a terminal: colours stay, all other control characters are removed. Of a line that
/// carriage returns overwrite, the last state.
pub(crate) fn tame(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut tame = String::with_capacity(line.len());
    let mut coloured = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colour_length(rest) {
            coloured = true;
            tame.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        if !is_unsafe(c) {
            tame.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    if coloured {
        tame.push_str("\x1b[0m");
    }
    tame
}

/// A line with styles: as [`plain`], but sequences that set colours stay, and so does a carriage return at the end.
fn only_styles(line: &str) -> Cow<'_, str> {
    let (text, end) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(line);
    }
    let mut styled = String::with_capacity(line.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour_length(rest);
        let (known, after) = rest.split_at(length.unwrap_or(c.len_utf8()));
        match length.is_none() && is_unsafe(c) {
            true => styled.extend(c.escape_unicode()),
            false => styled.push_str(known),
        }
        rest = after;
    }
    styled.push_str(end);
    Cow::Owned(styled)
}

/// The length of the sequence that sets colours at the start of `text` (ECMA-48, SGR).
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':'))?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        // Invisible marks that reorder text, so that what is read is not what is there.
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}')
}

/// A JSON document on one line.
pub(crate) fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    print_document(&serde_json::to_string(value)?)
}

/// The start of a text: its first sentence, or as much as fits in `width` characters.
pub(crate) fn first_sentence(text: &str, width: usize) -> String {
    let text = one_line(text);
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    shorten(text[..end].trim_end_matches('.'), width)
}

pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().nth(width).is_none() {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// `1.5 s`, `12 ms`, `3 min 5 s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 if ms % 60_000 < 1000 => format!("{} min", ms / 60_000),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ if ms % 3_600_000 < 60_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// `512 B`, `1.5 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{}.{} KiB", n >> 10, ((n & 0x3ff) * 10) >> 10),
        _ => format!("{}.{} MiB", n >> 20, (((n >> 10) & 0x3ff) * 10) >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\r\u{202e}c\n\td"), "a\\u{1b}[2Jb\\u{d}\\u{202e}c\n\td");
        assert!(matches!(plain("plain ü"), Cow::Borrowed(_)));
    }

    #[test]
    fn output_keeps_its_colours_and_nothing_else() {
        assert_eq!(tame("\x1b[1;31mred\x1b[0m\x1b[2Jx\x07"), "\x1b[1;31mred\x1b[0m[2Jx\x1b[0m");
        assert_eq!(tame("10%\r20%\r"), "20%");
        assert_eq!(tame("a\tb"), "a\tb");
    }

    #[test]
    fn only_styles_steer_the_terminal() {
        assert_eq!(only_styles("\x1b[1;31ma\x1b[0m\x1b[2Jb\r\n"), "\x1b[1;31ma\x1b[0m\\u{1b}[2Jb\r\n");
        assert_eq!(only_styles("a\rb\u{9b}2J\u{202e}"), "a\\u{d}b\\u{9b}2J\\u{202e}");
        assert!(matches!(only_styles("plain\tü\n"), Cow::Borrowed(_)));
        let json = serde_json::to_string("\u{9b}\u{202e}\x1b\x7f").unwrap();
        assert_eq!(plain_json(&json), r#""\u009b\u202e\u001b\u007f""#);
        assert_eq!(serde_json::from_str::<String>(&plain_json(&json)).unwrap(), "\u{9b}\u{202e}\x1b\x7f");
    }

    #[test]
    fn a_summary_is_the_first_sentence() {
        assert_eq!(first_sentence("Reads a file. Then\nmore.", 80), "Reads a file");
        assert_eq!(first_sentence("Reads\n  e.g.a file.", 80), "Reads e.g.a file");
        assert_eq!(first_sentence("abcdef", 4), "abc…");
    }

    #[test]
    fn amounts_are_for_people() {
        assert_eq!(
            [duration(999), duration(1550), duration(61_000), duration(120_500)],
            ["999 ms", "1.5 s", "1 min 1 s", "2 min"]
        );
        assert_eq!([bytes(1023), bytes(1536), bytes(3 << 20)], ["1023 B", "1.5 KiB", "3.0 MiB"]);
    }
}
