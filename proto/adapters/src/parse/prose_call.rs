//! Calls in prose, where none is made: what reads like a call of a tool there is deserves a word.
//!
//! Two beginnings say so: `{"name": "TOOL", "arguments"`, and `[TOOL(` within a line.

use super::found_call::{self, ARGUMENT_KEYS};
use super::known::KnownTools;

/// Looks for them, one character at a time.
#[derive(Debug, Default)]
pub(crate) struct ProseCall {
    state: ProseCallState,
    /// Everything since the bracket.
    raw: String,
}

#[derive(Debug, Default)]
enum ProseCallState {
    #[default]
    Outside,
    /// So many characters of [`OPEN`] have come.
    Open(usize),
    /// The name, up to its quote.
    Name(String),
    /// So many characters of [`BETWEEN`] have come.
    Between(usize),
    /// The key of the arguments, up to its quote.
    Key(String),
    /// The name after `[`.
    Python(String),
}

const OPEN: &str = "{\"name\":\"";
const BETWEEN: &str = ",\"";
const LONGEST: usize = 512;

const JSON: &str = "a call as JSON stands between marks, or it is the whole answer";
const PYTHON: &str = "it is not a list of calls such as [name(key=value)] on a line of its own";

impl ProseCall {
    /// The beginning of a call that is complete with this character, and the reason why none is made.
    pub(crate) fn push(&mut self, c: char, known: &KnownTools) -> Option<(String, &'static str)> {
        self.raw.push(c);
        let state = std::mem::take(&mut self.state);
        self.state = match state {
            ProseCallState::Open(_) | ProseCallState::Between(_) if c.is_whitespace() && self.raw.len() < LONGEST => {
                state
            }
            ProseCallState::Open(count) if OPEN[count..].starts_with(c) => match count + 1 {
                count if count == OPEN.len() => ProseCallState::Name(String::new()),
                count => ProseCallState::Open(count),
            },
            ProseCallState::Name(name) if c == '"' && known.lists(&name) => ProseCallState::Between(0),
            ProseCallState::Name(name) => self.word(name, c, ProseCallState::Name),
            ProseCallState::Between(count) if BETWEEN[count..].starts_with(c) => match count + 1 {
                count if count == BETWEEN.len() => ProseCallState::Key(String::new()),
                count => ProseCallState::Between(count),
            },
            ProseCallState::Key(key) if c == '"' && ARGUMENT_KEYS.contains(&key.as_str()) => {
                return Some((std::mem::take(&mut self.raw), JSON));
            }
            ProseCallState::Key(key) => self.word(key, c, ProseCallState::Key),
            ProseCallState::Python(name) if c == '(' && known.lists(&name) => {
                return Some((std::mem::take(&mut self.raw), PYTHON));
            }
            ProseCallState::Python(name) => self.word(name, c, ProseCallState::Python),
            ProseCallState::Outside | ProseCallState::Open(_) | ProseCallState::Between(_) => self.begin(c),
        };
        None
    }

    fn word(&mut self, mut word: String, c: char, state: fn(String) -> ProseCallState) -> ProseCallState {
        if !found_call::is_name_char(c) || self.raw.len() >= LONGEST {
            return self.begin(c);
        }
        word.push(c);
        state(word)
    }

    fn begin(&mut self, c: char) -> ProseCallState {
        self.raw.clear();
        self.raw.push(c);
        match c {
            '{' => ProseCallState::Open(1),
            '[' => ProseCallState::Python(String::new()),
            _ => ProseCallState::Outside,
        }
    }
}
