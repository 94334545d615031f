//! Tables without lines: columns that a person can read and `awk` can cut.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

/// A table as wide as the terminal, or as wide as its content when there is none. The last column
/// wraps.
pub(crate) fn new(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match width {
        Some(width) => {
            table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    // The output goes through anstream, which removes styles where they do not belong.
    table.enforce_styling();
    table.style_text_only();
    table
}

pub(crate) fn header(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| Cell::new(name).add_attribute(Attribute::Dim)).collect()
}

pub(crate) fn name(text: &str) -> Cell {
    Cell::new(text).fg(Color::Cyan)
}

/// The width of the terminal that stdout is; `None` for a pipe or a file.
pub(crate) fn terminal_width() -> Option<u16> {
    let table = Table::new();
    if crate::output::stdout_is_terminal() { table.width() } else { None }
}

/// The table's lines, each ended, without spaces before the line's end.
pub(crate) fn render(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
