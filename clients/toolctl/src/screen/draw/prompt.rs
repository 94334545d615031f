//! The oldest permission prompt, over the panel.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use toold_proto::permission::Ask;

use crate::output::one_line;
use crate::prompts::ask::{self, choices};
use crate::screen::state::ScreenState;

/// The prefix of a folded line's continuation, so that it does not look like a line of its own.
const FOLD: &str = "     ";

/// The oldest prompt, over the lower part of the panel.
pub(super) fn draw_prompt(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
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
