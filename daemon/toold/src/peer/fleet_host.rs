//! The sessions and the audit log, as the fleet uses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toold_engine::session::{Session, SessionFilter};
use toold_fleet::host::FleetHost;
use toold_fleet::messages::Origin;
use toold_proto::audit::{AuditEntry, AuditQuery};
use toold_proto::session::ClientInfo;
use toold_proto::tool::SessionId;
use toold_store::Store;

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::peer::sessions::persistence::with_store;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, SessionService, set_opener};

pub struct LocalFleetHost {
    pub sessions: Arc<SessionService>,
    pub config: Arc<ActiveConfig>,
    pub store: Arc<Store>,
    /// A part of the names of sessions, so that nobody else can guess them.
    pub secret: [u8; 32],
}

impl LocalFleetHost {
    fn session_id(&self, origin: &Origin, session: &str) -> SessionId {
        let hash = blake3::keyed_hash(&self.secret, format!("{}\0{session}", origin.daemon).as_bytes()).to_hex();
        SessionId::parse(&format!("f-{}", &hash[..32])).expect("hexadecimal digits fit")
    }
}

impl FleetHost for LocalFleetHost {
    fn open_session(&self, origin: &Origin, session: &str) -> Result<Arc<Session>, String> {
        let home = self.config.options.paths.home.as_deref();
        let cwd = config::absolute(&self.config.loaded().config.fleet.cwd, home)?;
        let name = match &origin.client {
            Some(client) => format!("{client} on {}", origin.daemon),
            None => origin.daemon.to_string(),
        };
        let request = SessionRequest {
            id: self.session_id(origin, session),
            cwd: Some(cwd),
            roots: Vec::new(),
            client: Some(ClientInfo { name, version: None }),
            model: None,
            env: BTreeMap::new(),
            filter: SessionFilter::default(),
            profiles: Vec::new(),
        };
        // The configuration of this machine names the folder, so a person chose it.
        let session = self.sessions.in_chosen_folder(request).map_err(|error| format!("{error:#}"))?;
        set_opener(&session, Opener { kind: OpenerKind::Agent, ..Opener::default() });
        Ok(self.sessions.open(session).0)
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
