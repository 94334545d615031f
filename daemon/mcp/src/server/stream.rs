//! One client on a byte stream, whose lines [`ClientLines`] reads.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientNotification, ClientRequest, GetMeta, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::boxed_transport::{BoxedTransport, BoxedTransportError};
use crate::server::client_lines::ClientLines;
use crate::server::open_requests::OpenRequests;
use crate::server::{McpClientServer, McpConnection};

/// How a stream is served.
pub struct StreamOptions {
    /// Bytes of one message from the client; the answer to a longer one is an error.
    pub max_message: usize,
    /// Bytes of memory that one message may take once it is parsed; the answer to a larger one is an error.
    pub max_weight: u64,
    /// Requests in flight; at this number the stream is not read.
    pub max_requests: usize,
    /// Whether nobody can read the answers any more. Called only after the end of the client's
    /// input.
    pub hung_up: Box<dyn Fn() -> bool + Send + Sync>,
    /// Fires when no more requests should be read.
    pub stop: CancellationToken,
    /// Fires when running calls should be cancelled.
    pub cancel: CancellationToken,
}

/// How often to check whether a client that sends no more still reads.
const HANG_UP_CHECK: Duration = Duration::from_millis(50);

/// Serves one client until it disconnects, or `stop` fires and its requests are answered. `ahead` was read from the stream
/// already. When the client disconnects, its calls are cancelled.
pub async fn serve_stream<S>(server: McpClientServer, stream: S, ahead: Vec<u8>, options: StreamOptions)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (read, write) = tokio::io::split(stream);
    let read = Cursor::new(ahead).chain(read);
    let open = Arc::<OpenRequests>::default();
    let lines = ClientLines::new(read, write, options.max_message, options.max_weight, open.clone());
    serve_lines(server, BoxedTransport::new(lines), open, options).await;
}

async fn serve_lines(
    server: McpClientServer,
    lines: BoxedTransport<RoleServer>,
    open: Arc<OpenRequests>,
    options: StreamOptions,
) {
    let StreamOptions { max_requests, hung_up, stop, cancel, .. } = options;
    let connection = server.connection.clone();
    let gone = cancel.child_token();
    let transport = BoundedTransport {
        inner: lines,
        open,
        max: max_requests,
        ended: false,
        hung_up,
        stop,
        connection: connection.clone(),
        gone: gone.clone(),
    };
    match serve_server_with_ct(server, transport, gone.clone()).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::warn!(connection = connection.id, %error, "serving an MCP client failed");
            }
        }
        Err(error) => tracing::debug!(connection = connection.id, %error, "an MCP client did not initialize"),
    }
    connection.half_closed.cancel();
    connection.gone.cancel();
}

/// Limits the requests in flight, and answers the remaining ones when the client sends no more.
struct BoundedTransport {
    inner: BoxedTransport<RoleServer>,
    open: Arc<OpenRequests>,
    max: usize,
    /// The client sends no more.
    ended: bool,
    hung_up: Box<dyn Fn() -> bool + Send + Sync>,
    stop: CancellationToken,
    connection: Arc<McpConnection>,
    gone: CancellationToken,
}

/// Waits until all requests are answered. Fires `gone` when nobody can read the answers. Cancel-safe.
async fn drain(open: &OpenRequests, hung_up: &(dyn Fn() -> bool + Send + Sync), gone: &CancellationToken) {
    loop {
        let changed = open.changed();
        if open.len() == 0 {
            return;
        }
        if hung_up() {
            gone.cancel();
            return;
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(HANG_UP_CHECK) => {}
        }
    }
}

impl Transport<RoleServer> for BoundedTransport {
    type Error = BoxedTransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let sent = self.inner.send(message);
        let (open, connection) = (self.open.clone(), self.connection.clone());
        async move {
            if let Some(id) = &answered {
                connection.arrivals.forget(id);
            }
            let sent = sent.await;
            if let Some(id) = answered {
                open.remove(&id);
            }
            sent
        }
    }

    // Polled in a `select!`, so every future that is awaited here must be safe to drop.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.ended {
                drain(&self.open, self.hung_up.as_ref(), &self.gone).await;
                return None;
            }
            let changed = self.open.changed();
            if self.open.len() >= self.max {
                changed.await;
                continue;
            }
            let received = tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                received = self.inner.receive() => received,
            };
            match received {
                None => {
                    self.ended = true;
                    self.connection.half_closed.cancel();
                }
                Some(message) => {
                    match &message {
                        JsonRpcMessage::Request(request) => {
                            // Whatever the method is: a bridge names the profile in its client's first message.
                            self.connection.note_profile(request.request.get_meta());
                            self.open.insert(request.id.clone());
                            if matches!(request.request, ClientRequest::CallToolRequest(_)) {
                                self.connection.arrivals.add(request.id.clone());
                            }
                        }
                        // A request that its client cancelled is not answered.
                        JsonRpcMessage::Notification(notification) => {
                            if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                                && let Some(id) = &cancelled.params.request_id
                            {
                                self.open.remove(id);
                                self.connection.arrivals.forget(id);
                            }
                        }
                        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
                    }
                    return Some(message);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
