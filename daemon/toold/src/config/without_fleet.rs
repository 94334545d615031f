//! In place of `fleet_settings` in a daemon that was built without fleets.

use crate::config::fleet::{FleetConfig, FleetMistake};
use crate::config::options::Options;

/// None: nothing reads the section, and [`build_features`](super::build_features) says so.
pub(super) fn mistakes(_: &FleetConfig, _: &Options) -> Vec<FleetMistake> {
    Vec::new()
}
