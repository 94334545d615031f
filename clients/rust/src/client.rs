//! A connection to the daemon.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jsonrpsee::core::client::{Client as Jsonrpsee, ClientBuilder, ClientT, SubscriptionClientT};
use jsonrpsee::core::traits::ToRpcParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use toold_proto::call::Execute;
use toold_proto::method::{Method, SessionOpen, SessionShare, Subscription};
use toold_proto::session::{OpenSession, OpenedSession};
use toold_proto::tool::{CallId, SessionId};
use toold_proto::workspace::{ShareSession, SharedSession};

use crate::call::{self, Call};
use crate::environment;
use crate::error::ClientError;
use crate::progress::Routes;
use crate::start::{self, StartOptions};
use crate::subscription::Items;
use crate::transport::{MAX_PARAMS, Receiver, Sender};

/// The daemon has deadlines for everything; a client that has its own would only guess at them.
const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A connection to a daemon, for any number of requests at once. Clones share it; it ends with the
/// last of them, and the daemon then cancels the calls that are still in flight.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rpc: Jsonrpsee,
    routes: Arc<Routes>,
    /// Where it is connected; absent for any other stream.
    socket: Option<PathBuf>,
    /// 64 random bits: several connections may work in one session, where call ids are unique.
    id: String,
    next_call: AtomicU64,
}

impl Client {
    /// Connects to the daemon that listens at `socket`.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotRunning`] when nobody listens, [`ClientError::Connect`] for the rest.
    pub async fn connect(socket: &Path) -> Result<Self, ClientError> {
        let stream = start::connect(socket).await?;
        let (reader, writer) = stream.into_split();
        Self::to(reader, writer, Some(socket.to_owned()))
            .map_err(|source| ClientError::Connect { socket: socket.to_owned(), source })
    }

    /// Connects, and starts a daemon when there is none. See [`start`].
    pub async fn connect_or_start(socket: &Path, options: &StartOptions) -> Result<Self, ClientError> {
        start::connect_or_start(socket, options).await
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
        Self::to(reader, writer, None)
    }

    fn to<R, W>(reader: R, writer: W, socket: Option<PathBuf>) -> io::Result<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let routes = Arc::new(Routes::default());
        let rpc = ClientBuilder::default()
            .request_timeout(NEVER)
            .max_concurrent_requests(4096)
            .max_buffer_capacity_per_subscription(65_536)
            .build_with_tokio(Sender::new(writer, Arc::clone(&routes)), Receiver::new(reader, Arc::clone(&routes)));
        let id = random_id()?;
        Ok(Self { inner: Arc::new(Inner { rpc, routes, socket, id, next_call: AtomicU64::new(0) }) })
    }

    /// Makes one request. Dropping the future leaves the request in flight and drops its answer.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Answer, ClientError> {
        self.call_as::<M, M::Answer>(params).await
    }

    /// Makes one request, and reads the answer as another type: as a `Value`, where the method's
    /// params change its form.
    pub async fn call_as<M: Method, T: DeserializeOwned>(&self, params: M::Params) -> Result<T, ClientError> {
        let params = Named::new(&params)?;
        self.inner.rpc.request(M::NAME, params).await.map_err(|error| self.error(error))
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
        let subscribed = self.inner.rpc.subscribe(S::NAME, params, S::UNSUBSCRIBE).await;
        let inner = subscribed.map_err(|error| self.error(error))?;
        Ok(Items::new(self.clone(), inner))
    }

    /// Waits until the connection has ended, and tells why.
    pub async fn closed(&self) -> ClientError {
        let error = self.inner.rpc.on_disconnect().await;
        self.error(error)
    }

    /// Waits until the connection has ended, and connects to the daemon that took over. Sessions are to be opened and
    /// subscriptions made again there: its sessions are those of the daemon before, its events begin anew, at 0.
    ///
    /// # Errors
    ///
    /// None took over: why the connection ended. Or there is no connection to the one that did.
    pub async fn successor(&self) -> Result<Self, ClientError> {
        match (self.closed().await, &self.inner.socket) {
            (ClientError::Replaced, Some(socket)) => Self::connect(socket).await,
            (error, _) => Err(error),
        }
    }

    fn error(&self, error: jsonrpsee::core::client::Error) -> ClientError {
        match ClientError::from(error) {
            ClientError::Disconnected(_) if self.inner.routes.is_replaced() => ClientError::Replaced,
            error => error,
        }
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
