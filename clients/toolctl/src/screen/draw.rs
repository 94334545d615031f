//! Draws the state: a header, the current panel, a footer, and a prompt over them.

mod panels;
mod prompt;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Tabs;

use super::state::{Panel, ScreenState};
use crate::output::{self, one_line};

pub(super) fn draw(frame: &mut Frame<'_>, state: &mut ScreenState) {
    let [header, tabs, panel, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    draw_header(frame, header, state);
    let titles = Panel::ALL.map(|panel| match count(panel, state) {
        0 => panel.title().to_owned(),
        count => format!("{} {count}", panel.title()),
    });
    let front = Panel::ALL.iter().position(|panel| *panel == state.panel);
    frame.render_widget(Tabs::new(titles).select(front).highlight_style(Style::new().cyan().bold()), tabs);
    match state.panel {
        Panel::Calls => panels::draw_calls(frame, panel, state),
        Panel::Tools => panels::draw_tools(frame, panel, state),
        Panel::Plugins => panels::draw_plugins(frame, panel, state),
        Panel::Sessions => panels::draw_sessions(frame, panel, state),
        Panel::Shells => panels::draw_shells(frame, panel, state),
        Panel::Audit => panels::draw_audit(frame, panel, state),
        Panel::Events => panels::draw_events(frame, panel, state),
    }
    draw_footer(frame, footer, state);
    if !state.asks.is_empty() {
        prompt::draw_prompt(frame, panel, state);
    }
}

/// The number beside a panel's title: of current items, not of past ones.
fn count(panel: Panel, state: &ScreenState) -> usize {
    match panel {
        Panel::Calls => state.running.len(),
        Panel::Tools => state.tools.len(),
        Panel::Plugins => state.plugins.len(),
        Panel::Sessions => state.sessions.len(),
        Panel::Shells => state.shells.iter().filter(|shell| shell.running).count(),
        Panel::Audit | Panel::Events => 0,
    }
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let Some(status) = &state.status else { return };
    let uptime = output::duration((status.uptime_s * 1000.0) as u64);
    let calls = output::counted(status.calls.finished, "call");
    let mut parts = vec![
        Span::styled(format!("toold {}", one_line(&status.version)), Style::new().green().bold()),
        Span::raw(format!("  up {uptime}  {calls}, {} running", status.calls.in_flight)),
        Span::raw(format!("  {}", output::counted(status.connections, "connection"))),
    ];
    if let Some(memory) = status.memory_bytes {
        parts.push(Span::raw(format!("  {}", output::bytes(memory))));
    }
    if status.plugins.failed > 0 {
        parts.push(Span::styled(format!("  plugins failed: {}", status.plugins.failed), Style::new().red().bold()));
    }
    if !status.problems.is_empty() {
        parts.push(Span::styled("  problems: see toolctl status", Style::new().yellow()));
    }
    if !state.questions.is_empty() {
        parts.push(Span::styled("  a question is waiting: toolctl approve", Style::new().yellow().bold()));
    }
    frame.render_widget(Line::from(parts), area);
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let line = match &state.error {
        Some(error) => Line::styled(error.clone(), Style::new().red()),
        None => {
            let more = match state.panel {
                Panel::Calls => "  x cancel",
                Panel::Shells => "  x kill",
                Panel::Plugins => "  r reload",
                Panel::Tools | Panel::Sessions | Panel::Audit | Panel::Events => "",
            };
            Line::styled(format!("q quit  Tab next  ↑↓ select{more}"), Style::new().dim())
        }
    };
    frame.render_widget(line, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn screen(state: &mut ScreenState, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content.chunks(usize::from(width));
        let text: Vec<String> =
            rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect();
        text.join("\n")
    }

    fn state() -> ScreenState {
        let mut state = ScreenState::default();
        state.take(super::super::fetch::Fetched::Tools(vec![
            serde_json::from_value(json!({
                "name": "bash", "label": "bash", "description": "Runs a command. More.",
                "input_schema": {}, "source": {"kind": "builtin", "name": "builtin"},
                "parallelizable": false, "permissions": ["shell"], "cacheable": false, "annotations": {}
            }))
            .unwrap(),
        ]));
        state
    }

    #[test]
    fn the_tools_are_listed() {
        insta::assert_snapshot!(screen(&mut state(), 90, 6), @r"

         Calls │ Tools 1 │ Plugins │ Sessions │ Shells │ Audit │ Events
        TOOL                     SOURCE               NEEDS                DESCRIPTION
        bash                     builtin builtin      shell                Runs a command

        q quit  Tab next  ↑↓ select
        ");
    }

    #[test]
    fn an_ask_lies_over_the_panel_with_its_keys() {
        let mut state = state();
        let request = json!({"request_id": "1", "session_id": "s", "call_id": "c", "call_ids": ["c"],
            "category": "shell", "target": "git push", "tool": "bash", "source": {"kind": "builtin", "name": "builtin"},
            "cwd": "/x", "suggestions": [{"scope": "project", "pattern": "git *"}], "asked_at": "", "expires_at": ""});
        state.permission(serde_json::from_value(json!({"type": "asked", "request": request})).unwrap());
        insta::assert_snapshot!(screen(&mut state, 60, 16), @r"
         Calls │ Tools 1 │ Plugins │ Sessions │ Shells │ Audit │ Eve
        ┌ permission ──────────────────────────────────────────────┐
        │? bash asks for permission: shell                         │
        │  git push                                                │
        │  agent: session s                                        │
        │  folder: /x                                              │
        │y  allow once                                             │
        │s  allow in this session                                  │
        │h  allow in this project for 1 hour                       │
        │p  allow in this project                                  │
        │a  allow always                                           │
        │1  allow in this project: git *                           │
        │n  deny                                                   │
        └──────────────────────────────────────────────────────────┘
        q quit  Tab next  ↑↓ select
        ");
        assert!(state.shown.is_some());
        // A prompt that is not readable must not be answered.
        assert!(screen(&mut state, 60, 9).contains("too small"));
        assert!(state.shown.is_none());
    }

    #[test]
    fn an_ask_for_a_workspace_is_read_to_its_end() {
        let mut state = state();
        let reason = "use /home/me/docs as a workspace of claude: its tools may read everything in there";
        let request = json!({"request_id": "1", "session_id": "s", "call_id": "c", "call_ids": ["c"],
            "category": "file.read", "target": "/home/me/docs", "tool": "list",
            "source": {"kind": "builtin", "name": "builtin"}, "cwd": "/home/me/docs", "reason": reason,
            "suggestions": [], "asked_at": "", "expires_at": ""});
        state.permission(serde_json::from_value(json!({"type": "asked", "request": request})).unwrap());
        insta::assert_snapshot!(screen(&mut state, 60, 13), @r"
         Calls │ Tools 1 │ Plugins │ Sessions │ Shells │ Audit │ Eve
        ┌ permission ──────────────────────────────────────────────┐
        │? list asks for permission: use this workspace            │
        │  /home/me/docs                                           │
        │  agent: session s                                        │
        │  reason: use /home/me/docs as a workspace of claude: its │
        │     tools may read everything in there                   │
        │y  allow, and remember it for this client                 │
        │s  allow in this session                                  │
        │n  deny                                                   │
        └──────────────────────────────────────────────────────────┘
        q quit  Tab next  ↑↓ select
        ");
        assert!(state.shown.is_some());
        assert!(screen(&mut state, 60, 11).contains("too small"));
        assert!(state.shown.is_none());
    }
}
