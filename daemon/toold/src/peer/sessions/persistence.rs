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
use toold_store::sessions::SavedSession;
use toold_store::{Store, StoreError};

use crate::peer::Peer;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, SessionService, opener_of, set_opener};

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
    /// Stores the current state of a session.
    ///
    /// # Errors
    /// It could not be stored, and ends with the daemon.
    pub async fn save(&self, session: &Arc<Session>) -> Result<(), NotKept> {
        let is_unread = self.unread.lock().contains(&session.id);
        let saving = session.clone();
        let saved = with_store(&self.store, move |store| {
            if is_unread && !take_over(store, &saving)? {
                return Ok(false);
            }
            let owner = owner_of(&saving, saving.chosen_level());
            store.save_session(&SavedSession::of(&saving, owner))?;
            Ok::<bool, StoreError>(true)
        });
        match saved.await {
            Ok(is_own) => {
                self.unread.lock().remove(&session.id);
                if !is_own {
                    tracing::warn!(session = %session.id, "the id is that of somebody else's session: this one is closed");
                    self.close(&session.id);
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(session = %session.id, %error, "the session ends with the daemon");
                Err(NotKept { holds: true, why: error.to_string() })
            }
        }
    }

    /// Whether it is not known of some sessions what is stored under their ids.
    pub fn has_unread(&self) -> bool {
        !self.unread.lock().is_empty()
    }

    /// Reads what is stored under the ids of such sessions, as far as that can be read now, and then stores them.
    pub async fn settle_unread(&self) {
        let unread: Vec<SessionId> = self.unread.lock().iter().cloned().collect();
        for id in unread {
            match self.engine.sessions.find(&id) {
                // It is tried again.
                Some(session) => _ = self.save(&session).await,
                None => _ = self.unread.lock().remove(&id),
            }
        }
    }

    /// Stores all sessions that outlive the daemon, for a store that took nothing before.
    pub async fn save_all(&self) {
        for session in self.engine.sessions.list() {
            match opener_of(&session).kind {
                OpenerKind::Person | OpenerKind::Agent | OpenerKind::Page | OpenerKind::Fleet => {
                    // The log has the reason.
                    let _ = self.save(&session).await;
                }
                OpenerKind::Token | OpenerKind::Descendant => {}
            }
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
    /// When its folder is gone; [`NotKept`] when it cannot be read now whether there is one.
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
                self.unread.lock().insert(id.clone());
                self.unread_came.notify_one();
                // Without a database, people and agents go on with new sessions; but none gets what was granted to another.
                let is_granted = || self.engine.grants.are_any_of(id) && kind != OpenerKind::Person;
                return match self.store.takes_writes() || is_granted() {
                    true => Err(NotKept { holds: false, why: error.to_string() }.into()),
                    false => Ok(None),
                };
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
    ///
    /// # Errors
    /// It stays in the store, and can be resumed after a restart.
    pub async fn forget(&self, id: &SessionId) -> Result<bool, NotKept> {
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
        forgotten.await.map_err(|error| {
            tracing::warn!(%error, "the session stays in the database");
            NotKept { holds: true, why: error.to_string() }
        })
    }
}

/// Takes over what an earlier daemon stored of the session that an open one continues, as far as it allows less. False if the
/// stored one is somebody else's.
fn take_over(store: &Store, session: &Session) -> Result<bool, StoreError> {
    let Some(saved) = store.find_session(&session.id)? else { return Ok(true) };
    let owner: Option<StoredOwner> = saved.owner.as_deref().and_then(|owner| serde_json::from_str(owner).ok());
    let own = opener_of(session);
    if own.kind != OpenerKind::Person && owner.as_ref().is_none_or(|owner| owner.opener != own) {
        return Ok(false);
    }
    if width(saved.mode) < width(session.mode()) {
        session.set_mode(saved.mode);
    }
    if let Some(StoredOwner { opener, level }) = owner {
        set_opener(session, opener);
        session.set_level(session.chosen_level().into_iter().chain(level).min());
    }
    Ok(true)
}
