//! Failures of a plugin's functions, as events for its author.

use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_proto::event::EventBody;
use toold_proto::plugin::PluginError;
use toold_proto::tool::SessionId;

use crate::plugin::PluginVersion;

/// So many failures of a plugin become events within [`WINDOW`]: more would push other events out of the buffer.
const MAX_REPORTED: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// A function of a plugin, as its author knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerName<'a> {
    /// Such as `tool` or `hook`.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl fmt::Display for HandlerName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            "" => f.write_str(self.kind),
            name => write!(f, "{} {name}", self.kind),
        }
    }
}

/// The failures of one version of a plugin that were reported lately.
#[derive(Default)]
pub(crate) struct FailureLog(Mutex<FailureWindow>);

#[derive(Default)]
struct FailureWindow {
    since: Option<Instant>,
    reported: u32,
    left_out: u64,
}

impl FailureLog {
    /// Emits an event, unless there were too many. `session` is for functions that run outside of calls.
    pub(crate) fn report(
        &self,
        plugin: &PluginVersion,
        handler: HandlerName,
        cx: Option<&Cx>,
        session: Option<SessionId>,
        error: PluginError,
    ) {
        let Some(left_out) = self.0.lock().admit(Instant::now()) else { return };
        tracing::warn!(
            target: "toold::plugin",
            plugin = plugin.name(), call = cx.map(|cx| cx.call_id.as_str()), %handler, left_out, "{}", error.message
        );
        plugin.shared.engine.events.emit(EventBody::PluginHandlerFailed {
            plugin: plugin.name().to_owned(),
            handler: handler.to_string(),
            error,
            call_id: cx.map(|cx| cx.call_id.clone()),
            session_id: cx.map(|cx| cx.session.id.clone()).or(session),
            left_out,
        });
    }
}

impl FailureWindow {
    /// Whether a failure is reported, and then how many were not since the last one that was.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            (self.since, self.reported) = (Some(now), 0);
        }
        if self.reported == MAX_REPORTED {
            self.left_out += 1;
            return None;
        }
        self.reported += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_failures_is_reported_a_few_times_and_then_counted() {
        let (mut window, start) = (FailureWindow::default(), Instant::now());
        let reported = (0..1_000).filter(|_| window.admit(start).is_some()).count();
        assert_eq!(reported, 20);
        assert_eq!(window.admit(start + WINDOW), Some(980));
        assert_eq!(window.admit(start + WINDOW), Some(0));
    }
}
