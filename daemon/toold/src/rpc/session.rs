//! `session.*`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::call::Principal;
use toold_engine::kept::NotKept;
use toold_engine::session::{Session, SessionFilter, SessionOwner};
use toold_proto::PROTOCOL;
use toold_proto::error::{self, ErrorData};
use toold_proto::event::EventBody;
use toold_proto::method::{SessionClose, SessionOpen, SessionShare, SessionsList};
use toold_proto::session::{
    ClientRole, CloseSession, ClosedSession, Mode, OpenSession, OpenedSession, ServerInfo, SessionList,
    TERMINAL_SESSION, WorkspaceState,
};
use toold_proto::tool::SessionId;
use toold_proto::workspace::{ShareSession, SharedSession};

use crate::config::project_folder::real_dir;
use crate::config::random::random_hex;
use crate::peer::sessions::persistence::with_store;
use crate::peer::sessions::{MAX_ROOTS, MAX_VARIABLES, Opener, OpenerKind, SessionRequest, opener_of, set_opener};
use crate::peer::share_codes::{SHARE_FOR, is_share_code};
use crate::rpc::connection::ClientConnection;
use crate::rpc::error::{NOT_KEPT, invalid_params, object, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, client_name};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<SessionOpen, _>(module, Right::Anyone, open)?;
    add::<SessionsList>(module, Right::Anyone, |request, _| {
        let sessions = request.services.engine.sessions.list();
        let is_listed =
            |session: &Session| may_use(&request, session).is_ok() && !request.services.sessions.is_over(session);
        let visible = sessions.iter().filter(|session| is_listed(session));
        let policy = request.services.engine.policy.load();
        let described = visible.map(|session| session.describe(policy.levels.of(session, None).level));
        Ok(SessionList { sessions: described.collect() })
    })?;
    add::<SessionShare>(module, Right::Administrator, share)?;
    add_async::<SessionClose, _>(module, Right::Anyone, close)
}

/// The daemon's description of itself.
pub(super) fn server_info() -> ServerInfo {
    ServerInfo { name: "toold".into(), version: env!("CARGO_PKG_VERSION").into(), protocol: PROTOCOL }
}

/// Publishes a new session, and binds it to the connection.
fn enter(request: &MethodRequest, session: Session) -> Arc<Session> {
    let session = publish(request, session);
    request.connection().bind(session.clone());
    session
}

/// Publishes a new session.
pub(super) fn publish(request: &MethodRequest, session: Session) -> Arc<Session> {
    request.services.sessions.publish(session, request.connection().opener())
}

impl ClientConnection {
    /// Its current kind of principal.
    pub(crate) fn kind(&self) -> OpenerKind {
        match self.peer.principal {
            Principal::Person | Principal::Agent if self.is_agent() => OpenerKind::Agent,
            Principal::Person | Principal::Agent | Principal::TokenAdmin => OpenerKind::Person,
            Principal::TokenCall => OpenerKind::Token,
            Principal::ToolDescendant => OpenerKind::Descendant,
            Principal::Page => OpenerKind::Page,
        }
    }

    /// Who opens the sessions of this connection.
    pub(crate) fn opener(&self) -> Opener {
        let token_profile = self.peer.token_profile.clone();
        Opener { kind: self.kind(), program: self.peer.lineage.program(), token_profile, daemon: None }
    }
}

/// Joining a session needs a principal of the kind that opened it, and an agent's must be of the
/// same program: permissions of one agent are not another's. People may join the sessions of
/// agents. A session in `yolo` allows everything, so no agent may join one.
pub(super) fn may_use(request: &MethodRequest, session: &Session) -> Result<(), ErrorObjectOwned> {
    let connection = request.connection();
    if connection.is_bound_to(session) {
        return Ok(());
    }
    let (own, opener) = (connection.kind(), opener_of(session));
    let may = match own {
        OpenerKind::Person => match opener.kind {
            OpenerKind::Person | OpenerKind::Agent | OpenerKind::Page | OpenerKind::Fleet => true,
            OpenerKind::Token => connection.may_decide(),
            OpenerKind::Descendant => false,
        },
        OpenerKind::Agent => may_agent_join(connection, &opener) && session.mode() != Mode::Yolo,
        OpenerKind::Token => opener.kind == OpenerKind::Token && opener.token_profile == connection.peer.token_profile,
        // It sees and decides for all sessions; where it may call, [`may_call_in`] says.
        OpenerKind::Page => opener.kind != OpenerKind::Descendant,
        // It may name no session but its own. The fleet has no connections.
        OpenerKind::Descendant | OpenerKind::Fleet => false,
    };
    if may { Ok(()) } else { Err(unknown("session", session.id.as_str())) }
}

/// Calls of the page run in its own sessions, and not in those of others, which it may see.
pub(super) fn may_call_in(request: &MethodRequest, session: &Session) -> Result<(), ErrorObjectOwned> {
    match request.connection().kind() {
        OpenerKind::Page if opener_of(session).kind != OpenerKind::Page => {
            let words = format!("session {} is not the page's: open one with session.open", session.id);
            Err(object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied")))
        }
        OpenerKind::Page
        | OpenerKind::Person
        | OpenerKind::Agent
        | OpenerKind::Token
        | OpenerKind::Descendant
        | OpenerKind::Fleet => Ok(()),
    }
}

fn may_agent_join(connection: &ClientConnection, opener: &Opener) -> bool {
    match opener.kind {
        OpenerKind::Person | OpenerKind::Agent => {
            opener.program.is_some() && opener.program == connection.peer.lineage.program()
                // The parent on stdio, and tests within this process, have no lineage.
                || opener.program.is_none() && connection.peer.lineage.own().is_none()
        }
        OpenerKind::Token | OpenerKind::Descendant | OpenerKind::Page | OpenerKind::Fleet => false,
    }
}

async fn open(request: MethodRequest, mut open: OpenSession) -> Result<OpenedSession, ErrorObjectOwned> {
    if let Some(protocol) = open.protocol.filter(|protocol| *protocol != PROTOCOL) {
        let data = ErrorData { supported: vec![PROTOCOL], ..ErrorData::new("unsupported_protocol") };
        let (spoken, version, pid) = (PROTOCOL, env!("CARGO_PKG_VERSION"), std::process::id());
        let words = format!(
            "protocol {protocol} is not supported: this is toold {version}, pid {pid}, which supports {spoken}; \
             after an upgrade `toolctl restart` replaces it"
        );
        return Err(object(error::INVALID_REQUEST, &words, data));
    }
    if open.env.len() > MAX_VARIABLES || open.roots.len() > MAX_ROOTS {
        let words = format!("a session has at most {MAX_VARIABLES} variables in env and {MAX_ROOTS} roots");
        return Err(invalid_params(&words));
    }
    let connection = request.connection().clone();
    // First: a session that was opened with a person's rights would keep them.
    if open.role == Some(ClientRole::Agent) {
        connection.become_agent();
    }
    let kind = connection.kind();
    let (env, env_ignored) =
        request.services.sessions.permitted_env(kind, &connection.peer, std::mem::take(&mut open.env));
    open.env = env;
    if kind == OpenerKind::Descendant {
        return open_below(&request, open, env_ignored);
    }
    // An agent that guesses the id would share the answers that a person gives there.
    let of_terminal = |id: &SessionId| id.as_str().starts_with(TERMINAL_SESSION);
    if kind != OpenerKind::Person && open.session_id.as_ref().is_some_and(of_terminal) {
        return Err(unknown("session", open.session_id.as_ref().map_or("", |id| id.as_str())));
    }
    let (session, resumed) = match known(&request, &open).await? {
        Some(session) => (resume(&request, session, &open)?, true),
        None => (create(&request, open)?, false),
    };
    if kind == OpenerKind::Person {
        connection.peer.record_frontend();
    }
    // A client that joins a session did not choose its folders.
    if kind == OpenerKind::Person && !resumed {
        let (workspaces, folders) = (request.services.workspaces.clone(), folders_of(&session));
        with_store(&request.services.store, move |_| folders.iter().for_each(|folder| workspaces.note_opened(folder)))
            .await;
    }
    // Sessions of tokens alone are not resumed after the daemon ends.
    let kept = match kind {
        OpenerKind::Token => Ok(()),
        OpenerKind::Person | OpenerKind::Agent | OpenerKind::Descendant | OpenerKind::Page | OpenerKind::Fleet => {
            request.services.sessions.save(&session).await
        }
    };
    let not_kept = kept.err().map(|error| error.to_string());
    Ok(OpenedSession { not_kept, ..answer(&session, resumed, env_ignored) })
}

fn folders_of(session: &Session) -> Vec<PathBuf> {
    std::iter::once(&session.cwd).chain(&session.roots).cloned().collect()
}

/// A tool's process gets one session, within its tool's, for as long as it is connected. It joins
/// no other.
fn open_below(
    request: &MethodRequest,
    open: OpenSession,
    env_ignored: Vec<String>,
) -> Result<OpenedSession, ErrorObjectOwned> {
    let no = |words: &str| {
        let words = format!("session.open by a process that a tool started: {words}");
        object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied"))
    };
    let connection = request.connection();
    if let Some(session) = connection.session() {
        let same = open.session_id.is_none_or(|id| id == session.id)
            && open.cwd.is_none_or(|cwd| real_dir(Path::new(&cwd)).is_ok_and(|cwd| cwd == session.cwd))
            && open.tools.is_none();
        return if same { Ok(answer(&session, true, env_ignored)) } else { Err(no("it has a session already")) };
    }
    if matches!(connection.peer.owner, SessionOwner::UnknownTool) {
        return Err(no("toold can't tell which tool started it"));
    }
    if open.session_id.is_some() {
        return Err(no("it cannot choose session_id"));
    }
    let cwd = open.cwd.as_ref().map(PathBuf::from).or_else(|| connection.peer.folder());
    let filter = open.tools.as_ref().map(SessionFilter::new).transpose();
    let session = request.services.sessions.create(
        OpenerKind::Descendant,
        &connection.peer,
        SessionRequest {
            id: own_id(connection),
            cwd: Some(cwd.ok_or_else(|| invalid_params("cwd is needed: an absolute path of a folder"))?),
            roots: open.roots.iter().map(PathBuf::from).collect(),
            client: open.client,
            model: open.model,
            env: open.env,
            filter: filter.map_err(|error| invalid_params(&format!("tools: {error}")))?.unwrap_or_default(),
            profiles: Vec::new(),
        },
    );
    let session = publish(request, session.map_err(|error| no(&format!("{error:#}")))?);
    connection.bind_own(session.clone());
    Ok(answer(&session, false, env_ignored))
}

/// The id of a session that ends with its connection.
pub(super) fn own_id(connection: &ClientConnection) -> SessionId {
    SessionId::parse(&format!("c{}-{}", connection.id, random_hex(16))).expect("hexadecimal digits fit")
}

/// The session that a request names, of this daemon or of an earlier one.
async fn known(request: &MethodRequest, open: &OpenSession) -> Result<Option<Arc<Session>>, ErrorObjectOwned> {
    let Some(id) = &open.session_id else { return Ok(None) };
    if is_share_code(id) {
        return match request.connection().kind() {
            OpenerKind::Person | OpenerKind::Agent => shared(request, id).map(Some),
            // A code is given to a program of this machine.
            OpenerKind::Token | OpenerKind::Descendant | OpenerKind::Page | OpenerKind::Fleet => {
                Err(unknown("session", id.as_str()))
            }
        };
    }
    if let Some(session) = request.services.engine.sessions.find(id) {
        may_use(request, &session)?;
        may_call_in(request, &session)?;
        return Ok(Some(session));
    }
    let connection = request.connection();
    let kept = request.services.sessions.restore(connection.kind(), &connection.peer, id, open.env.clone()).await;
    let kept = kept.map_err(|error| match error.downcast_ref::<NotKept>() {
        Some(unread) => refused(NOT_KEPT, &format!("session {id} cannot be looked for: {unread}")),
        None => invalid_params(&format!("session {id} cannot be resumed: {error:#}")),
    })?;
    let Some((session, opener)) = kept else { return Ok(None) };
    let may = match connection.kind() {
        OpenerKind::Person => true,
        // A session of which it is not known who opened it is for people.
        OpenerKind::Agent => opener.as_ref().is_some_and(|opener| may_agent_join(connection, opener)),
        // It belongs to a client without a token.
        OpenerKind::Page => opener.as_ref().is_some_and(|opener| opener.kind == OpenerKind::Page),
        OpenerKind::Token | OpenerKind::Descendant | OpenerKind::Fleet => false,
    };
    if !may {
        return Err(unknown("session", id.as_str()));
    }
    let session = publish(request, session);
    if let Some(opener) = opener {
        set_opener(&session, opener);
    }
    Ok(Some(session))
}

/// The session that a person shared with a code.
fn shared(request: &MethodRequest, code: &SessionId) -> Result<Arc<Session>, ErrorObjectOwned> {
    let session =
        request.services.sessions.share_codes.take(code).and_then(|id| request.services.engine.sessions.find(&id));
    let session = session.ok_or_else(|| {
        let words = "the code is not valid: it was used, has expired, or its session has ended; ask for a new one";
        object(error::UNKNOWN, words, ErrorData::new("unknown_session"))
    })?;
    if session.mode() == Mode::Yolo && request.connection().kind() != OpenerKind::Person {
        return Err(refused("session_in_yolo", "agents can't join a session in yolo mode"));
    }
    request.connection().bind(session.clone());
    Ok(session)
}

fn share(request: MethodRequest, params: ShareSession) -> Result<SharedSession, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let code = request.services.sessions.share_codes.make(&session.id);
    let code = code.ok_or_else(|| refused("overloaded", "too many codes are unused; they expire after 10 minutes"))?;
    tracing::info!(session = %session.id, by = client_name(&request), "made a code to join a session");
    Ok(SharedSession { code, expires_in: SHARE_FOR.as_secs() })
}

fn resume(
    request: &MethodRequest,
    session: Arc<Session>,
    open: &OpenSession,
) -> Result<Arc<Session>, ErrorObjectOwned> {
    if let Some(cwd) = &open.cwd {
        let cwd = request.services.sessions.expand_tilde(Path::new(cwd));
        let same = cwd == session.cwd
            || session.workspace_state() == WorkspaceState::Open && real_dir(&cwd).is_ok_and(|cwd| cwd == session.cwd);
        if !same {
            let words = format!("session {} works in {}, not in {}", session.id, session.cwd.display(), cwd.display());
            return Err(invalid_params(&words));
        }
    }
    request.connection().bind(session.clone());
    Ok(session)
}

fn create(request: &MethodRequest, open: OpenSession) -> Result<Arc<Session>, ErrorObjectOwned> {
    let connection = request.connection();
    let id = open
        .session_id
        .unwrap_or_else(|| SessionId::parse(&format!("s-{}", random_hex(16))).expect("hexadecimal digits fit"));
    let cwd = open.cwd.as_ref().map(PathBuf::from).or_else(|| connection.peer.cwd.clone());
    if cwd.is_none() && connection.kind() == OpenerKind::Person {
        return Err(invalid_params("cwd is needed: an absolute path of a folder"));
    }
    let filter = open.tools.as_ref().map(SessionFilter::new).transpose();
    let session = request.services.sessions.create(
        connection.kind(),
        &connection.peer,
        SessionRequest {
            id,
            cwd,
            roots: open.roots.iter().map(PathBuf::from).collect(),
            client: open.client,
            model: open.model,
            env: open.env,
            filter: filter.map_err(|error| invalid_params(&format!("tools: {error}")))?.unwrap_or_default(),
            profiles: Vec::new(),
        },
    );
    let session = session.map_err(|error| invalid_params(&format!("{error:#}")))?;
    Ok(enter(request, session))
}

fn answer(session: &Session, resumed: bool, env_ignored: Vec<String>) -> OpenedSession {
    OpenedSession {
        session_id: session.id.clone(),
        cwd: session.cwd.display().to_string(),
        resumed,
        workspace: session.workspace_state(),
        env_ignored,
        not_kept: None,
        server: server_info(),
    }
}

async fn close(request: MethodRequest, close: CloseSession) -> Result<ClosedSession, ErrorObjectOwned> {
    let id = close.session_id;
    let services = &request.services;
    let Some(session) = services.engine.sessions.find(&id) else {
        let connection = request.connection();
        let may = match connection.kind() {
            OpenerKind::Person => true,
            OpenerKind::Agent => {
                let kept = services.sessions.restore(connection.kind(), &connection.peer, &id, BTreeMap::new()).await;
                let opener = kept.ok().flatten().and_then(|(_, opener)| opener);
                opener.is_some_and(|opener| may_agent_join(connection, &opener))
            }
            OpenerKind::Token | OpenerKind::Descendant | OpenerKind::Page | OpenerKind::Fleet => false,
        };
        // A session of an earlier daemon, which nobody has resumed.
        let forgotten = match may {
            true => services
                .sessions
                .forget(&id)
                .await
                .map_err(|error| refused(NOT_KEPT, &NotKept { holds: false, ..error }.to_string()))?,
            false => false,
        };
        return match forgotten {
            true => Ok(ClosedSession { cancelled: 0, not_kept: None }),
            false => Err(unknown("session", id.as_str())),
        };
    };
    may_use(&request, &session)?;
    may_call_in(&request, &session)?;
    let cancelled = services.sessions.close(&id).unwrap_or(0);
    let not_kept = services.sessions.forget(&id).await.err().map(|error| error.to_string());
    services.engine.events.emit(EventBody::SessionClosed { session_id: id });
    Ok(ClosedSession { cancelled, not_kept })
}
