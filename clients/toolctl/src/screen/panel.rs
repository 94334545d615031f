//! The panels: each is a table of its own file in `panels/`.

use comfy_table::{Cell, Color};
use toold_proto::session::SessionInfo;
use toold_proto::shell::ShellInfo;

use super::daemon_data::DaemonData;
use super::details::Details;
use super::fetch::{Fetched, ListKind};
use super::panels::{audit, calls, changes, events, rules, sessions, shells, sources, tools};
use super::theme::Tone;
use crate::output::{one_line, shorten};
use crate::table;

/// A longer text of a cell is in the details.
const MAX_CELL: usize = 400;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panel {
    #[default]
    Calls,
    Audit,
    Rules,
    Changes,
    Tools,
    Sources,
    Sessions,
    Shells,
    Events,
}

/// A column of a panel.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The column is left out where it would be narrower than this.
    pub(super) min: u16,
    pub(super) max: u16,
    /// Columns with a higher rank are left out first; those of rank 0 never.
    pub(super) rank: u8,
    /// Columns from rank 2 on are left out rather than that this one is cut.
    pub(super) is_whole: bool,
}

/// In the table of a command, columns from this rank on are left out where it is narrow.
const LESS_IMPORTANT: u8 = 3;

/// The widest column, which takes all the space that the others leave.
pub(super) const FILL: u16 = u16::MAX;

/// A column of times of day, which end with a `Z` in UTC.
pub(super) const fn time_column(title: &'static str, rank: u8) -> Column {
    let width = "12:00:00Z".len() as u16;
    column(title, width, width, rank)
}

pub(super) const fn column(title: &'static str, min: u16, max: u16, rank: u8) -> Column {
    Column { title, min, max, rank, is_whole: false }
}

/// The first column to keep, which is cut only where it does not fit beside those of rank 1.
pub(super) const fn whole_column(title: &'static str, min: u16, max: u16) -> Column {
    Column { is_whole: true, ..column(title, min, max, 0) }
}

pub(super) struct PanelRow {
    /// The identity of the item, which the selection follows.
    pub(super) key: String,
    pub(super) cells: Vec<PanelCell>,
}

pub(super) struct PanelCell {
    pub(super) text: String,
    /// The text to show where the whole text does not fit, in place of its start.
    pub(super) short: Option<String>,
    pub(super) tone: Tone,
    /// What the column is sorted by, if not by the text.
    pub(super) number: Option<f64>,
}

impl PanelCell {
    pub(super) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { text: shorten(&one_line(text.as_ref()), MAX_CELL), short: None, tone, number: None }
    }

    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }

    pub(super) fn name(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Name, text)
    }

    pub(super) fn short(self, short: String) -> Self {
        Self { short: Some(short), ..self }
    }

    pub(super) fn number(self, number: f64) -> Self {
        Self { number: Some(number), ..self }
    }
}

impl Panel {
    pub(super) const ALL: [Self; 9] = [
        Self::Calls,
        Self::Audit,
        Self::Rules,
        Self::Changes,
        Self::Tools,
        Self::Sources,
        Self::Sessions,
        Self::Shells,
        Self::Events,
    ];

    pub(super) fn index(self) -> usize {
        Self::ALL.iter().position(|panel| *panel == self).expect("all panels are listed")
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Calls => "Calls",
            Self::Tools => "Tools",
            Self::Sources => "Sources",
            Self::Sessions => "Sessions",
            Self::Changes => "Changes",
            Self::Shells => "Shells",
            Self::Rules => "Rules",
            Self::Audit => "Audit",
            Self::Events => "Events",
        }
    }

    /// The number beside the title: of current items, not of past ones.
    pub(super) fn count(self, data: &DaemonData) -> usize {
        match self {
            Self::Calls => data.running.len(),
            Self::Tools => data.tools.len(),
            Self::Sources => sources::count(data),
            Self::Sessions => data.sessions.len(),
            Self::Shells => data.shells.iter().filter(|shell| shell.running).count(),
            Self::Changes | Self::Rules | Self::Audit | Self::Events => 0,
        }
    }

    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Self::Calls => calls::COLUMNS,
            Self::Tools => tools::COLUMNS,
            Self::Sources => sources::COLUMNS,
            Self::Sessions => sessions::COLUMNS,
            Self::Changes => changes::COLUMNS,
            Self::Shells => shells::COLUMNS,
            Self::Rules => rules::COLUMNS,
            Self::Audit => audit::COLUMNS,
            Self::Events => events::COLUMNS,
        }
    }

    pub(super) fn rows(self, data: &DaemonData) -> Vec<PanelRow> {
        match self {
            Self::Calls => calls::rows(data),
            Self::Tools => tools::rows(data),
            Self::Sources => sources::rows(data),
            Self::Sessions => sessions::rows(data),
            Self::Changes => changes::rows(data),
            Self::Shells => shells::rows(data),
            Self::Rules => rules::rows(data),
            Self::Audit => audit::rows(data),
            Self::Events => events::rows(data),
        }
    }

    /// The panel as the table that a command prints: the same columns and rows, made of the list that was fetched.
    fn table_of(self, fetched: Fetched, width: Option<u16>) -> String {
        let mut data = DaemonData::default();
        data.take(fetched);
        let columns = self.columns();
        let mut rows = table::new(width);
        rows.set_header(table::header(&columns.iter().map(|column| column.title).collect::<Vec<_>>()));
        for row in self.rows(&data) {
            rows.add_row(row.cells.into_iter().map(|cell| match cell.tone {
                Tone::Name => table::name(&cell.text),
                Tone::Good => Cell::new(cell.text).fg(Color::Green),
                Tone::Warn => Cell::new(cell.text).fg(Color::Yellow),
                Tone::Bad => Cell::new(cell.text).fg(Color::Red),
                Tone::Plain | Tone::Dim | Tone::Heading => Cell::new(cell.text),
            }));
        }
        let mut left_out: Vec<&Column> = columns.iter().filter(|column| column.rank >= LESS_IMPORTANT).collect();
        left_out.sort_by_key(|column| std::cmp::Reverse(column.rank));
        table::render_without(&rows, &left_out.iter().map(|column| column.title).collect::<Vec<_>>())
    }

    /// The details of the item with this key; `None` when it is gone.
    pub(super) fn details(self, data: &DaemonData, key: &str) -> Option<Details> {
        match self {
            Self::Calls => calls::details(data, key),
            Self::Tools => tools::details(data, key),
            Self::Sources => sources::details(data, key),
            Self::Sessions => sessions::details(data, key),
            Self::Changes => changes::details(data, key),
            Self::Shells => shells::details(data, key),
            Self::Rules => rules::details(data, key),
            Self::Audit => audit::details(data, key),
            Self::Events => events::details(data, key),
        }
    }

    /// Whether the newest row is on top, and stays selected while new ones arrive.
    pub(super) fn is_log(self) -> bool {
        matches!(self, Self::Changes | Self::Audit | Self::Events)
    }

    /// The lists that this panel shows and that are fetched only while it is shown.
    pub(super) fn lazy_lists(self) -> &'static [ListKind] {
        match self {
            // Below the calls that run.
            Self::Calls => &[ListKind::Audit, ListKind::Changes],
            Self::Sources => &[ListKind::Sources],
            Self::Sessions => &[ListKind::Sessions],
            Self::Changes => &[ListKind::Changes],
            Self::Shells => &[ListKind::Shells],
            Self::Rules => &[ListKind::Permissions, ListKind::Suggestions],
            Self::Audit => &[ListKind::Audit],
            Self::Tools | Self::Events => &[],
        }
    }

    /// Whether its list changes without an event, such as the numbers of a running server.
    pub(super) fn changes_silently(self) -> bool {
        matches!(self, Self::Sources | Self::Sessions | Self::Shells)
    }
}

/// The sessions as the screen shows them, for `toolctl sessions`.
pub(crate) fn sessions_table(sessions: Vec<SessionInfo>, width: Option<u16>) -> String {
    Panel::Sessions.table_of(Fetched::Sessions(sessions), width)
}

/// The shells as the screen shows them, for `toolctl shells`.
pub(crate) fn shells_table(shells: Vec<ShellInfo>, width: Option<u16>) -> String {
    Panel::Shells.table_of(Fetched::Shells(shells), width)
}
