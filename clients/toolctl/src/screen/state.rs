//! The state of the screen, and what keys and the mouse do. Knows neither the terminal nor the daemon.

mod commands;
mod mouse;
mod overlays;
mod prompts;
mod recent_key;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;
use toold_proto::permission::PermissionEvent;
use toold_proto::question::QuestionEvent;

use super::action::{Request, ScreenAction};
use super::answer::ScreenAnswer;
use super::daemon_data::DaemonData;
use super::fetch::ListKind;
use super::keymap::{KeyCommand, KeyPlace, Movement, binding};
use super::panel::{Panel, PanelRow};
use super::table_view::TableView;
use super::text::{PaneLine, diff_lines};
use super::theme::Theme;
use crate::keys::{KeyPress, key};
use crate::output::one_line;
use crate::prompts::{ask, question};
use crate::views::Tone;
use mouse::Click;
pub(super) use mouse::HitArea;
use overlays::{ConfirmDialog, DetailsView, Scroll};
use prompts::{PromptPress, PromptState};
use recent_key::KeyUse;

#[derive(Default)]
pub(super) struct ScreenState {
    pub(super) data: DaemonData,
    pub(super) link: DaemonLink,
    pub(super) panel: Panel,
    views: [TableView; Panel::ALL.len()],
    /// The filter of the panel is being typed.
    pub(super) filtering: bool,
    pub(super) details: Option<DetailsView>,
    pub(super) help: Option<Scroll>,
    pub(super) confirm: Option<ConfirmDialog>,
    pub(super) prompt: PromptState,
    /// The newest message, until the next key; good news for a few ticks.
    pub(super) message: Option<(Tone, String)>,
    message_age: u8,
    pub(super) theme: Theme,
    pub(super) mouse: bool,
    /// What was drawn where, for clicks.
    pub(super) hits: Vec<HitArea>,
    last_click: Option<Click>,
    pub(super) outdated: Outdated,
    /// The folder that toolctl was started in.
    pub(super) cwd: Option<String>,
}

/// Whether there is a daemon.
#[derive(Debug, Default)]
pub(super) enum DaemonLink {
    #[default]
    Connected,
    /// The data is of the last one.
    Gone {
        /// A connection is being made, and a daemon perhaps started, because the user wants one.
        starting: bool,
    },
}

/// The lists that must be fetched, and those that are being fetched.
#[derive(Debug)]
pub(super) struct Outdated {
    wanted: BTreeSet<ListKind>,
    pending: BTreeSet<ListKind>,
    /// Fetched when their panel is shown.
    stale: BTreeSet<ListKind>,
}

impl Default for Outdated {
    fn default() -> Self {
        Self { wanted: BTreeSet::from(ListKind::ALL), pending: BTreeSet::new(), stale: BTreeSet::new() }
    }
}

impl ScreenState {
    /// Called when a connection is made: everything is fetched again, and the subscriptions begin from the start.
    pub(super) fn connected(&mut self) {
        if !matches!(self.link, DaemonLink::Connected) {
            self.say(Tone::Good, "connected to a daemon".to_owned());
        }
        self.link = DaemonLink::Connected;
        self.data.forget_connection();
        self.outdated = Outdated::default();
        if let Some(details) = &mut self.details {
            (details.pending, details.wanted) = (false, true);
        }
    }

    /// Called when the connection has ended. The data stays, but nothing can be asked or answered any more.
    pub(super) fn lost(&mut self) {
        self.link = DaemonLink::Gone { starting: false };
        self.data.prompts.clear();
        self.prompt = PromptState::default();
        self.confirm = None;
    }

    /// Called when no daemon could be started.
    pub(super) fn not_connected(&mut self, error: &anyhow::Error) {
        self.link = DaemonLink::Gone { starting: false };
        self.say(Tone::Bad, one_line(&format!("{error:#}")));
    }

    fn say(&mut self, tone: Tone, text: String) {
        (self.message, self.message_age) = (Some((tone, text)), 0);
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.link, DaemonLink::Gone { .. })
    }

    /// The lists that should be fetched now. A list that changes while it is fetched is fetched once more.
    pub(super) fn claim_outdated(&mut self) -> Vec<ListKind> {
        let outdated = &mut self.outdated;
        let stale = self.panel.lazy_lists().iter().filter(|kind| outdated.stale.remove(kind));
        outdated.wanted.extend(stale);
        let now: Vec<ListKind> = outdated.wanted.difference(&outdated.pending).copied().collect();
        for what in &now {
            outdated.wanted.remove(what);
            outdated.pending.insert(*what);
        }
        now
    }

    /// The request for the rest of the details, if it is due.
    pub(super) fn claim_details(&mut self) -> Option<Request> {
        let details = self.details.as_mut()?;
        if !details.wanted || details.pending {
            return None;
        }
        let request = Request::Details(details.key.clone()?, details.query.clone()?);
        (details.wanted, details.pending) = (false, true);
        Some(request)
    }

    pub(super) fn take(&mut self, answer: ScreenAnswer) {
        match answer {
            ScreenAnswer::List(kind, fetched) => {
                self.outdated.pending.remove(&kind);
                match fetched {
                    Ok(fetched) => self.data.take(fetched),
                    Err(error) => self.say(Tone::Bad, one_line(&error)),
                }
            }
            ScreenAnswer::Details(key, lines) => {
                if let Some(details) = self.details.as_mut().filter(|details| details.key.as_ref() == Some(&key)) {
                    (details.more, details.pending) = (lines, false);
                }
            }
            ScreenAnswer::UndoPlan(undo, plan) => {
                let files: Vec<String> = plan.paths.iter().map(|path| one_line(path)).collect();
                let mut lines = diff_lines(plan.diff.as_deref().unwrap_or_default());
                lines.extend(plan.notes.into_iter().map(|note| PaneLine::new(Tone::Warn, note)));
                self.confirm = Some(ConfirmDialog {
                    question: format!("Undo the changes of this call to {}?", files.join(", ")),
                    lines,
                    scroll: Scroll::default(),
                    readable: true,
                    request: Request::Undo(undo),
                    item: None,
                    since: Some(Instant::now()),
                });
            }
            ScreenAnswer::Result(tool, lines) => {
                self.details = Some(DetailsView {
                    key: None,
                    title: format!("result of {tool}"),
                    lines,
                    more: Vec::new(),
                    query: None,
                    gone: false,
                    scroll: Scroll::default(),
                    wanted: false,
                    pending: false,
                });
            }
            ScreenAnswer::Done(message) => {
                self.say(Tone::Good, one_line(&message));
                self.outdated.wanted.extend(self.panel.lazy_lists());
            }
            ScreenAnswer::Failed(message) => {
                self.say(Tone::Bad, one_line(&message));
                self.prompt.answer_failed();
                if let Some(details) = &mut self.details {
                    details.pending = false;
                }
            }
        }
        self.close_dialog_of_ended_item();
    }

    /// Called regularly, for data that would be too expensive to fetch at each event.
    pub(super) fn tick(&mut self) {
        self.message_age = self.message_age.saturating_add(1);
        if self.message_age > GOOD_NEWS_TICKS {
            self.message = self.message.take().filter(|(tone, _)| *tone != Tone::Good);
        }
        if self.is_gone() {
            return;
        }
        self.outdated.wanted.insert(ListKind::Status);
        if self.panel.changes_silently() {
            self.outdated.wanted.extend(self.panel.lazy_lists());
        }
        if let Some(details) = &mut self.details {
            details.wanted |= !details.gone && matches!(self.panel, Panel::Calls | Panel::Sources);
        }
    }

    pub(super) fn permission(&mut self, event: PermissionEvent) {
        if let PermissionEvent::Resolved(resolved) = &event {
            self.tell_end(&resolved.request_id, &ask::end(resolved));
        }
        self.data.permission(event);
        self.prompt.forget_ended(&self.data);
    }

    pub(super) fn question(&mut self, event: QuestionEvent) {
        if let QuestionEvent::Resolved(resolved) = &event {
            self.tell_end(&resolved.request_id, &question::end(resolved));
        }
        self.data.question(event);
        self.prompt.forget_ended(&self.data);
    }

    /// Says how a prompt has ended that was not answered here. It disappears from the screen, and a key may be on its way.
    fn tell_end(&mut self, id: &str, how: &str) {
        let Some(prompt) = self.data.prompts.iter().find(|prompt| prompt.id() == id) else { return };
        if !self.prompt.is_answered_here(id) {
            let how = anstream::adapter::strip_str(how).to_string();
            self.say(Tone::Warn, format!("{how}: {}", one_line(prompt.subject())));
        }
    }

    pub(super) fn event(&mut self, event: Value) {
        for kind in self.data.event(event) {
            match kind {
                ListKind::Changes | ListKind::Audit | ListKind::Permissions | ListKind::Suggestions => {
                    self.outdated.stale.insert(*kind)
                }
                _ => self.outdated.wanted.insert(*kind),
            };
        }
        if let Some(details) = &mut self.details {
            // The output of the call may have grown.
            details.wanted |= self.panel == Panel::Calls && !details.gone;
        }
        self.close_dialog_of_ended_item();
    }

    fn close_dialog_of_ended_item(&mut self) {
        let Some((panel, key)) = self.confirm.as_ref().and_then(|confirm| confirm.item.as_ref()) else { return };
        if panel.details(&self.data, key).is_none() {
            self.confirm = None;
            self.say(Tone::Warn, "the item is gone".to_owned());
        }
    }

    pub(super) fn view(&self) -> &TableView {
        &self.views[self.panel.index()]
    }

    pub(super) fn view_mut(&mut self) -> &mut TableView {
        &mut self.views[self.panel.index()]
    }

    pub(super) fn rows(&self) -> Vec<PanelRow> {
        self.view().rows(self.panel, &self.data)
    }

    /// Brings the details of an item up to date with the lists.
    pub(super) fn refresh_details(&mut self) {
        let Some(view) = &mut self.details else { return };
        let Some(key) = &view.key else { return };
        match self.panel.details(&self.data, key) {
            Some(details) => {
                (view.title, view.lines, view.query) = (details.title, details.lines, details.query);
                view.gone = false;
            }
            None if !view.gone => (view.gone, view.wanted) = (true, true),
            None => {}
        }
    }

    /// Where the keys belong, without those that answer a prompt.
    pub(super) fn places(&self) -> Vec<KeyPlace> {
        if self.confirm.is_some() {
            vec![KeyPlace::Confirm, KeyPlace::Scrolling]
        } else if self.filtering || self.prompt.is_typing() {
            vec![KeyPlace::Typing]
        } else if self.help.is_some() {
            vec![KeyPlace::Help, KeyPlace::Scrolling]
        } else {
            self.places_below_help()
        }
    }

    /// The places that the help is about. A prompt takes the keys of the panel below it, since many of them answer it.
    pub(super) fn places_below_help(&self) -> Vec<KeyPlace> {
        let mut places = Vec::new();
        if self.prompt.current(&self.data).is_some() {
            places.extend([KeyPlace::Asked, KeyPlace::Scrolling]);
        } else {
            places.push(KeyPlace::In(self.panel));
            places.push(if self.details.is_some() { KeyPlace::Details } else { KeyPlace::Panels });
            places.extend((self.is_gone() && self.details.is_none()).then_some(KeyPlace::Gone));
        }
        places.extend(self.prompt.has_others(&self.data).then_some(KeyPlace::Prompts));
        places
    }

    pub(super) fn press(&mut self, event: KeyEvent) -> Option<ScreenAction> {
        self.message = None;
        let asked = self.prompt_is_shown() && !self.prompt.is_typing();
        if asked {
            match self.prompt.press(&self.data, event) {
                PromptPress::Taken(action) => return action,
                PromptPress::TooSoon => {
                    let why = "that came too soon after the prompt or another key: press it again";
                    self.say(Tone::Warn, why.to_owned());
                    return None;
                }
                PromptPress::Unread => {
                    self.say(Tone::Warn, "read the prompt to its end first: PgDn".to_owned());
                    return None;
                }
                PromptPress::Unnamed => {}
            }
        }
        let bound = binding(&self.places(), event);
        let used = if asked && bound.is_some() { KeyUse::Prompt } else { KeyUse::Elsewhere };
        self.prompt.recent.note(event.code, used);
        if asked && bound.is_none() {
            self.say(Tone::Warn, "the prompt takes the keys: Esc puts it aside".to_owned());
        }
        match (bound, key(event)) {
            (Some(bound), _) => self.run(bound.command, event),
            (None, KeyPress::Char(c)) => {
                self.type_char(c);
                None
            }
            (None, _) => None,
        }
    }

    /// A pasted text goes only into a text that is being typed: as keys, it could do anything.
    pub(super) fn paste(&mut self, text: &str) {
        if self.places() != [KeyPlace::Typing] {
            return self
                .say(Tone::Warn, "a text can be pasted only where one is typed, such as in the filter".to_owned());
        }
        let text = text.trim_end_matches(['\r', '\n']);
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).for_each(|c| self.type_char(c));
    }

    /// Adds it to the text that is being typed, if any.
    fn type_char(&mut self, c: char) {
        if self.filtering {
            self.view_mut().filter.push(c);
        } else {
            self.prompt.type_char(c);
        }
    }

    /// Whether a prompt is on the screen. A dialog, the help, or a text that the user works on goes first.
    pub(super) fn prompt_is_shown(&self) -> bool {
        let covered = self.confirm.is_some() || self.help.is_some() || self.filtering;
        !covered && self.prompt.current(&self.data).is_some()
    }

    fn run(&mut self, command: KeyCommand, event: KeyEvent) -> Option<ScreenAction> {
        match command {
            KeyCommand::Quit => return Some(ScreenAction::Quit),
            KeyCommand::Help => self.help = Some(Scroll::default()),
            KeyCommand::Leave => self.leave(),
            KeyCommand::Filter => self.filtering = true,
            KeyCommand::Details => self.open_details(),
            KeyCommand::NextPanel => self.turn(1),
            KeyCommand::PreviousPanel => self.turn(Panel::ALL.len() - 1),
            KeyCommand::ToPanel => {
                let KeyCode::Char(digit) = event.code else { return None };
                let number = usize::try_from(digit.to_digit(10)?).ok()?;
                self.show_panel(*Panel::ALL.get(number.checked_sub(1)?)?);
            }
            KeyCommand::Move(movement) => self.go(movement),
            KeyCommand::SortColumn => {
                let panel = self.panel;
                self.view_mut().sort_by_next(panel);
            }
            KeyCommand::SortReverse => self.view_mut().reverse(),
            KeyCommand::ToggleMouse => {
                self.mouse = !self.mouse;
                let on = if self.mouse { "mouse on" } else { "mouse off: the terminal selects text" };
                self.say(Tone::Good, on.to_owned());
                return Some(ScreenAction::CaptureMouse(self.mouse));
            }
            KeyCommand::NextTheme => {
                self.theme = self.theme.next();
                self.say(Tone::Good, format!("theme: {}", self.theme.name.label()));
            }
            KeyCommand::Pause => self.ask_to_pause(),
            KeyCommand::PutAside => self.prompt.put_aside(&self.data),
            KeyCommand::NextPrompt => self.prompt.turn(&self.data, 1),
            KeyCommand::PreviousPrompt => self.prompt.turn(&self.data, self.data.prompts.len().saturating_sub(1)),
            KeyCommand::Yes => return self.confirmed(),
            KeyCommand::No => self.confirm = None,
            KeyCommand::Accept => {
                if self.filtering {
                    self.filtering = false;
                } else {
                    return self.prompt.accept(&self.data);
                }
            }
            KeyCommand::Erase if self.filtering => drop(self.view_mut().filter.pop()),
            KeyCommand::Erase => self.prompt.erase(),
            KeyCommand::EraseLine if self.filtering => self.view_mut().filter.clear(),
            KeyCommand::EraseLine => self.prompt.erase_line(),
            KeyCommand::CopyId
            | KeyCommand::CopyRow
            | KeyCommand::CancelCall
            | KeyCommand::KillShell
            | KeyCommand::CloseSession
            | KeyCommand::RaiseLevel
            | KeyCommand::LowerLevel
            | KeyCommand::Reload
            | KeyCommand::Enable
            | KeyCommand::Disable
            | KeyCommand::CallTool
            | KeyCommand::Undo
            | KeyCommand::Revoke
            | KeyCommand::AllowInProject
            | KeyCommand::AllowAlways
            | KeyCommand::StartDaemon => return self.run_on_item(command),
        }
        None
    }

    fn confirmed(&mut self) -> Option<ScreenAction> {
        let is_read = |confirm: &ConfirmDialog| {
            confirm.readable && confirm.since.is_none_or(|since| since.elapsed() >= prompts::READ_FOR)
        };
        let confirm = self.confirm.take_if(|confirm| is_read(confirm))?;
        Some(ScreenAction::Request(confirm.request))
    }

    fn leave(&mut self) {
        if self.filtering {
            self.filtering = false;
            self.view_mut().filter.clear();
        } else if self.prompt.is_typing() {
            self.prompt.stop_typing();
        } else if self.help.take().is_none() && self.details.take().is_none() {
            self.view_mut().filter.clear();
        }
    }

    fn go(&mut self, movement: Movement) {
        if let Some(confirm) = &mut self.confirm {
            confirm.scroll.go(movement);
        } else if let Some(scroll) = &mut self.help {
            scroll.go(movement);
        } else if self.prompt.scrolls && self.prompt_is_shown() {
            self.prompt.scroll.go(movement);
        } else if let Some(details) = &mut self.details {
            details.scroll.go(movement);
        } else {
            self.view_mut().go(movement);
        }
    }

    fn open_details(&mut self) {
        let Some(key) = self.seen_key() else { return };
        let Some(details) = self.panel.details(&self.data, &key) else { return };
        self.details = Some(DetailsView {
            key: Some(key),
            title: details.title,
            lines: details.lines,
            more: Vec::new(),
            query: details.query,
            gone: false,
            scroll: Scroll::default(),
            wanted: true,
            pending: false,
        });
    }

    fn turn(&mut self, by: usize) {
        self.show_panel(Panel::ALL[(self.panel.index() + by) % Panel::ALL.len()]);
    }

    fn show_panel(&mut self, panel: Panel) {
        self.panel = panel;
        self.details = None;
        self.filtering = false;
        self.outdated.wanted.extend(panel.lazy_lists());
    }
}

/// How long good news stays.
const GOOD_NEWS_TICKS: u8 = 4;

/// How long ago two clicks may be to count as one double click.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

#[cfg(test)]
mod same_item;

#[cfg(test)]
mod tests;
