//! The seven panels, each a table.

use anstyle::{AnsiColor, Color as Ansi};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Wrap};
use toold_proto::event::Outcome;
use toold_proto::plugin::PluginStatus;

use crate::commands::audit::needs;
use crate::output::{self, first_sentence, one_line};
use crate::screen::state::ScreenState;
use crate::tool_title::tool_title;

pub(super) fn draw_calls(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let [list, latency] = Layout::vertical([Constraint::Min(3), Constraint::Length(5)]).areas(area);
    let rows: Vec<Row<'_>> = state
        .running
        .iter()
        .map(|running| {
            let took = output::duration(
                u64::try_from(running.since.elapsed().unwrap_or_default().as_millis()).unwrap_or(u64::MAX),
            );
            let ratio = running.ratio.map(|ratio| format!("{:.0} %", ratio * 100.0)).unwrap_or_default();
            Row::new([name(&running.tool), Cell::new(took), Cell::new(ratio), Cell::new(running.message.clone())])
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

pub(super) fn draw_tools(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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

pub(super) fn draw_plugins(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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

pub(super) fn draw_sessions(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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

pub(super) fn draw_shells(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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

pub(super) fn draw_audit(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let rows: Vec<Row<'_>> = state
        .audit
        .iter()
        .rev()
        .map(|entry| {
            let style = if entry.outcome == Outcome::Ok { Style::new().green() } else { Style::new().red() };
            Row::new([
                Cell::new(entry.at.get(11..19).unwrap_or_default().to_owned()).dim(),
                name(&tool_title(entry.agent.as_deref(), entry.tool.as_str())),
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

pub(super) fn draw_events(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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
