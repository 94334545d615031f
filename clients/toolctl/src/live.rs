//! Shows a call while it runs.
//!
//! On a terminal the tool's own output appears as it comes, line by line, over a spinner that shows the newest message;
//! so it does in a file that stdout and stderr share. When stdout goes elsewhere, it gets only the result. stderr then
//! gets the newest line beside the spinner if it is a terminal. If not, it gets the messages as they come, and at the
//! end the output, unless that is a part of the result: nothing is written to both.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toold_proto::call::{CallProgress, Progress, Stream};
use toold_proto::tool::Block;

use crate::output::{self, DIM, one_line, shorten, tame};

/// A call that ends before this shows no spinner.
pub(crate) const SPINNER_AFTER: Duration = Duration::from_millis(150);

/// The done part of a progress bar, and the rest, wherever one is drawn.
pub(crate) const BAR_CHARS: [&str; 2] = ["━", "─"];

/// Terminals that are narrower than this show the number without a bar.
const BAR_FROM: u16 = 60;

/// How much output is kept, to find the part of the result that was shown already.
const MAX_KEPT: usize = 8 << 20;

pub(crate) struct LiveOutput {
    place: ToolOutputTarget,
    bar: ProgressBar,
    /// The line of each stream that has not ended yet.
    open_stdout: String,
    open_stderr: String,
    /// The output so far, in order, and the two streams of it.
    kept: String,
    kept_stdout: String,
    kept_stderr: String,
    /// Whether `kept` holds all output.
    complete: bool,
    /// Whether any line was shown.
    shown: bool,
    /// The newest message, where each is a line of its own.
    last_message: String,
}

/// Where the tool's output goes while it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolOutputTarget {
    /// Its stdout to ours, its stderr to ours.
    Streams,
    /// The newest line, beside the spinner.
    Spinner,
    /// To stderr in the end, unless the result has it.
    Stderr,
    Nowhere,
}

/// Whether stdout gets only the result, or output for people too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    ResultOnly,
    ForPeople,
    /// Its output is what the user asked for.
    AllOutput,
}

impl LiveOutput {
    pub(crate) fn new(stdout: Stdout, quiet: bool) -> Self {
        // When both go to one file or pipe, stderr output would appear there twice.
        let one_reader = output::stdout_is_terminal() || same_file();
        let person_reads_stdout = match stdout {
            Stdout::ResultOnly => false,
            Stdout::ForPeople => one_reader,
            Stdout::AllOutput => true,
        };
        let place = match (quiet, person_reads_stdout, output::overwrites_stderr()) {
            (true, ..) => ToolOutputTarget::Nowhere,
            (false, true, _) => ToolOutputTarget::Streams,
            (false, false, true) => ToolOutputTarget::Spinner,
            (false, false, false) => ToolOutputTarget::Stderr,
        };
        Self {
            place,
            bar: ProgressBar::hidden(),
            open_stdout: String::new(),
            open_stderr: String::new(),
            kept: String::new(),
            kept_stdout: String::new(),
            kept_stderr: String::new(),
            complete: true,
            shown: false,
            last_message: String::new(),
        }
    }

    /// Called when the call has run for [`SPINNER_AFTER`].
    pub(crate) fn start_spinner(&mut self, message: &str) {
        if self.place == ToolOutputTarget::Nowhere || !output::overwrites_stderr() {
            return;
        }
        self.bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        self.bar.set_style(spinner());
        self.bar.set_message(message.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    pub(crate) fn show(&mut self, progress: CallProgress) -> io::Result<()> {
        if progress.dropped.is_some() {
            self.complete = false;
        }
        match progress.progress {
            Progress::Output { stream, text } => self.output(stream, &text),
            Progress::Message { text } => self.message(&text),
            Progress::Update { progress, total, message, content, details: _ } => {
                set_amount(&self.bar, progress, total);
                if let Some(message) = message {
                    self.message(&message)?;
                }
                for text in content.iter().flatten().filter_map(Block::as_text) {
                    self.message(text)?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn message(&mut self, text: &str) -> io::Result<()> {
        let text = one_line(text);
        match self.place {
            ToolOutputTarget::Nowhere => {}
            _ if output::overwrites_stderr() => self.bar.set_message(text),
            // A message that is repeated while nothing changes is one line.
            _ if text == self.last_message => {}
            ToolOutputTarget::Streams | ToolOutputTarget::Spinner | ToolOutputTarget::Stderr => {
                writeln!(output::stderr(), "{text}")?;
                self.last_message = text;
            }
        }
        Ok(())
    }

    fn output(&mut self, stream: Stream, text: &str) -> io::Result<()> {
        self.keep(stream, text);
        match self.place {
            ToolOutputTarget::Nowhere | ToolOutputTarget::Stderr => Ok(()),
            ToolOutputTarget::Spinner => {
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    self.bar.set_message(shorten(&one_line(line), 200));
                }
                Ok(())
            }
            ToolOutputTarget::Streams => {
                let open = match stream {
                    Stream::Stdout => &mut self.open_stdout,
                    Stream::Stderr => &mut self.open_stderr,
                };
                open.push_str(text);
                // A spinner below an open line would write over it.
                let Some(end) = open.rfind('\n') else { return Ok(()) };
                let rest = open.split_off(end + 1);
                let lines = std::mem::replace(open, rest);
                self.shown = true;
                self.bar.suspend(|| write_lines(stream, &lines))
            }
        }
    }

    fn keep(&mut self, stream: Stream, text: &str) {
        if self.kept.len() + text.len() > MAX_KEPT {
            self.complete = false;
            return;
        }
        self.kept.push_str(text);
        match stream {
            Stream::Stdout => self.kept_stdout.push_str(text),
            Stream::Stderr => self.kept_stderr.push_str(text),
        }
    }

    /// Clears the spinner, to show something else. [`Self::start_spinner`] brings it back.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.finish()?;
        self.bar = ProgressBar::hidden();
        Ok(())
    }

    /// Clears the spinner and shows the lines that never ended.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        for (stream, open) in [(Stream::Stdout, &mut self.open_stdout), (Stream::Stderr, &mut self.open_stderr)] {
            if !open.is_empty() {
                self.shown = true;
                write_lines(stream, &std::mem::take(open))?;
            }
        }
        Ok(())
    }

    /// The tool's stdout, for a call that has no result; its stderr goes to stderr. Empty if both were shown.
    pub(crate) fn without_result(&self) -> io::Result<&str> {
        if self.place == ToolOutputTarget::Stderr {
            output::print_foreign_on_stderr(&self.kept_stderr)?;
        }
        Ok(if self.place == ToolOutputTarget::Streams { "" } else { &self.kept_stdout })
    }

    /// Writes the output to stderr if it has not been shown, and the result's texts do not have it.
    pub(crate) fn write_output_without(&self, texts: &[&str]) -> io::Result<()> {
        if self.place != ToolOutputTarget::Stderr || self.kept.trim().is_empty() {
            return Ok(());
        }
        let has_it = |text: &&str| match self.complete {
            true => !text.is_empty() && unseen(text, &self.kept, &self.kept_stdout) != **text,
            // The beginning decides for an output that is too long to compare.
            false => begins_with_output(text, &self.kept),
        };
        if texts.iter().any(has_it) {
            return Ok(());
        }
        output::print_foreign_on_stderr(&self.kept)
    }

    /// The part of a result's text that was not shown yet.
    pub(crate) fn unseen(&self, text: &str) -> String {
        if self.place != ToolOutputTarget::Streams || !self.shown || !self.complete {
            return text.to_owned();
        }
        unseen(text, &self.kept, &self.kept_stdout)
    }
}

/// `text` without the part that was shown: all of it, its beginning, or the two ends of an output that was too long for
/// a model. A result may have the output without its escape sequences.
fn unseen(text: &str, shown: &str, shown_stdout: &str) -> String {
    if let Some(rest) = rest_of(text, shown, shown_stdout) {
        return rest;
    }
    rest_of(&bare(text), &bare(shown), &bare(shown_stdout)).unwrap_or_else(|| text.to_owned())
}

fn rest_of(text: &str, shown: &str, shown_stdout: &str) -> Option<String> {
    let (shown, shown_stdout) = (shown.trim(), shown_stdout.trim());
    if shown.contains(text.trim()) || shown_stdout.contains(text.trim()) {
        return Some(String::new());
    }
    let begins = |seen: &str| (!seen.is_empty()).then(|| text.trim_start().strip_prefix(seen)).flatten();
    if let Some(rest) = begins(shown).or_else(|| begins(shown_stdout)) {
        return Some(rest.trim_start_matches('\n').to_owned());
    }
    between_ends(text, shown).or_else(|| between_ends(text, shown_stdout))
}

/// Output as results have it: without escape sequences, and of a line that carriage returns overwrite the last state.
fn bare(output: &str) -> Cow<'_, str> {
    if !output.contains(char::is_control) {
        return Cow::Borrowed(output);
    }
    let last_state = |line: &str| {
        let line = anstream::adapter::strip_str(line).to_string();
        let (states, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |states| (states, "\n"));
        let last = states.rsplit('\r').find(|state| !state.is_empty()).unwrap_or_default();
        format!("{last}{end}")
    };
    Cow::Owned(output.split_inclusive('\n').map(last_state).collect())
}

/// How much of the first line of an output has to be equal.
const BEGINNING: usize = 200;

fn begins_with_output(text: &str, output: &str) -> bool {
    let (text, output) = (bare(text), bare(output));
    let first = output.trim_start().lines().next().unwrap_or_default();
    let first = &first[..first.floor_char_boundary(BEGINNING)];
    !first.is_empty() && text.trim_start().starts_with(first)
}

/// How many lines of its own a result may have after the output.
const MAX_NOTES: usize = 8;

/// The line between head and tail of `shown`, and the lines behind the tail; `None` when `text` is
/// not made like that.
fn between_ends(text: &str, shown: &str) -> Option<String> {
    let common = text.bytes().zip(shown.bytes()).take_while(|(a, b)| a == b).count();
    let head_end = text.get(..common)?.rfind('\n').map_or(0, |end| end + 1);
    // The head may end within a line, and there may be no other.
    let (open_line, rest) = text[head_end..].split_once('\n')?;
    let (cut, rest) = match shown[head_end..].starts_with(open_line) {
        true if head_end > 0 || !open_line.is_empty() => rest.split_once('\n')?,
        false if head_end > 0 => (open_line, rest),
        _ => return None,
    };
    let mut tail = rest.trim_end();
    for _ in 0..MAX_NOTES {
        if !tail.is_empty() && shown.ends_with(tail) {
            return Some(format!("{cut}{}", &rest[tail.len()..]));
        }
        tail = tail[..tail.rfind('\n')?].trim_end();
    }
    None
}

/// Whether stdout and stderr go to the same place.
fn same_file() -> bool {
    match (rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())) {
        (Ok(out), Ok(err)) => (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino),
        _ => false,
    }
}

fn write_lines(stream: Stream, lines: &str) -> io::Result<()> {
    match stream {
        // A program or a file gets the output unchanged.
        Stream::Stdout | Stream::Stderr if !output::stdout_is_terminal() => {
            let mut out = io::stdout().lock();
            out.write_all(lines.as_bytes())?;
            out.flush()
        }
        Stream::Stdout => {
            let mut out = output::unfolded_stdout();
            lines.lines().try_for_each(|line| writeln!(out, "{}", tame(line)))?;
            out.flush()
        }
        Stream::Stderr => {
            let mut err = output::unfolded_stderr();
            lines.lines().try_for_each(|line| writeln!(err, "{DIM}{}{DIM:#}", tame(line)))
        }
    }
}

/// Awaits what may take long. A terminal shows meanwhile what it is about, and that Ctrl-C stops it.
pub(crate) async fn waiting<T>(about: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(SPINNER_AFTER, &mut work).await {
        return done;
    }
    let mut live = LiveOutput::new(Stdout::ResultOnly, false);
    live.start_spinner(&format!("{}; Ctrl-C stops", one_line(about)));
    let done = work.await;
    live.bar.finish_and_clear();
    done
}

/// A spinner with the name of a call, its newest message and its time.
pub(crate) fn spinner() -> ProgressStyle {
    style("{spinner:.cyan} {prefix:.bold} {wide_msg} {elapsed:.dim}")
}

/// How far a call is, if it says so.
pub(crate) fn set_amount(bar: &ProgressBar, progress: Option<f64>, total: Option<f64>) {
    let Some(progress) = progress else { return };
    // The bar counts in whole steps; tools often count from 0 to 1.
    let scale = if total.unwrap_or(1.0) <= 1.0 { 1000.0 } else { 1.0 };
    if let Some(total) = total.filter(|total| *total > 0.0) {
        // Where a bar would leave no room for the message, the number says the same.
        let amount =
            if output::stderr_width().is_some_and(|width| width < BAR_FROM) { "" } else { "{bar:20.cyan/dim} " };
        let template =
            format!("{{spinner:.cyan}} {{prefix:.bold}} {amount}{{percent:>3}}% {{wide_msg}} {{elapsed:.dim}}");
        bar.set_style(style(&template).progress_chars(&BAR_CHARS.concat()));
        bar.set_length((total * scale) as u64);
    }
    bar.set_position((progress.max(0.0) * scale) as u64);
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are well formed")
}

#[cfg(test)]
mod tests {
    use super::{begins_with_output, unseen};

    #[test]
    fn streamed_output_is_not_repeated() {
        assert_eq!(unseen("a\nb\n", "a\nb\n", "a\nb\n"), "");
        assert_eq!(unseen("a\nb\n\nexit status 1", "a\nb\n", "a\nb\n"), "exit status 1");
        assert_eq!(unseen("a", "a\nwarning\n", "a\n"), "");
        assert_eq!(unseen("a\nended", "warning\na\n", "a\n"), "ended");
        assert_eq!(
            unseen("a\nb\n[2 lines cut]\ne\nf\n[exit code 1]", "a\nb\nc\nd\ne\nf\n", ""),
            "[2 lines cut]\n[exit code 1]"
        );
        assert_eq!(unseen("a\nb\n[cut]\ne\nf", "a\nbb\nd\ne\nf\n", ""), "[cut]");
        let long = "x".repeat(1000);
        assert_eq!(unseen("xxx\n[cut]\nxxx\nend", &format!("{long}\nend\n"), ""), "[cut]");
        assert_eq!(unseen("xxx\n[cut]\nxxx\n[exit code 1]", &long, ""), "[cut]\n[exit code 1]");
        assert_eq!(unseen("y\nxxx", &long, ""), "y\nxxx");
        assert_eq!(unseen("\n[cut]\nx", &long, ""), "\n[cut]\nx");
        assert_eq!(unseen("red\nplain\n[exit code 1]", "\x1b[31mred\x1b[0m\nplain\n", ""), "[exit code 1]");
        assert_eq!(unseen("100%\na\n[cut]\nc", "1%\r100%\r\n\x1b[1ma\nb\nc\n", ""), "[cut]");
        assert_eq!(unseen("\x1b[31mred\x1b[0m, then more", "blue\n", ""), "\x1b[31mred\x1b[0m, then more");
        assert_eq!(unseen("a\nx\ny\nz", "a\nb\nc\n", ""), "a\nx\ny\nz");
        assert_eq!(unseen("a summary", "working\n", "working\n"), "a summary");
    }

    #[test]
    fn the_beginning_decides_for_a_long_output() {
        let long = "x".repeat(1000);
        assert!(begins_with_output(&format!("{}\n[cut]", &long[..500]), &format!("\x1b[31m{long}")));
        assert!(!begins_with_output("y", &long) && !begins_with_output("a", "\x1b[31m\n"));
    }
}
