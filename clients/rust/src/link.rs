//! One stream to a daemon: requests, and the handshake that opens it. [`crate::client`] replaces a link when another
//! daemon takes over.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::client::{Client as Jsonrpsee, ClientBuilder, ClientT, SubscriptionClientT};
use jsonrpsee::core::traits::ToRpcParams;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use toold_proto::daemon::{Closing, NoParams};
use toold_proto::method::{DaemonPing, Method, SessionOpen};

use crate::error::ClientError;
use crate::holder;
use crate::progress::{ConnectionEnd, ProgressRoutes};
use crate::transport::{LineReceiver, LineSender, MAX_PARAMS};

/// jsonrpsee wants a time limit. The daemon has deadlines of its own, and the client watches it in other ways.
const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A stream that carries requests. It ends with the last clone of its owner.
#[derive(Debug)]
pub(crate) struct RpcLink {
    rpc: Jsonrpsee,
    end: Arc<ConnectionEnd>,
}

impl RpcLink {
    pub(crate) fn new<R, W>(reader: R, writer: W, routes: &Arc<ProgressRoutes>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let end = Arc::new(ConnectionEnd::default());
        let receiver = LineReceiver::new(reader, Arc::clone(routes), Arc::clone(&end));
        let rpc = ClientBuilder::default()
            .request_timeout(NEVER)
            .max_concurrent_requests(4096)
            .max_buffer_capacity_per_subscription(65_536)
            .build_with_tokio(LineSender::new(writer, Arc::clone(&end)), receiver);
        Self { rpc, end }
    }

    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: NamedParams,
    ) -> Result<T, ClientError> {
        self.rpc.request(method, params).await.map_err(|error| self.error(error))
    }

    /// Subscribes; the items are not parsed yet.
    pub(crate) async fn subscribe(
        &self,
        method: &str,
        params: NamedParams,
        unsubscribe: &str,
    ) -> Result<jsonrpsee::core::client::Subscription<Box<RawValue>>, ClientError> {
        self.rpc.subscribe(method, params, unsubscribe).await.map_err(|error| self.error(error))
    }

    /// Waits until the stream has ended, and returns why.
    pub(crate) async fn closed(&self) -> ClientError {
        self.error(self.rpc.on_disconnect().await)
    }

    /// The reason that the daemon gave when it stopped; `None` if it gave none.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.end.closing().cloned()
    }

    fn error(&self, error: jsonrpsee::core::client::Error) -> ClientError {
        match ClientError::from(error) {
            ClientError::Disconnected(_) if self.end.is_replaced() => ClientError::Replaced,
            error => error,
        }
    }
}

/// The first requests on each link. All of them may be repeated at another daemon.
pub(crate) struct LinkHandshake<'a> {
    routes: &'a Arc<ProgressRoutes>,
    /// The params that bind the session again.
    session: Option<NamedParams>,
}

impl<'a> LinkHandshake<'a> {
    pub(crate) fn new(routes: &'a Arc<ProgressRoutes>) -> Self {
        Self { routes, session: None }
    }

    pub(crate) fn with_session(routes: &'a Arc<ProgressRoutes>, session: Option<NamedParams>) -> Self {
        Self { routes, session }
    }

    /// Makes a link of the stream, and waits for the daemon's first answers.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotADaemon`] when another program listens at `socket`; else as any request.
    pub(crate) async fn run(&self, stream: UnixStream, socket: &Path) -> Result<RpcLink, ClientError> {
        let (reader, writer) = stream.into_split();
        let link = RpcLink::new(reader, writer, self.routes);
        self.first_requests(&link).await.map_err(|error| match link.end.foreign() {
            Some(said) => {
                let (socket, said) = (socket.to_owned(), said.to_owned());
                ClientError::NotADaemon { holder: holder::of(&socket), socket, said }
            }
            None => error,
        })?;
        Ok(link)
    }

    async fn first_requests(&self, link: &RpcLink) -> Result<(), ClientError> {
        match link.request::<IgnoredAny>(DaemonPing::NAME, NamedParams::new(&NoParams {})?).await {
            // Any answer shows that a daemon is there.
            Ok(_) | Err(ClientError::Rpc(_) | ClientError::BadAnswer(_)) => {}
            Err(error) => return Err(error),
        }
        if let Some(session) = &self.session {
            link.request::<IgnoredAny>(SessionOpen::NAME, session.clone()).await?;
        }
        Ok(())
    }
}

/// Params by name, serialised once.
#[derive(Clone)]
pub(crate) struct NamedParams(Box<RawValue>);

impl NamedParams {
    /// # Errors
    ///
    /// [`ClientError::TooLarge`] for params that the daemon would not read.
    pub(crate) fn new(params: &impl Serialize) -> Result<Self, ClientError> {
        let raw = serde_json::value::to_raw_value(params).map_err(ClientError::BadAnswer)?;
        let bytes = raw.get().len();
        if bytes > MAX_PARAMS {
            return Err(ClientError::TooLarge { bytes, limit: MAX_PARAMS });
        }
        Ok(Self(raw))
    }

    pub(crate) fn json(&self) -> &str {
        self.0.get()
    }
}

impl ToRpcParams for NamedParams {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(Some(self.0))
    }
}
