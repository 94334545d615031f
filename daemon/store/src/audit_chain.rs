//! The chain of hashes over the audit log: each row has a hash over itself and the row before, and the database knows the
//! last one. So a row that was removed or changed is noticed, also the last one.
//!
//! It shows loss, not forgery: whoever may write the database may make a chain of their own.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::StoreError;

const BYTES: usize = 16;

/// The hash of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainHash([u8; BYTES]);

impl ChainHash {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash of these values behind this one.
    pub(crate) fn after(&self, values: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        for value in values {
            hasher.update(&(value.len() as u64).to_le_bytes()).update(value);
        }
        let mut hash = [0; BYTES];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..BYTES]);
        Self(hash)
    }

    pub(crate) fn read(bytes: Option<Vec<u8>>) -> Option<Self> {
        bytes?.try_into().ok().map(Self)
    }
}

/// The end of the chain, while rows are added to it.
pub(crate) struct NewLinks {
    pub(crate) last: ChainHash,
    added: Option<i64>,
}

impl NewLinks {
    pub(crate) fn begin(transaction: &Transaction) -> Result<Self, StoreError> {
        let mut select = transaction.prepare_cached("SELECT last FROM audit_chain")?;
        let last = select.query_row([], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        Ok(Self { last: ChainHash::read(last).unwrap_or_default(), added: None })
    }

    pub(crate) fn add(&mut self, id: i64, link: ChainHash) {
        self.last = link;
        self.added = Some(id);
    }

    pub(crate) fn end(self, transaction: &Transaction) -> Result<(), StoreError> {
        let Some(id) = self.added else { return Ok(()) };
        let set = "INSERT INTO audit_chain (one, last_id, last, kept_after, before) VALUES (1, ?1, ?2, 0, x'') \
                   ON CONFLICT (one) DO UPDATE SET last_id = ?1, last = ?2";
        transaction.prepare_cached(set)?.execute(params![id, self.last.as_bytes()])?;
        Ok(())
    }
}

/// Sets the checkpoint: rows up to this id are about to be removed because of their age or their number.
pub(crate) fn keep_after(transaction: &Transaction, id: i64) -> Result<(), StoreError> {
    let set = "UPDATE audit_chain SET kept_after = ?1, before = (SELECT coalesce(chain, x'') FROM audit WHERE id = ?1)";
    transaction.prepare_cached(set)?.execute([id])?;
    Ok(())
}

/// Remembers that something was found missing where it could still be seen.
pub(crate) fn note_break(transaction: &Transaction, at: i64, what: &str) -> Result<(), StoreError> {
    transaction.execute("INSERT INTO audit_breaks (at, what) VALUES (?1, ?2)", params![at, what])?;
    // The first ones tell most.
    transaction.execute("DELETE FROM audit_breaks WHERE rowid > 1000", [])?;
    Ok(())
}
