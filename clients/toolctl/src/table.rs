//! Tables without lines: columns that a person can read and `awk` can cut.
//!
//! Where the columns do not fit, the table leaves some out; where that is not enough, and with `--plain`, each cell is a
//! line of its own.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};

use crate::output::{self, DIM, NAME};

/// A longer word may be broken, so that one path does not take the whole width.
const LONGEST_WORD: u16 = 24;

/// A column with less content is not folded as long as less important columns can be left out instead; one with more keeps
/// this width. Each is tried where the one before it does not fit.
const READABLE: [u16; 3] = [40, 20, 0];

/// A table as wide as the terminal, or as wide as its content when there is none.
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

/// The table's lines, each ended, without spaces before the line's end.
pub(crate) fn render(table: &Table) -> String {
    render_without(table, &[])
}

/// The same; columns with these headers are left out where they are empty, and where the table is too wide, the first ones
/// first.
pub(crate) fn render_without(table: &Table, less_important: &[&str]) -> String {
    if output::presentation().plain {
        return facts(table);
    }
    let width = match table.content_arrangement() {
        ContentArrangement::Disabled => None,
        ContentArrangement::Dynamic | ContentArrangement::DynamicFullWidth => table.width(),
    };
    let Some(width) = width else { return lines(table) };
    let headers = texts(table.header());
    let mut columns: Vec<usize> =
        less_important.iter().filter_map(|name| headers.iter().position(|header| header == name)).collect();
    // Empty columns are always left out.
    let is_empty = |at: &usize| table.row_iter().all(|row| texts(Some(row)).get(*at).is_none_or(String::is_empty));
    columns.sort_by_key(|at| !is_empty(at));
    let first = columns.iter().copied().filter(is_empty).count();
    let mut tried = READABLE.into_iter().flat_map(|least| (first..=columns.len()).map(move |out| (least, out)));
    match tried.find_map(|(least, out)| fit(without(table, &columns[..out]), width, least)) {
        Some(fitted) => lines(&fitted),
        None => facts(table),
    }
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The same table without some columns.
fn without(table: &Table, columns: &[usize]) -> Table {
    let mut narrower = table.clone();
    for column in columns {
        if let Some(column) = narrower.column_mut(*column) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    narrower
}

/// The table with columns that its words fit in, none narrower than `least` or its content; `None` when the width is too
/// small for that.
fn fit(mut table: Table, width: u16, least: u16) -> Option<Table> {
    let most = table.column_max_content_widths();
    let shown: Vec<usize> =
        (0..most.len()).filter(|at| !table.column(*at).is_some_and(|column| column.is_hidden())).collect();
    let padding = |at: usize| table.column(at).map_or(2, |column| column.padding_width());
    let total =
        |widths: &dyn Fn(usize) -> u16| shown.iter().map(|at| u32::from(widths(*at) + padding(*at))).sum::<u32>();
    if total(&|at| most[at]) <= width.into() {
        return Some(table);
    }
    let words: Vec<u16> =
        (0..most.len()).map(|at| longest_word(&table, at).min(LONGEST_WORD).max(least.min(most[at]))).collect();
    if total(&|at| words[at]) > width.into() {
        return None;
    }
    for at in shown {
        let least = Width::Fixed(words[at] + padding_of(&table, at));
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    Some(table)
}

fn padding_of(table: &Table, at: usize) -> u16 {
    table.column(at).map_or(2, |column| column.padding_width())
}

/// The length of the longest word in the header and all cells of a column.
fn longest_word(table: &Table, at: usize) -> u16 {
    let cells = table.header().into_iter().chain(table.row_iter()).filter_map(|row| row.cell_iter().nth(at));
    let longest = cells.map(|cell| {
        let text = cell.content();
        text.split_whitespace().map(textwrap::core::display_width).max().unwrap_or(0)
    });
    u16::try_from(longest.max().unwrap_or(0)).unwrap_or(u16::MAX)
}

fn texts(row: Option<&Row>) -> Vec<String> {
    row.into_iter().flat_map(Row::cell_iter).map(Cell::content).collect()
}

/// Each row as a block: its first cell, and a line for each other cell that is not empty.
fn facts(table: &Table) -> String {
    let headers = texts(table.header());
    let mut blocks = Vec::new();
    for row in table.row_iter() {
        let mut block = String::new();
        for (at, text) in texts(Some(row)).iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let text = text.trim().replace('\n', " ");
            let label = headers.get(at).filter(|label| !label.is_empty()).map(|label| label.to_lowercase());
            let line = match (label, block.is_empty()) {
                (Some(label), true) => format!("{DIM}{label}:{DIM:#} {NAME}{text}{NAME:#}\n"),
                (Some(label), false) => format!("  {DIM}{label}:{DIM:#} {text}\n"),
                (None, true) => format!("{NAME}{text}{NAME:#}\n"),
                (None, false) => format!("  {text}\n"),
            };
            block.push_str(&line);
        }
        blocks.push(block);
    }
    blocks.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(width: u16, less_important: &[&str], expected: &str) {
        let mut table = new(Some(width));
        table.set_header(header(&["NAME", "STATE", "FOLDER", "ABOUT"]));
        table.add_row([name("first"), Cell::new("running"), Cell::new("/home/me"), Cell::new("counts up to a number")]);
        table.add_row([name("second"), Cell::new(""), Cell::new("/"), Cell::new("waits")]);
        let text = render_without(&table, less_important);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text.trim_end(), expected.trim_matches('\n'));
        assert!(text.lines().all(|line| line.len() <= width.into()), "{text}");
    }

    #[test]
    fn a_table_drops_columns_then_folds_between_words_then_lists_facts() {
        check(
            60,
            &["FOLDER"],
            "
 NAME    STATE    FOLDER    ABOUT
 first   running  /home/me  counts up to a number
 second           /         waits",
        );
        // A column is left out before a short text is folded.
        check(
            45,
            &["FOLDER"],
            "
 NAME    STATE    ABOUT
 first   running  counts up to a number
 second           waits",
        );
        check(
            45,
            &[],
            "
 NAME    STATE    FOLDER    ABOUT
 first   running  /home/me  counts up to a
                            number
 second           /         waits",
        );
        check(
            30,
            &["FOLDER"],
            "
 NAME    STATE    ABOUT
 first   running  counts up
                  to a number
 second           waits",
        );
        check(
            30,
            &[],
            "
name: first
  state: running
  folder: /home/me
  about: counts up to a number
name: second
  folder: /
  about: waits",
        );
    }
}
