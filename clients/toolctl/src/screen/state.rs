//! The state of the screen, and what the keys do. Knows neither the terminal nor the daemon.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Instant, SystemTime};

use anstyle::Style;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::widgets::TableState;
use serde_json::Value;
use toold_proto::audit::AuditEntry;
use toold_proto::call::Progress;
use toold_proto::daemon::DaemonStatus;
use toold_proto::event::{Event, EventBody};
use toold_proto::permission::{Ask, PermissionEvent, ReplyPermission};
use toold_proto::plugin::Plugin;
use toold_proto::session::SessionInfo;
use toold_proto::shell::ShellInfo;
use toold_proto::tool::{CallId, SessionId, Tool};

use super::fetch::{Fetched, ListKind};
use crate::event_line;
use crate::keys::{KeyPress, key};
use crate::output::one_line;
use crate::prompts::READ_FOR;
use crate::prompts::ask::choices;
use crate::tool_title::tool_title;

/// How many events can be scrolled back to.
const MAX_EVENTS: usize = 1000;

/// How many durations the sparkline has.
const MAX_DURATIONS: usize = 120;

#[derive(Default)]
pub(super) struct ScreenState {
    pub(super) status: Option<Box<DaemonStatus>>,
    pub(super) tools: Vec<Tool>,
    pub(super) plugins: Vec<Plugin>,
    pub(super) sessions: Vec<SessionInfo>,
    /// Commands in the background, the oldest first.
    pub(super) shells: Vec<ShellInfo>,
    /// The last calls that have ended, the oldest first.
    pub(super) audit: Vec<AuditEntry>,
    /// The oldest first.
    pub(super) running: Vec<RunningCall>,
    /// The newest last.
    pub(super) events: VecDeque<EventLine>,
    /// Of the calls that ended last, in milliseconds.
    pub(super) durations: VecDeque<u64>,
    pub(super) asks: VecDeque<Ask>,
    /// The id of the prompt on the screen, and when it appeared.
    pub(super) shown: Option<(String, Instant)>,
    /// The ids of questions that wait for an answer; `toolctl approve` shows and answers them.
    pub(super) questions: BTreeSet<String>,
    /// Calls have ended since the audit log was read.
    audit_is_old: bool,
    /// The last error, until the next key.
    pub(super) error: Option<String>,
    pub(super) panel: Panel,
    pub(super) selected: TableState,
    pub(super) outdated: Outdated,
}

/// A call in flight.
pub(super) struct RunningCall {
    pub(super) call_id: CallId,
    pub(super) session_id: SessionId,
    /// As it is shown.
    pub(super) tool: String,
    pub(super) since: SystemTime,
    pub(super) message: String,
    /// From 0 to 1.
    pub(super) ratio: Option<f64>,
}

/// An event, ready to be shown.
pub(super) struct EventLine {
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) style: Style,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panel {
    Calls,
    #[default]
    Tools,
    Plugins,
    Sessions,
    Shells,
    Audit,
    Events,
}

impl Panel {
    pub(super) const ALL: [Self; 7] =
        [Self::Calls, Self::Tools, Self::Plugins, Self::Sessions, Self::Shells, Self::Audit, Self::Events];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Calls => "Calls",
            Self::Tools => "Tools",
            Self::Plugins => "Plugins",
            Self::Sessions => "Sessions",
            Self::Shells => "Shells",
            Self::Audit => "Audit",
            Self::Events => "Events",
        }
    }
}

/// A request that a key makes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScreenAction {
    Quit,
    Reply(ReplyPermission),
    Cancel(CallId, SessionId),
    /// A command in the background.
    KillShell(String, SessionId),
    /// The plugin of this name.
    Reload(String),
}

/// The lists that must be fetched, and those that are being fetched.
#[derive(Debug)]
pub(super) struct Outdated {
    wanted: BTreeSet<ListKind>,
    pending: BTreeSet<ListKind>,
}

impl Default for Outdated {
    fn default() -> Self {
        Self { wanted: BTreeSet::from(ListKind::ALL), pending: BTreeSet::new() }
    }
}

impl Outdated {
    pub(super) fn insert(&mut self, what: ListKind) {
        self.wanted.insert(what);
    }
}

impl ScreenState {
    /// The lists to fetch now. A list that changed while it was fetched is fetched once more.
    pub(super) fn claim_outdated(&mut self) -> Vec<ListKind> {
        let outdated = &mut self.outdated;
        let now: Vec<ListKind> = outdated.wanted.difference(&outdated.pending).copied().collect();
        for what in &now {
            outdated.wanted.remove(what);
            outdated.pending.insert(*what);
        }
        now
    }

    pub(super) fn take(&mut self, fetched: Fetched) {
        match fetched.what() {
            Some(what) => drop(self.outdated.pending.remove(&what)),
            // It does not say which one failed, so all may be fetched again.
            None => self.outdated.pending.clear(),
        }
        match fetched {
            Fetched::Tools(tools) => self.tools = tools,
            Fetched::Plugins(plugins) => self.plugins = plugins,
            Fetched::Sessions(sessions) => self.sessions = sessions,
            Fetched::Shells(shells) => self.shells = shells,
            Fetched::Audit(audit) => self.audit = audit,
            Fetched::Status(status) => self.status = Some(status),
            Fetched::Failed(error) => self.error = Some(one_line(&error)),
        }
    }

    /// Called regularly, for data that would be too expensive to fetch at each event.
    pub(super) fn tick(&mut self) {
        self.outdated.insert(ListKind::Status);
        if self.panel == Panel::Audit && std::mem::take(&mut self.audit_is_old) {
            self.outdated.insert(ListKind::Audit);
        }
    }

    pub(super) fn permission(&mut self, event: PermissionEvent) {
        match event {
            PermissionEvent::Asked { request } => self.asks.push_back(*request),
            PermissionEvent::Resolved(resolved) => self.asks.retain(|ask| ask.request_id != resolved.request_id),
        }
    }

    pub(super) fn event(&mut self, event: &Value) {
        let Ok(event) = serde_json::from_value::<Event>(event.clone()) else {
            let text = |name: &str| one_line(event[name].as_str().unwrap_or_default());
            return self.push_event(EventLine {
                at: text("at"),
                kind: text("kind"),
                style: Style::new(),
                text: one_line(&event.to_string()),
            });
        };
        match &event.body {
            EventBody::ToolsChanged { .. } => self.outdated.insert(ListKind::Tools),
            EventBody::PluginLoaded { .. }
            | EventBody::PluginFailed { .. }
            | EventBody::PluginUntrusted { .. }
            | EventBody::PluginUnloaded { .. }
            | EventBody::PluginRefused { .. } => {
                self.outdated.insert(ListKind::Plugins);
            }
            EventBody::SessionOpened { .. } | EventBody::SessionClosed { .. } | EventBody::SessionMode { .. } => {
                self.outdated.insert(ListKind::Sessions);
            }
            EventBody::ShellStarted { .. } | EventBody::ShellExited { .. } => self.outdated.insert(ListKind::Shells),
            EventBody::CallStarted { call_id, session_id, tool, agent, .. } => self.running.push(RunningCall {
                call_id: call_id.clone(),
                session_id: session_id.clone(),
                tool: tool_title(agent.as_deref(), tool.as_str()),
                since: began(&event.at),
                message: String::new(),
                ratio: None,
            }),
            EventBody::CallProgress { call_id, session_id, progress } => {
                let running = self.running.iter_mut().find(|r| r.call_id == *call_id && r.session_id == *session_id);
                if let Some(running) = running {
                    running.progress(progress);
                }
                // Progress would crowd out all other events.
                return;
            }
            EventBody::CallFinished { call_id, session_id, duration_ms, .. } => {
                self.running.retain(|r| !(r.call_id == *call_id && r.session_id == *session_id));
                push_bounded(&mut self.durations, *duration_ms, MAX_DURATIONS);
                self.audit_is_old = true;
            }
            EventBody::QuestionAsked { request, .. } => drop(self.questions.insert(request.request_id.clone())),
            EventBody::QuestionAnswered { resolved, .. } => drop(self.questions.remove(&resolved.request_id)),
            EventBody::PermissionAsked { .. }
            | EventBody::PermissionResolved { .. }
            | EventBody::TodoChanged { .. }
            | EventBody::Notice { .. }
            | EventBody::Log { .. }
            | EventBody::PluginHandlerFailed { .. }
            | EventBody::ConfigChanged { .. }
            | EventBody::ResourcesChanged {}
            | EventBody::PromptsChanged {}
            | EventBody::Message { .. } => {}
            EventBody::Lagged { .. } => {
                // Events about the end of calls may be lost.
                self.running.clear();
                self.questions.clear();
                ListKind::ALL.into_iter().for_each(|what| self.outdated.insert(what));
            }
        }
        let (style, text) = event_line::describe(&event.body);
        let text = anstream::adapter::strip_str(&text).to_string();
        self.push_event(EventLine { at: event.at, kind: event.body.kind().to_owned(), style, text });
    }

    fn push_event(&mut self, line: EventLine) {
        push_bounded(&mut self.events, line, MAX_EVENTS);
    }

    /// How many rows the current panel has.
    pub(super) fn rows(&self) -> usize {
        match self.panel {
            Panel::Calls => self.running.len(),
            Panel::Tools => self.tools.len(),
            Panel::Plugins => self.plugins.len(),
            Panel::Sessions => self.sessions.len(),
            Panel::Shells => self.shells.len(),
            Panel::Audit => self.audit.len(),
            Panel::Events => self.events.len(),
        }
    }

    pub(super) fn press(&mut self, event: KeyEvent) -> Option<ScreenAction> {
        self.error = None;
        // A prompt takes the keys that it names; the others keep working.
        if let (Some(ask), KeyPress::Char(c)) = (self.asks.front(), key(event))
            && self.was_seen(ask)
            && let Some(choice) = choices(ask).into_iter().find(|choice| choice.key == c)
        {
            return Some(ScreenAction::Reply(choice.reply(ask)));
        }
        let rows = self.rows();
        let at = self.selected.selected().unwrap_or(0);
        match event.code {
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(Panel::ALL.len() - 1),
            KeyCode::Down => self.selected.select(Some((at + 1).min(rows.saturating_sub(1)))),
            KeyCode::Up => self.selected.select(Some(at.saturating_sub(1))),
            KeyCode::PageDown => self.selected.select(Some((at + 20).min(rows.saturating_sub(1)))),
            KeyCode::PageUp => self.selected.select(Some(at.saturating_sub(20))),
            KeyCode::Home => self.selected.select(Some(0)),
            KeyCode::End => self.selected.select(Some(rows.saturating_sub(1))),
            _ => {}
        }
        match key(event) {
            KeyPress::Exit | KeyPress::Char('q') => Some(ScreenAction::Quit),
            KeyPress::Char('x') if self.panel == Panel::Calls => self
                .running
                .get(at)
                .map(|running| ScreenAction::Cancel(running.call_id.clone(), running.session_id.clone())),
            KeyPress::Char('r') if self.panel == Panel::Plugins => {
                self.plugins.get(at).map(|plugin| ScreenAction::Reload(plugin.name.clone()))
            }
            KeyPress::Char('x') if self.panel == Panel::Shells => {
                let shell = self.shells.get(at).filter(|shell| shell.running)?;
                Some(ScreenAction::KillShell(shell.shell_id.clone(), shell.session_id.clone()))
            }
            KeyPress::Char(_) | KeyPress::Other => None,
        }
    }

    /// Called when the oldest prompt is drawn.
    pub(super) fn show_ask(&mut self) {
        let Some(ask) = self.asks.front() else { return };
        if self.shown.as_ref().is_none_or(|(id, _)| *id != ask.request_id) {
            self.shown = Some((ask.request_id.clone(), Instant::now()));
        }
    }

    /// A key that was meant for something else must not answer a prompt that has just appeared.
    fn was_seen(&self, ask: &Ask) -> bool {
        self.shown.as_ref().is_some_and(|(id, since)| *id == ask.request_id && since.elapsed() >= READ_FOR)
    }

    fn turn(&mut self, by: usize) {
        let at = Panel::ALL.iter().position(|panel| *panel == self.panel).unwrap_or(0);
        self.panel = Panel::ALL[(at + by) % Panel::ALL.len()];
        self.selected = TableState::default().with_selected(Some(0));
    }
}

impl RunningCall {
    fn progress(&mut self, progress: &Progress) {
        match progress {
            Progress::Output { text, .. } => {
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    self.message = one_line(line);
                }
            }
            Progress::Message { text } => self.message = one_line(text),
            Progress::Update { progress, total, message, .. } => {
                if let Some(message) = message {
                    self.message = one_line(message);
                }
                let total = total.unwrap_or(1.0);
                self.ratio = progress.filter(|_| total > 0.0).map(|progress| (progress / total).clamp(0.0, 1.0));
            }
        }
    }
}

/// The time of an event, which may be from before the screen opened.
fn began(at: &str) -> SystemTime {
    humantime::parse_rfc3339(at).unwrap_or_else(|_| SystemTime::now())
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn happened(state: &mut ScreenState, mut what: Value) {
        what["seq"] = json!(1);
        what["epoch"] = json!("e");
        what["at"] = json!("2026-01-02T03:04:05Z");
        state.event(&what);
    }

    fn press(state: &mut ScreenState, code: KeyCode) -> Option<ScreenAction> {
        state.press(KeyEvent::from(code))
    }

    #[test]
    fn a_call_is_shown_while_it_runs() {
        let mut state = ScreenState::default();
        happened(&mut state, json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "bash"}));
        let progress = json!({"kind": "update", "progress": 1, "total": 4, "message": "step"});
        happened(&mut state, json!({"kind": "call.progress", "call_id": "c", "session_id": "s", "progress": progress}));
        assert_eq!((state.running[0].ratio, state.running[0].message.as_str()), (Some(0.25), "step"));
        let finished = json!({"kind": "call.finished", "call_id": "c", "session_id": "s", "tool": "bash",
            "outcome": "ok", "duration_ms": 5});
        happened(&mut state, finished);
        assert!(state.running.is_empty());
        assert_eq!(state.durations, [5]);
        assert_eq!(state.events.len(), 2);
    }

    #[test]
    fn a_change_is_fetched_once_more_when_it_came_too_late() {
        let mut state = ScreenState::default();
        assert_eq!(state.claim_outdated(), ListKind::ALL);
        let changed = json!({"kind": "tools.changed", "revision": 1, "added": [], "removed": [], "changed": []});
        happened(&mut state, changed);
        assert_eq!(state.claim_outdated(), []);
        state.take(Fetched::Tools(Vec::new()));
        assert_eq!(state.claim_outdated(), [ListKind::Tools]);
    }

    #[test]
    fn keys_answer_the_oldest_ask_and_nothing_else_is_lost() {
        let mut state = ScreenState::default();
        let ask = |id: &str| {
            let request = json!({"request_id": id, "session_id": "s", "call_id": "c", "call_ids": ["c"],
                "category": "shell", "target": "ls", "tool": "bash", "source": {"kind": "builtin", "name": "builtin"},
                "cwd": "/", "suggestions": [], "asked_at": "", "expires_at": ""});
            serde_json::from_value::<PermissionEvent>(json!({"type": "asked", "request": request})).unwrap()
        };
        state.permission(ask("1"));
        state.permission(ask("2"));
        assert_eq!(press(&mut state, KeyCode::Char('y')), None);
        state.shown = Some(("1".to_owned(), Instant::now().checked_sub(READ_FOR).unwrap()));
        let Some(ScreenAction::Reply(reply)) = press(&mut state, KeyCode::Char('y')) else {
            panic!("expected a reply")
        };
        assert_eq!(reply.request_id, "1");
        let resolved = json!({"type": "resolved", "request_id": "1", "action": "allow", "by": null});
        state.permission(serde_json::from_value(resolved).unwrap());
        assert_eq!(state.asks[0].request_id, "2");
        assert_eq!(press(&mut state, KeyCode::Char('q')), Some(ScreenAction::Quit));
    }

    #[test]
    fn the_audit_log_is_read_again_when_it_is_looked_at() {
        let mut state = ScreenState::default();
        state.claim_outdated();
        state.take(Fetched::Audit(Vec::new()));
        let finished = json!({"kind": "call.finished", "call_id": "c", "session_id": "s", "tool": "bash",
            "outcome": "ok", "duration_ms": 5});
        happened(&mut state, finished);
        state.tick();
        assert_eq!(state.claim_outdated(), [], "nobody looks");
        state.panel = Panel::Audit;
        state.tick();
        assert_eq!(state.claim_outdated(), [ListKind::Audit]);
        state.take(Fetched::Audit(Vec::new()));
        state.tick();
        assert_eq!(state.claim_outdated(), [], "nothing has ended since");
    }

    #[test]
    fn questions_count_until_they_are_answered() {
        let mut state = ScreenState::default();
        let request = json!({"request_id": "q", "session_id": "s", "call_id": "c", "question": "?", "options": [],
            "multiple": false, "allow_other": true, "asked_at": "", "expires_at": ""});
        happened(&mut state, json!({"kind": "question.asked", "session_id": "s", "request": request}));
        assert_eq!(state.questions.len(), 1);
        let resolved = json!({"request_id": "q", "action": "answered"});
        happened(&mut state, json!({"kind": "question.answered", "session_id": "s", "resolved": resolved}));
        assert!(state.questions.is_empty());
    }

    #[test]
    fn a_running_call_can_be_cancelled() {
        let mut state = ScreenState::default();
        happened(&mut state, json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "bash"}));
        assert_eq!(press(&mut state, KeyCode::Char('x')), None);
        press(&mut state, KeyCode::BackTab);
        let cancel = ScreenAction::Cancel(CallId::parse("c").unwrap(), SessionId::parse("s").unwrap());
        assert_eq!(press(&mut state, KeyCode::Char('x')), Some(cancel));
    }
}
