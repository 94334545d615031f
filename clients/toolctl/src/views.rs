//! The daemon's resources as tables: the columns and cells of each, for the tables of commands and the panels of the screen.

pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod permissions;
pub(crate) mod sessions;
pub(crate) mod shells;
pub(crate) mod sources;
pub(crate) mod tools;

use anstyle::Style;
use comfy_table::{Cell, Color};

use crate::clock::{Zone, date_and_time_in, time_of_day_in};
use crate::output::{BAD, DIM, GOOD, NAME, WARN, one_line, plain_name, shorten};
use crate::table;

/// A longer text of a cell is in the details.
const MAX_CELL: usize = 400;

/// The meaning of a piece of text; a theme or the terminal gives it a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Name,
    Good,
    Warn,
    Bad,
    Heading,
}

impl Tone {
    /// On stdout.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Plain | Self::Heading => Style::new(),
            Self::Dim => DIM,
            Self::Name => NAME,
            Self::Good => GOOD,
            Self::Warn => WARN,
            Self::Bad => BAD,
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// On the screen, the column is left out where it would be narrower than this.
    pub(crate) min: u16,
    pub(crate) max: u16,
    /// Columns with a higher rank are left out first; those of rank 0 never, and in the table of a command none below
    /// [`LESS_IMPORTANT`].
    pub(crate) rank: u8,
    /// Columns from rank 2 on are left out rather than that this one is cut.
    pub(crate) is_whole: bool,
}

/// In the table of a command, columns from this rank on are left out where it is narrow.
const LESS_IMPORTANT: u8 = 3;

/// On the screen, columns of this rank are shown only where no other one is cut.
pub(crate) const SPARE: u8 = 7;

/// The widest column, which takes all the space that the others leave.
pub(crate) const FILL: u16 = u16::MAX;

/// A column of times of day, which end with a `Z` in UTC.
pub(crate) const fn time_column(title: &'static str, rank: u8) -> Column {
    let width = "12:00:00Z".len() as u16;
    column(title, width, width, rank)
}

pub(crate) const fn column(title: &'static str, min: u16, max: u16, rank: u8) -> Column {
    Column { title, min, max, rank, is_whole: false }
}

/// The first column to keep, which is cut only where it does not fit beside those of rank 1.
pub(crate) const fn whole_column(title: &'static str, min: u16, max: u16) -> Column {
    Column { is_whole: true, ..column(title, min, max, 0) }
}

/// A text of one line.
pub(crate) struct ViewCell {
    pub(crate) text: String,
    /// The text to show where the whole text does not fit, in place of its start.
    pub(crate) short: Option<String>,
    pub(crate) tone: Tone,
    /// The text is a path, of which the screen shows the end where the whole does not fit: the name of the file.
    pub(crate) is_path: bool,
    /// The number by which the column is sorted. Without one, it is sorted by the text.
    pub(crate) number: Option<f64>,
}

impl ViewCell {
    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { text: shorten(&one_line(text.as_ref()), MAX_CELL), short: None, tone, is_path: false, number: None }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }

    pub(crate) fn name(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Name, text)
    }

    pub(crate) fn path(tone: Tone, path: impl AsRef<str>) -> Self {
        let text = plain_name(path.as_ref());
        let hidden = text.chars().count().saturating_sub(MAX_CELL);
        let text = if hidden == 0 { text } else { ['…'].into_iter().chain(text.chars().skip(hidden + 1)).collect() };
        Self { is_path: true, text, ..Self::new(tone, "") }
    }

    /// A time, of which the screen has the time of day.
    pub(crate) fn time(at: &str, zone: Zone) -> Self {
        Self::new(Tone::Dim, date_and_time_in(at, zone)).short(time_of_day_in(at, zone))
    }

    pub(crate) fn short(self, short: String) -> Self {
        Self { short: Some(short), ..self }
    }

    pub(crate) fn number(self, number: f64) -> Self {
        Self { number: Some(number), ..self }
    }
}

impl From<ViewCell> for Cell {
    fn from(cell: ViewCell) -> Self {
        match cell.tone {
            Tone::Name => table::name(&cell.text),
            Tone::Good => Self::new(cell.text).fg(Color::Green),
            Tone::Warn => Self::new(cell.text).fg(Color::Yellow),
            Tone::Bad => Self::new(cell.text).fg(Color::Red),
            Tone::Plain | Tone::Dim | Tone::Heading => Self::new(cell.text),
        }
    }
}

/// The table that a command prints.
pub(crate) fn render(columns: &[Column], rows: impl Iterator<Item = Vec<ViewCell>>, width: Option<u16>) -> String {
    let mut table = table::new(width);
    table.set_header(table::header(&columns.iter().map(|column| column.title).collect::<Vec<_>>()));
    table.add_rows(rows);
    let mut left_out: Vec<&Column> = columns.iter().filter(|column| column.rank >= LESS_IMPORTANT).collect();
    left_out.sort_by_key(|column| std::cmp::Reverse(column.rank));
    table::render_without(&table, &left_out.iter().map(|column| column.title).collect::<Vec<_>>())
}
