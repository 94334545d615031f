//! Sessions, for clients that resume them after a restart.

use std::path::PathBuf;
use std::time::SystemTime;

use rusqlite::{OptionalExtension, Row, params};
use toold_engine::session::Session;
use toold_proto::session::{ClientInfo, Mode, ToolFilter};
use toold_proto::tool::SessionId;

use crate::columns::{from_path, from_paths, from_time, to_path, to_paths, to_time};
use crate::{Store, StoreError, cleaning};

/// The stored part of a session. Its environment is not stored: it may hold secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedSession {
    pub id: SessionId,
    pub cwd: PathBuf,
    pub roots: Vec<PathBuf>,
    pub client: Option<ClientInfo>,
    pub model: Option<String>,
    /// Never `yolo`, which ends with the daemon.
    pub mode: Mode,
    pub filter: ToolFilter,
    /// The client that opened it, as the daemon writes it.
    pub owner: Option<String>,
    pub opened_at: SystemTime,
    /// When it was last opened, or a call of it last began.
    pub used_at: SystemTime,
}

impl SavedSession {
    /// The current state of a session.
    pub fn of(session: &Session, owner: Option<String>) -> Self {
        Self {
            id: session.id.clone(),
            cwd: session.cwd.clone(),
            roots: session.roots.clone(),
            client: session.client.clone(),
            model: session.model.clone(),
            mode: lasting(session.mode()),
            filter: session.filter.given().clone(),
            owner,
            opened_at: session.opened_at,
            used_at: SystemTime::now(),
        }
    }
}

/// The mode after a restart.
fn lasting(mode: Mode) -> Mode {
    match mode {
        Mode::Yolo => Mode::Default,
        Mode::Plan | Mode::Default | Mode::AcceptEdits => mode,
    }
}

impl Store {
    /// `None` for an unknown id.
    pub fn find_session(&self, id: &SessionId) -> Result<Option<SavedSession>, StoreError> {
        if !self.keeps_sessions() {
            return Ok(None);
        }
        self.read(|connection| {
            let mut row = connection.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?;
            let found = row.query_row([id.as_str()], read_session).optional()?;
            Ok(found.flatten())
        })
    }

    /// Stores a session, or its new state. Does nothing in a store of
    /// [`crate::SessionStorage::Own`].
    pub fn save_session(&self, session: &SavedSession) -> Result<(), StoreError> {
        if !self.keeps_sessions() {
            return Ok(());
        }
        let session = session.clone();
        self.write(move |transaction| {
            let mut insert = transaction.prepare_cached(
                "INSERT OR REPLACE INTO sessions (id, cwd, roots, client, model, mode, filter, opened_at, used_at, owner) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?;
            insert.execute(params![
                session.id.as_str(),
                from_path(&session.cwd),
                from_paths(&session.roots),
                session.client.as_ref().map(json),
                session.model,
                json(&lasting(session.mode)),
                json(&session.filter),
                from_time(session.opened_at),
                from_time(session.used_at),
                session.owner,
            ])?;
            Ok(())
        })
    }

    /// Removes a session and its grants. True when it existed.
    pub fn delete_session(&self, id: &SessionId) -> Result<bool, StoreError> {
        if !self.keeps_sessions() {
            return Ok(false);
        }
        let id = id.clone();
        let (refusals, deleted) = self.write(move |transaction| {
            let refusals = cleaning::delete_grants_of(transaction, &[id.as_str().to_owned()])?;
            Ok((refusals, transaction.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])? > 0))
        })?;
        if !refusals.is_empty() {
            self.refusals.remove(|row| refusals.contains(&row.id)).map_err(StoreError::NotWritten)?;
        }
        Ok(deleted)
    }
}

const SELECT: &str = "SELECT id, cwd, roots, client, model, mode, filter, opened_at, used_at, owner FROM sessions";

/// `None` for a row of another version that this one does not understand.
fn read_session(row: &Row) -> rusqlite::Result<Option<SavedSession>> {
    let text = |column: usize| row.get::<_, String>(column);
    let client: Option<String> = row.get(3)?;
    let (Ok(id), Ok(filter)) = (SessionId::parse(&text(0)?), serde_json::from_str(&text(6)?)) else {
        tracing::warn!(session = text(0)?, "a session in the database cannot be understood");
        return Ok(None);
    };
    Ok(Some(SavedSession {
        id,
        cwd: to_path(&row.get::<_, Vec<u8>>(1)?),
        roots: to_paths(&row.get::<_, Vec<u8>>(2)?),
        client: client.and_then(|client| serde_json::from_str(&client).ok()),
        model: row.get(4)?,
        // An unknown mode was chosen for a reason: the strictest one applies.
        mode: serde_json::from_str(&text(5)?).map_or(Mode::Plan, lasting),
        filter,
        owner: row.get(9)?,
        opened_at: to_time(row.get(7)?),
        used_at: to_time(row.get(8)?),
    }))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("the types of the wire have a form in JSON")
}
