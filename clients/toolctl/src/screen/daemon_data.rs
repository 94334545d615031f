//! All that the screen knows of the daemon: lists that were fetched, and what events say.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use anstyle::Style;
use serde_json::Value;
use toold_proto::audit::AuditEntry;
use toold_proto::call::Progress;
use toold_proto::daemon::DaemonStatus;
use toold_proto::event::{Event, EventBody};
use toold_proto::file::FileChange;
use toold_proto::fleet::FleetStatus;
use toold_proto::mcp::McpServer;
use toold_proto::permission::{PermissionEvent, PermissionList, SuggestedRule};
use toold_proto::plugin::Plugin;
use toold_proto::question::QuestionEvent;
use toold_proto::remote::Remote;
use toold_proto::session::SessionInfo;
use toold_proto::shell::ShellInfo;
use toold_proto::tool::{CallId, SessionId, Tool};

use super::fetch::{Fetched, ListKind};
use crate::clock::Zone;
use crate::event_line;
use crate::output::one_line;
use crate::prompts::WaitingPrompt;
use crate::tool_title::tool_title;

/// How many events can be scrolled back to.
const MAX_EVENTS: usize = 1000;

/// How many durations the sparkline of all calls has.
const MAX_DURATIONS: usize = 300;

/// How many durations the sparkline of a tool has.
pub(super) const MAX_TOOL_DURATIONS: usize = 16;

pub(super) struct DaemonData {
    pub(super) status: Option<Box<DaemonStatus>>,
    pub(super) tools: Vec<Tool>,
    pub(super) plugins: Vec<Plugin>,
    pub(super) servers: Vec<McpServer>,
    pub(super) remotes: Vec<Remote>,
    pub(super) fleet: FleetStatus,
    pub(super) sessions: Vec<SessionInfo>,
    /// Changes of files, the oldest first.
    pub(super) changes: Vec<FileChange>,
    /// Commands in the background, the oldest first.
    pub(super) shells: Vec<ShellInfo>,
    pub(super) permissions: Option<PermissionList>,
    /// Rules that would have given the person's last answers.
    pub(super) suggested: Vec<SuggestedRule>,
    /// The last calls that have ended, the oldest first.
    pub(super) audit: Vec<AuditEntry>,
    /// The oldest first.
    pub(super) running: Vec<RunningCall>,
    /// The newest last.
    pub(super) events: VecDeque<EventLine>,
    /// Durations of the calls that ended last, in milliseconds.
    pub(super) durations: VecDeque<u64>,
    /// The same of each tool.
    pub(super) tool_durations: BTreeMap<String, VecDeque<u64>>,
    /// The oldest first.
    pub(super) prompts: VecDeque<WaitingPrompt>,
    /// The zone of the times that are shown.
    pub(super) zone: Zone,
    /// How many events there have been, which numbers them.
    event_count: u64,
}

/// A call in flight.
pub(super) struct RunningCall {
    pub(super) call_id: CallId,
    pub(super) session_id: SessionId,
    /// As it is shown.
    pub(super) tool: String,
    /// The client that made it, if the event names it.
    pub(super) client: Option<String>,
    pub(super) cwd: Option<String>,
    /// Its arguments, perhaps shortened.
    pub(super) arguments: Option<String>,
    pub(super) since: SystemTime,
    pub(super) message: String,
    /// From 0 to 1.
    pub(super) ratio: Option<f64>,
}

/// An event, ready to be shown.
pub(super) struct EventLine {
    pub(super) number: u64,
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) style: Style,
    pub(super) text: String,
    /// How often it came in a row.
    pub(super) times: u64,
    /// As the daemon sent it.
    pub(super) json: Value,
}

impl Default for DaemonData {
    fn default() -> Self {
        Self {
            status: None,
            tools: Vec::new(),
            plugins: Vec::new(),
            servers: Vec::new(),
            remotes: Vec::new(),
            fleet: FleetStatus::default(),
            sessions: Vec::new(),
            changes: Vec::new(),
            shells: Vec::new(),
            permissions: None,
            suggested: Vec::new(),
            audit: Vec::new(),
            running: Vec::new(),
            events: VecDeque::new(),
            durations: VecDeque::new(),
            tool_durations: BTreeMap::new(),
            prompts: VecDeque::new(),
            zone: Zone::Utc,
            event_count: 0,
        }
    }
}

impl DaemonData {
    pub(super) fn session(&self, id: &SessionId) -> Option<&SessionInfo> {
        self.sessions.iter().find(|session| session.session_id == *id)
    }

    /// The prompt that a call waits for.
    pub(super) fn prompt_of(&self, call: &RunningCall) -> Option<&WaitingPrompt> {
        self.prompts.iter().find(|prompt| *prompt.session_id() == call.session_id && prompt.is_for(&call.call_id))
    }

    /// Forgets what only the events of one connection keep up to date.
    pub(super) fn forget_connection(&mut self) {
        self.running.clear();
        self.prompts.clear();
        self.events.clear();
        self.durations.clear();
        self.tool_durations.clear();
    }

    pub(super) fn take(&mut self, fetched: Fetched) {
        match fetched {
            Fetched::Tools(tools) => self.tools = tools,
            Fetched::Sources { plugins, servers, remotes, fleet } => {
                (self.plugins, self.servers, self.remotes, self.fleet) = (plugins, servers, remotes, *fleet);
            }
            Fetched::Sessions(sessions) => self.sessions = sessions,
            Fetched::Changes(changes) => self.changes = changes,
            Fetched::Shells(shells) => self.shells = shells,
            Fetched::Permissions(permissions) => self.permissions = Some(permissions),
            Fetched::Suggestions(rules) => self.suggested = rules,
            Fetched::Audit(audit) => self.audit = audit,
            Fetched::Status(status) => self.status = Some(status),
        }
    }

    pub(super) fn permission(&mut self, event: PermissionEvent) {
        match event {
            PermissionEvent::Asked { request } => self.ask(WaitingPrompt::Permission(request)),
            PermissionEvent::Resolved(resolved) => self.prompts.retain(|prompt| prompt.id() != resolved.request_id),
        }
    }

    /// A new prompt, or a known one as it is now.
    fn ask(&mut self, prompt: WaitingPrompt) {
        match self.prompts.iter_mut().find(|known| known.id() == prompt.id()) {
            Some(known) => *known = prompt,
            None => self.prompts.push_back(prompt),
        }
    }

    pub(super) fn question(&mut self, event: QuestionEvent) {
        match event {
            QuestionEvent::Asked { request } => self.ask(WaitingPrompt::Question(request)),
            QuestionEvent::Resolved(resolved) => self.prompts.retain(|prompt| prompt.id() != resolved.request_id),
        }
    }

    /// Takes an event over. Returns the lists that it makes outdated.
    pub(super) fn event(&mut self, json: Value) -> &'static [ListKind] {
        let Ok(event) = serde_json::from_value::<Event>(json.clone()) else {
            let text = |name: &str| one_line(json[name].as_str().unwrap_or_default());
            let (at, kind, line) = (text("at"), text("kind"), one_line(&json.to_string()));
            self.push_event(at, kind, Style::new(), line, json);
            return &[];
        };
        let outdated: &[ListKind] = match &event.body {
            EventBody::ToolsChanged { .. } => &[ListKind::Tools, ListKind::Sources],
            EventBody::PluginLoaded { .. }
            | EventBody::PluginFailed { .. }
            | EventBody::PluginUntrusted { .. }
            | EventBody::PluginUnloaded { .. }
            | EventBody::PluginRefused { .. } => &[ListKind::Sources],
            EventBody::ConfigChanged { .. } => &[ListKind::Sources, ListKind::Permissions],
            EventBody::SessionOpened { .. } | EventBody::SessionClosed { .. } | EventBody::SessionMode { .. } => {
                &[ListKind::Sessions]
            }
            EventBody::ShellStarted { .. } | EventBody::ShellExited { .. } => &[ListKind::Shells],
            EventBody::CallStarted { call_id, session_id, tool, agent, client, cwd, arguments } => {
                self.running.push(RunningCall {
                    call_id: call_id.clone(),
                    session_id: session_id.clone(),
                    tool: tool_title(agent.as_deref(), tool.as_str()),
                    client: client.clone(),
                    cwd: cwd.clone(),
                    arguments: arguments.clone(),
                    since: began(&event.at),
                    message: String::new(),
                    ratio: None,
                });
                &[]
            }
            EventBody::CallProgress { call_id, session_id, progress } => {
                let running = self.running.iter_mut().find(|r| r.call_id == *call_id && r.session_id == *session_id);
                if let Some(running) = running {
                    running.progress(progress);
                }
                // Progress would crowd out all other events.
                return &[];
            }
            EventBody::CallFinished { call_id, session_id, tool, duration_ms, .. } => {
                self.running.retain(|r| !(r.call_id == *call_id && r.session_id == *session_id));
                push_bounded(&mut self.durations, *duration_ms, MAX_DURATIONS);
                let of_tool = self.tool_durations.entry(tool.as_str().to_owned()).or_default();
                push_bounded(of_tool, *duration_ms, MAX_TOOL_DURATIONS);
                &[ListKind::Audit, ListKind::Changes]
            }
            EventBody::PermissionResolved { .. } => &[ListKind::Permissions, ListKind::Suggestions],
            EventBody::PermissionAsked { .. }
            | EventBody::QuestionAsked { .. }
            | EventBody::QuestionAnswered { .. }
            | EventBody::TodoChanged { .. }
            | EventBody::Notice { .. }
            | EventBody::Log { .. }
            | EventBody::PluginHandlerFailed { .. }
            | EventBody::ResourcesChanged {}
            | EventBody::PromptsChanged {}
            | EventBody::FleetChanged {}
            | EventBody::Message { .. } => &[],
            EventBody::Lagged { .. } => {
                // Events about the end of calls may be lost.
                self.running.clear();
                &ListKind::ALL
            }
        };
        let (style, text) = event_line::describe(&event.body);
        let text = anstream::adapter::strip_str(&text).to_string();
        self.push_event(event.at, event.body.kind().to_owned(), style, text, json);
        outdated
    }

    fn push_event(&mut self, at: String, kind: String, style: Style, text: String, json: Value) {
        self.event_count += 1;
        match self.events.back_mut() {
            Some(last) if last.kind == kind && last.text == text => {
                last.times += 1;
                last.at = at;
                last.json = json;
            }
            _ => {
                let line = EventLine { number: self.event_count, at, kind, style, text, times: 1, json };
                push_bounded(&mut self.events, line, MAX_EVENTS);
            }
        }
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
