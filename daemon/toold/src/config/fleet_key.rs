//! `toold fleet-key`: the key files of a fleet, for `toolctl fleet`.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use clap::ValueEnum;
use toold_fleet::keys::{KeyOwner, SigningKey};

/// What a key signs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FleetKeyUse {
    /// Messages of a daemon
    Daemon,
    /// Answers and grants of a person
    Person,
    /// The challenge of the NATS server when a daemon logs in
    Login,
}

impl FleetKeyUse {
    fn owner(self) -> KeyOwner {
        match self {
            Self::Daemon => KeyOwner::Daemon,
            // To NATS, each client that logs in is a user.
            Self::Person | Self::Login => KeyOwner::Person,
        }
    }
}

/// Prints the public key that belongs to the private one in a file, which is made if it does not exist and `create`.
///
/// # Errors
/// As a sentence for the user: there is no key in the file, or others can read it.
pub fn print(key_use: FleetKeyUse, file: &Path, create: bool) -> anyhow::Result<()> {
    let owner = key_use.owner();
    let key = match create && !file.try_exists()? {
        true => SigningKey::create(file, owner),
        false => SigningKey::load(file, owner),
    };
    writeln!(io::stdout().lock(), "{}", key.map_err(|why| anyhow!(why))?.public().as_str())?;
    Ok(())
}
