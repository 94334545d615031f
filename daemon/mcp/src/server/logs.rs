//! The log lines of plugins in a call, as `notifications/message` to the client that made the call.
#![expect(deprecated, reason = "logging is deprecated in the newest revision only")]

use parking_lot::Mutex;

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use toold_engine::Engine;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::server::request_session::is_modern;

/// The level that a client of the older revisions set for its connection; `info` until it does.
#[derive(Default)]
pub(crate) struct LogThreshold(Mutex<Option<LoggingLevel>>);

impl LogThreshold {
    pub(super) fn set(&self, level: LoggingLevel) {
        *self.0.lock() = Some(level);
    }

    /// The minimum level of a request; in the stateless revisions none, unless the request names
    /// one.
    fn of(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        if is_modern(context) {
            return context.meta.log_level();
        }
        let set = *self.0.lock();
        Some(set.unwrap_or(LoggingLevel::Info))
    }
}

/// Sends the log lines of a request's session while the request runs.
pub(super) struct LogForwarder {
    subscription: Option<(broadcast::Receiver<std::sync::Arc<Emitted>>, LoggingLevel)>,
    session: SessionId,
    peer: Peer<RoleServer>,
}

impl LogForwarder {
    pub(super) fn listen(
        engine: &Engine,
        session: &SessionId,
        level: &LogThreshold,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let level = level.of(context);
        let subscription = level.map(|level| (engine.events.subscribe(EventSelection::NoCalls, None).receiver, level));
        Self { subscription, session: session.clone(), peer: context.peer.clone() }
    }

    /// Sends lines as they come; never returns. Cancel-safe except for a notification that is being
    /// sent.
    pub(super) async fn run(&mut self) {
        loop {
            let Some((receiver, level)) = &mut self.subscription else { return std::future::pending().await };
            let level = *level;
            match receiver.recv().await {
                Ok(event) => self.send(&event, level).await,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => self.subscription = None,
            }
        }
    }

    /// Sends the remaining lines, before the result.
    pub(super) async fn finish(mut self) {
        while let Some((receiver, level)) = &mut self.subscription {
            let level = *level;
            match receiver.try_recv() {
                Ok(event) => self.send(&event, level).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    async fn send(&self, event: &Emitted, least: LoggingLevel) {
        let EventBody::Log { session_id: Some(session), plugin, level, message, fields, .. } = &event.body else {
            return;
        };
        let level = level_of(level);
        if *session != self.session || rank(level) < rank(least) {
            return;
        }
        let data = match fields {
            None => json!(message),
            Some(fields) => json!({"message": message, "fields": fields}),
        };
        let param = LoggingMessageNotificationParam::new(level, data).with_logger(plugin);
        // Fails when the client is gone; the end of its connection cancels the call.
        let _ = self.peer.notify_logging_message(param).await;
    }
}

fn level_of(level: &str) -> LoggingLevel {
    match level {
        "debug" => LoggingLevel::Debug,
        "warn" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        _ => LoggingLevel::Info,
    }
}

/// The order of severity (RFC 5424, section 6.2.1), beginning with the least severe.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        _ => 7,
    }
}
