//! A connection to the daemon.
//!
//! Requests go over a [link](crate::link), which is replaced when another daemon takes over. Calls of tools are in
//! [`crate::call`], subscriptions in [`crate::subscription`].

use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};
use toold_proto::daemon::{Closing, NoParams};
use toold_proto::method::{DaemonGetStatus, Method, SessionClose, SessionOpen, SessionShare};
use toold_proto::session::{CloseSession, OpenSession, OpenedSession};
use toold_proto::tool::{CallId, SessionId};
use toold_proto::workspace::{ShareSession, SharedSession};

use crate::ended::{EndedDaemon, FOLLOWED_CHECK};
use crate::environment;
use crate::error::{ClientError, NoAnswerReason};
use crate::link::{LinkHandshake, NamedParams, RpcLink};
use crate::patience::{QUIET, is_call, patience_for};
use crate::progress::ProgressRoutes;
use crate::start::{self, StartOptions};

/// A connection to a daemon, for any number of requests at once. Clones share it; it ends with the
/// last of them, and the daemon then cancels the calls that are still in flight.
///
/// When another daemon takes over, requests that the old one did not read are sent to the new one, after the session
/// is bound there. A client that has subscribed to something gets [`ClientError::Replaced`] instead, because only its
/// owner can handle a gap in the items; see [`Client::successor`].
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<ClientInner>,
}

#[derive(Debug)]
struct ClientInner {
    /// Where requests go.
    link: Mutex<Arc<RpcLink>>,
    /// Held by the one request that makes the next link.
    reconnecting: tokio::sync::Mutex<()>,
    /// The session that is bound, to be bound on the next link too.
    session: Mutex<Option<BoundSession>>,
    /// Subscriptions that were made or are being made. The link is not replaced while there are any.
    subscriptions: AtomicUsize,
    /// The owner knows that another daemon serves, and connects to it by itself.
    replacement_reported: AtomicBool,
    routes: Arc<ProgressRoutes>,
    /// The socket of the connection; `None` for any other stream.
    socket: Option<PathBuf>,
    /// 64 random bits: several connections may work in one session, where call ids are unique.
    id: String,
    next_call: AtomicU64,
}

/// The params of `session.open`, and the session that it opened.
#[derive(Clone, Debug)]
struct BoundSession {
    params: Value,
    session_id: SessionId,
}

impl Client {
    /// Connects to the daemon that listens at `socket`, and waits for its first answer, for [`start::PATIENCE`] at most.
    /// When the daemon hands its socket over meanwhile, this connects to the next one.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotRunning`] when nothing listens, [`ClientError::NoAnswer`] when something listens but does not
    /// answer, [`ClientError::Connect`] for the rest.
    pub async fn connect(socket: &Path) -> Result<Self, ClientError> {
        let routes = Arc::default();
        let link = start::reach(socket, false, &LinkHandshake::new(&routes)).await?;
        Self::on(link, routes, Some(socket.to_owned()))
            .map_err(|source| ClientError::Connect { socket: socket.to_owned(), source })
    }

    /// Connects, and starts a daemon when there is none. See [`start`].
    pub async fn connect_or_start(socket: &Path, options: &StartOptions) -> Result<Self, ClientError> {
        let routes = Arc::default();
        let link = start::connect_or_start(socket, options, &LinkHandshake::new(&routes)).await?;
        Self::on(link, routes, Some(socket.to_owned()))
            .map_err(|source| ClientError::Connect { socket: socket.to_owned(), source })
    }

    /// A client over any byte stream: one JSON text per line. Call it within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Only when the system has no random numbers.
    pub fn over<R, W>(reader: R, writer: W) -> io::Result<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let routes = Arc::default();
        Self::on(RpcLink::new(reader, writer, &routes), routes, None)
    }

    fn on(link: RpcLink, routes: Arc<ProgressRoutes>, socket: Option<PathBuf>) -> io::Result<Self> {
        let inner = ClientInner {
            link: Mutex::new(Arc::new(link)),
            reconnecting: tokio::sync::Mutex::default(),
            session: Mutex::default(),
            subscriptions: AtomicUsize::new(0),
            replacement_reported: AtomicBool::new(false),
            routes,
            socket,
            id: random_id()?,
            next_call: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Makes one request. Dropping the future leaves the request in flight and drops its answer.
    ///
    /// A request without an answer is given up when the daemon does not answer a new connection either; or after
    /// [`start::PATIENCE`] when it is answered from memory, or after 60 s when it searches, loads or connects. Calls of
    /// tools and requests that wait for you or for a program are not given up.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Answer, ClientError> {
        self.call_as::<M, M::Answer>(params).await
    }

    /// Makes one request, and reads the answer as another type: as a `Value`, where the method's
    /// params change its form.
    pub async fn call_as<M: Method, T: DeserializeOwned>(&self, params: M::Params) -> Result<T, ClientError> {
        let answer = self.answer_to(M::NAME, NamedParams::new(&params)?).await?;
        serde_json::from_str(answer.get()).map_err(ClientError::BadAnswer)
    }

    /// The text of an answer. Boxed, so that all methods share this code.
    fn answer_to(
        &self,
        method: &'static str,
        params: NamedParams,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ClientError>> + Send + '_>> {
        Box::pin(async move {
            loop {
                let link = self.link();
                let error = match self.request_on(&link, method, params.clone()).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                if !matches!(error, ClientError::Replaced) || !self.may_reconnect(0) {
                    return Err(self.note_replaced(error));
                }
                self.reconnect(&link).await?;
            }
        })
    }

    async fn request_on(
        &self,
        link: &RpcLink,
        method: &'static str,
        params: NamedParams,
    ) -> Result<Box<RawValue>, ClientError> {
        if is_call(method) {
            return link.request(method, params).await.map_err(|error| match error {
                ClientError::Disconnected(why) => ClientError::Disconnected(format!(
                    "{why}. Whether the call was carried out is not known, so it is not sent again"
                )),
                error => error,
            });
        }
        let answer: Box<RawValue> = self.awaited(method, link.request(method, params.clone())).await?;
        if method == SessionOpen::NAME {
            self.remember_session(&params, &answer);
        }
        if method == SessionClose::NAME {
            self.forget_session(&params);
        }
        Ok(answer)
    }

    /// Waits for the answer as long as the daemon shows that it works.
    pub(crate) async fn awaited<T>(
        &self,
        method: &'static str,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let Some(socket) = &self.inner.socket else { return answer.await };
        let mut answer = pin!(answer);
        let began = Instant::now();
        loop {
            if let Ok(answer) = timeout(QUIET, &mut answer).await {
                return answer;
            }
            // On a connection of its own: on this one it would wait behind a slow `session.open`.
            let asked = tokio::select! {
                biased;
                answer = &mut answer => return answer,
                asked = self.ask_for_status(socket, method) => asked,
            };
            match asked {
                Err(ClientError::NoAnswer { socket, reason, holder, output, .. }) => {
                    return Err(ClientError::NoAnswer { socket, reason, waited: start::PATIENCE, holder, output });
                }
                // A daemon that stops refuses new connections, and closes this one soon.
                Err(_) => {}
                Ok(()) => {
                    let Some(patience) = patience_for(method) else { continue };
                    let until = (began + patience).min(Instant::now() + QUIET);
                    if let Ok(answer) = timeout_at(until, &mut answer).await {
                        return answer;
                    }
                    if began.elapsed() >= patience {
                        let reason = NoAnswerReason::Request(method);
                        return Err(start::no_answer(socket, reason, patience, String::new()));
                    }
                }
            }
        }
    }

    /// Asks the daemon for its status on a new connection. A ping would not do: a daemon may answer it and do no work.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoAnswer`] when there is no answer in the time that is left of [`start::PATIENCE`]; any other
    /// error when the daemon gives way to another.
    async fn ask_for_status(&self, socket: &Path, method: &'static str) -> Result<(), ClientError> {
        let left = start::PATIENCE - QUIET;
        let deadline = Instant::now() + left;
        let link = start::reach_within(socket, true, left, &LinkHandshake::new(&self.inner.routes)).await?;
        let asked = link.request::<IgnoredAny>(DaemonGetStatus::NAME, NamedParams::new(&NoParams {})?);
        match timeout_at(deadline, asked).await {
            Ok(answer) => answer.map(drop),
            Err(_) => {
                let reason = NoAnswerReason::Request(method);
                Err(start::no_answer(socket, reason, start::PATIENCE, String::new()))
            }
        }
    }

    pub(crate) fn link(&self) -> Arc<RpcLink> {
        self.inner.link.lock().clone()
    }

    /// Counts a subscription that is made, until [`Self::subscription_refused`].
    pub(crate) fn subscription_begins(&self) {
        self.inner.subscriptions.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn subscription_refused(&self) {
        self.inner.subscriptions.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether the link may be replaced by a caller that has made `own` subscriptions itself.
    pub(crate) fn may_reconnect(&self, own: usize) -> bool {
        self.inner.socket.is_some()
            && !self.inner.replacement_reported.load(Ordering::Acquire)
            && self.inner.subscriptions.load(Ordering::Acquire) == own
    }

    /// Records that the owner learns by this error that another daemon serves.
    pub(crate) fn note_replaced(&self, error: ClientError) -> ClientError {
        if matches!(error, ClientError::Replaced) {
            self.inner.replacement_reported.store(true, Ordering::Release);
        }
        error
    }

    /// Replaces the link `old` by one to the daemon that serves now, with the session bound to it.
    pub(crate) async fn reconnect(&self, old: &Arc<RpcLink>) -> Result<(), ClientError> {
        let _one = self.inner.reconnecting.lock().await;
        let Some(socket) = self.inner.socket.as_deref().filter(|_| Arc::ptr_eq(&self.link(), old)) else {
            return Ok(());
        };
        let session = match self.inner.session.lock().clone() {
            Some(BoundSession { mut params, session_id }) => {
                params["session_id"] = json!(session_id);
                Some(NamedParams::new(&params)?)
            }
            None => None,
        };
        let handshake = LinkHandshake::with_session(&self.inner.routes, session);
        let link = start::reach(socket, true, &handshake).await?;
        *self.inner.link.lock() = Arc::new(link);
        Ok(())
    }

    fn remember_session(&self, params: &NamedParams, answer: &RawValue) {
        #[derive(Deserialize)]
        struct OpenedSessionId {
            session_id: SessionId,
        }
        let opened: Result<OpenedSessionId, _> = serde_json::from_str(answer.get());
        if let (Ok(opened), Ok(params)) = (opened, serde_json::from_str(params.json())) {
            *self.inner.session.lock() = Some(BoundSession { params, session_id: opened.session_id });
        }
    }

    fn forget_session(&self, params: &NamedParams) {
        let Ok(closed) = serde_json::from_str::<CloseSession>(params.json()) else { return };
        let mut session = self.inner.session.lock();
        if session.as_ref().is_some_and(|bound| bound.session_id == closed.session_id) {
            *session = None;
        }
    }

    /// Opens a session and binds it to the connection. Adds the variables of this process that the role passes on to
    /// `open.env`, whose own values take precedence. An absent `protocol` is set to this client's.
    ///
    /// # Errors
    ///
    /// As any request.
    pub async fn open_session(&self, mut open: OpenSession) -> Result<OpenedSession, ClientError> {
        let mut env = environment::passed_on(open.role, std::env::vars_os());
        env.append(&mut open.env);
        let protocol = open.protocol.or(Some(toold_proto::PROTOCOL));
        self.call::<SessionOpen>(OpenSession { env, protocol, ..open }).await
    }

    /// Makes a one-time code by which an agent may join a session; the connection's own session when none is named. The
    /// agent opens the session with the code in place of its id.
    ///
    /// # Errors
    ///
    /// As any request; a client that acts for a model may share nothing.
    pub async fn share_session(&self, session_id: Option<SessionId>) -> Result<SharedSession, ClientError> {
        self.call::<SessionShare>(ShareSession { session_id }).await
    }

    /// Waits until the connection has ended, and returns why.
    pub async fn closed(&self) -> ClientError {
        if self.inner.replacement_reported.load(Ordering::Acquire) {
            return ClientError::Replaced;
        }
        self.note_replaced(self.link().closed().await)
    }

    /// Waits until the connection has ended, and connects to the daemon that took over. Open sessions and make
    /// subscriptions again there: it knows the sessions of the daemon before, and numbers its events from 0.
    ///
    /// # Errors
    ///
    /// Why the connection ended, when no daemon took over; or why there is no connection to the one that did.
    pub async fn successor(&self) -> Result<Self, ClientError> {
        let socket = match (self.closed().await, &self.inner.socket) {
            (ClientError::Replaced, Some(socket)) => socket,
            (error, _) => return Err(error),
        };
        let routes = Arc::default();
        let link = start::reach(socket, true, &LinkHandshake::new(&routes)).await?;
        Self::on(link, routes, Some(socket.clone()))
            .map_err(|source| ClientError::Connect { socket: socket.clone(), source })
    }

    /// Why the daemon ends or has ended, if it said so: daemons that are killed do not.
    pub fn closing(&self) -> Option<Closing> {
        self.link().closing()
    }

    /// Waits until the connection has ended and a daemon serves the socket again, and connects to that one. Starts none.
    ///
    /// # Errors
    /// As [`Client::connect`], but never that no daemon runs; or the connection has no socket.
    pub async fn next(&self) -> Result<Self, ClientError> {
        let error = self.closed().await;
        let Some(socket) = &self.inner.socket else { return Err(error) };
        if matches!(error, ClientError::Replaced) {
            return self.successor().await;
        }
        let ended = EndedDaemon::at(socket);
        loop {
            ended.followed().await;
            match Self::connect(socket).await {
                // It has ended meanwhile, or does not listen yet.
                Err(ClientError::NotRunning { .. }) => tokio::time::sleep(FOLLOWED_CHECK).await,
                connected => return connected,
            }
        }
    }

    pub(crate) fn routes(&self) -> &ProgressRoutes {
        &self.inner.routes
    }

    pub(crate) fn new_call_id(&self) -> CallId {
        let n = self.inner.next_call.fetch_add(1, Ordering::Relaxed);
        CallId::parse(&format!("{}-{n}", self.inner.id)).expect("hexadecimal digits and a number are printable")
    }
}

/// Connects a stream that is not a [`Client`], for a bridge that only passes bytes on.
///
/// # Errors
///
/// As [`Client::connect`].
pub async fn connect_stream(socket: &Path) -> Result<UnixStream, ClientError> {
    start::connect(socket).await
}

fn random_id() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
