//! Sessions of the revisions up to 2025-11-25 on HTTP. A client that lost the stream of a request comes back for the rest
//! with `Last-Event-ID`, also when the answer came meanwhile. [`streams`](super::streams) keeps what was sent.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use toold_proto::mcp_line::UnreadableMessage;

use super::records::TokenSessionRecords;
use super::streams::{SentStreams, StreamKey};
use crate::server::open_requests::OpenRequests;

/// The SDK's sessions, whose streams of requests are kept here: the SDK forgets one with its answer.
pub(super) struct ResumableSessions {
    inner: LocalSessionManager,
    streams: Arc<SentStreams>,
    records: TokenSessionRecords,
    /// Sessions of the previous daemon whose client has not opened its own stream here yet.
    restored: Mutex<HashSet<SessionId>>,
    /// The tasks of the daemon, which waits for them when it stops.
    tasks: TaskTracker,
    open: Arc<OpenRequests<(SessionId, RequestId)>>,
}

impl ResumableSessions {
    pub(super) fn new(inner: LocalSessionManager, records: TokenSessionRecords, tasks: TaskTracker) -> Self {
        let streams = Arc::new(SentStreams::new(records.stream_numbers()));
        Self { inner, streams, records, restored: Mutex::default(), tasks, open: Arc::default() }
    }

    pub(super) async fn count(&self) -> usize {
        self.inner.sessions.read().await.len()
    }
}

impl SessionManager for ResumableSessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.records.add(id, &message);
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.streams.forget(id);
        self.records.remove(id);
        self.restored.lock().remove(id);
        self.inner.close_session(id).await
    }

    /// The stream goes on without its client, until the request is answered or its session ends.
    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Error(_) => None,
        };
        let open = request.as_ref().map(|request| self.open.enter((id.clone(), request.clone())).ok_or(request));
        let open = match open.transpose() {
            Ok(open) => open,
            // The SDK would have one answer for both.
            Err(request) => {
                let twice = UnreadableMessage::sent_twice(request.clone().into_json_value());
                let error = ErrorData::invalid_request(twice.reason, None);
                let answer = ServerJsonRpcMessage::error(error, Some(request.clone()));
                let mut refused = ServerSseMessage::default();
                refused.message = Some(Arc::new(answer));
                return Ok(futures_util::stream::once(std::future::ready(refused)).left_stream());
            }
        };
        let sent = self.inner.create_stream(id, message).await?;
        let (key, events) = self.streams.begin(id);
        let pass_on = pass_on(sent, key, self.streams.clone());
        self.tasks.spawn(async move {
            let _open = open;
            pass_on.await;
        });
        Ok(stream_of(events).right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        // A request that its client cancelled is not answered.
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(request) = &cancelled.params.request_id
        {
            self.open.remove(&(id.clone(), request.clone()));
        }
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.restored.lock().remove(id);
        self.inner.create_standalone_stream(id).await
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        let restored = self.inner.restore_session(id.clone()).await?;
        self.restored.lock().insert(id);
        Ok(restored)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let Some((index, stream)) = SentStreams::read_event_id(&last_event_id) else {
            // The numbers of the previous daemon's events mean nothing here: the client gets all of this one.
            let is_of_another_daemon = self.restored.lock().remove(id);
            let last_event_id = if is_of_another_daemon { "0".to_owned() } else { last_event_id };
            return Ok(self.inner.resume(id, last_event_id).await?.left_stream());
        };
        let key = StreamKey { session: id.clone(), stream };
        let events = self.streams.resume(&key, index);
        let events = events.ok_or(LocalSessionManagerError::SessionError(SessionError::ChannelClosed(Some(stream))))?;
        Ok(stream_of(events).right_stream())
    }
}

/// Keeps the events of a request, and sends them to the client that listens at the time.
async fn pass_on(sent: impl Stream<Item = ServerSseMessage> + Send, key: StreamKey, streams: Arc<SentStreams>) {
    let mut sent = std::pin::pin!(sent);
    while let Some(event) = sent.next().await {
        let Some((event, listener)) = streams.add(&key, event) else { return };
        match event.message.as_deref() {
            // A client that does not read must not hold up the session for its progress.
            Some(ServerJsonRpcMessage::Notification(_)) | None => drop(listener.try_send(event)),
            Some(_) => drop(listener.send(event).await),
        }
    }
    streams.end(&key);
}

fn stream_of(events: mpsc::Receiver<ServerSseMessage>) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    futures_util::stream::unfold(events, async |mut events| Some((events.recv().await?, events)))
}
