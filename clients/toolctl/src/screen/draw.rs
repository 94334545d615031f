//! Draws the state.

use anstyle::{AnsiColor, Color as Ansi};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table, Tabs, Wrap};
use toold_proto::event::Outcome;
use toold_proto::permission::Ask;
use toold_proto::plugin::PluginStatus;

use super::state::{Panel, ScreenState};
use crate::commands::audit::needs;
use crate::output::{self, first_sentence, one_line};
use crate::prompts::ask::{self, choices};

/// The prefix of a folded line's continuation, so that it does not look like a line of its own.
const FOLD: &str = "     ";

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
        Panel::Calls => draw_calls(frame, panel, state),
        Panel::Tools => draw_tools(frame, panel, state),
        Panel::Plugins => draw_plugins(frame, panel, state),
        Panel::Sessions => draw_sessions(frame, panel, state),
        Panel::Shells => draw_shells(frame, panel, state),
        Panel::Audit => draw_audit(frame, panel, state),
        Panel::Events => draw_events(frame, panel, state),
    }
    draw_footer(frame, footer, state);
    if !state.asks.is_empty() {
        draw_ask(frame, panel, state);
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

fn draw_calls(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let [list, latency] = Layout::vertical([Constraint::Min(3), Constraint::Length(5)]).areas(area);
    let rows: Vec<Row<'_>> = state
        .running
        .iter()
        .map(|running| {
            let took = output::duration(
                u64::try_from(running.since.elapsed().unwrap_or_default().as_millis()).unwrap_or(u64::MAX),
            );
            let ratio = running.ratio.map(|ratio| format!("{:.0} %", ratio * 100.0)).unwrap_or_default();
            Row::new([
                name(running.tool.as_str()),
                Cell::new(took),
                Cell::new(ratio),
                Cell::new(running.message.clone()),
            ])
        })
        .collect();
    let widths = [Constraint::Length(24), Constraint::Length(12), Constraint::Length(6), Constraint::Fill(1)];
    let table = table(rows, &widths, &["TOOL", "TIME", "", "MESSAGE"]);
    frame.render_stateful_widget(table, list, &mut state.selected);
    let longest = state.durations.iter().max().copied().unwrap_or(0);
    let calls = output::counted(state.durations.len() as u64, "call");
    let title = format!(" duration of the last {calls}, up to {} ", output::duration(longest));
    let width = usize::from(latency.width.saturating_sub(2));
    let shown = state.durations.len().saturating_sub(width);
    // So that a call that took 0 ms shows too.
    let data: Vec<u64> = state.durations.iter().skip(shown).map(|ms| ms + 1).collect();
    frame.render_widget(Sparkline::default().data(data).block(Block::bordered().title(title)).cyan(), latency);
}

fn draw_tools(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .tools
        .iter()
        .map(|tool| {
            let needs: Vec<&str> = tool.permissions.iter().map(|category| category.as_str()).collect();
            let source = format!("{} {}", tool.source.kind.as_str(), one_line(&tool.source.name));
            let text = first_sentence(&tool.description, 300);
            Row::new([
                name(tool.name.as_str()),
                Cell::new(source),
                Cell::new(needs.join(" ")).yellow(),
                Cell::new(text),
            ])
        })
        .collect();
    let widths = [Constraint::Length(24), Constraint::Length(20), Constraint::Length(20), Constraint::Fill(1)];
    let table = table(rows, &widths, &["TOOL", "SOURCE", "NEEDS", "DESCRIPTION"]);
    frame.render_stateful_widget(table, area, &mut state.selected);
}

fn draw_plugins(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let error = state.selected.selected().and_then(|at| state.plugins.get(at)).and_then(|plugin| plugin.error.clone());
    let [list, detail] =
        Layout::vertical([Constraint::Min(3), Constraint::Length(if error.is_some() { 6 } else { 0 })]).areas(area);
    let rows: Vec<Row<'_>> = state
        .plugins
        .iter()
        .map(|plugin| {
            let style = match plugin.status {
                PluginStatus::Loaded => Style::new().green(),
                PluginStatus::Failed => Style::new().red(),
                PluginStatus::Disabled | PluginStatus::Untrusted | PluginStatus::Shadowed => Style::new().yellow(),
            };
            Row::new([
                name(&one_line(&plugin.name)),
                Cell::new(plugin.status.as_str()).style(style),
                Cell::new(one_line(&plugin.tools.join(" "))),
                Cell::new(one_line(&plugin.path)),
            ])
        })
        .collect();
    let widths = [Constraint::Length(24), Constraint::Length(10), Constraint::Fill(1), Constraint::Fill(1)];
    let table = table(rows, &widths, &["PLUGIN", "STATUS", "TOOLS", "PATH"]);
    frame.render_stateful_widget(table, list, &mut state.selected);
    if let Some(error) = error {
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = error.file.as_deref().map(|file| format!("{}{line}", one_line(file))).unwrap_or_default();
        let source = error.source_line.as_deref().map(one_line).unwrap_or_default();
        let text =
            vec![Line::styled(one_line(&error.message), Style::new().red()), Line::raw(place), Line::raw(source)];
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(Block::bordered()), detail);
    }
}

fn draw_sessions(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .sessions
        .iter()
        .map(|session| {
            let mode = serde_json::to_value(session.mode).unwrap_or_default();
            let client = session.client.as_ref().map(|client| one_line(&client.name)).unwrap_or_default();
            Row::new([
                name(session.session_id.as_str()),
                Cell::new(client),
                Cell::new(mode.as_str().unwrap_or_default().to_owned()),
                Cell::new(format!("{} / {}", session.connections, session.calls)),
                Cell::new(one_line(&session.cwd)),
            ])
        })
        .collect();
    let widths = [
        Constraint::Length(36),
        Constraint::Length(14),
        Constraint::Length(13),
        Constraint::Length(12),
        Constraint::Fill(1),
    ];
    let table = table(rows, &widths, &["SESSION", "CLIENT", "MODE", "CONN / CALLS", "FOLDER"]);
    frame.render_stateful_widget(table, area, &mut state.selected);
}

fn draw_shells(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .shells
        .iter()
        .map(|shell| {
            let style = if shell.running { Style::new().green() } else { Style::new().dim() };
            Row::new([
                name(&one_line(&shell.shell_id)),
                Cell::new(one_line(&shell.status)).style(style),
                Cell::new(output::bytes(shell.output_bytes)),
                Cell::new(one_line(&shell.command)),
                Cell::new(one_line(&shell.cwd)),
            ])
        })
        .collect();
    let widths = [
        Constraint::Length(12),
        Constraint::Length(18),
        Constraint::Length(10),
        Constraint::Fill(2),
        Constraint::Fill(1),
    ];
    let table = table(rows, &widths, &["SHELL", "STATUS", "OUTPUT", "COMMAND", "FOLDER"]);
    frame.render_stateful_widget(table, area, &mut state.selected);
}

fn draw_audit(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .audit
        .iter()
        .rev()
        .map(|entry| {
            let style = if entry.outcome == Outcome::Ok { Style::new().green() } else { Style::new().red() };
            Row::new([
                Cell::new(entry.at.get(11..19).unwrap_or_default().to_owned()).dim(),
                name(entry.tool.as_str()),
                Cell::new(entry.outcome.as_str()).style(style),
                Cell::new(output::duration(entry.duration_ms)),
                Cell::new(one_line(entry.client.as_deref().unwrap_or_default())),
                Cell::new(needs(entry)),
            ])
        })
        .collect();
    let widths = [
        Constraint::Length(8),
        Constraint::Length(24),
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(14),
        Constraint::Fill(1),
    ];
    let table = table(rows, &widths, &["UTC", "TOOL", "OUTCOME", "TOOK", "CLIENT", "NEEDED"]);
    frame.render_stateful_widget(table, area, &mut state.selected);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .events
        .iter()
        .rev()
        .map(|line| {
            let at = line.at.get(11..19).unwrap_or(&line.at).to_owned();
            Row::new([
                Cell::new(at).dim(),
                Cell::new(line.kind.clone()).style(style(line.style)),
                Cell::new(line.text.clone()),
            ])
        })
        .collect();
    let widths = [Constraint::Length(8), Constraint::Length(19), Constraint::Fill(1)];
    frame.render_stateful_widget(table(rows, &widths, &["UTC", "EVENT", ""]), area, &mut state.selected);
}

/// The oldest prompt, over the lower part of the panel.
fn draw_ask(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let Some(request) = state.asks.front() else { return };
    let choices = choices(request);
    let width = usize::from(area.width.saturating_sub(2));
    let lines = shown_lines(request, width);
    // Everything but the diff must be readable, or the end of a long command could be allowed unseen.
    let needed = shown_lines(&Ask { diff: None, ..request.clone() }, width).len();
    let keys = choices.iter().map(|choice| {
        let pattern = choice.pattern.as_deref().map(|pattern| format!(": {}", one_line(pattern))).unwrap_or_default();
        Line::from(vec![
            Span::styled(format!("{}  ", choice.key), Style::new().cyan()),
            Span::raw(format!("{}{pattern}", choice.label)),
        ])
    });
    let keys: Vec<Line<'_>> = keys.collect();
    let wanted = u16::try_from(lines.len() + keys.len() + 2).unwrap_or(u16::MAX);
    let height = wanted.min(area.height);
    let popup = Rect { y: area.y + area.height - height, height, ..area };
    let waiting = if state.asks.len() > 1 { format!(", {} more waiting", state.asks.len() - 1) } else { String::new() };
    let block = Block::bordered().title(format!(" permission{waiting} ")).border_style(Style::new().yellow());
    let inner = block.inner(popup);
    frame.render_widget(Clear, popup);
    frame.render_widget(block, popup);
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(u16::try_from(keys.len()).unwrap_or(u16::MAX))])
            .areas(inner);
    let hidden = lines.len() > usize::from(top.height);
    // The end of a long diff may be missing here, but never the target of the prompt.
    if usize::from(top.height) < needed + usize::from(hidden) {
        state.shown = None;
        let note = Line::styled("the screen is too small for this prompt; use toolctl approve", Style::new().yellow());
        return frame.render_widget(note, inner);
    }
    state.show_ask();
    frame.render_widget(Paragraph::new(lines), top);
    if hidden {
        let note = Line::styled("… more: toolctl permissions pending", Style::new().yellow());
        frame.render_widget(note, Rect { y: top.y + top.height - 1, height: 1, ..top });
    }
    frame.render_widget(Paragraph::new(keys), bottom);
}

/// The prompt as `toolctl approve` shows it, with long lines folded, so that nothing is cut off.
fn shown_lines(request: &Ask, width: usize) -> Vec<Line<'static>> {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = ask::show(request, &mut text);
    let body = anstream::adapter::strip_bytes(&text).into_vec();
    let body = String::from_utf8_lossy(&body).into_owned();
    body.lines().flat_map(|line| folded(line, width).into_iter().map(|part| part.style(diff_style(line)))).collect()
}

fn folded(line: &str, width: usize) -> Vec<Line<'static>> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let wide = Span::raw(c.to_string()).width();
        if used + wide > width && used > FOLD.len() {
            parts.push(FOLD.to_owned());
            used = FOLD.len();
        }
        used += wide;
        parts.last_mut().expect("it begins with one").push(c);
    }
    parts.into_iter().map(Line::from).collect()
}

fn diff_style(line: &str) -> Style {
    match line.trim_start().as_bytes().first() {
        Some(b'+') => Style::new().green(),
        Some(b'-') => Style::new().red(),
        Some(b'@') => Style::new().cyan(),
        Some(b'?') => Style::new().bold(),
        _ => Style::new(),
    }
}

fn table<'a>(rows: Vec<Row<'a>>, widths: &[Constraint], header: &[&'a str]) -> Table<'a> {
    let header = Row::new(header.iter().copied().map(Cell::new).collect::<Vec<_>>()).dim();
    Table::new(rows, widths.to_vec()).header(header).row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn name(text: &str) -> Cell<'static> {
    Cell::new(text.to_owned()).cyan()
}

/// The styles of lines on stdout, for the screen.
fn style(style: anstyle::Style) -> Style {
    let color = match style.get_fg_color() {
        Some(Ansi::Ansi(AnsiColor::Red)) => Style::new().fg(Color::Red),
        Some(Ansi::Ansi(AnsiColor::Green)) => Style::new().fg(Color::Green),
        Some(Ansi::Ansi(AnsiColor::Yellow)) => Style::new().fg(Color::Yellow),
        Some(Ansi::Ansi(AnsiColor::Cyan)) => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    };
    if style.get_effects().contains(anstyle::Effects::DIMMED) { color.dim() } else { color }
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
        TOOL                SOURCE              NEEDS
        bash                builtin builtin     shell
        ┌ permission ──────────────────────────────────────────────┐
        │? bash asks for permission: shell                         │
        │  git push                                                │
        │  folder: /x                                              │
        │y  allow once                                             │
        │s  allow in this session                                  │
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
        TOOL                SOURCE              NEEDS
        ┌ permission ──────────────────────────────────────────────┐
        │? list asks for permission: use this workspace            │
        │  /home/me/docs                                           │
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
