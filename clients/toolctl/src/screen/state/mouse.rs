//! Clicks and the wheel.

use std::time::Instant;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{DOUBLE_CLICK, ScreenState};
use crate::screen::keymap::Movement;
use crate::screen::panel::Panel;

/// Something on the screen that can be clicked.
#[derive(Clone, Debug)]
pub(in crate::screen) enum HitArea {
    Tab(Rect, Panel),
    /// The row of the item with this key.
    Row(Rect, String),
}

impl HitArea {
    pub(in crate::screen) fn area(&self) -> Rect {
        match self {
            Self::Tab(area, _) | Self::Row(area, _) => *area,
        }
    }
}

/// A click on a row.
pub(super) struct Click {
    key: String,
    at: Instant,
}

impl ScreenState {
    pub(in crate::screen) fn click(&mut self, event: MouseEvent) {
        // Nothing is answered by a click: a slip would be enough to allow something.
        let movement = match event.kind {
            MouseEventKind::ScrollDown => Movement::Down,
            MouseEventKind::ScrollUp => Movement::Up,
            MouseEventKind::Down(MouseButton::Left) => return self.press_at(Position::new(event.column, event.row)),
            _ => return,
        };
        self.go(movement);
    }

    fn press_at(&mut self, position: Position) {
        if self.confirm.is_some() || self.help.is_some() || self.prompt.is_typing() {
            return;
        }
        let hit = self.hits.iter().find(|hit| hit.area().contains(position));
        match hit.cloned() {
            Some(HitArea::Tab(_, panel)) => self.show_panel(panel),
            Some(HitArea::Row(_, key)) => {
                self.view_mut().select(key.clone());
                let last = self.last_click.replace(Click { key: key.clone(), at: Instant::now() });
                if last.is_some_and(|last| last.key == key && last.at.elapsed() < DOUBLE_CLICK) {
                    self.open_details();
                }
            }
            None => {}
        }
    }
}
