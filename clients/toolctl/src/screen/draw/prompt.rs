//! The oldest prompt, over the panel.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use toold_proto::permission::Ask;

use crate::output::plain;
use crate::prompts::WaitingPrompt;
use crate::prompts::ask::{self, choices};
use crate::prompts::question;
use crate::screen::state::ScreenState;
use crate::screen::text::{PaneLine, diff_tone, folded};
use crate::screen::theme::{Theme, Tone};

/// The oldest prompt, over the lower part of the panel, which is returned.
pub(super) fn draw_prompt(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) -> Rect {
    let Some(request) = state.data.prompts.front() else { return Rect::ZERO };
    let theme = state.theme;
    let width = usize::from(area.width.saturating_sub(2));
    let fold = |lines: Vec<PaneLine>| folded(&lines, width, theme);
    let (title, body, needed, keys) = match request {
        WaitingPrompt::Permission(request) => {
            let body = fold(ask_lines(request));
            // Everything but the diff must be readable, or the end of a long command could be allowed unseen.
            let needed = fold(ask_lines(&Ask { diff: None, ..Ask::clone(request) })).len();
            let mut text = Vec::new();
            // Writing to memory does not fail.
            let _ = ask::show_choices(&choices(request), &mut text);
            ("permission", body, needed, fold(key_lines(&text)))
        }
        WaitingPrompt::Question(asked) => {
            let mut text = Vec::new();
            let _ = question::show(asked, &mut text);
            if asked.multiple {
                let _ = question::show_chosen(asked, &state.prompt.chosen, &mut text);
            }
            let mut lines = key_lines(&text);
            if asked.schema.is_some() {
                lines.push(PaneLine::new(Tone::Plain, "  f  fill in the form"));
            }
            let body = fold(lines);
            let needed = body.len();
            ("question", body, needed, Vec::new())
        }
    };
    let entry = state.prompt.entry.as_ref().map(|entry| {
        Line::from(vec![
            Span::styled(format!("{}: ", entry.label), theme.style(Tone::Heading)),
            Span::raw(super::one_line_keeping_end(&entry.text, area.width.saturating_sub(12))),
            Span::styled("█", theme.style(Tone::Dim)),
        ])
    });
    let below = keys.len() + usize::from(entry.is_some());
    let wanted = u16::try_from(body.len() + below + 2).unwrap_or(u16::MAX);
    let height = wanted.min(area.height);
    let popup = Rect { y: area.y + area.height - height, height, ..area };
    let more = state.data.prompts.len() - 1;
    let waiting = if more > 0 { format!(", {more} more waiting") } else { String::new() };
    let block = Block::bordered().title(format!(" {title}{waiting} ")).border_style(theme.style(Tone::Warn));
    let inner = block.inner(popup);
    frame.render_widget(Clear, popup);
    frame.render_widget(block, popup);
    let [top, bottom] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(u16::try_from(below).unwrap_or(u16::MAX))])
            .areas(inner);
    let hidden = body.len() > usize::from(top.height);
    // The end of a long diff may be missing here, but never the target of the prompt.
    if usize::from(top.height) < needed + usize::from(hidden) {
        state.prompt.hide();
        let note = "the screen is too small for this prompt; use toolctl approve";
        let note = folded(&[PaneLine::new(Tone::Warn, note)], width, theme);
        frame.render_widget(Paragraph::new(note), inner);
        return popup;
    }
    state.prompt.show(request.id());
    frame.render_widget(Paragraph::new(body), top);
    if hidden {
        let note = Line::styled("… more: toolctl permissions pending", theme.style(Tone::Warn));
        frame.render_widget(note, Rect { y: top.y + top.height - 1, height: 1, ..top });
    }
    let keys: Vec<Line<'_>> = keys.into_iter().map(|line| named_key(line, theme)).chain(entry).collect();
    frame.render_widget(Paragraph::new(keys), bottom);
    popup
}

/// The prompt as `toolctl approve` shows it.
fn ask_lines(request: &Ask) -> Vec<PaneLine> {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = ask::show(request, &mut text);
    let mut lines = key_lines(&text);
    for line in &mut lines {
        line.tone = match line.text.trim_start().as_bytes().first() {
            Some(b'?') => Tone::Heading,
            _ => diff_tone(line.text.trim_start()),
        };
    }
    lines
}

/// Text for stdout, without its styles.
fn key_lines(text: &[u8]) -> Vec<PaneLine> {
    let body = anstream::adapter::strip_bytes(text).into_vec();
    let body = String::from_utf8_lossy(&body).into_owned();
    body.lines().map(|line| PaneLine::new(Tone::Plain, plain(line))).collect()
}

/// A line of `show_choices`, with its key emphasized.
fn named_key(line: Line<'static>, theme: Theme) -> Line<'static> {
    let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let key: String = text.chars().take(3).collect();
    let rest = text[key.len()..].to_owned();
    Line::from(vec![Span::styled(key, theme.style(Tone::Name).add_modifier(Modifier::BOLD)), Span::raw(rest)])
}
