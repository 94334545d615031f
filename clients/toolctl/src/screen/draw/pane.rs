//! Panes with lines that scroll: details, the help, and the question before something ends.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::output::one_line;
use crate::screen::keymap::{KeyPlace, applicable};
use crate::screen::state::ScreenState;
use crate::screen::text::{PaneLine, cut, folded};
use crate::views::Tone;

pub(super) fn draw_details(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    state.refresh_details();
    let theme = state.theme;
    let Some(details) = &mut state.details else { return };
    let ended = if details.gone { ", ended" } else { "" };
    let title = format!("{}{ended}", details.title);
    let block = block(&title, area, theme.style(Tone::Name));
    let inner = block.inner(area);
    let mut lines = folded(&details.lines, usize::from(inner.width), theme);
    lines.extend(folded(&details.more, usize::from(inner.width), theme));
    let top = details.scroll.settle(lines.len(), usize::from(inner.height));
    frame.render_widget(block, area);
    draw_lines(frame, inner, lines, top);
}

pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let places = state.places_below_help();
    let theme = state.theme;
    let mut lines = help_lines(&places);
    lines.push(PaneLine::empty());
    let note = "A prompt of a tool lies over the panel and names the keys that answer it. With the mouse: click selects, \
                double click shows details, the wheel scrolls, a click on a tab shows its panel.";
    lines.push(PaneLine::new(Tone::Dim, note));
    let Some(scroll) = &mut state.help else { return };
    let block = block("keys", area, theme.style(Tone::Name));
    let inner = block.inner(area);
    let lines = folded(&lines, usize::from(inner.width), theme);
    let top = scroll.settle(lines.len(), usize::from(inner.height));
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    draw_lines(frame, inner, lines, top);
}

pub(in crate::screen) fn help_lines(places: &[KeyPlace]) -> Vec<PaneLine> {
    let mut lines: Vec<PaneLine> = Vec::new();
    for binding in applicable(places) {
        lines.push(PaneLine::new(Tone::Plain, format!("{:<14} {}", binding.label, binding.help)));
    }
    lines
}

pub(super) fn draw_confirm(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let theme = state.theme;
    let Some(confirm) = &mut state.confirm else { return };
    let inner_width = usize::from(area.width.saturating_sub(2));
    let question = folded(&[PaneLine::new(Tone::Heading, &confirm.question)], inner_width, theme);
    let lines = folded(&confirm.lines, inner_width, theme);
    // Borders, the question and the keys.
    let fixed = 2 + question.len() + 1;
    let wanted = u16::try_from(fixed + lines.len()).unwrap_or(u16::MAX);
    let height = wanted.min(area.height);
    let place = Rect { y: area.y + area.height - height, height, ..area };
    let block = block("are you sure?", place, theme.style(Tone::Warn));
    let inner = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    let room = usize::from(inner.height).saturating_sub(question.len() + 1);
    let top = confirm.scroll.settle(lines.len(), room);
    confirm.readable = question.len() < usize::from(inner.height);
    let keys = if confirm.readable { "y yes   n no" } else { "the screen is too small; n no" };
    let keys = Line::styled(keys, theme.style(Tone::Warn));
    let mut shown = question;
    shown.truncate(usize::from(inner.height.saturating_sub(1)));
    shown.extend(lines.into_iter().skip(top).take(room));
    shown.push(keys);
    frame.render_widget(Paragraph::new(shown), inner);
}

fn block<'a>(title: &str, area: Rect, style: ratatui::style::Style) -> Block<'a> {
    Block::bordered()
        .title(cut(&format!(" {} ", one_line(title)), usize::from(area.width.saturating_sub(2))))
        .border_style(style)
}

fn draw_lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>, top: usize) {
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(usize::from(area.height)).collect();
    frame.render_widget(Paragraph::new(shown), area);
}
