//! A connection to the daemon.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonrpsee::core::client::{Client as Jsonrpsee, ClientBuilder, ClientT, SubscriptionClientT};
use jsonrpsee::core::traits::ToRpcParams;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};
use toold_proto::call::Execute;
use toold_proto::daemon::NoParams;
use toold_proto::method::{
    AuditQuery, CommandsRun, DaemonGetStatus, DaemonPing, DaemonReload, DaemonRestart, DaemonShutdown, HooksRun,
    McpRestart, Method, PluginsDisable, PluginsEnable, PluginsReload, PluginsTrust, RemotesReconnect, SessionClose,
    SessionOpen, SessionShare, ShellsKill, ShellsWrite, Subscription, ToolsExecute, ToolsExecuteBatch, UpgradeCheck,
};
use toold_proto::session::{CloseSession, OpenSession, OpenedSession};
use toold_proto::tool::{CallId, SessionId};
use toold_proto::workspace::{ShareSession, SharedSession};

use crate::call::{self, Call};
use crate::environment;
use crate::error::{ClientError, NoAnswer};
use crate::holder;
use crate::progress::{Ending, Routes};
use crate::start::{self, StartOptions};
use crate::subscription::Items;
use crate::transport::{MAX_PARAMS, Receiver, Sender};

/// The daemon has deadlines for everything; a client that has its own would only guess at them.
const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long a request may have no answer before the daemon is asked whether it answers at all.
const QUIET: Duration = Duration::from_secs(5);

/// Requests that take as long as what they call.
const CALLS: &[&str] = &[ToolsExecute::NAME, ToolsExecuteBatch::NAME];

/// Requests that wait for a person, for a program that the daemon runs, or for calls in flight.
const WAITING: &[&str] = &[
    CommandsRun::NAME,
    DaemonRestart::NAME,
    DaemonShutdown::NAME,
    HooksRun::NAME,
    ShellsKill::NAME,
    ShellsWrite::NAME,
];

/// Requests that search, load or connect.
const SLOW: &[&str] = &[
    AuditQuery::NAME,
    DaemonReload::NAME,
    McpRestart::NAME,
    PluginsDisable::NAME,
    PluginsEnable::NAME,
    PluginsReload::NAME,
    PluginsTrust::NAME,
    RemotesReconnect::NAME,
    UpgradeCheck::NAME,
];

/// How long a daemon that answers new connections may take for this request; `None` when there is no saying.
fn patience_for(method: &str) -> Option<Duration> {
    match method {
        waiting if WAITING.contains(&waiting) => None,
        slow if SLOW.contains(&slow) => Some(Duration::from_secs(60)),
        // Answered from memory.
        _ => Some(start::PATIENCE),
    }
}

/// A connection to a daemon, for any number of requests at once. Clones share it; it ends with the
/// last of them, and the daemon then cancels the calls that are still in flight.
///
/// When another daemon takes over, requests that were not read by the old one are sent to the new one, and the session
/// is bound there first. A client that has subscribed to something is told [`ClientError::Replaced`] instead: only its
/// owner knows what to make of a gap in the items; see [`Client::successor`].
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Where requests go.
    link: Mutex<Arc<Link>>,
    /// Held by the one request that makes the next link.
    renewing: tokio::sync::Mutex<()>,
    /// The session that is bound, to be bound on the next link too.
    session: Mutex<Option<Bound>>,
    /// Subscriptions that were made or are being made. While there are any the link stays what it is.
    subscriptions: AtomicUsize,
    /// Somebody was told that another daemon serves, and connects to it.
    told: AtomicBool,
    routes: Arc<Routes>,
    /// Where it is connected; absent for any other stream.
    socket: Option<PathBuf>,
    /// 64 random bits: several connections may work in one session, where call ids are unique.
    id: String,
    next_call: AtomicU64,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Link {
    rpc: Jsonrpsee,
    ending: Arc<Ending>,
}

/// What `session.open` was asked, and the session that it gave.
#[derive(Clone, Debug)]
struct Bound {
    params: Value,
    session_id: SessionId,
}

impl Link {
    fn new<R, W>(reader: R, writer: W, routes: &Arc<Routes>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ending = Arc::new(Ending::default());
        let receiver = Receiver::new(reader, Arc::clone(routes), Arc::clone(&ending));
        let rpc = ClientBuilder::default()
            .request_timeout(NEVER)
            .max_concurrent_requests(4096)
            .max_buffer_capacity_per_subscription(65_536)
            .build_with_tokio(Sender::new(writer, Arc::clone(&ending)), receiver);
        Self { rpc, ending }
    }

    fn over(stream: UnixStream, routes: &Arc<Routes>) -> Self {
        let (reader, writer) = stream.into_split();
        Self::new(reader, writer, routes)
    }

    async fn request<T: DeserializeOwned>(&self, method: &str, params: Named) -> Result<T, ClientError> {
        self.rpc.request(method, params).await.map_err(|error| self.error(error))
    }

    fn error(&self, error: jsonrpsee::core::client::Error) -> ClientError {
        match ClientError::from(error) {
            ClientError::Disconnected(_) if self.ending.is_replaced() => ClientError::Replaced,
            error => error,
        }
    }

    /// What came first, when it is not what a daemon says.
    pub(crate) fn foreign(&self) -> Option<&str> {
        self.ending.foreign()
    }
}

/// What is said first on each link. All of it may be said again to another daemon.
pub(crate) struct Handshake<'a> {
    routes: &'a Arc<Routes>,
    /// The params that bind the session again.
    session: Option<Named>,
}

impl<'a> Handshake<'a> {
    fn new(routes: &'a Arc<Routes>) -> Self {
        Self { routes, session: None }
    }

    pub(crate) async fn over(&self, stream: UnixStream, socket: &Path) -> Result<Link, ClientError> {
        let link = Link::over(stream, self.routes);
        self.speak(&link).await.map_err(|error| match link.foreign() {
            Some(said) => {
                let (socket, said) = (socket.to_owned(), said.to_owned());
                ClientError::NotADaemon { holder: holder::of(&socket), socket, said }
            }
            None => error,
        })?;
        Ok(link)
    }

    async fn speak(&self, link: &Link) -> Result<(), ClientError> {
        match link.request::<IgnoredAny>(DaemonPing::NAME, Named::new(&NoParams {})?).await {
            // Whatever it says, it speaks.
            Ok(_) | Err(ClientError::Rpc(_) | ClientError::BadAnswer(_)) => {}
            Err(error) => return Err(error),
        }
        if let Some(session) = &self.session {
            link.request::<IgnoredAny>(SessionOpen::NAME, session.clone()).await?;
        }
        Ok(())
    }
}

impl Client {
    /// Connects to the daemon that listens at `socket`, and waits for its first answer, for [`start::PATIENCE`] at most.
    /// A daemon that hands its socket over meanwhile is no error: the next one is asked.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotRunning`] when nobody listens, [`ClientError::NoAnswer`] when somebody does and says nothing,
    /// [`ClientError::Connect`] for the rest.
    pub async fn connect(socket: &Path) -> Result<Self, ClientError> {
        let routes = Arc::default();
        let link = start::reach(socket, false, &Handshake::new(&routes)).await?;
        Self::on(link, routes, Some(socket.to_owned()))
            .map_err(|source| ClientError::Connect { socket: socket.to_owned(), source })
    }

    /// Connects, and starts a daemon when there is none. See [`start`].
    pub async fn connect_or_start(socket: &Path, options: &StartOptions) -> Result<Self, ClientError> {
        let routes = Arc::default();
        let link = start::connect_or_start(socket, options, &Handshake::new(&routes)).await?;
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
        Self::on(Link::new(reader, writer, &routes), routes, None)
    }

    fn on(link: Link, routes: Arc<Routes>, socket: Option<PathBuf>) -> io::Result<Self> {
        let inner = Inner {
            link: Mutex::new(Arc::new(link)),
            renewing: tokio::sync::Mutex::default(),
            session: Mutex::default(),
            subscriptions: AtomicUsize::new(0),
            told: AtomicBool::new(false),
            routes,
            socket,
            id: random_id()?,
            next_call: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Makes one request. Dropping the future leaves the request in flight and drops its answer.
    ///
    /// A request that has no answer for a while is given up when the daemon does not answer a new connection either, and
    /// after [`start::PATIENCE`] when it is one that is answered from memory, or 60 s when it searches, loads or connects.
    /// Calls of tools are not, nor is what waits for a person or a program.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Answer, ClientError> {
        self.call_as::<M, M::Answer>(params).await
    }

    /// Makes one request, and reads the answer as another type: as a `Value`, where the method's
    /// params change its form.
    pub async fn call_as<M: Method, T: DeserializeOwned>(&self, params: M::Params) -> Result<T, ClientError> {
        let params = Named::new(&params)?;
        loop {
            let link = self.link();
            let error = match self.request_on(&link, M::NAME, params.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !matches!(error, ClientError::Replaced) || !self.may_renew(0) {
                return Err(self.tell(error));
            }
            self.renew(&link).await?;
        }
    }

    async fn request_on<T: DeserializeOwned>(
        &self,
        link: &Link,
        method: &'static str,
        params: Named,
    ) -> Result<T, ClientError> {
        if CALLS.contains(&method) {
            return link.request(method, params).await.map_err(|error| match error {
                ClientError::Disconnected(why) => ClientError::Disconnected(format!(
                    "{why}. Whether the call was carried out is not known, so it is not sent again"
                )),
                error => error,
            });
        }
        if method == SessionOpen::NAME {
            let answer: Box<RawValue> = self.awaited(method, link.request(method, params.clone())).await?;
            self.keep_session(&params, &answer);
            return serde_json::from_str(answer.get()).map_err(ClientError::BadAnswer);
        }
        let answer = self.awaited(method, link.request(method, params.clone())).await?;
        if method == SessionClose::NAME {
            self.forget_session(&params);
        }
        Ok(answer)
    }

    /// Waits for the answer as long as the daemon shows a sign of life.
    async fn awaited<T>(
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
                Err(ClientError::NoAnswer { socket, how, holder, words, .. }) => {
                    return Err(ClientError::NoAnswer { socket, how, waited: start::PATIENCE, holder, words });
                }
                // One that stops refuses new connections, and ends this one soon.
                Err(_) => {}
                Ok(()) => {
                    let Some(patience) = patience_for(method) else { continue };
                    let until = (began + patience).min(Instant::now() + QUIET);
                    if let Ok(answer) = timeout_at(until, &mut answer).await {
                        return answer;
                    }
                    if began.elapsed() >= patience {
                        return Err(start::no_answer(socket, NoAnswer::Request(method), patience, String::new()));
                    }
                }
            }
        }
    }

    /// Asks the daemon, on a new connection, for what it knows of itself; one that only answers pings does no work.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] when there is no answer in the time that is left of [`start::PATIENCE`], and any other
    /// when it gives way to another.
    async fn ask_for_status(&self, socket: &Path, method: &'static str) -> Result<(), ClientError> {
        let left = start::PATIENCE - QUIET;
        let deadline = Instant::now() + left;
        let link = start::reach_within(socket, true, left, &Handshake::new(&self.inner.routes)).await?;
        let asked = link.request::<IgnoredAny>(DaemonGetStatus::NAME, Named::new(&NoParams {})?);
        match timeout_at(deadline, asked).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Err(start::no_answer(socket, NoAnswer::Request(method), start::PATIENCE, String::new())),
        }
    }

    fn link(&self) -> Arc<Link> {
        self.lock(&self.inner.link).clone()
    }

    fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the link may be made anew by one who has made so many subscriptions himself.
    fn may_renew(&self, own: usize) -> bool {
        self.inner.socket.is_some()
            && !self.inner.told.load(Ordering::Acquire)
            && self.inner.subscriptions.load(Ordering::Acquire) == own
    }

    /// Notes that the caller knows that another daemon serves.
    fn tell(&self, error: ClientError) -> ClientError {
        if matches!(error, ClientError::Replaced) {
            self.inner.told.store(true, Ordering::Release);
        }
        error
    }

    /// Puts a link to the daemon that serves now in the place of `old`, with the session bound to it.
    async fn renew(&self, old: &Arc<Link>) -> Result<(), ClientError> {
        let _one = self.inner.renewing.lock().await;
        let Some(socket) = self.inner.socket.as_deref().filter(|_| Arc::ptr_eq(&self.link(), old)) else {
            return Ok(());
        };
        let session = match self.lock(&self.inner.session).clone() {
            Some(Bound { mut params, session_id }) => {
                params["session_id"] = json!(session_id);
                Some(Named::new(&params)?)
            }
            None => None,
        };
        let link = start::reach(socket, true, &Handshake { routes: &self.inner.routes, session }).await?;
        *self.lock(&self.inner.link) = Arc::new(link);
        Ok(())
    }

    fn keep_session(&self, params: &Named, answer: &RawValue) {
        #[derive(Deserialize)]
        struct Opened {
            session_id: SessionId,
        }
        let opened: Result<Opened, _> = serde_json::from_str(answer.get());
        if let (Ok(opened), Ok(params)) = (opened, serde_json::from_str(params.0.get())) {
            *self.lock(&self.inner.session) = Some(Bound { params, session_id: opened.session_id });
        }
    }

    fn forget_session(&self, params: &Named) {
        let Ok(closed) = serde_json::from_str::<CloseSession>(params.0.get()) else { return };
        let mut session = self.lock(&self.inner.session);
        if session.as_ref().is_some_and(|bound| bound.session_id == closed.session_id) {
            *session = None;
        }
    }

    /// Opens a session and binds it to the connection. The variables of this process that the role passes are added to
    /// `open.env`, whose own hold; an absent `protocol` is this client's.
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

    /// Makes a code by which an agent may join a session, once; the connection's own session when none is named. The
    /// agent opens the session with the code in place of its id.
    ///
    /// # Errors
    ///
    /// As any request; a client that acts for a model may share nothing.
    pub async fn share_session(&self, session_id: Option<SessionId>) -> Result<SharedSession, ClientError> {
        self.call::<SessionShare>(ShareSession { session_id }).await
    }

    /// Calls a tool. The request is sent whether or not the [`Call`] is awaited.
    ///
    /// An absent `call_id` is made here. Set `progress` to get any.
    ///
    /// # Errors
    ///
    /// [`ClientError::CallIdInUse`] only: everything else is the call's answer.
    pub fn execute(&self, mut execute: Execute) -> Result<Call, ClientError> {
        let call_id = execute.call_id.get_or_insert_with(|| self.new_call_id()).clone();
        let Some(queue) = self.inner.routes.open(&call_id) else {
            return Err(ClientError::CallIdInUse(call_id.to_string()));
        };
        Ok(call::start(self, call_id, queue, execute))
    }

    /// Subscribes. The items begin with what was sent right behind the answer.
    pub async fn subscribe<S: Subscription>(&self, params: S::Params) -> Result<Items<S::Item>, ClientError> {
        self.subscribe_as::<S, S::Item>(params).await
    }

    /// Subscribes, and reads the items as another type: as a `Value`, items that are newer than this
    /// client can be read too.
    pub async fn subscribe_as<S: Subscription, T: DeserializeOwned>(
        &self,
        params: S::Params,
    ) -> Result<Items<T>, ClientError> {
        let params = Named::new(&params)?;
        self.inner.subscriptions.fetch_add(1, Ordering::AcqRel);
        loop {
            let link = self.link();
            let asked = async {
                let subscribed = link.rpc.subscribe(S::NAME, params.clone(), S::UNSUBSCRIBE).await;
                subscribed.map_err(|error| link.error(error))
            };
            let error = match self.awaited(S::NAME, asked).await {
                Ok(inner) => return Ok(Items::new(self.clone(), inner)),
                Err(error) => error,
            };
            if !matches!(error, ClientError::Replaced) || !self.may_renew(1) {
                if matches!(error, ClientError::Rpc(_)) {
                    self.inner.subscriptions.fetch_sub(1, Ordering::AcqRel);
                }
                return Err(self.tell(error));
            }
            self.renew(&link).await?;
        }
    }

    /// Waits until the connection has ended, and tells why.
    pub async fn closed(&self) -> ClientError {
        if self.inner.told.load(Ordering::Acquire) {
            return ClientError::Replaced;
        }
        let link = self.link();
        let error = link.rpc.on_disconnect().await;
        self.tell(link.error(error))
    }

    /// Waits until the connection has ended, and connects to the daemon that took over. Sessions are to be opened and
    /// subscriptions made again there: its sessions are those of the daemon before, its events begin anew, at 0.
    ///
    /// # Errors
    ///
    /// None took over: why the connection ended. Or there is no connection to the one that did.
    pub async fn successor(&self) -> Result<Self, ClientError> {
        let socket = match (self.closed().await, &self.inner.socket) {
            (ClientError::Replaced, Some(socket)) => socket,
            (error, _) => return Err(error),
        };
        let routes = Arc::default();
        let link = start::reach(socket, true, &Handshake::new(&routes)).await?;
        Self::on(link, routes, Some(socket.clone()))
            .map_err(|source| ClientError::Connect { socket: socket.clone(), source })
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.inner.routes
    }

    fn new_call_id(&self) -> CallId {
        let n = self.inner.next_call.fetch_add(1, Ordering::Relaxed);
        CallId::parse(&format!("{}-{n}", self.inner.id)).expect("hexadecimal digits and a number are printable")
    }
}

/// Connects a stream that is not a [`Client`]: for a bridge that only passes bytes on.
///
/// # Errors
///
/// As [`Client::connect`].
pub async fn connect_stream(socket: &Path) -> Result<UnixStream, ClientError> {
    start::connect(socket).await
}

/// Params by name, serialised once.
#[derive(Clone)]
struct Named(Box<RawValue>);

impl Named {
    fn new(params: &impl Serialize) -> Result<Self, ClientError> {
        let raw = serde_json::value::to_raw_value(params).map_err(ClientError::BadAnswer)?;
        let bytes = raw.get().len();
        if bytes > MAX_PARAMS {
            return Err(ClientError::TooLarge { bytes, limit: MAX_PARAMS });
        }
        Ok(Self(raw))
    }
}

impl ToRpcParams for Named {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(Some(self.0))
    }
}

fn random_id() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
