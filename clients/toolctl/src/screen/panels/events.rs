//! The events of the daemon, the newest first.

use anstyle::{AnsiColor, Color, Effects};

use crate::clock::time_of_day_in;
use crate::screen::daemon_data::{DaemonData, EventLine};
use crate::screen::details::{Details, json_lines};
use crate::screen::panel::PanelRow;
use crate::views::{Column, FILL, Tone, ViewCell, column, time_column};

pub(in crate::screen) const COLUMNS: &[Column] =
    &[time_column("AT", 1), column("EVENT", 12, 19, 0), column("WHAT", 12, FILL, 2)];

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let row = |event: &EventLine| {
        let times = if event.times > 1 { format!("{}× ", event.times) } else { String::new() };
        PanelRow {
            key: event.number.to_string(),
            cells: vec![
                ViewCell::new(Tone::Dim, time_of_day_in(&event.at, data.zone)).number(event.number as f64),
                ViewCell::new(tone(event.style), &event.kind),
                ViewCell::plain(format!("{times}{}", event.text)),
            ],
        }
    };
    data.events.iter().rev().map(row).collect()
}

/// The tone of a line that has a style on stdout.
fn tone(style: anstyle::Style) -> Tone {
    match style.get_fg_color() {
        Some(Color::Ansi(AnsiColor::Red)) => Tone::Bad,
        Some(Color::Ansi(AnsiColor::Green)) => Tone::Good,
        Some(Color::Ansi(AnsiColor::Yellow)) => Tone::Warn,
        Some(Color::Ansi(AnsiColor::Cyan)) => Tone::Name,
        _ if style.get_effects().contains(Effects::DIMMED) => Tone::Dim,
        _ => Tone::Plain,
    }
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    let event = data.events.iter().find(|event| event.number.to_string() == wanted)?;
    Some(Details { title: event.kind.clone(), lines: json_lines(&event.json), query: None })
}
