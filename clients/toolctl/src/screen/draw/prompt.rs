//! A prompt, over the panel.

use chrono::Utc;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use toold_proto::permission::Ask;

use crate::output::{counted, plain};
use crate::prompts::WaitingPrompt;
use crate::prompts::ask::{self, choices};
use crate::prompts::question;
use crate::screen::state::ScreenState;
use crate::screen::text::{PaneLine, cells, cut, diff_tone, folded};
use crate::screen::theme::Theme;
use crate::views::Tone;

/// The prompt, over the lower part of the panel, which is returned. What does not fit scrolls.
pub(super) fn draw_prompt(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) -> Rect {
    let Some(request) = state.prompt.current(&state.data) else { return Rect::ZERO };
    let theme = state.theme;
    let width = usize::from(area.width.saturating_sub(2));
    let fold = |lines: Vec<PaneLine>| folded(&lines, width, theme);
    let (title, mut body, keys) = match request {
        WaitingPrompt::Permission(request) => {
            let mut text = Vec::new();
            // Writing to memory does not fail.
            let _ = ask::show_choices(&choices(request), &mut text);
            let keys = fold(key_lines(&text)).into_iter().map(|line| named_key(line, theme)).collect();
            ("permission", fold(ask_lines(request)), keys)
        }
        WaitingPrompt::Question(asked) => {
            let mut text = Vec::new();
            let _ = question::show(asked, &mut text);
            if asked.multiple {
                let _ = question::show_chosen(asked, &state.prompt.chosen, &mut text);
            }
            ("question", fold(key_lines(&text)), Vec::new())
        }
    };
    let last_line = last_line(state, width);
    let most = usize::from(area.height.saturating_sub(2));
    let all = body.len() + keys.len() + usize::from(last_line.is_some());
    let fits = all <= most;
    // The keys stay in sight beside a text that scrolls, unless they would take most of the room.
    let keys: Vec<Line<'_>> = if fits || keys.len() * 2 < most {
        keys
    } else {
        body.extend(keys);
        Vec::new()
    };
    let height = u16::try_from(all + 2).unwrap_or(u16::MAX).min(area.height);
    let popup = Rect { y: area.y + area.height - height, height, ..area };
    let count = state.data.prompts.len();
    let id = request.id().to_owned();
    let at = state.data.prompts.iter().position(|prompt| *prompt.id() == id).unwrap_or(0);
    let of = if count > 1 { format!(" {} of {count}", at + 1) } else { String::new() };
    let expires_at = match request {
        WaitingPrompt::Permission(ask) => &ask.expires_at,
        WaitingPrompt::Question(question) => &question.expires_at,
    };
    let left = ask::time_left(expires_at, Utc::now()).filter(|left| cells(title) + cells(left) + 4 < width);
    let left = left.map(|left| Line::from(format!(" {left} ")).right_aligned());
    let block = Block::bordered().title(format!(" {title}{of} ")).border_style(theme.style(Tone::Warn));
    let block = left.into_iter().fold(block, Block::title);
    let inner = block.inner(popup);
    frame.render_widget(Clear, popup);
    frame.render_widget(block, popup);
    let rows = |lines: usize| Constraint::Length(u16::try_from(lines).unwrap_or(u16::MAX));
    let below = usize::from(!fits || last_line.is_some());
    let [text, pinned, bottom] = Layout::vertical([Constraint::Fill(1), rows(keys.len()), rows(below)]).areas(inner);
    let total = body.len();
    let shown = usize::from(text.height);
    let top = state.prompt.settle(&id, total, shown);
    frame.render_widget(Paragraph::new(body.into_iter().skip(top).take(shown).collect::<Vec<_>>()), text);
    frame.render_widget(Paragraph::new(keys), pinned);
    let position = || {
        let (tone, text) = match state.prompt.is_read_to_end() {
            true => (Tone::Dim, format!("lines {} to {} of {total}; PgUp and PgDn scroll", top + 1, top + shown)),
            false => (Tone::Warn, more_below(title, total.saturating_sub(top + shown), width)),
        };
        Line::styled(cut(&text, width), theme.style(tone))
    };
    if below > 0 {
        frame.render_widget(last_line.unwrap_or_else(position), bottom);
    }
    popup
}

/// The text that is typed.
fn last_line(state: &ScreenState, width: usize) -> Option<Line<'static>> {
    let theme = state.theme;
    state.prompt.entry.as_ref().map(|entry| {
        let room = u16::try_from(width.saturating_sub(10)).unwrap_or(u16::MAX);
        Line::from(vec![
            Span::styled(format!("{}: ", entry.label), theme.style(Tone::Heading)),
            Span::raw(super::one_line_keeping_end(&entry.text, room)),
            Span::styled("█", theme.style(Tone::Dim)),
        ])
    })
}

/// How much of an unread prompt is below, and what can be done.
fn more_below(title: &str, lines: usize, width: usize) -> String {
    let (refuse, answer) = if title == "permission" { ("deny", "allow") } else { ("refuse", "choose") };
    let long = format!("{} below: PgDn; n can {refuse} now, {answer} only at the end", counted(lines as u64, "line"));
    if cells(&long) <= width { long } else { format!("{lines} more: PgDn, n to {refuse}") }
}

/// The prompt as `toolctl approve` shows it, with the whole diff.
fn ask_lines(request: &Ask) -> Vec<PaneLine> {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = ask::show_whole(request, &mut text);
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
