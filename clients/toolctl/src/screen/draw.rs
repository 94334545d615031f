//! Draws the state: a header, tabs, the current panel, a footer, and what lies over the panel.

mod pane;
mod prompt;
mod table;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::keymap::{KeyPlace, applicable};
use super::panel::Panel;
use super::state::{DaemonLink, HitArea, ScreenState};
use super::text::{cells, cut};
use super::theme::Theme;
use crate::output::{self, one_line};
use crate::views::Tone;

pub(super) fn draw(frame: &mut Frame<'_>, state: &mut ScreenState) {
    state.hits.clear();
    frame.render_widget(Block::new().style(state.theme.base()), frame.area());
    let [header, tabs, panel, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    draw_header(frame, header, state);
    draw_tabs(frame, tabs, state);
    if state.details.is_some() {
        pane::draw_details(frame, panel, state);
    } else {
        table::draw_table(frame, panel, state);
    }
    if state.is_gone() {
        // The data is old.
        frame.buffer_mut().set_style(panel, Modifier::DIM);
    }
    if state.prompt_is_shown() {
        let covered = prompt::draw_prompt(frame, panel, state);
        // Rows below the prompt are not clicked.
        state.hits.retain(|hit| !hit.area().intersects(covered));
    }
    if state.help.is_some() {
        pane::draw_help(frame, panel, state);
    }
    if state.confirm.is_some() {
        pane::draw_confirm(frame, panel, state);
    }
    draw_footer(frame, footer, state);
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let theme = state.theme;
    if let DaemonLink::Gone { starting } = state.link {
        let text = if starting { "starting a daemon" } else { "the daemon is gone, waiting" };
        let style = theme.style(Tone::Bad).add_modifier(Modifier::BOLD);
        return frame.render_widget(Span::styled(text, style), area);
    }
    let Some(status) = &state.data.status else { return };
    let uptime = output::duration((status.uptime_s * 1000.0) as u64);
    let calls = output::counted(status.calls.finished, "call");
    let mut parts = vec![(Tone::Good, format!("toold {}", one_line(&status.version)))];
    if state.data.prompts.len() > 1 || (!state.data.prompts.is_empty() && !state.prompt_is_shown()) {
        parts.push((Tone::Warn, format!("{} waiting", output::counted(state.data.prompts.len() as u64, "prompt"))));
    }
    parts.extend(status.paused.as_ref().map(|_| (Tone::Bad, "paused: P resumes".to_owned())));
    if status.plugins.failed > 0 {
        parts.push((Tone::Bad, format!("plugins failed: {}", status.plugins.failed)));
    }
    if !status.problems.is_empty() {
        parts.push((Tone::Warn, "problems: see toolctl status".to_owned()));
    }
    parts.push((Tone::Plain, format!("up {uptime}")));
    parts.push((Tone::Plain, format!("{calls}, {} running", status.calls.in_flight)));
    parts.push((Tone::Plain, output::counted(status.connections, "connection")));
    parts.extend(status.memory_bytes.map(|memory| (Tone::Plain, output::bytes(memory))));
    frame.render_widget(fitting(parts, area.width, theme), area);
}

/// As many of the parts as fit, the first ones first.
fn fitting(parts: Vec<(Tone, String)>, width: u16, theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    let mut used = 0;
    for (tone, text) in parts {
        let gap = if used == 0 { 0 } else { 2 };
        if used + gap + cells(&text) > usize::from(width) {
            break;
        }
        used += gap + cells(&text);
        line.push_span(Span::raw(" ".repeat(gap)));
        line.push_span(Span::styled(text, theme.style(tone)));
    }
    line
}

fn draw_tabs(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState) {
    let current = state.panel.index();
    let number = |panel: Panel| panel.index() + 1;
    let counted = Panel::ALL.map(|panel| match panel.count(&state.data) {
        0 => format!("{}:{}  ", number(panel), panel.title()),
        count => format!("{}:{} {count}  ", number(panel), panel.title()),
    });
    let titled = Panel::ALL.map(|panel| format!("{}:{} ", number(panel), panel.title()));
    // The number is the key that shows a panel, so it is the last thing to go.
    let numbered = Panel::ALL.map(|panel| match panel.index() == current {
        true => titled[current].clone(),
        false => format!("{} ", number(panel)),
    });
    let width = usize::from(area.width);
    let fits = |titles: &[String]| titles.iter().map(|title| cells(title)).sum::<usize>() <= width + 1;
    let titles = [counted, titled].into_iter().find(|titles| fits(titles)).unwrap_or(numbered);
    // Those before the current one that do not fit beside it are left out.
    let mut first = current;
    let mut used = cells(&titles[current]);
    while first > 0 && used + cells(&titles[first - 1]) < width {
        first -= 1;
        used += cells(&titles[first]);
    }
    let mut x = area.x;
    let end = area.x + area.width;
    if first > 0 {
        frame.render_widget(
            Span::styled("‹", state.theme.style(Tone::Dim)),
            Rect { x, width: 1.min(area.width), ..area },
        );
        x += 1;
    }
    for (at, title) in titles.iter().enumerate().skip(first) {
        let room = usize::from(end.saturating_sub(x));
        // Behind the last title, the gap alone may not fit.
        let title = cut(if cells(title) > room { title.trim_end() } else { title }, room);
        let wide = cells(&title) as u16;
        if wide == 0 {
            break;
        }
        let tab = Rect { x, width: wide, ..area };
        let style = if at == current { state.theme.selected() } else { state.theme.style(Tone::Plain) };
        frame.render_widget(Span::styled(title.trim_end(), style), tab);
        state.hits.push(HitArea::Tab(tab, Panel::ALL[at]));
        x += wide;
    }
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let theme = state.theme;
    let line = match &state.message {
        Some((tone, message)) => Line::styled(cut(message, usize::from(area.width)), theme.style(*tone)),
        None if state.filtering => Line::from(vec![
            Span::styled("/", theme.style(Tone::Heading)),
            Span::raw(one_line_keeping_end(&state.view().filter, area.width)),
            Span::styled("█", theme.style(Tone::Dim)),
        ]),
        None => {
            let places: Vec<KeyPlace> = state.places();
            let named = applicable(&places).filter(|binding| !binding.short.is_empty());
            let parts = named.map(|binding| (Tone::Dim, format!("{} {}", binding.label, binding.short))).collect();
            fitting(parts, area.width, theme)
        }
    };
    frame.render_widget(line, area);
}

/// The end of a text that is being typed.
fn one_line_keeping_end(text: &str, width: u16) -> String {
    let text = output::plain(text).replace(['\n', '\t'], " ");
    let most = usize::from(width.saturating_sub(3));
    let mut used = 0;
    let fits = |c: &char| {
        used += cells(c.encode_utf8(&mut [0; 4]));
        used <= most
    };
    let mut end: Vec<char> = text.chars().rev().take_while(fits).collect();
    end.reverse();
    end.into_iter().collect()
}

#[cfg(test)]
mod sizes;

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::*;
    use crate::screen::fixtures::{ask, drawn, happened, happened_at, press_char, question, state};

    #[test]
    fn the_tools_are_listed() {
        insta::assert_snapshot!(drawn(&mut state(), 90, 8), @r"
        1:Calls 2:Audit 3:Rules 4:Changes 5:Tools 6:Sources 7:Sessions 8:Shells 9:Events
        ── Tools ─────────────────────────────────────────────────────────────────────────────────
        TOOL  SOURCE          NEEDS  DESCRIPTION
        bash  builtin builtin shell  Runs a command


        q quit  ? help  r run  Enter details  / filter  s sort  1 to 9 panel
        ");
    }

    #[test]
    fn a_running_call_has_a_bar_and_says_who_made_it() {
        let mut state = state();
        state.panel = Panel::Calls;
        happened(
            &mut state,
            json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "bash",
            "client": "nvim", "cwd": "/home/me/x", "arguments": "command=make"}),
        );
        let progress = json!({"kind": "update", "progress": 1, "total": 4, "message": "step"});
        happened(&mut state, json!({"kind": "call.progress", "call_id": "c", "session_id": "s", "progress": progress}));
        let screen = drawn(&mut state, 100, 8);
        for text in ["━━━─────── 25 %", "nvim", "command=make", "/home/me/x", "step"] {
            assert!(screen.contains(text), "{text}\n{screen}");
        }
    }

    #[test]
    fn the_narrowest_screen_shows_the_number_of_a_progress_without_its_bar() {
        let mut state = state();
        state.panel = Panel::Calls;
        // A shorter text of its time would leave room for the bar.
        let began = SystemTime::now() - Duration::from_secs(90 * 60 + 30);
        let at = humantime::format_rfc3339(began).to_string();
        happened_at(
            &mut state,
            &at,
            json!({"kind": "call.started", "call_id": "c", "session_id": "s", "tool": "bash"}),
        );
        let progress = json!({"kind": "update", "progress": 2, "total": 5, "message": "step"});
        let progress = json!({"kind": "call.progress", "call_id": "c", "session_id": "s", "progress": progress});
        happened_at(&mut state, &at, progress);
        let screen = drawn(&mut state, 30, 8);
        assert!(screen.contains("40 %") && !screen.contains("━━"), "{screen}");
    }

    #[test]
    fn times_in_utc_are_shown_in_full() {
        let mut state = state();
        happened(&mut state, json!({"kind": "notice", "level": "info", "message": "hello"}));
        state.panel = Panel::Events;
        for width in [30, 100] {
            let screen = drawn(&mut state, width, 8);
            assert!(screen.contains("03:04:05Z "), "{screen}");
        }
    }

    #[test]
    fn empty_panels_say_why_they_are_empty() {
        let mut state = state();
        state.panel = Panel::Calls;
        let screen = drawn(&mut state, 100, 40);
        assert!(
            screen.contains("no call runs now") && screen.contains("durations of calls: none has ended yet"),
            "{screen}"
        );
        let screen = drawn(&mut state, 80, 24);
        assert!(screen.contains("last calls") && screen.contains("last changes"), "{screen}");
        press_char(&mut state, '/');
        press_char(&mut state, 'x');
        assert!(drawn(&mut state, 100, 20).contains("no row has these words"));
    }

    #[test]
    fn a_narrow_screen_leaves_out_columns() {
        insta::assert_snapshot!(drawn(&mut state(), 40, 8), @r"
        1 2 3 4 5:Tools 6 7 8 9
        ── Tools ───────────────────────────────
        TOOL  SOURCE       NEEDS  DESCRIPTION
        bash  builtin bui… shell  Runs a command


        q quit  ? help  r run  Enter details
        ");
    }

    #[test]
    fn a_pattern_is_whole_before_there_are_other_columns() {
        let mut state = state();
        let pattern = "git push --force-with-lease origin release-*";
        let rule =
            |pattern| json!({"category": "shell", "pattern": pattern, "action": "deny", "source": "config.toml:1"});
        let list = json!({"mode": "default", "rules": [rule("rm -rf *"), rule(pattern)], "grants": []});
        state.data.permissions = serde_json::from_value(list).unwrap();
        state.panel = Panel::Rules;
        let screen = drawn(&mut state, 80, 10);
        assert!(screen.contains(pattern) && screen.contains("FROM"), "{screen}");
        let narrow = drawn(&mut state, 53, 10);
        assert!(narrow.contains(&format!("deny   {pattern}")) && !narrow.contains("FROM"), "{narrow}");
        let narrowest = drawn(&mut state, 40, 10);
        assert!(narrowest.contains("deny   git push --force-with-lease orig…"), "{narrowest}");
    }

    #[test]
    fn an_ask_lies_over_the_panel_with_its_keys() {
        let mut state = state();
        state.permission(ask("1", "git push"));
        insta::assert_snapshot!(drawn(&mut state, 60, 18), @r"
        1 2 3 4 5:Tools 6 7 8 9
        ── Tools ───────────────────────────────────────────────────
        ┌ permission ──────────────────────────────────────────────┐
        │? bash asks for permission: shell                         │
        │  git push                                                │
        │  agent: session s, level read                            │
        │  folder: /x                                              │
        │  y  allow once                                           │
        │  s  allow in this session                                │
        │  h  allow in this project for 1 hour                     │
        │  p  allow in this project                                │
        │  a  allow always                                         │
        │  1  allow in this project: git *                         │
        │  n  deny                                                 │
        │  d  deny, with a reason                                  │
        └──────────────────────────────────────────────────────────┘
        Esc aside  ? help  q quit  j ↓ scroll
        ");
    }

    #[test]
    fn an_ask_scrolls_on_a_low_screen() {
        let mut state = state();
        state.permission(ask("1", "git push"));
        insta::assert_snapshot!(drawn(&mut state, 60, 10), @r"
        1 2 3 4 5:Tools 6 7 8 9
        ┌ permission ──────────────────────────────────────────────┐
        │? bash asks for permission: shell                         │
        │  git push                                                │
        │  agent: session s, level read                            │
        │  folder: /x                                              │
        │8 lines below: PgDn; n can deny now, allow only at the end│
        └──────────────────────────────────────────────────────────┘
        Esc aside  ? help  q quit  j ↓ scroll
        ");
        insta::assert_snapshot!(drawn(&mut state, 30, 8), @r"
        1 2 3 4 5:Tools 6 7 8 9
        ┌ permission ────────────────┐
        │? bash asks for permission: │
        │  shell                     │
        │14 more: PgDn, n to deny    │
        └────────────────────────────┘
        Esc aside  ? help  q quit
        ");
    }

    #[test]
    fn a_question_names_its_options() {
        let mut state = state();
        state.question(question("q", false));
        insta::assert_snapshot!(drawn(&mut state, 60, 12), @r"
        1 2 3 4 5:Tools 6 7 8 9
        ── Tools ───────────────────────────────────────────────────
        TOOL  SOURCE          NEEDS  DESCRIPTION
        ┌ question ────────────────────────────────────────────────┐
        │? Which one?                                              │
        │  1  The first                                            │
        │  2  The second                                           │
        │  o  answer in your own words                             │
        │  n  do not answer                                        │
        └──────────────────────────────────────────────────────────┘
        Esc aside  ? help  q quit  j ↓ scroll
        ");
    }

    #[test]
    fn every_panel_names_its_keys_in_the_help() {
        let mut state = state();
        for panel in Panel::ALL {
            state.panel = panel;
            press_char(&mut state, '?');
            let help = drawn(&mut state, 120, 60);
            for binding in applicable(&[KeyPlace::Panels, KeyPlace::In(panel)]) {
                assert!(help.contains(&format!("{:<14} {}", binding.label, binding.help)), "{}\n{help}", binding.label);
            }
            press_char(&mut state, '?');
            assert!(state.help.is_none());
        }
    }

    #[test]
    fn data_of_a_daemon_that_is_gone_stays() {
        let mut state = state();
        state.permission(ask("1", "git push"));
        state.lost();
        insta::assert_snapshot!(drawn(&mut state, 60, 8), @r"
        the daemon is gone, waiting
        1 2 3 4 5:Tools 6 7 8 9
        ── Tools ───────────────────────────────────────────────────
        TOOL  SOURCE          NEEDS  DESCRIPTION
        bash  builtin builtin shell  Runs a command


        D start a daemon  q quit  ? help  r run  Enter details
        ");
    }
}
