//! Which rows of a panel are shown, in which order, and which one is selected.

use std::cmp::Ordering;

use super::daemon_data::DaemonData;
use super::keymap::Movement;
use super::panel::{Panel, PanelRow};

#[derive(Debug, Default)]
pub(super) struct TableView {
    /// The key of the selected row. `None` for the first row, whichever it is.
    selected: Option<String>,
    /// The key of the row that was drawn as the selected one, or that the user has selected since. Keys act on it alone,
    /// because it is the one that the user means.
    meant: Option<String>,
    /// The keys of the rows that were drawn, in their order. The selection moves among them, because they are what the user
    /// sees.
    drawn: Vec<String>,
    /// Where the selected row was, for a row that has vanished.
    index: usize,
    /// The first row on the screen.
    pub(super) offset: usize,
    /// How many rows the screen had.
    pub(super) height: usize,
    pub(super) filter: String,
    pub(super) sort: Option<SortOrder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) column: usize,
    pub(super) reverse: bool,
}

impl TableView {
    /// The rows that fit the filter, in order.
    pub(super) fn rows(&self, panel: Panel, data: &DaemonData) -> Vec<PanelRow> {
        let mut rows = panel.rows(data);
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        if !words.is_empty() {
            rows.retain(|row| {
                let cells: Vec<String> = row.cells.iter().map(|cell| cell.text.to_lowercase()).collect();
                words.iter().all(|word| cells.iter().any(|cell| cell.contains(word)))
            });
        }
        if let Some(order) = self.sort {
            rows.sort_by(|a, b| {
                let ordering = compare(a, b, order.column);
                if order.reverse { ordering.reverse() } else { ordering }
            });
        }
        rows
    }

    /// Finds the selected row among these, which are about to be drawn; a neighbour when it has vanished.
    pub(super) fn settle(&mut self, panel: Panel, rows: &[PanelRow]) -> Option<usize> {
        self.drawn.clear();
        self.drawn.extend(rows.iter().map(|row| row.key.clone()));
        let index = self.position(rows)?;
        self.index = index;
        self.meant = Some(rows[index].key.clone());
        // A log shows its newest row until another one is selected.
        let follows = panel.is_log() && index == 0 && self.sort.is_none();
        self.selected = (!follows).then(|| rows[index].key.clone());
        if index < self.offset {
            self.offset = index;
        }
        if self.height > 0 && index >= self.offset + self.height {
            self.offset = index + 1 - self.height;
        }
        self.offset = self.offset.min(rows.len().saturating_sub(self.height));
        Some(index)
    }

    fn position(&mut self, rows: &[PanelRow]) -> Option<usize> {
        if rows.is_empty() {
            self.meant = None;
            self.offset = 0;
            return None;
        }
        let found = match &self.selected {
            Some(key) => rows.iter().position(|row| row.key == *key),
            None => Some(0),
        };
        Some(found.unwrap_or_else(|| self.index.min(rows.len() - 1)))
    }

    /// The key of the row that the user means.
    pub(super) fn seen(&self) -> Option<&str> {
        self.meant.as_deref()
    }

    pub(super) fn go(&mut self, movement: Movement) {
        let Some(last) = self.drawn.len().checked_sub(1) else { return };
        let at = self.drawn.iter().position(|key| Some(key) == self.meant.as_ref()).unwrap_or(self.index);
        let page = self.height.saturating_sub(1).max(1);
        let index = match movement {
            Movement::Down => at + 1,
            Movement::Up => at.saturating_sub(1),
            Movement::PageDown => at + page,
            Movement::PageUp => at.saturating_sub(page),
            Movement::First => 0,
            Movement::Last => last,
        };
        self.select(self.drawn[index.min(last)].clone());
    }

    pub(super) fn select(&mut self, key: String) {
        self.meant = Some(key.clone());
        self.selected = Some(key);
    }

    /// The next column, and after the last one none.
    pub(super) fn sort_by_next(&mut self, panel: Panel) {
        let next = self.sort.map_or(0, |order| order.column + 1);
        self.sort = (next < panel.columns().len()).then_some(SortOrder { column: next, reverse: false });
    }

    pub(super) fn reverse(&mut self) {
        let order = self.sort.unwrap_or(SortOrder { column: 0, reverse: false });
        self.sort = Some(SortOrder { reverse: !order.reverse, ..order });
    }
}

fn compare(a: &PanelRow, b: &PanelRow, column: usize) -> Ordering {
    let (Some(a), Some(b)) = (a.cells.get(column), b.cells.get(column)) else { return Ordering::Equal };
    match (a.number, b.number) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.text.cmp(&b.text),
    }
}
