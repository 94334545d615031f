//! What lies over a panel and scrolls: details, the help, a question before something ends.

use std::time::Instant;

use crate::screen::action::Request;
use crate::screen::details::DetailsQuery;
use crate::screen::keymap::Movement;
use crate::screen::panel::Panel;
use crate::screen::text::PaneLine;

/// The position in lines that do not fit.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::screen) struct Scroll {
    pub(in crate::screen) top: usize,
    /// Stays at the end when lines are added.
    follow: bool,
    /// The lines that were shown at once.
    pub(in crate::screen) height: usize,
}

/// The details of an item.
pub(in crate::screen) struct DetailsView {
    /// The item's key in its panel; `None` for the result of a call.
    pub(in crate::screen) key: Option<String>,
    pub(in crate::screen) title: String,
    pub(in crate::screen) lines: Vec<PaneLine>,
    /// From the daemon.
    pub(in crate::screen) more: Vec<PaneLine>,
    pub(super) query: Option<DetailsQuery>,
    /// The item has ended or is no longer listed.
    pub(in crate::screen) gone: bool,
    pub(in crate::screen) scroll: Scroll,
    /// A request for the lines from the daemon should be sent.
    pub(super) wanted: bool,
    pub(super) pending: bool,
}

/// A question about a request that ends something.
pub(in crate::screen) struct ConfirmDialog {
    pub(in crate::screen) question: String,
    pub(in crate::screen) lines: Vec<PaneLine>,
    pub(in crate::screen) scroll: Scroll,
    /// The whole question is on the screen; otherwise it must not be answered with yes.
    pub(in crate::screen) readable: bool,
    pub(super) request: Request,
    /// The item that ends; the dialog closes when it is gone.
    pub(super) item: Option<(Panel, String)>,
    /// When it appeared, if no key opened it: a key that was meant for something else must not answer it.
    pub(super) since: Option<Instant>,
}

impl Scroll {
    pub(in crate::screen) fn go(&mut self, movement: Movement) {
        let page = self.height.saturating_sub(1).max(1);
        self.follow = movement == Movement::Last;
        self.top = match movement {
            Movement::Down => self.top + 1,
            Movement::Up => self.top.saturating_sub(1),
            Movement::PageDown => self.top + page,
            Movement::PageUp => self.top.saturating_sub(page),
            Movement::First => 0,
            Movement::Last => self.top,
        };
    }

    /// Called when `total` lines are drawn in `height`. Returns the first line.
    pub(in crate::screen) fn settle(&mut self, total: usize, height: usize) -> usize {
        self.height = height;
        let last = total.saturating_sub(height);
        self.top = if self.follow { last } else { self.top.min(last) };
        self.top
    }
}
