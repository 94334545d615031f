//! Sessions and calls, with nothing special about them.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_engine::call::{Call, Caller, Principal};
use toold_engine::session::{NewSession, Session};
use toold_proto::tool::SessionId;

/// The parameters of a session that a person opens in a folder.
pub fn new_session(id: &str, folder: impl AsRef<Path>) -> NewSession {
    let folder = folder.as_ref();
    NewSession {
        id: SessionId::parse(id).unwrap(),
        cwd: folder.to_owned(),
        roots: Vec::new(),
        project: folder.to_owned(),
        client: None,
        model: None,
        env: Default::default(),
        filter: Default::default(),
        workspace: None,
    }
}

/// A person on a connection of their own.
pub fn person() -> Arc<Caller> {
    Arc::new(Caller::new(1, Principal::Person))
}

/// A person's call, for tests that change something about it.
pub fn prepare_call(session: &Arc<Session>, name: &str, arguments: Value) -> Call {
    Call {
        name: name.to_owned(),
        arguments,
        call_id: None,
        session: session.clone(),
        cwd: None,
        timeout: None,
        no_cache: false,
        caller: person(),
        progress: Vec::new(),
        cancel: CancellationToken::new(),
        chain: Arc::new([]),
        depth: 0,
        holds_lane: false,
    }
}
