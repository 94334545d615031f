//! The table of the day, and the line with the number.

use std::fmt;
use std::io::{Write, stderr};
use std::time::Duration;

use crate::working_day::PathNames;
use crate::working_day::person::AnsweredAsk;

pub(crate) struct DoneStep {
    pub(crate) who: &'static str,
    pub(crate) text: String,
    pub(crate) took: Duration,
    pub(crate) failed: bool,
}

/// The number of approvals on this day.
#[derive(Debug)]
pub(crate) struct Counted {
    steps: usize,
    pub(crate) approvals: usize,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, approvals } = self;
        write!(f, "{approvals} approvals in {steps} steps")
    }
}

/// Prints everything; the number bypasses the test harness, so that each run shows it.
pub(crate) fn print(names: &PathNames, done: &[DoneStep], asked: &[AnsweredAsk], took: Duration) -> Counted {
    println!("\n step  who      asks    ms  what");
    for (at, step) in done.iter().enumerate() {
        let asks = asked.iter().filter(|ask| ask.step == at + 1).count();
        let asks = if asks == 0 { String::new() } else { asks.to_string() };
        let mark = if step.failed { "!" } else { " " };
        let text = short(&step.text);
        println!("{mark}{:4}  {:8} {asks:>4} {:5}  {text}", at + 1, step.who, step.took.as_millis());
    }
    println!("\nasks:");
    for line in lines(names, asked) {
        println!("  {line}");
    }
    let approvals = asked.iter().filter(|ask| ask.allowed).count();
    let counted = Counted { steps: done.len(), approvals };
    let denied = asked.len() - approvals;
    let _ = writeln!(stderr(), "{counted}; {denied} more asks were denied; in {} s", took.as_secs());
    counted
}

/// Each ask: who asked, for what, and what was answered.
pub(crate) fn lines(names: &PathNames, asked: &[AnsweredAsk]) -> Vec<String> {
    let line = |ask: &AnsweredAsk| {
        let answer = match (&ask.pattern, ask.allowed) {
            (Some(pattern), _) => format!("allowed for the session: {}", names.take_out_of(pattern)),
            (None, true) => "allowed once".to_owned(),
            (None, false) => "denied".to_owned(),
        };
        let target = short(&names.take_out_of(&ask.target));
        format!("step {:3}, {} ({}): {} {target} -> {answer}", ask.step, ask.who, ask.tool, ask.category)
    };
    asked.iter().map(line).collect()
}

/// On one line, and no longer than a terminal is wide.
fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(110) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
