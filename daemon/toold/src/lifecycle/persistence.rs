//! What the daemon keeps beyond its life, from where the methods stand: the store's functions block, theirs must not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use toold_builtins::memories;
use toold_engine::Engine;
use toold_engine::session::{Session, SessionFilter};
use toold_proto::tool::SessionId;
use toold_store::sessions::SavedSession;
use toold_store::{Retention, SessionStorage, Store};

use crate::config::Loaded;
use crate::daemon::{Options, State};
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, opener_of};
use crate::rpc::connection::Connection;

/// Opens the database. Never fails: what is wrong with it is in its problems.
pub fn open(options: &Options, loaded: &Loaded) -> Store {
    let audit = &loaded.config.audit;
    let retention = Retention {
        max_age: Duration::from_secs(audit.max_age_days.saturating_mul(24 * 3600)),
        max_rows: audit.max_rows,
        ..Retention::default()
    };
    // A daemon for one client shares its grants with all others, and its sessions with none.
    let sessions = if options.socket.is_some() { SessionStorage::Kept } else { SessionStorage::Own };
    Store::open_with(&options.places.database(), retention, sessions)
}

/// Lends the engine its log and its grants.
pub fn lend(store: &Arc<Store>, engine: &mut Engine) {
    engine.audit = Some(store.clone());
    engine.grants.load(store.load_grants(), store.clone());
}

impl State {
    /// Does something with the store on a thread that may block.
    pub async fn with_store<T: Send + 'static>(&self, work: impl FnOnce(&Store) -> T + Send + 'static) -> T {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Keeps a session as it is now. When that fails it lives as long as the daemon, and the log says so.
    pub async fn keep_session(&self, session: &Session) {
        let opener = serde_json::to_string(&opener_of(session)).ok();
        let saved = SavedSession::of(session, opener);
        let id = saved.id.clone();
        if let Err(error) = self.with_store(move |store| store.save_session(&saved)).await {
            tracing::warn!(session = %id, %error, "the session ends with the daemon");
        }
    }

    /// A session of an earlier daemon, as it was, and who opened it; its environment, which is not kept, is what the
    /// client gives now.
    ///
    /// # Errors
    /// When its folder is gone.
    pub async fn kept_session(
        self: &Arc<Self>,
        connection: &Connection,
        id: &SessionId,
        env: BTreeMap<String, String>,
    ) -> anyhow::Result<Option<(Session, Option<Opener>)>> {
        let wanted = id.clone();
        let saved = match self.with_store(move |store| store.find_session(&wanted)).await {
            Ok(Some(saved)) => saved,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(session = %id, %error, "can't look for the session");
                return Ok(None);
            }
        };
        let opener: Option<Opener> = saved.owner.as_deref().and_then(|owner| serde_json::from_str(owner).ok());
        // The folders that an agent chose are no person's choice because a person comes back to its session.
        let kind = opener.as_ref().map_or(connection.kind(), |opener| opener.kind);
        let request = SessionRequest {
            id: saved.id,
            // A client that had no folder has none now.
            cwd: Some(saved.cwd).filter(|cwd| kind == OpenerKind::Person || cwd.parent().is_some()),
            // A root that is gone gives nothing; one that comes back is there at the next start.
            roots: saved.roots.into_iter().filter(|root| root.is_dir()).collect(),
            client: saved.client,
            model: saved.model,
            env,
            filter: SessionFilter::new(&saved.filter).with_context(|| format!("the tools of session {id}"))?,
        };
        let mut session = self.new_session_for(kind, &connection.peer, request)?;
        session.opened_at = saved.opened_at;
        session.set_mode(saved.mode);
        Ok(Some((session, opener)))
    }

    /// Forgets a session, and what was granted for it. True when it was kept.
    pub async fn forget_session(&self, id: &SessionId) -> bool {
        let (engine, builtins, id) = (self.engine.clone(), self.builtins.clone(), id.clone());
        let forgotten = self.with_store(move |store| {
            if let Err(error) = memories::forget_session(&builtins, &id) {
                tracing::warn!(session = %id, %error, "what the session remembered stays");
            }
            if engine.grants.forget_session(&id) {
                engine.policy_changed();
            }
            store.delete_session(&id)
        });
        forgotten.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the session stays in the database");
            false
        })
    }
}
