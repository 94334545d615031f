//! Transactions that write.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::StoreError;

/// Runs `work` in a transaction, which is rolled back on an error.
pub(crate) fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Immediate: a transaction that begins by reading and writes later cannot wait for another writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}
