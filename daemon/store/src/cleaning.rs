//! Removes old and surplus rows, in small steps between other work, for as long as the daemon runs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, Params, Transaction};

use crate::clock_trust::{AHEAD, AgeAllowance, AgeShare, ClockTrust};
use crate::columns::{from_count, from_time, to_count};
use crate::transaction::in_transaction;
use crate::{Retention, StoreError, audit_chain, trust, workspaces};

/// Rows that one transaction removes at most. Other writes wait for one such piece at most.
pub(crate) const PIECE: usize = 500;
const LIMIT: i64 = PIECE as i64;
/// Pages that one transaction gives back to the system.
const PIECE_PAGES: u32 = 250;
/// Free pages are kept for later rows unless there are more than these, and more than a quarter of all.
const SPARE_PAGES: i64 = 1_024;
/// After the start, other work has the database to itself for this long.
const AFTER_START: Duration = Duration::from_secs(1);
/// Content expires even while nothing is written.
const EVERY: Duration = Duration::from_secs(600);
/// The pause between two pieces, in which others can write; at least as long as the piece took.
const PAUSE: Duration = Duration::from_millis(2);

/// The kinds of content to remove, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CleaningKind {
    OldAudit,
    SurplusAudit,
    OldLosses,
    OldSessions,
    SurplusSessions,
    LeftGrants,
    EndedGrants,
    SurplusTrust,
    SurplusWorkspaces,
    FreePages,
}

const KINDS: [CleaningKind; 10] = [
    CleaningKind::OldAudit,
    CleaningKind::SurplusAudit,
    CleaningKind::OldLosses,
    CleaningKind::OldSessions,
    CleaningKind::SurplusSessions,
    CleaningKind::LeftGrants,
    CleaningKind::EndedGrants,
    CleaningKind::SurplusTrust,
    CleaningKind::SurplusWorkspaces,
    CleaningKind::FreePages,
];

impl CleaningKind {
    /// The rows among which old ones are looked for; `None` for kinds that do not depend on a clock.
    fn aged_rows(self) -> Option<&'static str> {
        match self {
            Self::OldAudit => Some("audit"),
            Self::OldLosses => Some("audit_lost"),
            Self::OldSessions => Some("sessions"),
            Self::LeftGrants => Some("grants"),
            Self::EndedGrants => Some("grants"),
            Self::SurplusAudit
            | Self::SurplusSessions
            | Self::SurplusTrust
            | Self::SurplusWorkspaces
            | Self::FreePages => None,
        }
    }
}

/// The outcome of one piece.
#[derive(Debug, Default)]
pub(crate) struct CleaningStep {
    pub(crate) removed: usize,
    /// Refusals among the removed rows.
    pub(crate) refusals: Vec<String>,
}

pub(crate) struct Cleaning {
    retention: Retention,
    clock: Arc<ClockTrust>,
    /// Rows of each kind that may still be removed because of their age, while the clock is not trusted.
    shares: HashMap<CleaningKind, AgeShare>,
    /// The kinds that are left in this round.
    left: VecDeque<CleaningKind>,
    due: Instant,
}

impl Cleaning {
    pub(crate) fn new(retention: Retention, clock: Arc<ClockTrust>) -> Self {
        Self { retention, clock, shares: HashMap::new(), left: VecDeque::new(), due: Instant::now() + AFTER_START }
    }

    /// When the next piece is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Much was written: a round begins now, unless one is in progress.
    pub(crate) fn hurry(&mut self) {
        if self.left.is_empty() {
            self.due = Instant::now();
        }
    }

    /// Postpones all removal.
    pub(crate) fn postpone(&mut self) {
        self.left.clear();
        self.due = Instant::now() + EVERY;
    }

    /// Runs one piece: a transaction of [`PIECE`] rows at most.
    ///
    /// # Errors
    /// Those of the database. The round ends, and the next one begins after some minutes.
    pub(crate) fn step(&mut self, connection: &mut Connection) -> Result<CleaningStep, StoreError> {
        let began = Instant::now();
        if self.left.is_empty() {
            self.left.extend(KINDS);
        }
        // Several kinds that have nothing to remove are one piece.
        while let Some(kind) = self.left.front().copied() {
            let limit = self.limit(connection, kind).inspect_err(|_| self.postpone())?;
            let piece = match limit {
                0 => CleaningStep::default(),
                limit => self.piece(connection, kind, limit as i64).inspect_err(|_| self.postpone())?,
            };
            if let Some(share) = self.shares.get_mut(&kind) {
                share.take(piece.removed as u64);
            }
            if piece.removed < PIECE {
                self.left.pop_front();
            }
            if piece.removed > 0 {
                self.due = Instant::now() + began.elapsed().max(PAUSE);
                if self.left.is_empty() {
                    self.postpone();
                }
                return Ok(piece);
            }
        }
        self.postpone();
        Ok(CleaningStep::default())
    }

    /// How many rows of a kind may be removed now.
    fn limit(&mut self, connection: &Connection, kind: CleaningKind) -> Result<usize, StoreError> {
        let Some(table) = kind.aged_rows() else { return Ok(PIECE) };
        Ok(match self.clock.allowance() {
            AgeAllowance::None => 0,
            AgeAllowance::All => PIECE,
            AgeAllowance::Share => {
                let share = self.shares.entry(kind).or_default();
                if share.is_over() {
                    let all = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
                    share.begin(all.map(to_count)?);
                }
                PIECE.min(share.left() as usize)
            }
        })
    }

    fn piece(&self, connection: &mut Connection, kind: CleaningKind, limit: i64) -> Result<CleaningStep, StoreError> {
        let Retention { max_age, max_rows, max_sessions, .. } = self.retention;
        let now = SystemTime::now();
        let oldest = from_time(now.checked_sub(max_age).unwrap_or(SystemTime::UNIX_EPOCH));
        if matches!(kind, CleaningKind::FreePages) {
            return give_back_pages(connection);
        }
        in_transaction(connection, |transaction| match kind {
            CleaningKind::OldAudit => audit_up_to(transaction, old_audit(transaction, oldest, limit)?),
            // By number, not by counting, which would read every row each time.
            CleaningKind::SurplusAudit => {
                let last = "SELECT max(id) FROM (SELECT id FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?1 \
                            ORDER BY id LIMIT ?2)";
                let last = transaction.query_row(last, (from_count(max_rows), LIMIT), |row| row.get(0))?;
                audit_up_to(transaction, last)
            }
            CleaningKind::OldLosses => rows(
                transaction,
                "DELETE FROM audit_lost WHERE rowid IN (SELECT rowid FROM audit_lost WHERE at < ?1 LIMIT ?2)",
                (oldest, limit),
            ),
            CleaningKind::OldSessions => sessions(
                transaction,
                "SELECT id FROM sessions WHERE used_at < ?1 ORDER BY used_at LIMIT ?2",
                (oldest, limit),
            ),
            CleaningKind::SurplusSessions => sessions(
                transaction,
                "SELECT id FROM sessions ORDER BY used_at DESC LIMIT ?2 OFFSET ?1",
                (from_count(max_sessions), LIMIT),
            ),
            // Grants for a session that was never stored.
            CleaningKind::LeftGrants => grants(
                transaction,
                "SELECT id FROM grants WHERE scope = 'session' AND granted_at < ?1 \
                 AND session_id NOT IN (SELECT id FROM sessions) LIMIT ?2",
                (oldest, limit),
            ),
            CleaningKind::EndedGrants => {
                grants(transaction, "SELECT id FROM grants WHERE expires_at <= ?1 LIMIT ?2", (from_time(now), limit))
            }
            CleaningKind::SurplusTrust => rows(
                transaction,
                "DELETE FROM trust WHERE (path, kind) IN (SELECT path, kind FROM trust \
                 ORDER BY trusted_at DESC LIMIT ?2 OFFSET ?1)",
                (trust::MAX_TRUSTED, LIMIT),
            ),
            CleaningKind::SurplusWorkspaces => rows(
                transaction,
                "DELETE FROM workspaces WHERE (folder, kind, client) IN (SELECT folder, kind, client FROM workspaces \
                 ORDER BY at DESC LIMIT ?2 OFFSET ?1)",
                (workspaces::MAX_CHOSEN, LIMIT),
            ),
            CleaningKind::FreePages => Ok(CleaningStep::default()),
        })
    }
}

/// The last of the oldest rows of the audit log that are all too old: its chain has no gaps. A row from the future, written
/// while the clock was wrong, goes with those around it.
fn old_audit(transaction: &Transaction, oldest: i64, limit: i64) -> Result<Option<i64>, StoreError> {
    let future = from_time(SystemTime::now() + AHEAD);
    let mut select = transaction.prepare_cached("SELECT id, at FROM audit ORDER BY id LIMIT ?1")?;
    let mut rows = select.query([limit])?;
    let (mut last, mut last_old) = (None, None);
    while let Some(row) = rows.next()? {
        let (id, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        if at < oldest {
            last_old = Some(id);
        } else if at < future {
            break;
        }
        last = last_old;
    }
    Ok(last)
}

/// Removes rows of the audit log from the first one on.
fn audit_up_to(transaction: &Transaction, last: Option<i64>) -> Result<CleaningStep, StoreError> {
    let Some(last) = last else { return Ok(CleaningStep::default()) };
    audit_chain::keep_after(transaction, last)?;
    rows(transaction, "DELETE FROM audit WHERE id <= ?1", [last])
}

fn rows(transaction: &Transaction, delete: &str, params: impl Params) -> Result<CleaningStep, StoreError> {
    let removed = transaction.prepare_cached(delete)?.execute(params)?;
    Ok(CleaningStep { removed, refusals: Vec::new() })
}

/// Removes the sessions that `select` finds, and their grants.
fn sessions(transaction: &Transaction, select: &str, params: impl Params) -> Result<CleaningStep, StoreError> {
    let delete = format!("DELETE FROM sessions WHERE id IN ({select}) RETURNING id");
    let mut delete = transaction.prepare_cached(&delete)?;
    let ids: Vec<String> = delete.query_map(params, |row| row.get(0))?.collect::<Result<_, _>>()?;
    let refusals = if ids.is_empty() { Vec::new() } else { delete_grants_of(transaction, &ids)? };
    Ok(CleaningStep { removed: ids.len(), refusals })
}

/// Removes the grants of these sessions; returns the ids of the refusals among them.
pub(crate) fn delete_grants_of(transaction: &Transaction, sessions: &[String]) -> Result<Vec<String>, StoreError> {
    // One pass over the grants for all of them, since there are few.
    let mut delete = transaction.prepare_cached(
        "DELETE FROM grants WHERE scope = 'session' AND session_id IN (SELECT value FROM json_each(?1)) \
         RETURNING id, action <> 'allow'",
    )?;
    let sessions = serde_json::Value::from(sessions).to_string();
    refusals(delete.query_map([sessions], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn grants(transaction: &Transaction, select: &str, params: impl Params) -> Result<CleaningStep, StoreError> {
    let delete = format!("DELETE FROM grants WHERE id IN ({select}) RETURNING id, action <> 'allow'");
    let mut delete = transaction.prepare_cached(&delete)?;
    let mut removed = 0;
    let deleted = delete.query_map(params, |row| {
        removed += 1;
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let refusals = refusals(deleted)?;
    Ok(CleaningStep { removed, refusals })
}

fn refusals(deleted: impl Iterator<Item = rusqlite::Result<(String, bool)>>) -> Result<Vec<String>, StoreError> {
    let deleted: Vec<(String, bool)> = deleted.collect::<Result<_, _>>()?;
    Ok(deleted.into_iter().filter(|(_, refuses)| *refuses).map(|(id, _)| id).collect())
}

/// Returns free pages to the system permanently. A database file of an earlier version keeps its
/// size, and its free pages are reused: only rewriting all of it could shrink it.
fn give_back_pages(connection: &Connection) -> Result<CleaningStep, StoreError> {
    let count = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (free, all, kind) = (count("freelist_count")?, count("page_count")?, count("auto_vacuum")?);
    if kind != 2 || free <= SPARE_PAGES.max(all / 4) {
        return Ok(CleaningStep::default());
    }
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({PIECE_PAGES})"))?;
    // Each step releases one page.
    let mut steps = vacuum.query([])?;
    while steps.next()?.is_some() {}
    Ok(CleaningStep { removed: PIECE, refusals: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    fn count(connection: &Connection, table: &str) -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    /// Fills every growing table beyond its limit.
    fn fill(connection: &Connection) {
        connection
            .execute_batch(
                "CREATE TEMP TABLE n AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 12500) \
                 SELECT n FROM c;
                 INSERT INTO audit SELECT n, unixepoch() * 1000, 'c' || n, 's', 't', 'b', NULL, 1, '[]', 'ok', 1, 1, 1, \
                 NULL, NULL \
                 FROM n;
                 UPDATE audit SET at = 5 WHERE id <= 4000;
                 INSERT INTO audit_lost SELECT 5, 1 FROM n;
                 INSERT INTO sessions SELECT 's' || n, x'2f', x'', NULL, NULL, '\"default\"', '{}', 1, \
                 unixepoch() * 1000 + n, NULL FROM n;
                 UPDATE sessions SET used_at = 5 WHERE rowid % 5 = 0;
                 INSERT INTO grants (id, category, pattern, action, scope, session_id, chain, granted_at, expires_at) \
                 SELECT 'g' || n, 'shell', 'ls', 'deny', 'session', 's' || n, '[]', unixepoch() * 1000, \
                 iif(n % 7 = 0, 5, NULL) FROM n;
                 INSERT INTO trust SELECT CAST('/p' || n AS BLOB), 'config', 'd', NULL, n FROM n;
                 INSERT INTO workspaces SELECT CAST('/w' || n AS BLOB), 'allowed', '', n FROM n;",
            )
            .unwrap();
    }

    #[test]
    fn every_table_comes_down_to_its_bound_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toold.db");
        drop(Store::open(&path));
        let mut connection = Connection::open(&path).unwrap();
        fill(&connection);
        let max_age = Duration::from_secs(24 * 3600);
        let retention = Retention { max_age, max_rows: 3_000, max_sessions: 2_000, settle: Duration::ZERO };
        let mut cleaning = Cleaning::new(retention, Arc::new(ClockTrust::new(None, Duration::ZERO)));
        let mut refusals = 0;
        let mut pieces = 0;
        loop {
            let before = connection.total_changes();
            let piece = cleaning.step(&mut connection).unwrap();
            // A session is removed with its grants, here one refusal each.
            assert!(connection.total_changes() - before <= 2 * PIECE as u64);
            refusals += piece.refusals.len();
            pieces += 1;
            if cleaning.left.is_empty() {
                break;
            }
        }
        assert!(pieces > 50, "{pieces}");
        assert!(count(&connection, "audit") <= 3_000);
        assert_eq!(count(&connection, "audit WHERE at = 5"), 0);
        assert_eq!(count(&connection, "audit_lost"), 0);
        assert_eq!(count(&connection, "sessions"), 2_000);
        assert_eq!(count(&connection, "grants WHERE session_id NOT IN (SELECT id FROM sessions)"), 0);
        assert_eq!(count(&connection, "grants WHERE expires_at IS NOT NULL"), 0);
        assert_eq!(12_500 - refusals as i64, count(&connection, "grants"));
        assert_eq!(count(&connection, "trust"), trust::MAX_TRUSTED);
        assert_eq!(count(&connection, "workspaces"), workspaces::MAX_CHOSEN);
        let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0)).unwrap();
        let all: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        assert!(free <= SPARE_PAGES.max(all / 4), "{free} of {all} pages are free");
    }
}
