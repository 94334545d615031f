//! The daemon's answers to the requests of the screen.

use toold_proto::file::{UndoFiles, UndoneFiles};

use super::fetch::{Fetched, ListKind};
use super::text::PaneLine;

#[derive(Debug)]
pub(super) enum ScreenAnswer {
    List(ListKind, Result<Fetched, String>),
    /// The lines of the details of the item with this key.
    Details(String, Vec<PaneLine>),
    /// The diff that undoing this would make.
    UndoPlan(UndoFiles, Box<UndoneFiles>),
    /// The result of a tool that was called here, by its name.
    Result(String, Vec<PaneLine>),
    Done(String),
    /// The message for the footer.
    Failed(String),
}
