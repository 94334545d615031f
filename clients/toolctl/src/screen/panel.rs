//! The panels: each is a table of its own file in `panels/`.

use super::daemon_data::DaemonData;
use super::details::Details;
use super::fetch::ListKind;
use super::panels::{audit, calls, changes, events, rules, sessions, shells, sources, tools};
use crate::views::{self, Column, ViewCell};

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

pub(super) struct PanelRow {
    /// The identity of the item, which the selection follows.
    pub(super) key: String,
    pub(super) cells: Vec<ViewCell>,
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

    /// Shown in place of the rows while there are none.
    pub(super) fn empty(self) -> &'static str {
        match self {
            Self::Calls => "no call runs now",
            Self::Tools => "no tools",
            Self::Sources => "no plugins, servers or remotes",
            Self::Sessions => "no sessions",
            Self::Changes => "no files were changed yet",
            Self::Shells => "no commands run in the background",
            Self::Rules => "no rules and no grants yet: you are asked about all that the level does not free",
            Self::Audit => "no calls yet",
            Self::Events => "no events yet",
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
            Self::Sessions => views::sessions::COLUMNS,
            Self::Changes => views::changes::COLUMNS,
            Self::Shells => views::shells::COLUMNS,
            Self::Rules => rules::COLUMNS,
            Self::Audit => views::audit::COLUMNS,
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
