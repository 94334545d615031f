//! One client on a byte stream, one JSON text per line.

use std::collections::HashSet;
use std::io::Cursor;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::server::weighed::Weighed;

/// How a stream is served.
pub struct StreamOptions {
    /// Bytes of one message from the client; longer ones are passed over.
    pub max_message: usize,
    /// Bytes of memory that one message may take once it is parsed; those that take more are answered as invalid.
    pub max_weight: u64,
    /// Requests in flight; at this many the stream is not read from.
    pub max_requests: usize,
    /// Whether nobody can read our answers any more. Asked only after the end of what can be read.
    pub hung_up: Box<dyn Fn() -> bool + Send + Sync>,
    /// Fires when nothing more is to be read.
    pub stop: CancellationToken,
    /// Fires when what still runs is to be cut short.
    pub cancel: CancellationToken,
}

/// How often a client that sends no more is asked whether it still listens.
const HANG_UP_CHECK: Duration = Duration::from_millis(50);

/// Serves one client until it is gone, or `stop` fires and its requests are answered. `ahead` was read from
/// the stream already. When the client goes, its calls are cancelled.
pub async fn serve_stream<S>(server: Server, stream: S, ahead: Vec<u8>, options: StreamOptions)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let StreamOptions { max_message, max_weight, max_requests, hung_up, stop, cancel } = options;
    let (read, write) = tokio::io::split(stream);
    let read = Weighed::new(Cursor::new(ahead).chain(read), max_weight);
    let lines = AsyncRwTransport::new_server(read, write).with_max_line_length(max_message);
    let connection = server.connection.clone();
    let gone = cancel.child_token();
    let transport = Bounded {
        inner: lines,
        open: Arc::default(),
        max: max_requests,
        ended: false,
        hung_up,
        stop,
        half_closed: connection.half_closed.clone(),
        gone: gone.clone(),
    };
    match serve_server_with_ct(server, transport, gone.clone()).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::warn!(connection = connection.id, %error, "an MCP client's service ended badly");
            }
        }
        Err(error) => tracing::debug!(connection = connection.id, %error, "an MCP client did not begin"),
    }
    connection.half_closed.cancel();
    connection.gone.cancel();
}

/// Holds a client to a number of requests in flight, and answers those when it sends no more.
struct Bounded<T> {
    inner: T,
    open: Arc<Open>,
    max: usize,
    ended: bool,
    hung_up: Box<dyn Fn() -> bool + Send + Sync>,
    stop: CancellationToken,
    half_closed: CancellationToken,
    gone: CancellationToken,
}

/// The requests that wait for an answer.
#[derive(Default)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Open {
    fn len(&self) -> usize {
        self.ids.lock().expect("no code panics while it holds this lock").len()
    }

    fn insert(&self, id: RequestId) {
        self.ids.lock().expect("no code panics while it holds this lock").insert(id);
    }

    fn remove(&self, id: &RequestId) {
        self.ids.lock().expect("no code panics while it holds this lock").remove(id);
        self.changed.notify_waiters();
    }
}

/// Waits until all is answered, or until nobody is there to be answered; then `gone` fires. Cancel-safe.
async fn drain(open: &Open, hung_up: &(dyn Fn() -> bool + Send + Sync), gone: &CancellationToken) {
    loop {
        let changed = open.changed.notified();
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

impl<T: Transport<RoleServer>> Transport<RoleServer> for Bounded<T> {
    type Error = T::Error;

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
        let open = self.open.clone();
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                open.remove(&id);
            }
            sent
        }
    }

    // Polled in a `select!`, so everything that is awaited here can be dropped and begun again.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.ended {
                drain(&self.open, self.hung_up.as_ref(), &self.gone).await;
                return None;
            }
            let changed = self.open.changed.notified();
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
                    self.half_closed.cancel();
                }
                Some(message) => {
                    match &message {
                        JsonRpcMessage::Request(request) => self.open.insert(request.id.clone()),
                        // A request that its client cancelled is not answered.
                        JsonRpcMessage::Notification(notification) => {
                            if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                                && let Some(id) = &cancelled.params.request_id
                            {
                                self.open.remove(id);
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
