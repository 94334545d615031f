//! The table of the current panel.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Block, Sparkline};

use crate::output;
use crate::screen::panel::{Panel, PanelRow};
use crate::screen::state::{HitArea, ScreenState};
use crate::screen::table_view::SortOrder;
use crate::screen::text::{cells, cut, cut_path};
use crate::screen::theme::Theme;
use crate::views::{Column, FILL, SPARE, Tone};

/// Between two columns.
const GAP: u16 = 1;

/// A panel that is lower than this has no room for the plot of durations: calls and changes come first.
const PLOT_FROM: u16 = 30;

/// From these heights on, the calls that run have the last calls below them, and the last changes.
const PAST_FROM: u16 = 8;
const CHANGES_FROM: u16 = 14;

/// A column that is shown, and how wide it is.
#[derive(Debug, PartialEq, Eq)]
struct ShownColumn {
    at: usize,
    width: u16,
}

pub(super) fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let plot_height = if state.panel == Panel::Calls && area.height >= PLOT_FROM { 5 } else { 0 };
    let [area, plot] = Layout::vertical([Constraint::Min(1), Constraint::Length(plot_height)]).areas(area);
    if plot_height > 0 {
        draw_durations(frame, plot, state);
    }
    let rows = state.rows();
    let area = if state.panel == Panel::Calls { draw_past(frame, area, rows.len(), state) } else { area };
    let theme = state.theme;
    let panel = state.panel;
    let [title, head, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let view = state.view_mut();
    view.height = usize::from(body.height);
    let selected = view.settle(panel, &rows);
    let (offset, sort, filter) = (view.offset, view.sort, view.filter.clone());
    let count = panel.rows(&state.data).len();
    let heading = match filter.is_empty() {
        true => format!("── {} ", panel.title()),
        false => format!("── {}: {} of {count} with /{} ", panel.title(), rows.len(), output::one_line(&filter)),
    };
    let tone = if filter.is_empty() { Tone::Dim } else { Tone::Warn };
    draw_title(frame, title, &heading, theme.style(tone));
    let columns = layout(panel.columns(), &rows, area.width);
    draw_head(frame, head, (panel, theme), &columns, sort);
    for (line, row) in rows.iter().skip(offset).take(usize::from(body.height)).enumerate() {
        let place = Rect { y: body.y + line as u16, height: 1, ..body };
        draw_row(frame, place, row, &columns, theme);
        if Some(offset + line) == selected {
            frame.buffer_mut().set_style(place, theme.selected());
        }
        state.hits.push(HitArea::Row(place, row.key.clone()));
    }
    if rows.is_empty() {
        let note = if filter.is_empty() { panel.empty() } else { "no row has these words; Esc shows all" };
        frame.render_widget(Span::styled(cut(note, usize::from(body.width)), theme.style(Tone::Dim)), body);
    }
}

/// Below the calls that run, as much of the last calls and changes as fits; returns the room for those that run.
fn draw_past(frame: &mut Frame<'_>, area: Rect, running: usize, state: &ScreenState) -> Rect {
    if area.height < PAST_FROM {
        return area;
    }
    let running = u16::try_from(running.max(1)).unwrap_or(u16::MAX).saturating_add(2).min(area.height / 2);
    let [top, past] = Layout::vertical([Constraint::Length(running), Constraint::Fill(1)]).areas(area);
    let changes = if area.height < CHANGES_FROM { 0 } else { past.height / 3 };
    let [calls, changes] = Layout::vertical([Constraint::Fill(1), Constraint::Length(changes)]).areas(past);
    draw_list(frame, calls, Panel::Audit, "last calls", state);
    if changes.height > 0 {
        draw_list(frame, changes, Panel::Changes, "last changes", state);
    }
    top
}

/// Rows of another panel, which are not selected here.
fn draw_list(frame: &mut Frame<'_>, area: Rect, panel: Panel, name: &str, state: &ScreenState) {
    let rows = panel.rows(&state.data);
    let [title, head, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    draw_title(frame, title, &format!("── {name} "), state.theme.style(Tone::Dim));
    let shown = &rows[..rows.len().min(usize::from(body.height))];
    let columns = layout(panel.columns(), shown, area.width);
    draw_head(frame, head, (panel, state.theme), &columns, None);
    for (y, row) in (body.y..).zip(shown) {
        draw_row(frame, Rect { y, height: 1, ..body }, row, &columns, state.theme);
    }
    if rows.is_empty() {
        frame.render_widget(Span::styled("none yet", state.theme.style(Tone::Dim)), body);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, heading: &str, style: Style) {
    let line = format!("{heading}{}", "─".repeat(usize::from(area.width).saturating_sub(cells(heading))));
    frame.render_widget(Span::styled(cut(&line, usize::from(area.width)), style), area);
}

fn draw_row(frame: &mut Frame<'_>, place: Rect, row: &PanelRow, columns: &[ShownColumn], theme: Theme) {
    let mut x = place.x;
    for column in columns {
        let Some(cell) = row.cells.get(column.at) else { continue };
        let room = usize::from(column.width);
        let short = cell.short.as_ref().filter(|_| cells(&cell.text) > room);
        let cut = if cell.is_path { cut_path } else { cut };
        let text = cut(short.unwrap_or(&cell.text), room);
        let width = column.width.min((place.x + place.width).saturating_sub(x));
        frame.render_widget(Span::styled(text, theme.style(cell.tone)), Rect { x, width, ..place });
        x += column.width + GAP;
    }
}

fn draw_head(
    frame: &mut Frame<'_>,
    area: Rect,
    (panel, theme): (Panel, Theme),
    columns: &[ShownColumn],
    sort: Option<SortOrder>,
) {
    let mut x = area.x;
    for column in columns {
        let title = panel.columns()[column.at].title;
        let mark = match sort {
            Some(order) if order.column == column.at => {
                if order.reverse {
                    "▼"
                } else {
                    "▲"
                }
            }
            _ => "",
        };
        let width = usize::from(column.width);
        let text = format!("{}{mark}", cut(title, width.saturating_sub(cells(mark))));
        let style = theme.style(Tone::Dim);
        let style = if mark.is_empty() { style } else { style.add_modifier(Modifier::BOLD) };
        let width = column.width.min((area.x + area.width).saturating_sub(x));
        frame.render_widget(Span::styled(text, style), Rect { x, width, ..area });
        x += column.width + GAP;
    }
}

/// The columns that fit, none of them narrower than its minimum.
fn layout(columns: &'static [Column], rows: &[PanelRow], width: u16) -> Vec<ShownColumn> {
    let content = |at: usize| {
        let widest = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cells(&cell.text)).max().unwrap_or(0);
        // One more for the mark of the order.
        u16::try_from(widest.max(cells(columns[at].title) + 1)).unwrap_or(u16::MAX)
    };
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| columns[*at].rank);
    let beside: u16 = columns.iter().filter(|column| column.rank == 1).map(|column| column.min + GAP).sum();
    let whole = width.saturating_sub(beside);
    let mut shown: Vec<ShownColumn> = Vec::new();
    let mut left = width;
    for at in by_rank {
        // A column without any content is not worth its place on a narrow screen.
        let empty = rows.iter().all(|row| row.cells.get(at).is_none_or(|cell| cell.text.is_empty()));
        let min = if columns[at].is_whole {
            content(at).min(columns[at].max).min(whole).max(columns[at].min)
        } else {
            columns[at].min
        };
        let least = min.min(content(at)) + if shown.is_empty() { 0 } else { GAP };
        let cut_off: u16 = match columns[at].rank {
            SPARE.. => {
                shown.iter().map(|shown| content(shown.at).min(columns[shown.at].max).saturating_sub(shown.width)).sum()
            }
            _ => 0,
        };
        if columns[at].rank > 0 && (least.saturating_add(cut_off) > left || (empty && !rows.is_empty() && left < 60)) {
            continue;
        }
        let gap = if shown.is_empty() { 0 } else { GAP };
        shown.push(ShownColumn { at, width: least.min(left) - gap });
        left = left.saturating_sub(least);
    }
    // What is left goes to the columns in the order of their ranks, those that fill last.
    for fill in [false, true] {
        for column in &mut shown {
            if (columns[column.at].max == FILL) == fill {
                let more = content(column.at).min(columns[column.at].max).saturating_sub(column.width).min(left);
                column.width += more;
                left -= more;
            }
        }
    }
    shown.sort_by_key(|column| column.at);
    shown
}

fn draw_durations(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let durations = &state.data.durations;
    let longest = durations.iter().max().copied().unwrap_or(0);
    let title = match durations.len() as u64 {
        0 => " durations of calls: none has ended yet ".to_owned(),
        count => {
            let calls = output::counted(count, "call");
            format!(" duration of the last {calls}, up to {} ", output::duration(longest))
        }
    };
    let width = usize::from(area.width.saturating_sub(2));
    let skipped = durations.len().saturating_sub(width);
    // So that a call that took 0 ms shows too.
    let data: Vec<u64> = durations.iter().skip(skipped).map(|ms| ms + 1).collect();
    let sparkline = Sparkline::default().data(data).block(Block::bordered().title(title));
    frame.render_widget(sparkline.style(state.theme.style(Tone::Name)), area);
}
