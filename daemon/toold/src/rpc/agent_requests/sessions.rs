//! The session in which the requests of an agent's conversation are judged.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;
use parking_lot::Mutex;
use toold_engine::session::Session;
use toold_proto::agent_request::RequestPermission;
use toold_proto::session::{ClientInfo, Mode};
use toold_proto::tool::SessionId;

use super::pending::RequestingAgent;
use crate::peer::sessions::{OpenerKind, SessionRequest, set_opener};
use crate::rpc::MethodRequest;
use crate::rpc::error::invalid_params;
use crate::rpc::session::{may_use, publish};

/// Above this many conversations, those without an open session are forgotten.
const MAX_CONVERSATIONS: usize = 1_000;

/// The sessions of conversations: one for each folder that a conversation works in and that is in no other one's.
#[derive(Default)]
pub(crate) struct ConversationSessions(Mutex<HashMap<String, Vec<SessionId>>>);

/// The session that the request names, or that of its conversation, which is opened at its first request. A process that
/// a tool started has only its own.
///
/// # Errors
/// There is no such session, or none can be made for the folder.
pub(super) async fn session_for(
    request: &MethodRequest,
    requester: &RequestingAgent,
    params: &RequestPermission,
) -> Result<Arc<Session>, ErrorObjectOwned> {
    if params.session_id.is_some() || request.connection().kind() == OpenerKind::Descendant {
        return request.session(params.session_id.as_ref());
    }
    let cwd = Path::new(&params.cwd);
    if !cwd.is_absolute() {
        return Err(invalid_params(&format!("cwd: {} is not an absolute path", params.cwd)));
    }
    let conversation =
        format!("{:?}", (&requester.opener, &params.agent, params.session.as_deref().unwrap_or_default()));
    let services = &request.services;
    let sessions = &services.engine.sessions;
    let known = services.conversations.0.lock().get(&conversation).cloned().unwrap_or_default();
    let is_person = requester.opener.kind == OpenerKind::Person;
    // It was found or opened for the same agent before. No agent uses one in which everything is allowed.
    let usable = |session: &Arc<Session>| session.contains(cwd) && (is_person || session.mode() != Mode::Yolo);
    if let Some(session) = known.iter().filter_map(|id| sessions.find(id)).find(usable) {
        return Ok(session);
    }
    let digest = blake3::hash(format!("{conversation} {}", params.cwd).as_bytes()).to_hex();
    let id = SessionId::parse(&format!("agent-{}", &digest[..32])).expect("hexadecimal digits fit");
    let session = match sessions.find(&id) {
        Some(session) => session,
        None => open(request, requester, params, &id).await?,
    };
    may_use(request, &session)?;
    let mut conversations = services.conversations.0.lock();
    if conversations.len() >= MAX_CONVERSATIONS {
        conversations.retain(|_, ids| ids.iter().any(|id| sessions.find(id).is_some()));
    }
    let ids = conversations.entry(conversation).or_default();
    ids.retain(|known| *known != id && sessions.find(known).is_some());
    ids.push(id);
    Ok(session)
}

/// Opens the session, or that of an earlier daemon again.
async fn open(
    request: &MethodRequest,
    requester: &RequestingAgent,
    params: &RequestPermission,
    id: &SessionId,
) -> Result<Arc<Session>, ErrorObjectOwned> {
    let (service, connection) = (&request.services.sessions, request.connection());
    // One that cannot be resumed, such as one whose folder is gone, is replaced.
    let kept = service.restore(connection.kind(), &connection.peer, id, BTreeMap::new()).await.ok().flatten();
    if let Some((session, opener)) = kept {
        let session = publish(request, session);
        set_opener(&session, opener.unwrap_or_else(|| requester.opener.clone()));
        return Ok(session);
    }
    let session = service.create(
        connection.kind(),
        &connection.peer,
        SessionRequest {
            id: id.clone(),
            cwd: Some(params.cwd.clone().into()),
            roots: Vec::new(),
            client: Some(ClientInfo { name: params.agent.clone(), version: None }),
            model: None,
            env: BTreeMap::new(),
            filter: Default::default(),
            profiles: Vec::new(),
        },
    );
    let session = publish(request, session.map_err(|error| invalid_params(&format!("cwd: {error:#}")))?);
    if connection.kind() != OpenerKind::Token {
        // A session of hooks is not announced to anybody; the log has the reason if it is not stored.
        let _ = service.save(&session).await;
    }
    Ok(session)
}
