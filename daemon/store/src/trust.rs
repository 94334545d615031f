//! Decisions about plugins and project configurations: which content is trusted, and which plugins are switched on or
//! off.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{OptionalExtension, params};

use crate::columns::{from_path, from_time, to_path, to_time};
use crate::{Store, StoreError};

/// The limit of trusted content; the oldest is forgotten when there is more, and is asked about
/// again.
pub(crate) const MAX_TRUSTED: i64 = 10_000;
/// The limit of plugins that are switched on or off.
pub(crate) const MAX_SWITCHES: u32 = 10_000;

/// What kind of content is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustKind {
    /// A project's configuration file.
    Config,
    /// A plugin of a project, one file or a folder.
    Plugin,
}

impl TrustKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Plugin => "plugin",
        }
    }
}

/// Content that a person has reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// The hash of the content at that time, in hexadecimal digits.
    pub digest: String,
    /// The name that the person's client reports.
    pub by: Option<String>,
    pub at: SystemTime,
}

/// Whether a plugin runs, if a person decided so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The project that it belongs to; `None` for global plugins.
    pub project: Option<PathBuf>,
    pub plugin: String,
    pub on: bool,
}

impl Store {
    /// The trusted content at a real path; `None` when nothing is trusted there.
    pub fn trusted(&self, path: &Path, kind: TrustKind) -> Result<Option<Trusted>, StoreError> {
        self.read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT digest, trusted_by, trusted_at FROM trust WHERE path = ?1 AND kind = ?2")?;
            let found = select.query_row(params![from_path(path), kind.as_str()], |row| {
                Ok(Trusted { digest: row.get(0)?, by: row.get(1)?, at: to_time(row.get(2)?) })
            });
            Ok(found.optional()?)
        })
    }

    /// Trusts the content at a real path, in place of earlier content there. When it returns, it
    /// survives a power cut.
    pub fn set_trusted(&self, path: &Path, kind: TrustKind, trusted: &Trusted) -> Result<(), StoreError> {
        let (path, trusted) = (path.to_owned(), trusted.clone());
        self.write_durably(move |transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO trust (path, kind, digest, trusted_by, trusted_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![from_path(&path), kind.as_str(), trusted.digest, trusted.by, from_time(trusted.at)],
            )?;
            Ok(())
        })
    }

    /// The plugins that were switched on or off. While that cannot be read, those that were read last.
    pub fn plugin_switches(&self) -> Vec<Switch> {
        let held = self.held_switches.lock().clone();
        let mut known = self.known_switches.lock();
        match self.stored_switches() {
            Ok(stored) => *known = Some(stored),
            Err(error) => {
                let any = known.is_some();
                tracing::warn!(%error, known_before = any, "can't tell which plugins were switched off since");
            }
        }
        let mut switches = known.clone().unwrap_or_default();
        switches.retain(|switch| !held.iter().any(|held| is_of_same(held, switch)));
        switches.extend(held);
        switches
    }

    /// From now on a plugin is switched as if that were stored, for as long as this store is open.
    pub fn hold_plugin_switch(&self, switch: Switch) {
        let mut held = self.held_switches.lock();
        held.retain(|held| !is_of_same(held, &switch));
        held.push(switch);
    }

    fn stored_switches(&self) -> Result<Vec<Switch>, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT project, plugin, is_on FROM plugin_switches")?;
            let switches = select.query_map([], |row| {
                let project: Vec<u8> = row.get(0)?;
                let project = Some(to_path(&project)).filter(|path| !path.as_os_str().is_empty());
                Ok(Switch { project, plugin: row.get(1)?, on: row.get(2)? })
            })?;
            Ok(switches.collect::<Result<_, _>>()?)
        })
    }

    /// Switches a plugin on or off permanently.
    pub fn set_plugin_switch(&self, switch: &Switch) -> Result<(), StoreError> {
        let new = switch;
        let switch = switch.clone();
        let stored = self.write_durably(move |transaction| {
            let project = switch.project.as_deref().map(from_path).unwrap_or_default();
            let count: u32 = transaction.query_row("SELECT count(*) FROM plugin_switches", [], |row| row.get(0))?;
            if count >= MAX_SWITCHES {
                // Unlike trust, none of them may be forgotten: a plugin that was switched off would
                // run again.
                return Err(StoreError::TooManySwitches);
            }
            transaction.execute(
                "INSERT OR REPLACE INTO plugin_switches (project, plugin, is_on) VALUES (?1, ?2, ?3)",
                params![project, switch.plugin, switch.on],
            )?;
            Ok(())
        });
        if stored.is_ok() {
            self.held_switches.lock().retain(|held| !is_of_same(held, new));
        }
        stored
    }
}

fn is_of_same(one: &Switch, other: &Switch) -> bool {
    (&one.project, &one.plugin) == (&other.project, &other.plugin)
}
