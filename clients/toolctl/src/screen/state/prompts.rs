//! Answers to the oldest prompt: a permission prompt or a question of a tool.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use toold_proto::permission::{Action, Ask, ReplyPermission};
use toold_proto::question::Question;

use crate::keys::{KeyPress, key};
pub(super) use crate::prompts::READ_FOR;
use crate::prompts::WaitingPrompt;
use crate::prompts::ask::choices;
use crate::prompts::question::{self, Chosen};
use crate::screen::action::{Request, ScreenAction};
use crate::screen::daemon_data::DaemonData;

#[derive(Default)]
pub(in crate::screen) struct PromptState {
    /// The id of the prompt on the screen, and when it appeared.
    pub(super) shown: Option<(String, Instant)>,
    /// The id of a prompt whose answer has been sent.
    answered: Option<String>,
    /// The options chosen so far, of a question that takes several.
    pub(in crate::screen) chosen: Chosen,
    /// A text that is being typed.
    pub(in crate::screen) entry: Option<PromptEntry>,
}

/// A text for the prompt that was the oldest when it was begun.
pub(in crate::screen) struct PromptEntry {
    request_id: String,
    pub(in crate::screen) label: &'static str,
    pub(in crate::screen) text: String,
}

impl PromptState {
    /// Called when the oldest prompt is drawn, readable as a whole.
    pub(in crate::screen) fn show(&mut self, id: &str) {
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != id) {
            self.shown = Some((id.to_owned(), Instant::now()));
            self.chosen.clear();
        }
    }

    /// Called when the oldest prompt is not readable, and must not be answered.
    pub(in crate::screen) fn hide(&mut self) {
        self.shown = None;
        self.entry = None;
    }

    pub(super) fn forget_ended(&mut self, data: &DaemonData) {
        let waits = |id: &String| data.prompts.iter().any(|prompt| prompt.id() == *id);
        self.answered = self.answered.take().filter(waits);
        self.entry = self.entry.take().filter(|entry| waits(&entry.request_id));
    }

    pub(super) fn answer_failed(&mut self) {
        self.answered = None;
    }

    /// A key that was meant for something else must not answer a prompt that has just appeared.
    fn was_read(&self, id: &str) -> bool {
        self.shown.as_ref().is_some_and(|(shown, since)| shown == id && since.elapsed() >= READ_FOR)
    }

    /// A key while the oldest prompt is shown. `None` for a key that the prompt does not name.
    pub(super) fn press(&mut self, data: &DaemonData, event: KeyEvent) -> Option<Option<ScreenAction>> {
        let prompt = data.prompts.front()?;
        let (id, _) = self.shown.as_ref().filter(|(id, _)| id == prompt.id())?;
        let id = id.clone();
        let action = match prompt {
            WaitingPrompt::Permission(ask) => self.press_ask(ask, event)?,
            WaitingPrompt::Question(question) => self.press_question(question, event)?,
        };
        if !self.was_read(&id) || self.answered.is_some() {
            return Some(None);
        }
        Some(self.perform(prompt, action))
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

    fn press_ask(&self, ask: &Ask, event: KeyEvent) -> Option<PromptAction> {
        let KeyPress::Char(c) = key(event) else { return None };
        if c == 'd' {
            return Some(PromptAction::Type("reason"));
        }
        let choice = choices(ask).into_iter().find(|choice| choice.key == c)?;
        Some(PromptAction::Send(Box::new(Request::Reply(choice.reply(ask)))))
    }

    fn press_question(&self, asked: &Question, event: KeyEvent) -> Option<PromptAction> {
        let send = |reply| Some(PromptAction::Send(Box::new(Request::Answer(reply))));
        match (key(event), event.code) {
            (_, KeyCode::Enter) if asked.multiple => send(question::options_reply(asked, &self.chosen)),
            (KeyPress::Char('n'), _) => send(question::no_reply(asked)),
            (KeyPress::Char('f'), _) if asked.schema.is_some() => Some(PromptAction::Form(Box::new(asked.clone()))),
            (KeyPress::Char('o'), _) if question::takes_text(asked) => Some(PromptAction::Type("answer")),
            (KeyPress::Char(c), _) => {
                let at = question::option(asked, c)?;
                if asked.multiple {
                    Some(PromptAction::Toggle(at))
                } else {
                    send(question::options_reply(asked, &[at].into()))
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

/// A meaning of a key.
enum PromptAction {
    Send(Box<Request>),
    /// The option at this position.
    Toggle(usize),
    Type(&'static str),
    Form(Box<Question>),
}
