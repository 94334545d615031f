//! The database that outlives the daemon.

use std::sync::Arc;
use std::time::Duration;

use toold_engine::Engine;
use toold_store::{Retention, SessionStorage, Store};

use crate::config::LoadedConfig;
use crate::config::options::Options;

/// Opens the database. Never fails: errors are among its problems.
pub fn open(options: &Options, loaded: &LoadedConfig) -> Store {
    let audit = &loaded.config.audit;
    let retention = Retention {
        max_age: Duration::from_secs(audit.max_age_days.saturating_mul(24 * 3600)),
        max_rows: audit.max_rows,
        ..Retention::default()
    };
    // A daemon for one client shares its grants with all others, and its sessions with none.
    let sessions = if options.socket.is_some() { SessionStorage::Kept } else { SessionStorage::Own };
    Store::open_with(&options.paths.database(), retention, sessions)
}

/// Connects the engine to its audit log and grants.
pub fn provide(store: &Arc<Store>, engine: &mut Engine) {
    engine.audit = Some(store.clone());
    engine.grants.load(store.load_grants(), store.clone());
}
