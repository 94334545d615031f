//! The sessions and the audit log, as the fleet uses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toold_engine::session::{Session, SessionFilter};
use toold_fleet::host::FleetHost;
use toold_fleet::messages::CallOrigin;
use toold_lua::reload::PluginHost;
use toold_proto::audit::{AuditEntry, AuditQuery};
use toold_proto::session::ClientInfo;
use toold_proto::tool::SessionId;
use toold_store::Store;

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::peer::sessions::persistence::with_store;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, SessionService, opener_of};

/// Sessions that a daemon can have here. Unused ones are closed to make room.
const MAX_SESSIONS: usize = 64;

#[derive(Clone)]
pub(super) struct LocalFleetHost {
    pub(super) sessions: Arc<SessionService>,
    pub(super) config: Arc<ActiveConfig>,
    pub(super) store: Arc<Store>,
    pub(super) plugins: Arc<PluginHost>,
    /// A part of the names of sessions, so that nobody else can guess them. The same at each start, so that they are found
    /// again.
    pub(super) secret: [u8; 32],
}

impl LocalFleetHost {
    fn session_id(&self, daemon: &str, session: &str) -> SessionId {
        let hash = blake3::keyed_hash(&self.secret, format!("{daemon}\0{session}").as_bytes()).to_hex();
        SessionId::parse(&format!("f-{}", &hash[..32])).expect("hexadecimal digits fit")
    }

    async fn open_or_resume(self, origin: CallOrigin, session: String) -> Result<Arc<Session>, String> {
        let daemon = origin.daemon.to_string();
        let id = self.session_id(&daemon, &session);
        let opener = Opener { kind: OpenerKind::Fleet, daemon: Some(daemon.clone()), ..Opener::default() };
        if let Some(open) = self.sessions.find(&id) {
            return if opener_of(&open) == opener { Ok(open) } else { Err(format!("session {id} is another's")) };
        }
        if !self.sessions.make_room_for(&daemon, MAX_SESSIONS) {
            return Err(format!("{daemon} uses {MAX_SESSIONS} sessions here already: let their calls end first"));
        }
        let home = self.config.options.paths.home.as_deref();
        let cwd = config::absolute(&self.config.loaded().config.fleet.cwd, home)?;
        let restored = self.sessions.restore_of_fleet(&id, &cwd).await.map_err(|error| format!("{error:#}"))?;
        let session = match restored {
            Some((session, owner)) if owner.as_ref() == Some(&opener) => session,
            Some(_) => return Err(format!("session {id} is another's")),
            None => {
                let name = match &origin.client {
                    Some(client) => format!("{client} on {daemon}"),
                    None => daemon,
                };
                let request = SessionRequest {
                    id,
                    cwd: Some(cwd),
                    roots: Vec::new(),
                    client: Some(ClientInfo { name, version: None }),
                    model: None,
                    env: BTreeMap::new(),
                    filter: SessionFilter::default(),
                    profiles: Vec::new(),
                };
                // The configuration of this machine names the folder, so a person chose it.
                self.sessions.in_chosen_folder(request).map_err(|error| format!("{error:#}"))?
            }
        };
        let session = self.sessions.publish(session, opener);
        // The log has the reason if it is not stored.
        let _ = self.sessions.save(&session).await;
        Ok(session)
    }
}

impl FleetHost for LocalFleetHost {
    fn tools_loaded(&self) -> BoxFuture<'static, ()> {
        let plugins = self.plugins.clone();
        async move { _ = plugins.settled().await }.boxed()
    }

    fn open_session(&self, origin: &CallOrigin, session: &str) -> BoxFuture<'static, Result<Arc<Session>, String>> {
        self.clone().open_or_resume(origin.clone(), session.to_owned()).boxed()
    }

    fn audit_after(
        &self,
        after: Option<u64>,
        limit: u64,
    ) -> BoxFuture<'static, Result<(Vec<AuditEntry>, bool), String>> {
        let store = self.store.clone();
        async move {
            let query = AuditQuery { after: Some(after.unwrap_or(0)), limit: Some(limit), ..AuditQuery::default() };
            let list = with_store(&store, move |store| store.query_audit(&query, &|| false)).await;
            list.map(|list| (list.entries, list.more)).map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn newest_audit_row(&self) -> BoxFuture<'static, Result<u64, String>> {
        let store = self.store.clone();
        async move {
            let query = AuditQuery { limit: Some(1), ..AuditQuery::default() };
            let list = with_store(&store, move |store| store.query_audit(&query, &|| false)).await;
            list.map(|list| list.entries.last().map_or(0, |row| row.id)).map_err(|error| error.to_string())
        }
        .boxed()
    }
}
