//! In place of `fleet_settings` in a daemon that was built without fleets.

use std::path::Path;

use crate::config::fleet::{BUILT_WITHOUT, FleetConfig, FleetMistake};
use crate::config::fleet_key::FleetKeyUse;
use crate::config::options::Options;

pub(super) fn mistakes(fleet: &FleetConfig, _: &Options) -> Vec<FleetMistake> {
    let mistake = || FleetMistake { keys: vec!["fleet".to_owned()], why: BUILT_WITHOUT.to_owned() };
    fleet.name.iter().filter(|_| fleet.enabled).map(|_| mistake()).collect()
}

pub(super) fn public_key(_: FleetKeyUse, _: &Path, _: bool) -> Result<String, String> {
    Err(BUILT_WITHOUT.to_owned())
}
