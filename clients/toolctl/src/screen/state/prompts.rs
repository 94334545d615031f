//! Answers to the prompt on the screen: a permission prompt or a question of a tool.

use std::collections::BTreeSet;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use toold_proto::permission::{Action, Ask, ReplyPermission};
use toold_proto::question::Question;

use super::overlays::Scroll;
use super::recent_key::{KeyUse, RecentKey};
use crate::keys::{KeyPress, key};
pub(super) use crate::prompts::READ_FOR;
use crate::prompts::WaitingPrompt;
use crate::prompts::ask::choices;
use crate::prompts::question::{self, Chosen};
use crate::screen::action::{Request, ScreenAction};
use crate::screen::daemon_data::DaemonData;

#[derive(Default)]
pub(in crate::screen) struct PromptState {
    /// The id of the prompt that the user went to. Without it, the oldest is shown.
    current: Option<String>,
    /// The ids of those that the user put aside to use the panel.
    aside: BTreeSet<String>,
    /// The id of the prompt on the screen, and when it appeared.
    pub(super) shown: Option<(String, Instant)>,
    pub(super) scroll: Scroll,
    /// Its text does not fit.
    pub(super) scrolls: bool,
    /// The end of its text was on the screen.
    read_to_end: bool,
    pub(super) recent: RecentKey,
    /// The id of a prompt whose answer has been sent.
    answered: Option<String>,
    /// The options chosen so far, of a question that takes several.
    pub(in crate::screen) chosen: Chosen,
    /// A text that is being typed.
    pub(in crate::screen) entry: Option<PromptEntry>,
}

/// A text for the prompt that was shown when it was begun.
pub(in crate::screen) struct PromptEntry {
    request_id: String,
    pub(in crate::screen) label: &'static str,
    pub(in crate::screen) text: String,
}

/// The effect of a key.
pub(super) enum PromptPress {
    /// The prompt does not name it.
    Unnamed,
    Taken(Option<ScreenAction>),
    /// It may have been meant for something else.
    TooSoon,
    /// It answers only after the end of the prompt was on the screen.
    Unread,
}

impl PromptState {
    /// The prompt to show.
    pub(in crate::screen) fn current<'a>(&self, data: &'a DaemonData) -> Option<&'a WaitingPrompt> {
        let mut shown = data.prompts.iter().filter(|prompt| !self.aside.contains(prompt.id()));
        let chosen = shown.clone().find(|prompt| self.current.as_deref() == Some(prompt.id()));
        chosen.or_else(|| shown.next())
    }

    /// Shows the panel until a new prompt comes or the user goes to one.
    pub(super) fn put_aside(&mut self, data: &DaemonData) {
        self.aside.extend(data.prompts.iter().map(|prompt| prompt.id().to_owned()));
        self.shown = None;
    }

    /// Whether prompts wait that are not on the screen.
    pub(super) fn has_others(&self, data: &DaemonData) -> bool {
        data.prompts.len() > 1 || !self.aside.is_empty()
    }

    /// Goes to the prompt that is `by` places further on; after the last comes the first. Those put aside come back.
    pub(super) fn turn(&mut self, data: &DaemonData, by: usize) {
        if self.current(data).is_none() {
            self.aside.clear();
            return;
        }
        self.aside.clear();
        let Some(id) = self.current(data).map(WaitingPrompt::id) else { return };
        let at = data.prompts.iter().position(|prompt| prompt.id() == id).unwrap_or(0);
        self.current = data.prompts.get((at + by) % data.prompts.len()).map(|prompt| prompt.id().to_owned());
    }

    /// Called when a prompt of `total` lines is drawn, `height` of them at once. Returns the first line.
    pub(in crate::screen) fn settle(&mut self, id: &str, total: usize, height: usize) -> usize {
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != id) {
            *self = Self {
                current: self.current.take(),
                aside: std::mem::take(&mut self.aside),
                recent: std::mem::take(&mut self.recent),
                shown: Some((id.to_owned(), Instant::now())),
                answered: self.answered.take(),
                entry: self.entry.take(),
                ..Self::default()
            };
        }
        let top = self.scroll.settle(total, height);
        self.scrolls = total > height;
        self.read_to_end |= top + height >= total;
        top
    }

    pub(in crate::screen) fn is_read_to_end(&self) -> bool {
        self.read_to_end
    }

    pub(super) fn forget_ended(&mut self, data: &DaemonData) {
        let waits = |id: &String| data.prompts.iter().any(|prompt| prompt.id() == *id);
        self.current = self.current.take().filter(waits);
        self.aside.retain(waits);
        self.answered = self.answered.take().filter(waits);
        self.entry = self.entry.take().filter(|entry| waits(&entry.request_id));
    }

    pub(super) fn is_answered_here(&self, id: &str) -> bool {
        self.answered.as_deref() == Some(id)
    }

    pub(super) fn answer_failed(&mut self) {
        self.answered = None;
    }

    /// A key that was meant for something else must not answer a prompt that has just appeared.
    fn was_read(&self, id: &str) -> bool {
        self.shown.as_ref().is_some_and(|(shown, since)| shown == id && since.elapsed() >= READ_FOR)
    }

    /// A key while a prompt is shown.
    pub(super) fn press(&mut self, data: &DaemonData, event: KeyEvent) -> PromptPress {
        let Some(prompt) = self.current(data) else { return PromptPress::Unnamed };
        let id = prompt.id();
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != id) {
            return PromptPress::Unnamed;
        }
        let answer = match prompt {
            WaitingPrompt::Permission(ask) => press_ask(ask, event),
            WaitingPrompt::Question(question) => self.press_question(question, event),
        };
        let Some(PromptAnswer { action, after_end }) = answer else { return PromptPress::Unnamed };
        if !self.was_read(id) || !self.recent.allows(event.code) {
            self.recent.note(event.code, KeyUse::TooSoon);
            return PromptPress::TooSoon;
        }
        self.recent.note(event.code, KeyUse::Prompt);
        if self.answered.is_some() {
            return PromptPress::Taken(None);
        }
        if after_end && !self.read_to_end {
            return PromptPress::Unread;
        }
        PromptPress::Taken(self.perform(prompt, action))
    }

    fn perform(&mut self, prompt: &WaitingPrompt, action: PromptAction) -> Option<ScreenAction> {
        let id = prompt.id().to_owned();
        match action {
            PromptAction::Send(request) => {
                self.answered = Some(id);
                Some(ScreenAction::Request(*request))
            }
            PromptAction::Toggle(at) => {
                if !self.chosen.remove(&at) {
                    self.chosen.insert(at);
                }
                None
            }
            PromptAction::Type(label) => {
                self.entry = Some(PromptEntry { request_id: id, label, text: String::new() });
                None
            }
            PromptAction::Form(question) => Some(ScreenAction::QuestionForm(question)),
        }
    }

    fn press_question(&self, asked: &Question, event: KeyEvent) -> Option<PromptAnswer> {
        let send = |reply| PromptAction::Send(Box::new(Request::Answer(reply)));
        let after_end = |action| Some(PromptAnswer { action, after_end: true });
        match (key(event), event.code) {
            (_, KeyCode::Enter) if asked.multiple => after_end(send(question::options_reply(asked, &self.chosen))),
            (KeyPress::Char('n'), _) => Some(PromptAnswer::at_once(send(question::no_reply(asked)))),
            (KeyPress::Char('f'), _) if asked.schema.is_some() => {
                Some(PromptAnswer::at_once(PromptAction::Form(Box::new(asked.clone()))))
            }
            (KeyPress::Char('o'), _) if question::takes_text(asked) => {
                Some(PromptAnswer::at_once(PromptAction::Type("answer")))
            }
            (KeyPress::Char(c), _) => {
                let at = question::option(asked, c)?;
                match asked.multiple {
                    true => after_end(PromptAction::Toggle(at)),
                    false => after_end(send(question::options_reply(asked, &[at].into()))),
                }
            }
            _ => None,
        }
    }

    pub(super) fn is_typing(&self) -> bool {
        self.entry.is_some()
    }

    pub(super) fn type_char(&mut self, c: char) {
        if let Some(entry) = &mut self.entry {
            entry.text.push(c);
        }
    }

    pub(super) fn erase(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.text.pop();
        }
    }

    pub(super) fn erase_line(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.text.clear();
        }
    }

    pub(super) fn stop_typing(&mut self) {
        self.entry = None;
    }

    /// Sends the text that was typed.
    pub(super) fn accept(&mut self, data: &DaemonData) -> Option<ScreenAction> {
        let entry = self.entry.take()?;
        let prompt = data.prompts.iter().find(|prompt| prompt.id() == entry.request_id)?;
        let text = entry.text.trim().to_owned();
        let request = match prompt {
            WaitingPrompt::Permission(ask) => {
                let message = Some(text).filter(|text| !text.is_empty());
                Request::Reply(ReplyPermission { message, ..ReplyPermission::once(&ask.request_id, Action::Deny) })
            }
            WaitingPrompt::Question(asked) => Request::Answer(question::text_reply(asked, &self.chosen, text)),
        };
        self.perform(prompt, PromptAction::Send(Box::new(request)))
    }
}

/// The answer to a permission prompt that a key means.
fn press_ask(ask: &Ask, event: KeyEvent) -> Option<PromptAnswer> {
    let KeyPress::Char(c) = key(event) else { return None };
    if c == 'd' {
        return Some(PromptAnswer::at_once(PromptAction::Type("reason")));
    }
    let choice = choices(ask).into_iter().find(|choice| choice.key == c)?;
    let action = PromptAction::Send(Box::new(Request::Reply(choice.reply(ask))));
    Some(PromptAnswer { action, after_end: choice.action == Action::Allow })
}

/// The answer that a key gives.
struct PromptAnswer {
    action: PromptAction,
    /// It counts only when the end of the prompt was on the screen.
    after_end: bool,
}

impl PromptAnswer {
    fn at_once(action: PromptAction) -> Self {
        Self { action, after_end: false }
    }
}

enum PromptAction {
    Send(Box<Request>),
    /// The option at this position.
    Toggle(usize),
    Type(&'static str),
    Form(Box<Question>),
}
