//! `session.*`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::execute::Principal;
use toold_engine::session::{Filter, Hold, Session};
use toold_proto::error::{self, ErrorData};
use toold_proto::event::What;
use toold_proto::method::{SessionClose, SessionOpen, SessionsList};
use toold_proto::session::{CloseSession, ClosedSession, OpenSession, OpenedSession, Role, ServerInfo, SessionList};
use toold_proto::tool::SessionId;

use crate::daemon::{SessionRequest, random_hex};
use crate::rpc::error::{invalid_params, object, unknown};
use crate::rpc::{Module, Request, Right, add, add_async};

pub(super) fn register(module: &mut Module) -> anyhow::Result<()> {
    add_async::<SessionOpen, _>(module, Right::Anyone, open)?;
    add::<SessionsList>(module, Right::Anyone, |request, _| {
        let sessions = request.state.engine.sessions.list();
        let visible = sessions.iter().filter(|session| may_use(&request, session).is_ok());
        Ok(SessionList { sessions: visible.map(|session| session.describe()).collect() })
    })?;
    add_async::<SessionClose, _>(module, Right::Anyone, close)
}

/// What the daemon says of itself.
pub(super) fn server_info() -> ServerInfo {
    ServerInfo { name: "toold".into(), version: env!("CARGO_PKG_VERSION").into(), protocol: toold_proto::PROTOCOL }
}

/// Puts a new session where others find it, and binds it to the connection.
fn enter(request: &Request, session: Session) -> Arc<Session> {
    let session = publish(request, session);
    request.connection().bind(session.clone());
    session
}

/// Puts a new session where others find it.
pub(super) fn publish(request: &Request, session: Session) -> Arc<Session> {
    let (session, there) = request.state.open_session(session);
    if !there {
        owned_by(&session, request.connection().peer.principal);
        request
            .state
            .engine
            .events
            .emit(What::SessionOpened { session_id: session.id.clone(), cwd: session.cwd.display().to_string() });
    }
    session
}

/// Says who opened a session, which nobody else has found yet.
pub(crate) fn owned_by(session: &Session, principal: Principal) {
    *session.slot::<Owner>().0.lock().expect("no code panics while it holds this lock") = Kind::of(principal);
}

/// Joining a session needs the same kind of principal that opened it, or somebody who sees all that is done with a
/// token.
pub(super) fn may_use(request: &Request, session: &Session) -> Result<(), ErrorObjectOwned> {
    let owner = *session.slot::<Owner>().0.lock().expect("no code panics while it holds this lock");
    let kind = request.kind();
    let may = match kind {
        Kind::Frontend => owner == kind || owner == Kind::Token && request.connection().may_decide(),
        Kind::Token => owner == kind,
        // It may name no session at all but its own.
        Kind::Descendant => false,
    };
    if may || request.connection().is_bound_to(session) {
        return Ok(());
    }
    Err(unknown("session", session.id.as_str()))
}

/// Kept in a session's slot: what kind of principal opened it.
#[derive(Default)]
struct Owner(std::sync::Mutex<Kind>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Frontend,
    /// Whoever has a token that may call: on a network, and no person as far as anybody knows.
    Token,
    Descendant,
}

impl Kind {
    fn of(principal: Principal) -> Self {
        match principal {
            // People and the agents that they run share sessions: that is what sessions are for.
            Principal::Person | Principal::Agent | Principal::TokenAdmin => Self::Frontend,
            Principal::TokenCall => Self::Token,
            Principal::ToolDescendant => Self::Descendant,
        }
    }
}

impl Request {
    fn kind(&self) -> Kind {
        Kind::of(self.connection().peer.principal)
    }
}

async fn open(request: Request, open: OpenSession) -> Result<OpenedSession, ErrorObjectOwned> {
    if let Some(protocol) = open.protocol.filter(|protocol| *protocol != toold_proto::PROTOCOL) {
        let data = ErrorData { supported: vec![toold_proto::PROTOCOL], ..ErrorData::new("unsupported_protocol") };
        let (spoken, version, pid) = (toold_proto::PROTOCOL, env!("CARGO_PKG_VERSION"), std::process::id());
        let words = format!(
            "protocol {protocol} is not spoken here: this is toold {version}, pid {pid}, which speaks {spoken}; \
             after an upgrade `toolctl restart` replaces it"
        );
        return Err(object(error::INVALID_REQUEST, &words, data));
    }
    if request.kind() == Kind::Descendant {
        return open_below(&request, open);
    }
    let role = open.role;
    let (session, resumed) = match known(&request, &open).await? {
        Some(session) => (resume(&request, session, &open)?, true),
        None => (create(&request, open)?, false),
    };
    if role == Some(Role::Agent) {
        request.connection().become_agent();
    }
    // What is done with a token alone is nobody's to come back to after the daemon.
    if request.kind() == Kind::Frontend {
        request.state.keep_session(&session).await;
    }
    Ok(answer(&session, resumed))
}

/// What a tool started gets a session for as long as it is connected, within its tool's. It joins no other, and
/// there is only the one.
fn open_below(request: &Request, open: OpenSession) -> Result<OpenedSession, ErrorObjectOwned> {
    let no = |words: &str| {
        let words = format!("session.open, by what a tool started: {words}");
        object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied"))
    };
    let connection = request.connection();
    if let Some(session) = connection.session() {
        let same = open.session_id.is_none_or(|id| id == session.id)
            && open.cwd.is_none_or(|cwd| PathBuf::from(cwd).canonicalize().is_ok_and(|cwd| cwd == session.cwd))
            && open.tools.is_none()
            && open.env.is_empty();
        return if same { Ok(answer(&session, true)) } else { Err(no("it has a session already")) };
    }
    if matches!(connection.peer.hold, Hold::Unknown) {
        return Err(no("nobody can tell which tool it was"));
    }
    if open.session_id.is_some() || !open.env.is_empty() {
        return Err(no("neither session_id nor env are its to choose"));
    }
    let cwd = open.cwd.as_ref().map(PathBuf::from).or_else(|| connection.peer.folder());
    let filter = open.tools.as_ref().map(Filter::new).transpose();
    let session = request.state.new_session_for(
        &connection.peer.hold,
        SessionRequest {
            id: SessionId::parse(&format!("c{}-{}", connection.id, random_hex(16))).expect("hexadecimal digits fit"),
            cwd: cwd.ok_or_else(|| invalid_params("cwd is needed: an absolute path of a folder"))?,
            roots: open.roots.iter().map(PathBuf::from).collect(),
            client: open.client,
            model: open.model,
            env: open.env,
            filter: filter.map_err(|error| invalid_params(&format!("tools: {error}")))?.unwrap_or_default(),
        },
    );
    let session = publish(request, session.map_err(|error| no(&format!("{error:#}")))?);
    connection.bind_own(session.clone());
    Ok(answer(&session, false))
}

/// The session that a request names, of this daemon or of an earlier one.
async fn known(request: &Request, open: &OpenSession) -> Result<Option<Arc<Session>>, ErrorObjectOwned> {
    let Some(id) = &open.session_id else { return Ok(None) };
    if let Some(session) = request.state.engine.sessions.find(id) {
        return Ok(Some(session));
    }
    let kept = request.state.kept_session(id, open.env.clone()).await;
    let kept = kept.map_err(|error| invalid_params(&format!("session {id} cannot be resumed: {error:#}")))?;
    match kept {
        // It is somebody's that came without one.
        Some(_) if request.kind() != Kind::Frontend => Err(unknown("session", id.as_str())),
        kept => Ok(kept.map(|session| publish(request, session))),
    }
}

fn resume(request: &Request, session: Arc<Session>, open: &OpenSession) -> Result<Arc<Session>, ErrorObjectOwned> {
    may_use(request, &session)?;
    if let Some(cwd) = &open.cwd {
        let same = request.state.without_tilde(Path::new(cwd)).canonicalize().is_ok_and(|cwd| cwd == session.cwd);
        if !same {
            let words = format!("session {} works in {}, not in {cwd}", session.id, session.cwd.display());
            return Err(invalid_params(&words));
        }
    }
    request.connection().bind(session.clone());
    Ok(session)
}

fn create(request: &Request, open: OpenSession) -> Result<Arc<Session>, ErrorObjectOwned> {
    let id = open
        .session_id
        .unwrap_or_else(|| SessionId::parse(&format!("s-{}", random_hex(16))).expect("hexadecimal digits fit"));
    let cwd = match (&open.cwd, &request.connection().peer.cwd) {
        (Some(cwd), _) => PathBuf::from(cwd),
        (None, Some(cwd)) => cwd.clone(),
        (None, None) => return Err(invalid_params("cwd is needed: an absolute path of a folder")),
    };
    let filter = open.tools.as_ref().map(Filter::new).transpose();
    let session = request.state.new_session(SessionRequest {
        id,
        cwd,
        roots: open.roots.iter().map(PathBuf::from).collect(),
        client: open.client,
        model: open.model,
        env: open.env,
        filter: filter.map_err(|error| invalid_params(&format!("tools: {error}")))?.unwrap_or_default(),
    });
    let session = session.map_err(|error| invalid_params(&format!("{error:#}")))?;
    Ok(enter(request, session))
}

fn answer(session: &Session, resumed: bool) -> OpenedSession {
    OpenedSession {
        session_id: session.id.clone(),
        cwd: session.cwd.display().to_string(),
        resumed,
        server: server_info(),
    }
}

async fn close(request: Request, close: CloseSession) -> Result<ClosedSession, ErrorObjectOwned> {
    let id = close.session_id;
    let state = &request.state;
    let Some(session) = state.engine.sessions.find(&id) else {
        // One of an earlier daemon, which nobody came back to.
        let forgotten = request.kind() == Kind::Frontend && state.forget_session(&id).await;
        return if forgotten { Ok(ClosedSession { cancelled: 0 }) } else { Err(unknown("session", id.as_str())) };
    };
    may_use(&request, &session)?;
    let cancelled = state.close_session(&id).unwrap_or(0);
    state.forget_session(&id).await;
    state.engine.events.emit(What::SessionClosed { session_id: id });
    Ok(ClosedSession { cancelled })
}
