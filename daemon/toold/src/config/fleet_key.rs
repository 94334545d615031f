//! `toold fleet-key`: the key files of a fleet, for `toolctl fleet`.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use clap::ValueEnum;

use crate::config::fleet_settings;

/// The use of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FleetKeyUse {
    /// Messages of a daemon
    Daemon,
    /// Answers and grants of a person
    Person,
    /// The challenge of the NATS server when a daemon logs in
    Login,
}

/// Prints the public key that belongs to the private one in a file, which is made if it does not exist and `create`.
///
/// # Errors
/// As a sentence for the user: there is no key in the file, or others can read it.
pub fn print(key_use: FleetKeyUse, file: &Path, create: bool) -> anyhow::Result<()> {
    let create = create && !file.try_exists()?;
    let key = fleet_settings::public_key(key_use, file, create).map_err(|why| anyhow!(why))?;
    writeln!(io::stdout().lock(), "{key}")?;
    Ok(())
}
