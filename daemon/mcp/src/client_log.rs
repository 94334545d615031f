//! Messages that mounted servers log, on their way to the MCP clients whose calls run: both sides of the daemon meet here.
//!
//! A request of a client opens its log in its session, and the connection to a server finds it there by the caller of the
//! call.
#![expect(deprecated, reason = "logging is deprecated in the newest revision only")]

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toold_engine::call::Caller;
use toold_engine::session::Session;
use toold_engine::spool::cut;

/// Messages that wait for a slow client; further ones are left out.
const MAX_WAITING: usize = 256;
/// Messages of one request.
const MAX_MESSAGES: usize = 1_000;
/// Bytes of a message's data as JSON; larger data becomes a cut text.
const MAX_DATA: usize = 16 * 1024;

/// The level that a client set for its connection; `None` until it does.
pub(crate) type ConnectionLogLevel = watch::Sender<Option<LoggingLevel>>;

/// The messages for one request of a client.
pub(crate) struct RequestLog {
    level: ClientLogLevel,
    state: Mutex<RequestLogState>,
    added: Notify,
}

#[derive(Default)]
struct RequestLogState {
    waiting: VecDeque<LoggingMessageNotificationParam>,
    accepted: usize,
    /// So many came too fast since the last message about that.
    left_out: usize,
}

/// The level that the client of a request wants.
#[derive(Clone)]
pub(crate) enum ClientLogLevel {
    /// As its request says; `None` for no messages.
    OfRequest(Option<LoggingLevel>),
    /// As it sets for its connection; `info` until it does.
    OfConnection(watch::Receiver<Option<LoggingLevel>>),
}

impl ClientLogLevel {
    /// The least severe messages that it wants; `None` for no messages.
    pub(crate) fn least(&self) -> Option<LoggingLevel> {
        match self {
            Self::OfRequest(level) => *level,
            Self::OfConnection(_) => Some(self.chosen().unwrap_or(LoggingLevel::Info)),
        }
    }

    /// The level that the client itself has named.
    pub(crate) fn chosen(&self) -> Option<LoggingLevel> {
        match self {
            Self::OfRequest(level) => *level,
            Self::OfConnection(level) => *level.borrow(),
        }
    }

    /// Waits until the client sets another level. Cancel-safe.
    async fn changed(&mut self) {
        if let Self::OfConnection(level) = self
            && level.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

/// The requests of a session that run, the newest last.
#[derive(Default)]
struct SessionLogs(Mutex<Vec<(Arc<Caller>, Arc<RequestLog>)>>);

/// A log that servers find until this is dropped.
pub(crate) struct OpenRequestLog {
    logs: Arc<SessionLogs>,
    caller: Arc<Caller>,
    pub(crate) log: Arc<RequestLog>,
}

impl OpenRequestLog {
    pub(crate) fn new(session: &Session, caller: &Arc<Caller>, level: ClientLogLevel) -> Self {
        let log = Arc::new(RequestLog { level, state: Mutex::default(), added: Notify::new() });
        let logs = session.slot::<SessionLogs>();
        logs.0.lock().push((caller.clone(), log.clone()));
        Self { logs, caller: caller.clone(), log }
    }
}

impl Drop for OpenRequestLog {
    fn drop(&mut self) {
        self.logs.0.lock().retain(|(caller, _)| !Arc::ptr_eq(caller, &self.caller));
    }
}

/// The log of the request that this call runs for, or with `None` of the session's newest request.
fn log_of(session: &Session, caller: Option<&Arc<Caller>>) -> Option<Arc<RequestLog>> {
    let logs = session.slot_if_any::<SessionLogs>()?;
    let logs = logs.0.lock();
    let is_it = |of: &Arc<Caller>| caller.is_none_or(|caller| Arc::ptr_eq(of, caller));
    logs.iter().rev().find(|(of, _)| is_it(of)).map(|(_, log)| log.clone())
}

/// Hands a server's message to the client of a call, or with `None` to that of the session's newest request, if it wants
/// messages of this level. Never waits.
pub(crate) fn deliver(session: &Session, caller: Option<&Arc<Caller>>, message: LoggingMessageNotificationParam) {
    if let Some(log) = log_of(session, caller) {
        log.add(message);
    }
}

/// The level that the client of a call wants; `None` for a frontend that speaks no MCP.
pub(crate) fn level_of_call(session: &Session, caller: &Arc<Caller>) -> Option<ClientLogLevel> {
    log_of(session, Some(caller)).map(|log| log.level.clone())
}

/// Waits until the client of a call sets another level. Cancel-safe.
pub(crate) async fn level_changed(level: &mut Option<ClientLogLevel>) {
    match level {
        Some(level) => level.changed().await,
        None => std::future::pending().await,
    }
}

impl RequestLog {
    fn add(&self, mut message: LoggingMessageNotificationParam) {
        if self.level.least().is_none_or(|least| rank(message.level) < rank(least)) {
            return;
        }
        let mut state = self.state.lock();
        if state.accepted > MAX_MESSAGES {
            return;
        }
        if state.accepted == MAX_MESSAGES {
            state.accepted += 1;
            state.waiting.push_back(note("further messages of MCP servers are only in the daemon's log".to_owned()));
        } else if state.waiting.len() >= MAX_WAITING {
            state.left_out += 1;
        } else {
            message.data = small(message.data);
            message.meta = None;
            state.accepted += 1;
            state.waiting.push_back(message);
        }
        drop(state);
        self.added.notify_one();
    }

    /// The next message that waits; after them one that says how many were left out.
    pub(crate) fn take(&self) -> Option<LoggingMessageNotificationParam> {
        let mut state = self.state.lock();
        if let Some(message) = state.waiting.pop_front() {
            return Some(message);
        }
        if state.left_out == 0 {
            return None;
        }
        // It counts as one, so that these are not without end either.
        state.accepted = (state.accepted + 1).min(MAX_MESSAGES);
        let left_out = std::mem::take(&mut state.left_out);
        Some(note(format!("{left_out} messages of MCP servers came too fast and were left out")))
    }

    /// The next message. Cancel-safe.
    pub(crate) async fn next(&self) -> LoggingMessageNotificationParam {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            self.added.notified().await;
        }
    }
}

fn note(text: String) -> LoggingMessageNotificationParam {
    LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!(text)).with_logger("toold")
}

fn small(data: Value) -> Value {
    let json = match &data {
        Value::String(text) => cut(text, MAX_DATA).map(|(cut, _)| cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
        Value::Array(_) | Value::Object(_) => cut(&data.to_string(), MAX_DATA).map(|(cut, _)| cut),
    };
    json.map_or(data, Value::String)
}

/// The order of severity (RFC 5424, section 6.2.1), beginning with the least severe.
pub(crate) fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
