//! The messages that a server logs: to the daemon's log, and to the MCP client whose call runs.
#![expect(deprecated, reason = "logging is deprecated in the newest revision only")]

use std::time::Duration;

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestParams};
use serde_json::Value;
use tokio::time::timeout;
use toold_engine::cx::Cx;
use toold_mounts::adapter::InstanceOwner;

use super::adapter::ServerLink;
use super::notifications::Notifications;
use crate::client_log::{self, rank};

/// How long a server may take to accept a level.
const LEVEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The level that a server of an older revision was asked for.
#[derive(Default)]
pub(super) struct RequestedLevel(tokio::sync::Mutex<Option<LoggingLevel>>);

/// Reads a message that the SDK cannot read, such as one of an unknown level.
pub(super) fn read_leniently(params: Option<Value>) -> Option<LoggingMessageNotificationParam> {
    let Value::Object(mut params) = params? else { return None };
    let level = params.get("level").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let level = match level.as_str() {
        "debug" | "trace" => LoggingLevel::Debug,
        "notice" => LoggingLevel::Notice,
        "warning" | "warn" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        "critical" | "fatal" => LoggingLevel::Critical,
        "alert" => LoggingLevel::Alert,
        "emergency" => LoggingLevel::Emergency,
        _ => LoggingLevel::Info,
    };
    let mut message = LoggingMessageNotificationParam::new(level, params.remove("data")?);
    message.logger = params.get("logger").and_then(Value::as_str).map(str::to_owned);
    Some(message)
}

/// Takes a message. When the calls of several sessions run, it may be about any of them, and only the daemon's log has it.
pub(super) fn take(notifications: &Notifications, mut message: LoggingMessageNotificationParam) {
    let context = &notifications.context;
    let level = serde_json::to_value(message.level).unwrap_or_default();
    let mut line = level.as_str().unwrap_or_default().to_owned();
    if let Some(logger) = &message.logger {
        line.push_str(&format!(" {logger}"));
    }
    let text = match &message.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    context.stderr_log.line(&format!("{line}: {text}"));
    let name = context.stderr_log.name();
    message.logger = Some(match message.logger.take() {
        Some(logger) => format!("{name}/{logger}"),
        None => name.to_owned(),
    });
    if let Some(cx) = notifications.calls.only() {
        client_log::deliver(&cx.session, Some(&cx.caller), message);
    } else if let Some(InstanceOwner::Session(id)) = &context.owner
        && let Some(session) = context.engine.upgrade().and_then(|engine| engine.sessions.find(id))
    {
        client_log::deliver(&session, None, message);
    }
}

/// The level for a call in revision 2026-07-28, where each request names one: that of the call's client, and at least
/// `info` for the daemon's log. Some servers log that do not declare it.
pub(super) fn level_of_request(cx: &Cx) -> LoggingLevel {
    let wanted = client_log::level_of_call(&cx.session, &cx.caller).and_then(|level| level.least());
    wanted.filter(|wanted| rank(*wanted) < rank(LoggingLevel::Info)).unwrap_or(LoggingLevel::Info)
}

/// Asks a server of an older revision for the messages that the clients of its calls want, at first and whenever the client
/// of this call sets another level. Never returns; nothing is sent while no client has set a level.
pub(super) async fn follow_level(link: &ServerLink, cx: &Cx) {
    let mut level = client_log::level_of_call(&cx.session, &cx.caller);
    loop {
        client_log::level_changed(&mut level).await;
        request_level(link, cx).await;
    }
}

/// Asks for the lowest level that a client of a running call, or of this one, has set. Waits until the server has answered,
/// within a limit.
pub(super) async fn request_level(link: &ServerLink, cx: &Cx) {
    let Some(info) = link.peer.peer_info() else { return };
    if info.capabilities.logging.is_none() || !info.protocol_version.has_initialize() {
        return;
    }
    let mut requested = link.level.0.lock().await;
    let chosen = |cx: &Cx| client_log::level_of_call(&cx.session, &cx.caller).and_then(|level| level.chosen());
    let running = link.notifications.calls.all();
    let levels = running.iter().filter_map(|cx| chosen(cx)).chain(chosen(cx));
    let Some(wanted) = levels.min_by_key(|level| rank(*level)).filter(|wanted| Some(*wanted) != *requested) else {
        return;
    };
    // A server that does not answer is not asked again for the same.
    *requested = Some(wanted);
    let asked = timeout(LEVEL_TIMEOUT, link.peer.set_level(SetLevelRequestParams::new(wanted))).await;
    if let Ok(Err(error)) = asked {
        tracing::debug!(%error, "an MCP server does not accept a level for its log");
    }
}
