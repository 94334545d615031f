//! The key before this one: whether a person who presses an answer now has stopped doing something else.

use std::time::{Duration, Instant};

use crossterm::event::KeyCode;

use crate::prompts::READ_FOR;

/// A key that is held down repeats after at most this long, as terminals are set.
const HELD_FOR: Duration = Duration::from_millis(700);

/// The purpose of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyUse {
    /// It did something with the prompt that was shown.
    Prompt,
    /// It was for the panel, for a text, or for nothing.
    Elsewhere,
    /// It would have answered the prompt, but came too soon.
    TooSoon,
}

#[derive(Default)]
pub(super) struct RecentKey(Option<(KeyCode, KeyUse, Instant)>);

impl RecentKey {
    pub(super) fn note(&mut self, code: KeyCode, used: KeyUse) {
        self.0 = Some((code, used, Instant::now()));
    }

    /// Whether this key may answer now: it is neither in the middle of typing nor held down since the key before.
    pub(super) fn allows(&self, code: KeyCode) -> bool {
        let Some((last, used, at)) = self.0 else { return true };
        let pause = match used {
            KeyUse::Prompt if last != code => Duration::ZERO,
            KeyUse::Elsewhere if last != code => READ_FOR,
            KeyUse::Prompt | KeyUse::Elsewhere => HELD_FOR,
            // A repeated key comes faster; a person who presses it again is heard.
            KeyUse::TooSoon => READ_FOR,
        };
        at.elapsed() >= pause
    }

    /// As if the last key had been pressed this much earlier.
    #[cfg(test)]
    pub(super) fn wait(&mut self, time: Duration) {
        if let Some((.., at)) = &mut self.0 {
            *at = at.checked_sub(time).unwrap();
        }
    }
}
