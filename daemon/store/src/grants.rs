//! Grants, for the scope and time that a person chose. Refusals are stored twice: see
//! [`crate::refusals`].

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use toold_engine::policy::grants::{Grant, GrantScope, GrantStore};

use crate::columns::{from_time, to_count, to_time};
use crate::refusals::DatabaseView;
use crate::stored_grant::{COLUMNS, MAX_GRANTS, StoredGrant};
use crate::{Store, StoreError};

/// How often a grant has decided, as far as the audit log has the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantUses {
    pub count: u64,
    pub last: SystemTime,
}

impl Store {
    /// All valid grants, the oldest first.
    ///
    /// A refusal counts if it is in the database or in the separate file; where one of the two
    /// lacks it, it is written there again. A row that can no longer be parsed stays, is reported
    /// in [`Store::problems`], and allows nothing; if it denied something, it denies all of its
    /// category in its scope until it is revoked. An unreadable or damaged database allows nothing.
    pub fn load_grants(&self) -> Vec<Grant> {
        let now = from_time(SystemTime::now());
        let mut rows: BTreeMap<String, StoredGrant> = BTreeMap::new();
        let read = self.read(|connection| {
            read_rows(connection, "", |row| {
                rows.insert(row.id.clone(), row);
            })
        });
        if let Err(error) = &read
            && self.takes_writes()
        {
            self.health.report_problem(format!("grants cannot be read from {}: {error}", self.path().display()));
        }
        let whole = read.is_ok() && !self.health.is_damaged();
        if !whole {
            // A refusal that narrows a permission may be lost: the permission alone would allow too much.
            rows.retain(|_, row| row.refuses());
        }
        let refused = self.reconcile(rows.values().filter(|row| row.refuses()).cloned().collect(), whole);
        rows.extend(refused.into_iter().map(|row| (row.id.clone(), row)));
        let kept = self.keeps_sessions();
        let counts = |row: &StoredGrant| !row.has_ended(now) && (kept || row.scope != "session");
        let mut grants = Vec::new();
        for row in rows.values().filter(|row| counts(row)) {
            match row.understand() {
                Ok(grant) => grants.push(grant),
                Err(why) => {
                    self.health.report_problem(row.problem(&why));
                    grants.extend(row.strictest());
                }
            }
        }
        grants.sort_by(|a, b| (a.granted_at, &a.id).cmp(&(b.granted_at, &b.id)));
        grants
    }

    /// Why past refusals may be lost, as a sentence for the user; `None` when all of them are
    /// known. Determined when the grants were last read.
    pub fn lost_refusals(&self) -> Option<String> {
        self.refusals.lost()
    }

    /// Synchronises the database and the file of refusals, and returns all of them.
    fn reconcile(&self, in_database: Vec<StoredGrant>, whole: bool) -> Vec<StoredGrant> {
        let view = match whole {
            _ if self.is_new.swap(false, Ordering::Relaxed) => DatabaseView::New,
            true => DatabaseView::Whole,
            false if is_there(self.path()) => DatabaseView::Incomplete,
            false => DatabaseView::Absent,
        };
        let agreed = self.refusals.reconcile(in_database, view, self.takes_writes());
        if !agreed.not_in_database.is_empty() && self.takes_writes() {
            let missing = agreed.not_in_database;
            let written = self.write_durably(move |transaction| {
                missing.iter().try_for_each(|row| insert(transaction, "DO NOTHING", row))
            });
            if let Err(error) = written {
                tracing::warn!(%error, "refusals stand in the file alone, and count");
            }
        }
        agreed.all
    }

    /// Rewrites the file of refusals where it was damaged or removed while the daemon runs.
    pub(crate) fn look_at_refusals(&self) {
        if self.refusals.is_well(self.takes_writes()) {
            return;
        }
        let mut rows = Vec::new();
        let read = self.read(|connection| read_rows(connection, "WHERE action <> 'allow'", |row| rows.push(row)));
        self.refusals.write_again(rows, read.is_ok() && !self.health.is_damaged());
    }

    /// Stores a grant, or its new state. When it returns, the grant survives a power cut, and a
    /// refusal a damaged database too: it is stored when at least one of its two places has it.
    pub fn save_grant(&self, grant: &Grant) -> Result<(), StoreError> {
        if matches!(grant.scope, GrantScope::Session(_)) && !self.keeps_sessions() {
            return Ok(());
        }
        let row = StoredGrant::of(grant);
        // Before either place has it. If the database cannot be read, the limit of the file
        // applies.
        if self.count_grants().is_ok_and(|count| count >= MAX_GRANTS) {
            return Err(StoreError::TooManyGrants);
        }
        // The file comes first: the database is more likely to fail.
        let is_renewed = self.refusals.has(&row.id);
        let in_file = row.refuses().then(|| self.refusals.add(row.clone()));
        let in_database = self.write_durably(move |transaction| insert(transaction, RENEW, &row));
        // One that is renewed may be there from before.
        if matches!(in_database, Err(StoreError::Refused(_)))
            && !is_renewed
            && !matches!(self.has_grant(&grant.id), Ok(true))
        {
            self.not_in_database.lock().insert(grant.id.clone());
        }
        match (in_file, in_database) {
            (Some(Ok(())), Err(error)) => {
                tracing::warn!(%error, grant = grant.id, "the refusal is kept in the file alone");
                Ok(())
            }
            (_, in_database) => in_database,
        }
    }

    /// Removes a grant permanently. True when it existed.
    pub fn delete_grant(&self, id: &str) -> Result<bool, StoreError> {
        let owned = id.to_owned();
        // A revoked grant must not come back after a power cut. A refusal may: until it is gone
        // from both places, it counts.
        let deleted = self.write_durably(move |transaction| {
            Ok(transaction.execute("DELETE FROM grants WHERE id = ?1", [owned])? > 0)
        });
        let deleted = match deleted {
            // It was only in memory, or only in the file: the database has nothing that could come
            // back.
            Err(
                StoreError::Refused(_)
                | StoreError::Failed(_)
                | StoreError::NotWritten(_)
                | StoreError::DiskFailed(_)
                | StoreError::Damaged(_),
            ) if self.is_not_in_database(id) => false,
            deleted => deleted?,
        };
        Ok(self.refusals.remove(|row| row.id == id).map_err(StoreError::NotWritten)? || deleted)
    }

    /// How many calls each grant has decided about, and when it did last. Grants that have
    /// decided nothing are left out.
    pub fn grant_uses(&self) -> Result<HashMap<String, GrantUses>, StoreError> {
        self.flush();
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT id, uses, used_at FROM grants WHERE uses > 0")?;
            let uses = select.query_map([], |row| {
                let (count, last): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok((row.get(0)?, GrantUses { count: to_count(count), last: to_time(last) }))
            })?;
            Ok(uses.collect::<Result<_, _>>()?)
        })
    }

    /// Whether it is known that the database has nothing of a grant.
    fn is_not_in_database(&self, id: &str) -> bool {
        self.not_in_database.lock().contains(id) || matches!(self.has_grant(id), Ok(false))
    }

    fn count_grants(&self) -> Result<usize, StoreError> {
        self.read(|connection| {
            let count: u32 = connection.query_row("SELECT count(*) FROM grants", [], |row| row.get(0))?;
            Ok(count as usize)
        })
    }

    fn has_grant(&self, id: &str) -> Result<bool, StoreError> {
        self.read(|connection| {
            let found = connection.query_row("SELECT 1 FROM grants WHERE id = ?1", [id], |_| Ok(())).optional()?;
            Ok(found.is_some())
        })
    }
}

/// Whether anything exists at the path; true when that cannot be determined.
fn is_there(path: &Path) -> bool {
    let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    path.symlink_metadata().err().is_none_or(|error| !missing.contains(&error.kind()))
}

/// One by one, in storage order: when a page is damaged, those before it count.
fn read_rows(connection: &Connection, filter: &str, mut each: impl FnMut(StoredGrant)) -> Result<(), StoreError> {
    let mut rows = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM grants {filter}"))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        each(StoredGrant::read(row)?);
    }
    Ok(())
}

/// What may differ in a grant that is renewed. Its uses stay.
const RENEW: &str = "DO UPDATE SET granted_by = excluded.granted_by, granted_at = excluded.granted_at, \
                     expires_at = excluded.expires_at, asked = excluded.asked";

/// `if_there`: what to do if there is a grant of this id.
fn insert(transaction: &Transaction, if_there: &str, row: &StoredGrant) -> Result<(), StoreError> {
    transaction.execute(
        &format!(
            "INSERT INTO grants ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
             ON CONFLICT (id) {if_there}"
        ),
        params![
            row.id,
            row.category,
            row.pattern,
            row.action,
            row.scope,
            row.session,
            row.project,
            row.tools,
            row.chain,
            row.by,
            row.granted_at,
            row.expires_at,
            row.asked,
        ],
    )?;
    Ok(())
}

/// Without a writable database, a grant for a session is valid until the daemon ends, a wider
/// refusal is stored in the file, and a wider permission is rejected.
impl GrantStore for Store {
    fn add(&self, grant: &Grant) -> Result<(), String> {
        match (self.save_grant(grant), &grant.scope) {
            // It is then in memory, for as long as the daemon lives.
            (
                Err(
                    StoreError::Refused(_)
                    | StoreError::Failed(_)
                    | StoreError::NotWritten(_)
                    | StoreError::DiskFailed(_)
                    | StoreError::Damaged(_),
                ),
                GrantScope::Session(_),
            ) => Ok(()),
            (saved, _) => saved.map_err(|error| error.to_string()),
        }
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        self.delete_grant(id).map(|_| ()).map_err(|error| error.to_string())
    }
}
