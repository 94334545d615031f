//! Targets of calls.

use crate::names::FleetName;

/// Where a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTarget {
    Daemon(FleetName),
    /// On any daemon with the label.
    Label(FleetName),
}
