//! Sessions across restarts of the daemon. The store's functions block; those here do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use toold_builtins::memories;
use toold_engine::kept::{ChangeEffect, NotKept};
use toold_engine::session::{Session, SessionFilter};
use toold_proto::level::Level;
use toold_proto::session::Mode;
use toold_proto::tool::SessionId;
use toold_store::Store;
use toold_store::sessions::SavedSession;

use crate::peer::Peer;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, SessionService, opener_of};

/// What is stored of a session beside its state: who opened it, and the level that a person chose for it.
#[derive(Serialize, Deserialize)]
struct StoredOwner {
    #[serde(flatten)]
    opener: Opener,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
}

fn owner_of(session: &Session, level: Option<Level>) -> Option<String> {
    serde_json::to_string(&StoredOwner { opener: opener_of(session), level }).ok()
}

/// Uses the store on a thread that may block.
pub async fn with_store<T: Send + 'static>(store: &Arc<Store>, work: impl FnOnce(&Store) -> T + Send + 'static) -> T {
    let store = store.clone();
    let done = tokio::task::spawn_blocking(move || work(&store)).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// How much a mode allows, compared with others.
fn width(mode: Mode) -> u8 {
    match mode {
        Mode::Plan => 0,
        Mode::Default => 1,
        Mode::AcceptEdits => 2,
        Mode::Yolo => 3,
    }
}

impl SessionService {
    /// Stores the current state of a session. If that fails it lives as long as the daemon, and the
    /// log reports it.
    pub async fn save(&self, session: &Session) {
        let saved = SavedSession::of(session, owner_of(session, session.chosen_level()));
        let id = saved.id.clone();
        if let Err(error) = with_store(&self.store, move |store| store.save_session(&saved)).await {
            tracing::warn!(session = %id, %error, "the session ends with the daemon");
        }
    }

    /// Changes the mode of a session.
    ///
    /// # Errors
    /// It could not be stored.
    pub async fn change_mode(&self, session: &Arc<Session>, mode: Mode) -> Result<(), NotKept> {
        let owner = owner_of(session, session.chosen_level());
        let saved = SavedSession { mode, ..SavedSession::of(session, owner) };
        let effect = if width(mode) > width(session.mode()) { ChangeEffect::Widens } else { ChangeEffect::Narrows };
        let session = session.clone();
        let keep = move |store: &Store| effect.keep(|| store.save_session(&saved), |_| session.set_mode(mode));
        with_store(&self.store, keep).await
    }

    /// Changes the level that a person chose for a session, which has the level `before` now; `None` chooses none.
    ///
    /// # Errors
    /// It could not be stored.
    pub async fn change_level(
        &self,
        session: &Arc<Session>,
        before: Level,
        level: Option<Level>,
    ) -> Result<(), NotKept> {
        let saved = SavedSession::of(session, owner_of(session, level));
        let narrows = level.is_some_and(|level| level <= before);
        let effect = if narrows { ChangeEffect::Narrows } else { ChangeEffect::Widens };
        let session = session.clone();
        let keep = move |store: &Store| effect.keep(|| store.save_session(&saved), |_| session.set_level(level));
        with_store(&self.store, keep).await
    }

    /// A session of an earlier daemon, and who opened it; its environment, which is not stored, is
    /// provided by the client now.
    ///
    /// # Errors
    /// When its folder is gone.
    pub async fn restore(
        &self,
        kind: OpenerKind,
        peer: &Peer,
        id: &SessionId,
        env: BTreeMap<String, String>,
    ) -> anyhow::Result<Option<(Session, Option<Opener>)>> {
        self.restore_by(kind, id, env, |kind, request| self.create(kind, peer, request)).await
    }

    /// The same for a session of the fleet, in the folder that is configured now.
    ///
    /// # Errors
    /// The folder cannot be worked in.
    #[cfg(feature = "fleet")]
    pub(crate) async fn restore_of_fleet(
        &self,
        id: &SessionId,
        cwd: &std::path::Path,
    ) -> anyhow::Result<Option<(Session, Option<Opener>)>> {
        let create = |_, request| {
            self.in_chosen_folder(SessionRequest { cwd: Some(cwd.to_owned()), roots: Vec::new(), ..request })
        };
        self.restore_by(OpenerKind::Fleet, id, BTreeMap::new(), create).await
    }

    async fn restore_by(
        &self,
        kind: OpenerKind,
        id: &SessionId,
        env: BTreeMap<String, String>,
        create: impl FnOnce(OpenerKind, SessionRequest) -> anyhow::Result<Session>,
    ) -> anyhow::Result<Option<(Session, Option<Opener>)>> {
        let wanted = id.clone();
        let saved = match with_store(&self.store, move |store| store.find_session(&wanted)).await {
            Ok(Some(saved)) => saved,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(session = %id, %error, "can't look for the session");
                return Ok(None);
            }
        };
        let owner: Option<StoredOwner> = saved.owner.as_deref().and_then(|owner| serde_json::from_str(owner).ok());
        let level = owner.as_ref().and_then(|owner| owner.level);
        let opener = owner.map(|owner| owner.opener);
        // Folders that an agent chose do not become a person's choice when a person resumes the
        // session.
        let kind = opener.as_ref().map_or(kind, |opener| opener.kind);
        let request = SessionRequest {
            id: saved.id,
            // A client that had no folder then has none now.
            cwd: Some(saved.cwd).filter(|cwd| kind == OpenerKind::Person || cwd.parent().is_some()),
            // A missing root is skipped; one that comes back is there at the next start.
            roots: saved.roots.into_iter().filter(|root| root.is_dir()).collect(),
            client: saved.client,
            model: saved.model,
            env,
            filter: SessionFilter::new(&saved.filter).with_context(|| format!("the tools of session {id}"))?,
            profiles: Vec::new(),
        };
        let mut session = create(kind, request)?;
        session.opened_at = saved.opened_at;
        session.set_mode(saved.mode);
        session.set_level(level);
        self.builtins.note_restored(&session);
        Ok(Some((session, opener)))
    }

    /// Removes a session, and its grants. True when it was stored.
    pub async fn forget(&self, id: &SessionId) -> bool {
        let (engine, builtins, id) = (self.engine.clone(), self.builtins.clone(), id.clone());
        let forgotten = with_store(&self.store, move |store| {
            if let Err(error) = memories::forget_session(&builtins, &id) {
                tracing::warn!(session = %id, %error, "can't delete the session's memories");
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
