//! Checks the chain of hashes over the audit log.

use rusqlite::{Connection, OptionalExtension, Row};
use toold_engine::time::rfc3339;
use toold_proto::audit::{AuditBreak, AuditVerification};

use crate::audit_chain::ChainHash;
use crate::audit_rows::StoredRow;
use crate::columns::{to_count, to_time};
use crate::{Store, StoreError};

/// Rows that are checked in one piece.
const PIECE: i64 = 2_000;
/// Breaks that are listed.
const MAX_BREAKS: usize = 20;

impl Store {
    /// Checks the chain of the audit log. Reads in pieces, between which calls and other queries proceed; `is_cancelled`
    /// is checked between them.
    ///
    /// # Errors
    /// An error of the database.
    pub fn verify_audit(&self, is_cancelled: &dyn Fn() -> bool) -> Result<AuditVerification, StoreError> {
        self.flush();
        let mut check = self.scan(ChainCheck::begin)?;
        loop {
            if is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            if !self.scan(|connection| check.look_at_piece(connection))? {
                break;
            }
        }
        Ok(check.end())
    }
}

struct ChainCheck {
    verification: AuditVerification,
    /// The hash before the next row; `None` before the first one that has a hash.
    before: Option<ChainHash>,
    at_id: i64,
    end_id: i64,
    end: Option<ChainHash>,
}

impl ChainCheck {
    fn begin(connection: &Connection) -> Result<Self, StoreError> {
        let head = "SELECT last_id, last, kept_after, before FROM audit_chain";
        let head = connection.query_row(head, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, i64>(2)?, row.get::<_, Vec<u8>>(3)?))
        });
        let mut verification = AuditVerification::default();
        let mut select = connection.prepare("SELECT at, what FROM audit_breaks ORDER BY rowid LIMIT ?1")?;
        let noted = select.query_map([MAX_BREAKS as i64], |row| {
            Ok(AuditBreak { id: None, at: Some(rfc3339(to_time(row.get(0)?))), what: row.get(1)? })
        })?;
        verification.breaks = noted.collect::<Result<_, _>>()?;
        verification.broken = verification.breaks.len() as u64;
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).map(to_count);
        verification.lost = count("SELECT coalesce(sum(rows), 0) FROM audit_lost")?;
        Ok(match head.optional()? {
            Some((end_id, end, kept_after, before)) => {
                verification.checkpoint = Some(to_count(kept_after)).filter(|id| *id > 0);
                // A row of an earlier version has none.
                let before = if kept_after > 0 { ChainHash::read(Some(before)) } else { Some(ChainHash::default()) };
                Self { verification, before, at_id: kept_after, end_id, end: ChainHash::read(Some(end)) }
            }
            None => {
                let last = "SELECT coalesce(max(id), 0) FROM audit WHERE chain IS NOT NULL";
                let end_id = connection.query_row(last, [], |row| row.get(0))?;
                let mut check = Self { verification, before: None, at_id: 0, end_id, end: None };
                if end_id > 0 {
                    check.add_break(end_id, "the end of the chain was removed: rows behind this one may be missing");
                }
                check
            }
        })
    }

    /// False when nothing is left.
    fn look_at_piece(&mut self, connection: &Connection) -> Result<bool, StoreError> {
        let mut select = connection.prepare_cached(
            "SELECT id, at, call_id, session_id, tool, source, client, connection, decisions, outcome, duration_ms, \
             input_bytes, output_bytes, original_ms, chain FROM audit WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
        )?;
        let mut rows = select.query([self.at_id, self.end_id, PIECE])?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            found += 1;
            self.look_at(row)?;
        }
        Ok(found == PIECE)
    }

    fn look_at(&mut self, row: &Row) -> rusqlite::Result<()> {
        self.at_id = row.get(0)?;
        let Some(own) = ChainHash::read(row.get(14)?) else {
            // Written by a version that had no chain: no such row comes after the first that has one.
            match self.verification.rows {
                0 => self.verification.without_chain += 1,
                _ => self.add_break(self.at_id, "this row has no hash"),
            }
            return Ok(());
        };
        self.verification.rows += 1;
        let stored = StoredRow {
            number: None,
            at: row.get(1)?,
            call_id: row.get(2)?,
            session_id: row.get(3)?,
            tool: row.get(4)?,
            source: row.get(5)?,
            client: row.get(6)?,
            connection: row.get(7)?,
            decisions: row.get::<_, String>(8)?.into(),
            grants: [].into(),
            outcome: row.get::<_, String>(9)?.into(),
            duration_ms: row.get(10)?,
            input_bytes: row.get(11)?,
            output_bytes: row.get(12)?,
            original_ms: row.get(13)?,
        };
        // After a gap, or the rows of an earlier version, the chain goes on from what is there.
        let before = self.before.replace(own);
        if before.is_some_and(|before| stored.link(before) != own) {
            self.add_break(self.at_id, "this row was changed, or a row before it was removed");
        }
        Ok(())
    }

    fn add_break(&mut self, id: i64, what: &str) {
        self.verification.broken += 1;
        if self.verification.breaks.len() < MAX_BREAKS {
            self.verification.breaks.push(AuditBreak { id: Some(to_count(id)), at: None, what: what.to_owned() });
        }
    }

    fn end(mut self) -> AuditVerification {
        if self.at_id < self.end_id || self.end.is_some() && self.verification.rows > 0 && self.before != self.end {
            self.add_break(self.end_id, "the last rows, up to this one, were removed or changed");
        }
        self.verification
    }
}
