//! Folders that people chose, in which clients of models may work too.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::params;

use crate::columns::{from_count, from_path, from_time, to_path, to_time};
use crate::{Store, StoreError};

/// How a person chose a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceKind {
    /// A person's frontend opened a session there.
    Opened,
    /// A person allowed it to every client.
    Allowed,
    /// A person allowed it when this client asked.
    Client(String),
}

/// A folder that a person chose; resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedWorkspace {
    pub folder: PathBuf,
    pub kind: WorkspaceKind,
    pub at: SystemTime,
}

/// Limit of folders. The most recently chosen are kept; others are asked about again.
pub(crate) const MAX_CHOSEN: i64 = 10_000;
/// Limit of the folders that frontends opened; the most recently used are kept.
const MAX_OPENED: u64 = 1_000;

impl WorkspaceKind {
    fn columns(&self) -> (&'static str, &str) {
        match self {
            Self::Opened => ("opened", ""),
            Self::Allowed => ("allowed", ""),
            Self::Client(client) => ("client", client),
        }
    }

    /// `None` for a kind of another version.
    fn read(kind: &str, client: String) -> Option<Self> {
        match kind {
            "opened" => Some(Self::Opened),
            "allowed" => Some(Self::Allowed),
            "client" => Some(Self::Client(client)),
            _ => None,
        }
    }
}

impl Store {
    /// The folders that people chose, by their paths.
    pub fn load_workspaces(&self) -> Result<Vec<SavedWorkspace>, StoreError> {
        self.read(|connection| {
            let mut select = connection
                .prepare_cached("SELECT folder, kind, client, at FROM workspaces ORDER BY folder, kind, client")?;
            let rows = select.query_map([], |row| {
                let kind = WorkspaceKind::read(&row.get::<_, String>(1)?, row.get(2)?);
                let (folder, at) = (to_path(&row.get::<_, Vec<u8>>(0)?), to_time(row.get(3)?));
                Ok(kind.map(|kind| SavedWorkspace { folder, kind, at }))
            })?;
            Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
        })
    }

    /// Stores a folder, or that it was chosen once more.
    pub fn save_workspace(&self, workspace: &SavedWorkspace) -> Result<(), StoreError> {
        let SavedWorkspace { folder, kind, at } = workspace.clone();
        self.write(move |transaction| {
            let (kind, client) = kind.columns();
            transaction.execute(
                "INSERT OR REPLACE INTO workspaces (folder, kind, client, at) VALUES (?1, ?2, ?3, ?4)",
                params![from_path(&folder), kind, client, from_time(at)],
            )?;
            transaction.execute(
                "DELETE FROM workspaces WHERE kind = 'opened' AND folder NOT IN \
                 (SELECT folder FROM workspaces WHERE kind = 'opened' ORDER BY at DESC LIMIT ?1)",
                [from_count(MAX_OPENED)],
            )?;
            Ok(())
        })
    }

    /// Removes a folder, however it was chosen. True when it existed.
    pub fn forget_workspace(&self, folder: &Path) -> Result<bool, StoreError> {
        let folder = folder.to_owned();
        self.write(move |transaction| {
            Ok(transaction.execute("DELETE FROM workspaces WHERE folder = ?1", [from_path(&folder)])? > 0)
        })
    }
}
