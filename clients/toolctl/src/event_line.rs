//! An event of the daemon as one line, for `toolctl events`, `watch`, `plugins logs` and the screen.

use anstyle::Style;
use serde_json::Value;
use toold_proto::call::Progress;
use toold_proto::event::{Event, EventBody};
use toold_proto::todo::TodoStatus;

use crate::clock::time_of_day;
use crate::output::{self, BAD, DIM, GOOD, NAME, WARN, one_line, shorten};
use crate::tool_title::tool_title;
use crate::views::audit::outcome_tone;

/// An event on one line, with styles.
pub(crate) fn event_line(raw: &Value) -> String {
    match serde_json::from_value::<Event>(raw.clone()) {
        Ok(event) => {
            let (style, text) = describe(&event.body);
            let kind = event.body.kind();
            format!("{DIM}{}{DIM:#} {style}{kind:<19}{style:#} {text}", time_of_day(&event.at))
        }
        Err(_) => {
            let at = raw["at"].as_str().unwrap_or_default();
            let kind = one_line(raw["kind"].as_str().unwrap_or("?"));
            format!("{DIM}{}{DIM:#} {kind:<19} {}", time_of_day(at), shorten(&one_line(&raw.to_string()), 200))
        }
    }
}

/// The frames of the script that an event's error has, each on an indented line.
pub(crate) fn traceback(event: &Value) -> String {
    let frames = event["error"]["traceback"].as_str().unwrap_or_default();
    frames.lines().map(|frame| format!("    {DIM}{}{DIM:#}\n", one_line(frame.trim()))).collect()
}

/// The arguments of a call that has started, the client that it is from, and its folder.
pub(crate) fn started_by(client: Option<&str>, cwd: Option<&str>, arguments: Option<&str>) -> String {
    let arguments = arguments.map(|arguments| shorten(&one_line(arguments), 120));
    let client = client.map(|client| format!("by {}", shorten(&one_line(client), 40)));
    let cwd = cwd.map(|cwd| format!("in {}", shorten(&one_line(cwd), 80)));
    [arguments, client, cwd].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The event as a text, and a style that shows how serious it is.
pub(crate) fn describe(body: &EventBody) -> (Style, String) {
    let plain = Style::new();
    match body {
        EventBody::ToolsChanged { revision, added, removed, changed } => {
            let names = |sign: char, names: &[toold_proto::tool::ToolName]| -> String {
                names.iter().map(|name| format!(" {sign}{name}")).collect()
            };
            let names = [names('+', added), names('-', removed), names('~', changed)].concat();
            (NAME, format!("revision {revision}{names}"))
        }
        EventBody::ResourcesChanged {} | EventBody::PromptsChanged {} => (NAME, "the list has changed".to_owned()),
        EventBody::FleetChanged {} => (NAME, "see `toolctl fleet`".to_owned()),
        EventBody::CallStarted { call_id, tool, agent, client, cwd, arguments, .. } => {
            let tool = tool_title(agent.as_deref(), tool.as_str());
            let by = started_by(client.as_deref(), cwd.as_deref(), arguments.as_deref());
            (plain, format!("{tool} {by}{}{DIM}{call_id}{DIM:#}", if by.is_empty() { "" } else { " " }))
        }
        EventBody::CallProgress { call_id, progress, .. } => {
            let text = match progress {
                Progress::Output { text, .. } | Progress::Message { text } => text.clone(),
                Progress::Update { progress, total, message, .. } => {
                    let amount = [*progress, *total].map(|n| n.map(|n| n.to_string()).unwrap_or_default()).join("/");
                    format!("{} {}", amount.trim_matches('/'), message.as_deref().unwrap_or_default())
                }
            };
            (DIM, format!("{} {DIM}{call_id}{DIM:#}", shorten(&one_line(&text), 120)))
        }
        EventBody::CallFinished { call_id, tool, agent, outcome, duration_ms, .. } => {
            let style = outcome_tone(*outcome).style();
            let (tool, took) = (tool_title(agent.as_deref(), tool.as_str()), output::duration(*duration_ms));
            (style, format!("{tool} {style}{}{style:#} in {took} {DIM}{call_id}{DIM:#}", outcome.as_str()))
        }
        EventBody::PermissionAsked { request, .. } => {
            (WARN, format!("{} wants {} {}", one_line(&request.tool), request.category, one_line(&request.target)))
        }
        EventBody::PermissionResolved { resolved, .. } => {
            let action = serde_json::to_value(resolved.action).unwrap_or_default();
            let scope = resolved.scope.map(|scope| format!(" {}", scope.as_str())).unwrap_or_default();
            (
                plain,
                format!(
                    "{}{scope} {DIM}{}{DIM:#}",
                    action.as_str().unwrap_or_default(),
                    one_line(&resolved.request_id)
                ),
            )
        }
        EventBody::QuestionAsked { request, .. } => (WARN, shorten(&one_line(&request.question), 200)),
        EventBody::QuestionAnswered { resolved, .. } => {
            let end = serde_json::to_value(resolved.action).unwrap_or_default();
            let id = one_line(&resolved.request_id);
            (plain, format!("{} {DIM}{id}{DIM:#}", end.as_str().unwrap_or_default()))
        }
        EventBody::PluginLoaded { plugin, tools, .. } => {
            (GOOD, format!("{}: {}", one_line(plugin), one_line(&tools.join(" "))))
        }
        EventBody::PluginFailed { plugin, error, .. } => {
            let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
            let place = error.file.as_deref().map(|file| format!(" {DIM}{}{line}{DIM:#}", one_line(file)));
            (BAD, format!("{}: {}{}", one_line(plugin), one_line(&error.message), place.unwrap_or_default()))
        }
        EventBody::PluginUntrusted { plugin, path } => {
            (WARN, format!("{} is not trusted yet {DIM}{}{DIM:#}", one_line(plugin), one_line(path)))
        }
        EventBody::PluginUnloaded { plugin, .. } => (WARN, one_line(plugin)),
        EventBody::PluginHandlerFailed { plugin, handler, error, left_out, .. } => {
            let left_out = match left_out {
                0 => String::new(),
                count => format!(" {DIM}({count} before it are not shown){DIM:#}"),
            };
            let message = shorten(&one_line(&error.message), 400);
            (BAD, format!("{}: {}: {message}{left_out}", one_line(plugin), one_line(handler)))
        }
        EventBody::PluginRefused { plugin, message, .. } => {
            (WARN, format!("{}: {}", one_line(plugin), one_line(message)))
        }
        EventBody::ConfigChanged { file, problems, .. } => match problems.first() {
            Some(problem) => (BAD, format!("{}: {}", one_line(file), one_line(problem))),
            None => (GOOD, one_line(file)),
        },
        EventBody::SessionOpened { session_id, cwd } => (plain, format!("{} {DIM}{session_id}{DIM:#}", one_line(cwd))),
        EventBody::SessionClosed { session_id } => (plain, format!("{DIM}{session_id}{DIM:#}")),
        EventBody::SessionMode { session_id, mode } => {
            let mode = serde_json::to_value(mode).unwrap_or_default();
            (WARN, format!("{} {DIM}{session_id}{DIM:#}", mode.as_str().unwrap_or_default()))
        }
        EventBody::TodoChanged { session_id, items } => {
            let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
            (plain, format!("{done} of {} done {DIM}{session_id}{DIM:#}", items.len()))
        }
        EventBody::ShellStarted { shell_id, command, .. } => {
            (plain, format!("{} {DIM}{}{DIM:#}", shorten(&one_line(command), 120), one_line(shell_id)))
        }
        EventBody::ShellExited { shell_id, status, exit_code, .. } => {
            let style = if *exit_code == Some(0) { GOOD } else { WARN };
            (style, format!("{} {DIM}{}{DIM:#}", one_line(status), one_line(shell_id)))
        }
        EventBody::Notice { plugin, level, message, .. } => {
            let from = plugin.as_deref().unwrap_or("toold");
            let style = match level.as_str() {
                "error" => BAD,
                "warn" | "warning" => WARN,
                _ => plain,
            };
            (style, format!("{}: {}", one_line(from), one_line(message)))
        }
        EventBody::Log { plugin, level, message, fields, .. } => {
            let mut text = shorten(&one_line(message), 200);
            if let Some(fields) = fields {
                text = format!("{text} {}", shorten(&one_line(&fields.to_string()), 200));
            }
            (DIM, format!("{}: {}: {text}", one_line(plugin), one_line(level)))
        }
        EventBody::Message { plugin, role, content, .. } => {
            (plain, format!("{} as {}: {}", one_line(plugin), one_line(role), shorten(&one_line(content), 200)))
        }
        EventBody::Lagged { missed: Some(missed) } => (WARN, format!("{missed} events were lost")),
        EventBody::Lagged { missed: None } => (WARN, "events were lost".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(event: Value, expected: &str) {
        assert_eq!(anstream::adapter::strip_str(&event_line(&event)).to_string(), expected);
    }

    fn event(mut what: Value) -> Value {
        what["seq"] = json!(1);
        what["epoch"] = json!("e");
        what["at"] = json!("2026-01-02T03:04:05.678Z");
        what
    }

    #[test]
    fn an_event_is_a_line() {
        let started = json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "read", "client": "nvim",
            "cwd": "/p", "arguments": "path=src/a.rs"});
        check(event(started), "03:04:05Z call.started        read path=src/a.rs by nvim in /p c");
        let finished = json!({"kind": "call.finished", "call_id": "c", "session_id": "s", "tool": "read",
            "outcome": "ok", "duration_ms": 1500});
        check(event(finished), "03:04:05Z call.finished       read ok in 1.5 s c");
        let changed = json!({"kind": "tools.changed", "revision": 7, "added": ["a"], "removed": ["b"], "changed": []});
        check(event(changed), "03:04:05Z tools.changed       revision 7 +a -b");
        let failed = json!({"kind": "plugin.failed", "plugin": "p", "path": "/p.lua",
            "error": {"message": "bad\u{1b}[2J", "file": "/p.lua", "line": 3}});
        check(event(failed), "03:04:05Z plugin.failed       p: bad\\u{1b}[2J /p.lua:3");
    }

    #[test]
    fn a_call_says_who_makes_it() {
        let mut started = json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "read",
            "client": "nvim", "cwd": "/p", "arguments": "path=a\u{1b}"});
        check(event(started.clone()), "03:04:05Z call.started        read path=a\\u{1b} by nvim in /p c");
        started.as_object_mut().unwrap().retain(|key, _| !["client", "cwd", "arguments"].contains(&key.as_str()));
        check(event(started), "03:04:05Z call.started        read c");
    }

    #[test]
    fn an_error_of_a_plugin_is_a_line_and_its_frames() {
        let error = json!({"kind": "plugin.error", "plugin": "p", "handler": "tool greet", "left_out": 3,
            "error": {"message": "p.lua:2: boom", "traceback": "p.lua:2: in f\n\tp.lua:5: in g\u{1b}"}});
        check(
            event(error.clone()),
            "03:04:05Z plugin.error        p: tool greet: p.lua:2: boom (3 before it are not shown)",
        );
        let frames = anstream::adapter::strip_str(&traceback(&event(error))).to_string();
        assert_eq!(frames, "    p.lua:2: in f\n    p.lua:5: in g\\u{1b}\n");
    }

    #[test]
    fn an_event_of_the_future_is_shown_too() {
        let text = event_line(&event(json!({"kind": "moon.rose", "x": 1})));
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.starts_with("03:04:05Z moon.rose           {"), "{text}");
    }
}
