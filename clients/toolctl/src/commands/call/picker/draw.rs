//! Draws the search: the input, the tools that match, and the selected one beside or below them.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};

use super::Picker;
use crate::commands::schema;
use crate::output::{first_sentence, one_line};

/// Two columns need this much.
const WIDE: u16 = 80;
/// A preview below the list needs this many lines.
const HIGH: u16 = 16;

pub(super) fn draw(frame: &mut Frame<'_>, picker: &mut Picker) {
    let [input, body, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    let query = one_line(&picker.query);
    let count = format!("  {} of {}", picker.matching.len(), picker.tools.len());
    let cursor = u16::try_from(textwrap::core::display_width(&query)).unwrap_or(u16::MAX).saturating_add(2);
    frame.render_widget(
        Line::from(vec![
            Span::styled("> ", Style::new().cyan().bold()),
            Span::raw(query),
            Span::styled(count, Style::new().dim()),
        ]),
        input,
    );
    frame.set_cursor_position((input.x + cursor.min(input.width.saturating_sub(1)), input.y));
    let (list, preview) = match (body.width >= WIDE, body.height >= HIGH) {
        (true, _) => {
            let [list, preview] =
                Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(body);
            (list, Some((preview, Borders::LEFT)))
        }
        (false, true) => {
            let [list, preview] =
                Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(body);
            (list, Some((preview, Borders::TOP)))
        }
        (false, false) => (body, None),
    };
    draw_list(frame, list, picker);
    if let Some((area, border)) = preview {
        draw_preview(frame, area, border, picker);
    }
    let keys = "type to search, up and down select, Enter continues, Esc cancels";
    frame.render_widget(Line::styled(keys, Style::new().dim()), footer);
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, picker: &Picker) {
    let names = picker.matching.iter().map(|at| picker.tools[*at].name.as_str().len());
    let name_width = names.max().unwrap_or(0).min(usize::from(area.width) / 2);
    let items = picker.matching.iter().map(|at| {
        let tool = &picker.tools[*at];
        let name = Span::styled(format!("{:<name_width$}", tool.name.as_str()), Style::new().cyan());
        let about = first_sentence(&tool.description, usize::from(area.width));
        ListItem::new(Line::from(vec![name, Span::raw("  "), Span::styled(about, Style::new().dim())]))
    });
    let list = List::new(items).highlight_symbol("* ").highlight_style(Style::new().bold());
    let mut state = ListState::default().with_selected(Some(picker.selected));
    frame.render_stateful_widget(list, area, &mut state);
}

fn draw_preview(frame: &mut Frame<'_>, area: Rect, border: Borders, picker: &Picker) {
    let block = Block::new().borders(border).border_style(Style::new().dim());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let Some(tool) = picker.selected() else {
        frame.render_widget(Paragraph::new("no tool matches").style(Style::new().dim()), inner);
        return;
    };
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = schema::show(tool, Some(inner.width), &mut text);
    let text = anstream::adapter::strip_bytes(&text).into_vec();
    let text = String::from_utf8_lossy(&text).into_owned();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), inner);
}
