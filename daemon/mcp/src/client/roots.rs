//! Roots: the folders that a server learns when it asks for them.
#![expect(deprecated, reason = "roots are deprecated in the newest revision only")]

use std::collections::BTreeSet;
use std::path::Path;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::Root;
use rmcp::service::Peer;
use toold_engine::session::Session;
use toold_mounts::adapter::{ConnectionContext, InstanceOwner};
use url::Url;

/// The roots that a server was last told.
#[derive(Default)]
pub(super) struct ToldRoots(Mutex<Option<Vec<Root>>>);

impl ToldRoots {
    /// The folders of the session or project that an instance serves, to be told to the server; `None` for an instance that
    /// serves all sessions.
    pub(super) fn of_owner(&self, context: &ConnectionContext) -> Option<Vec<Root>> {
        // Before the folders are read, so that a change meanwhile is seen as one.
        let mut told = self.0.lock();
        let roots = of_owner(context)?;
        *told = Some(roots.clone());
        Some(roots)
    }

    /// Records the current roots if the server was told others, and returns whether that was so.
    fn update(&self, context: &ConnectionContext) -> bool {
        let mut told = self.0.lock();
        let now = of_owner(context);
        let has_changed = told.as_ref().is_some_and(|told| Some(told) != now.as_ref());
        if has_changed {
            *told = now;
        }
        has_changed
    }
}

fn of_owner(context: &ConnectionContext) -> Option<Vec<Root>> {
    Some(match context.owner.as_ref()? {
        // The project of sessions whose folders nobody has opened.
        InstanceOwner::Project(root) if root.parent().is_none() => Vec::new(),
        InstanceOwner::Project(root) => root_of(root).into_iter().collect(),
        InstanceOwner::Session(id) => {
            let session = context.engine.upgrade().and_then(|engine| engine.sessions.find(id));
            session.map(|session| of_session(&session)).unwrap_or_default()
        }
    })
}

/// The folders that a session works in, without those that nobody has opened.
pub(super) fn of_session(session: &Session) -> Vec<Root> {
    let places = session.places();
    let mut seen = BTreeSet::new();
    places.iter().filter(|place| seen.insert(place.to_path_buf())).filter_map(|place| root_of(place)).collect()
}

/// `None` for a path that is not absolute.
fn root_of(path: &Path) -> Option<Root> {
    let root = Root::new(Url::from_file_path(path).ok()?);
    Some(match path.file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    })
}

/// Tells a server of an older revision when the roots that it has asked for change. Never returns.
pub(super) async fn follow(peer: &Peer<RoleClient>, told: &ToldRoots, context: &ConnectionContext) {
    let is_old = peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
    let changes = context.engine.upgrade().filter(|_| is_old && context.owner.is_some());
    let Some(mut changes) = changes.map(|engine| engine.policy_changes()) else { return std::future::pending().await };
    // The roots may have changed after the server asked for them and before this subscription began, so compare first.
    loop {
        if told.update(context) {
            // Fails when the connection is closed.
            let _ = peer.notify_roots_list_changed().await;
        }
        // A folder that is opened is a change of permissions.
        if changes.changed().await.is_err() {
            break;
        }
    }
    std::future::pending().await
}
