//! The log lines of plugins and of mounted servers in a call, as `notifications/message` to the client that made the call.
#![expect(deprecated, reason = "logging is deprecated in the newest revision only")]

use std::sync::Arc;

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use toold_engine::Engine;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::client_log::{ClientLogLevel, RequestLog, rank};
use crate::server::McpConnection;
use crate::server::outgoing::OutgoingNotification;
use crate::server::request_session::is_modern;

/// The messages that belong to a request.
#[derive(Clone)]
pub(super) struct LogSources {
    /// The session whose plugins log.
    pub(super) session: SessionId,
    /// The messages of mounted servers.
    pub(super) servers: Arc<RequestLog>,
}

/// The level that the client of a request wants; in the stateless revisions none, unless the request names one.
pub(super) fn level_of(connection: &McpConnection, context: &RequestContext<RoleServer>) -> ClientLogLevel {
    match is_modern(context) {
        true => ClientLogLevel::OfRequest(context.meta.log_level()),
        false => ClientLogLevel::OfConnection(connection.log_level.subscribe()),
    }
}

/// Sends the messages that belong to a request while the request runs.
pub(super) struct LogForwarder {
    /// `None` for a client that wants no messages.
    plugins: Option<broadcast::Receiver<Arc<Emitted>>>,
    level: ClientLogLevel,
    sources: LogSources,
    peer: Peer<RoleServer>,
    outgoing: OutgoingNotification,
}

impl LogForwarder {
    pub(super) fn listen(
        engine: &Engine,
        sources: LogSources,
        level: ClientLogLevel,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let wanted = level.least().is_some();
        let plugins = wanted.then(|| engine.events.subscribe(EventSelection::NoCalls, None).receiver);
        Self { plugins, level, sources, peer: context.peer.clone(), outgoing: OutgoingNotification::default() }
    }

    /// Sends lines as they come; never returns. Cancel-safe.
    pub(super) async fn run(&mut self) {
        loop {
            self.outgoing.sent().await;
            let Some(plugins) = &mut self.plugins else { return std::future::pending().await };
            tokio::select! {
                event = plugins.recv() => match event {
                    Ok(event) => self.send_line(&event).await,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => self.plugins = None,
                },
                message = self.sources.servers.next() => self.send(message).await,
            }
        }
    }

    /// Sends the remaining lines, before the result.
    pub(super) async fn finish(mut self) {
        self.outgoing.sent().await;
        while let Some(plugins) = &mut self.plugins {
            match plugins.try_recv() {
                Ok(event) => self.send_line(&event).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        while let Some(message) = self.sources.servers.take() {
            self.send(message).await;
        }
    }

    async fn send_line(&mut self, event: &Emitted) {
        let EventBody::Log { session_id: Some(session), plugin, level, message, fields, .. } = &event.body else {
            return;
        };
        if *session != self.sources.session {
            return;
        }
        let data = match fields {
            None => json!(message),
            Some(fields) => json!({"message": message, "fields": fields}),
        };
        self.send(LoggingMessageNotificationParam::new(level_named(level), data).with_logger(plugin)).await;
    }

    async fn send(&mut self, message: LoggingMessageNotificationParam) {
        if self.level.least().is_some_and(|least| rank(message.level) >= rank(least)) {
            let peer = self.peer.clone();
            // Fails when the client is gone; the end of its connection cancels the call.
            self.outgoing.begin(async move { _ = peer.notify_logging_message(message).await });
            self.outgoing.sent().await;
        }
    }
}

fn level_named(level: &str) -> LoggingLevel {
    match level {
        "debug" => LoggingLevel::Debug,
        "warn" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        _ => LoggingLevel::Info,
    }
}
