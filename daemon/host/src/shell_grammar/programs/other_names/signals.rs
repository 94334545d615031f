//! `kill -9` is `kill -KILL` and `kill -s KILL`.

use toold_engine::need::Word;

use super::NamedCommand;

/// Numbers and names (signal(7), Linux on x86 and Arm).
const SIGNALS: &[(&str, &str)] = &[
    ("1", "HUP"),
    ("2", "INT"),
    ("3", "QUIT"),
    ("6", "ABRT"),
    ("9", "KILL"),
    ("10", "USR1"),
    ("12", "USR2"),
    ("15", "TERM"),
    ("18", "CONT"),
    ("19", "STOP"),
];

/// Without a signal, these programs send this one.
const USUAL: (&str, &str) = ("15", "TERM");

/// A signal by its number or name.
fn signal(text: &str) -> Option<(&'static str, &'static str)> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().copied().find(|(number, known)| *number == name || *known == name)
}

/// The number and the name of a signal that is given by one of them, as `kill` takes them: `9`, `KILL`, `sigkill`.
pub fn signal_named(text: &str) -> Option<(i32, &'static str)> {
    let (number, name) = signal(text)?;
    Some((number.parse().ok()?, name))
}

/// The command with its signal in each spelling.
pub(super) fn respelled(words: &[Word]) -> Vec<NamedCommand> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let mut given = None;
    let mut others: Vec<Word> = Vec::new();
    let mut waiting = rest.iter();
    while let Some(word) = waiting.next() {
        let text = if word.literal { word.text.as_str() } else { "" };
        // Its beginning stands for the long option.
        let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let is_long = name.len() > 2 && "--signal".starts_with(name);
        let found = match attached {
            _ if matches!(text, "-s" | "-n") => waiting.next().and_then(|value| signal(&value.text)),
            None if is_long => waiting.next().and_then(|value| signal(&value.text)),
            Some(value) if is_long => signal(value),
            _ => ["-s", "-n", "-"].iter().find_map(|start| text.strip_prefix(start).and_then(signal)),
        };
        match found {
            Some(found) => given = Some(found),
            None => others.push(word.clone()),
        }
    }
    let (number, name) = given.unwrap_or(USUAL);
    let option = |text: String| Word { text, literal: true };
    let spelled = [vec![format!("-{number}")], vec![format!("-{name}")], vec![format!("-SIG{name}")]];
    let spelled = spelled.into_iter().chain(["-s", "--signal"].map(|flag| vec![flag.to_owned(), name.to_owned()]));
    let command = |signal: Vec<String>| NamedCommand {
        words: std::iter::once(program.clone()).chain(signal.into_iter().map(option)).chain(others.clone()).collect(),
        form: None,
    };
    spelled.map(command).collect()
}
