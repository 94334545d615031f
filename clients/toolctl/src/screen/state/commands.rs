//! Keys that act on the selected item. Those that end something only open a dialog, which names the item.

use toold_proto::level::Level;

use super::{ConfirmDialog, DaemonLink, DetailsView, ScreenState, Scroll};
use toold_proto::effect::in_words;
use toold_proto::permission::{Action, Scope};

use crate::clock::with_times;
use crate::new_grant::allowing;
use crate::output::one_line;
use crate::screen::action::{Request, ScreenAction};
use crate::screen::keymap::KeyCommand;
use crate::screen::panel::Panel;
use crate::screen::panels::sources::ToolSource;
use crate::screen::panels::{calls, changes, rules, sessions, shells, sources, tools};
use crate::screen::text::PaneLine;
use crate::views::{Tone, permissions};

impl ScreenState {
    /// The key of the item that the details or the selected row show.
    pub(super) fn seen_key(&self) -> Option<String> {
        match &self.details {
            Some(details) => details.key.clone(),
            None => self.view().seen().map(str::to_owned),
        }
    }

    pub(super) fn run_on_item(&mut self, command: KeyCommand) -> Option<ScreenAction> {
        match command {
            KeyCommand::CopyId | KeyCommand::CopyRow => return self.copy(command),
            KeyCommand::StartDaemon => {
                self.link = DaemonLink::Gone { starting: true };
                return Some(ScreenAction::StartDaemon);
            }
            _ => {}
        }
        if self.is_gone() {
            self.say(Tone::Warn, "there is no daemon to ask".to_owned());
            return None;
        }
        let key = self.seen_key()?;
        let done = self.act(command, &key);
        if done.is_none() && self.confirm.is_none() && self.message.is_none() {
            self.say(Tone::Warn, "the selected item is gone".to_owned());
        }
        done
    }

    /// `None` when a dialog asks first, when the item is gone, or with a message why not.
    fn act(&mut self, command: KeyCommand, key: &str) -> Option<ScreenAction> {
        match command {
            KeyCommand::CancelCall => {
                let call = calls::find(&self.data, key)?;
                let (call_id, session_id) = (call.call_id.clone(), call.session_id.clone());
                let question = format!("Cancel the call {call_id} of {}?", call.tool);
                let mut lines = vec![PaneLine::new(Tone::Plain, format!("made by {}", calls::who(&self.data, call)))];
                lines.extend(call.arguments.as_ref().map(|text| PaneLine::new(Tone::Plain, text)));
                self.ask(key, question, lines, Request::Cancel(call_id, session_id));
            }
            KeyCommand::KillShell => {
                let shell = shells::find(&self.data, key)?;
                if !shell.running {
                    self.say(Tone::Warn, format!("{} has ended", one_line(&shell.shell_id)));
                    return None;
                }
                let question = format!("Kill {} and all its processes?", one_line(&shell.shell_id));
                let lines = vec![
                    PaneLine::new(Tone::Plain, &shell.command),
                    PaneLine::new(Tone::Dim, format!("in {}, session {}", shell.cwd, shell.session_id)),
                ];
                let request = Request::KillShell(shell.shell_id.clone(), shell.session_id.clone());
                self.ask(key, question, lines, request);
            }
            KeyCommand::CloseSession => {
                let session = sessions::find(&self.data, key)?;
                let question = format!("Close the session {} and cancel its calls?", session.session_id);
                let client = session.client.as_ref().map(|client| client.name.as_str()).unwrap_or("unknown");
                let line = format!("client {client}, in {}, {} calls so far", session.cwd, session.calls);
                let request = Request::CloseSession(session.session_id.clone());
                self.ask(key, question, vec![PaneLine::new(Tone::Plain, line)], request);
            }
            KeyCommand::RaiseLevel | KeyCommand::LowerLevel => {
                let session = sessions::find(&self.data, key)?;
                let raises = command == KeyCommand::RaiseLevel;
                let place = Level::ALL.iter().position(|level| *level == session.level);
                let place = place.and_then(|place| if raises { place.checked_add(1) } else { place.checked_sub(1) });
                let Some(level) = place.and_then(|place| Level::ALL.get(place).copied()) else {
                    self.say(Tone::Warn, format!("the level is {} already", session.level));
                    return None;
                };
                let request = Request::SetLevel(session.session_id.clone(), level);
                if !raises {
                    return Some(ScreenAction::Request(request));
                }
                let question = format!("Set the level {level} for the session {}?", session.session_id);
                let client = session.client.as_ref().map(|client| client.name.as_str()).unwrap_or("unknown");
                let about = "toolctl level --explain shows what runs without an approval then";
                let lines = vec![
                    PaneLine::new(Tone::Plain, format!("client {client}, in {}", session.cwd)),
                    PaneLine::new(Tone::Dim, about),
                ];
                self.ask(key, question, lines, request);
            }
            KeyCommand::Revoke => {
                let Some(grant) = rules::find_grant(&self.data, key) else {
                    let message = "only grants can be revoked; a rule is removed in its file".to_owned();
                    self.say(Tone::Warn, message);
                    return None;
                };
                let kind = match grant.action {
                    Action::Allow => "grant",
                    Action::Deny => "denial",
                };
                let question = format!("Revoke the {kind} {}?", one_line(&grant.id));
                let lines = vec![
                    PaneLine::new(Tone::Plain, format!("{} {}", grant.category, grant.pattern)),
                    PaneLine::new(
                        Tone::Dim,
                        format!(
                            "for {}, used {}",
                            permissions::holds(grant, self.data.zone),
                            permissions::uses(grant).text
                        ),
                    ),
                ];
                let request = Request::Revoke(grant.id.clone());
                self.ask(key, question, lines, request);
            }
            KeyCommand::AllowInProject | KeyCommand::AllowAlways => {
                let Some(rule) = rules::find_suggested(&self.data, key) else {
                    let message = "only a suggested rule can be accepted; it has allow? before it";
                    self.say(Tone::Warn, message.to_owned());
                    return None;
                };
                let (scope, cwd, place) = match (command, &self.cwd) {
                    (KeyCommand::AllowAlways, _) => (Scope::Always, None, "everywhere".to_owned()),
                    (_, Some(cwd)) => (Scope::Project, Some(cwd.clone()), format!("in the project of {cwd}")),
                    (_, None) => {
                        self.say(Tone::Warn, "the folder where toolctl was started is gone".to_owned());
                        return None;
                    }
                };
                let mut lines = vec![
                    PaneLine::new(Tone::Name, format!("{} {}", rule.category, rule.pattern)),
                    PaneLine::new(Tone::Plain, format!("{place}, to every agent, until you revoke it")),
                    PaneLine::new(Tone::Dim, rules::reason(rule)),
                ];
                lines.extend((!rule.effects.is_empty()).then(|| PaneLine::new(Tone::Warn, in_words(&rule.effects))));
                let grant = allowing(rule.category, rule.pattern.clone(), scope, cwd);
                let request = Request::Grant(Box::new(grant));
                self.ask(key, "Allow this from now on?".to_owned(), lines, request);
            }
            KeyCommand::Undo => {
                let change = changes::find(&self.data, key)?;
                if change.undone {
                    self.say(Tone::Warn, "it was undone already".to_owned());
                    return None;
                }
                return Some(ScreenAction::Request(Request::PlanUndo(changes::undo(change))));
            }
            KeyCommand::CallTool => {
                let tool = tools::find(&self.data, key)?.clone();
                return Some(ScreenAction::CallForm(Box::new(tool)));
            }
            KeyCommand::Reload => return self.reload(key),
            KeyCommand::Enable | KeyCommand::Disable => {
                let ToolSource::Plugin(plugin) = sources::find(&self.data, key)? else {
                    let message = "only plugins are enabled here; edit the configuration for the others".to_owned();
                    self.say(Tone::Warn, message);
                    return None;
                };
                let name = plugin.name.clone();
                if command == KeyCommand::Enable {
                    return Some(ScreenAction::Request(Request::EnablePlugin(name)));
                }
                let question = format!("Disable the plugin {} permanently?", one_line(&name));
                let lines =
                    vec![PaneLine::new(Tone::Plain, format!("its tools disappear: {}", plugin.tools.join(" ")))];
                self.ask(key, question, lines, Request::DisablePlugin(name));
            }
            _ => {}
        }
        None
    }

    /// Everything stands still at once where it is needed most, so that it needs no item, and also a prompt does not keep it.
    pub(super) fn ask_to_pause(&mut self) {
        if self.is_gone() {
            return self.say(Tone::Warn, "there is no daemon to ask".to_owned());
        }
        let paused = self.data.status.as_ref().and_then(|status| status.paused.as_ref());
        let (question, line, request) = match paused {
            Some(paused) => ("Resume everything?", with_times(&one_line(paused)), Request::Resume),
            None => {
                let line = "running commands stand still, nothing is allowed, and a restart does not resume";
                ("Pause everything?", line.to_owned(), Request::Pause)
            }
        };
        self.confirm = Some(ConfirmDialog {
            question: question.to_owned(),
            lines: vec![PaneLine::new(Tone::Plain, line)],
            scroll: Scroll::default(),
            readable: true,
            request,
            item: None,
            since: None,
        });
    }

    fn reload(&mut self, key: &str) -> Option<ScreenAction> {
        let (question, running, request) = match sources::find(&self.data, key)? {
            // Calls that run finish with the old code.
            ToolSource::Plugin(plugin) => {
                return Some(ScreenAction::Request(Request::ReloadPlugin(plugin.name.clone())));
            }
            ToolSource::Server(server) => {
                let question = format!("Restart the MCP server {}?", one_line(&server.name));
                (question, server.running, Request::RestartServer(server.name.clone()))
            }
            ToolSource::Remote(remote) => {
                let question = format!("Reconnect to {}?", one_line(&remote.name));
                (question, remote.running, Request::ReconnectRemote(remote.name.clone()))
            }
            ToolSource::FleetDaemon(_) | ToolSource::FleetLabel(_) => {
                self.say(Tone::Warn, "the fleet connects by itself; toolctl fleet doctor finds problems".to_owned());
                return None;
            }
        };
        let lines = vec![PaneLine::new(Tone::Plain, format!("running calls that fail: {running}"))];
        self.ask(key, question, lines, request);
        None
    }

    fn ask(&mut self, key: &str, question: String, lines: Vec<PaneLine>, request: Request) {
        let item = Some((self.panel, key.to_owned()));
        self.confirm = Some(ConfirmDialog {
            question,
            lines,
            scroll: Scroll::default(),
            readable: true,
            request,
            item,
            since: None,
        });
    }

    fn copy(&mut self, command: KeyCommand) -> Option<ScreenAction> {
        let text = match (command, &self.details) {
            (KeyCommand::CopyRow, Some(details)) => all_lines(details),
            (KeyCommand::CopyRow, None) => {
                let key = self.seen_key()?;
                let rows = self.rows();
                let row = rows.iter().find(|row| row.key == key)?;
                row.cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("\t")
            }
            _ => {
                let key = self.seen_key()?;
                id_of(self, &key)?
            }
        };
        let start = crate::output::shorten(&one_line(&text), 40);
        self.say(Tone::Good, format!("copied: {start}"));
        Some(ScreenAction::Copy(text))
    }
}

fn all_lines(details: &DetailsView) -> String {
    details.lines.iter().chain(&details.more).map(|line| format!("{}\n", line.text)).collect()
}

/// The id by which commands name the item.
fn id_of(state: &ScreenState, key: &str) -> Option<String> {
    let data = &state.data;
    Some(match state.panel {
        Panel::Calls => calls::find(data, key)?.call_id.as_str().to_owned(),
        Panel::Shells => shells::find(data, key)?.shell_id.clone(),
        Panel::Changes => changes::find(data, key)?.path.clone(),
        Panel::Rules => match (rules::find_grant(data, key), rules::find_suggested(data, key)) {
            (Some(grant), _) => grant.id.clone(),
            (None, Some(rule)) => rule.pattern.clone(),
            (None, None) => {
                data.permissions.as_ref()?.rules.iter().find(|rule| rules::rule_key(rule) == key)?.pattern.clone()
            }
        },
        Panel::Sources => match sources::find(data, key)? {
            ToolSource::Plugin(plugin) => plugin.name.clone(),
            ToolSource::Server(server) => server.name.clone(),
            ToolSource::Remote(remote) => remote.name.clone(),
            ToolSource::FleetDaemon(daemon) => daemon.name.clone(),
            ToolSource::FleetLabel(label) => label.name.clone(),
        },
        Panel::Audit => data.audit.iter().find(|entry| entry.id.to_string() == key)?.call_id.as_str().to_owned(),
        Panel::Tools | Panel::Sessions | Panel::Events => key.to_owned(),
    })
}
