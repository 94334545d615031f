//! What plugins log in a call, as `notifications/message` to the client that made it.
#![expect(deprecated, reason = "logging is deprecated in the newest revision only")]

use std::sync::Mutex;

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use toold_engine::Engine;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::server::view::is_modern;

/// The level that a client of the older revisions set for its connection; `info` until it does.
#[derive(Default)]
pub(crate) struct Level(Mutex<Option<LoggingLevel>>);

impl Level {
    pub(super) fn set(&self, level: LoggingLevel) {
        *self.0.lock().expect("no code panics while it holds this lock") = Some(level);
    }

    /// What a request wants to hear; in the stateless revisions nothing, unless it says so itself.
    fn of(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        if is_modern(context) {
            return context.meta.log_level();
        }
        let set = *self.0.lock().expect("no code panics while it holds this lock");
        Some(set.unwrap_or(LoggingLevel::Info))
    }
}

/// Hears the log of one request's session, and sends what is of the request's own calls.
pub(super) struct Logs {
    heard: Option<(broadcast::Receiver<std::sync::Arc<Emitted>>, LoggingLevel)>,
    session: SessionId,
    peer: Peer<RoleServer>,
}

impl Logs {
    pub(super) fn listen(
        engine: &Engine,
        session: &SessionId,
        level: &Level,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let level = level.of(context);
        let heard = level.map(|level| (engine.events.subscribe(EventSelection::NoCalls, None).receiver, level));
        Self { heard, session: session.clone(), peer: context.peer.clone() }
    }

    /// Sends what comes, for ever. Cancel-safe but for a notification that is being sent.
    pub(super) async fn run(&mut self) {
        loop {
            let Some((receiver, level)) = &mut self.heard else { return std::future::pending().await };
            let level = *level;
            match receiver.recv().await {
                Ok(event) => self.tell(&event, level).await,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => self.heard = None,
            }
        }
    }

    /// Sends what is left, before the result is.
    pub(super) async fn finish(mut self) {
        while let Some((receiver, level)) = &mut self.heard {
            let level = *level;
            match receiver.try_recv() {
                Ok(event) => self.tell(&event, level).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    async fn tell(&self, event: &Emitted, least: LoggingLevel) {
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
        // The client is gone: its call is cancelled by others.
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

/// The order of severity (RFC 5424, section 6.2.1), the least first.
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
