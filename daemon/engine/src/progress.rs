//! The progress of a running call, and its receivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toold_proto::call::{Progress, Stream};
use toold_proto::event::EventBody;
use toold_proto::tool::{CallId, SessionId};

use crate::Engine;
use crate::head_tail::HeadTail;
use crate::spool::cut;

/// Receives the progress of a call. Never blocks; a slow reader loses progress, and receives the
/// amount lost.
pub trait ProgressSink: Send + Sync {
    fn send(&self, seq: u64, progress: &Progress);
}

/// Makes events of a call's progress while somebody listens to them, who may have come after the call began.
pub fn broadcast(engine: &Arc<Engine>, call_id: &CallId, session_id: &SessionId) -> Arc<dyn ProgressSink> {
    Arc::new(EventSink { engine: engine.clone(), call_id: call_id.clone(), session_id: session_id.clone() })
}

struct EventSink {
    engine: Arc<Engine>,
    call_id: CallId,
    session_id: SessionId,
}

impl ProgressSink for EventSink {
    fn send(&self, _seq: u64, progress: &Progress) {
        if !self.engine.events.wants_progress() {
            return;
        }
        self.engine.events.emit(EventBody::CallProgress {
            call_id: self.call_id.clone(),
            session_id: self.session_id.clone(),
            progress: progress.clone(),
        });
    }
}

/// Bytes of one text of progress.
const MAX_TEXT: usize = 64 * 1024;
/// Bytes of output that are kept.
const MAX_OUTPUT: usize = 64 * 1024;

/// Numbers a call's progress and keeps the beginning and end of its output, for a timeout.
pub struct ProgressLog {
    seq: AtomicU64,
    state: parking_lot::Mutex<ProgressState>,
}

struct ProgressState {
    output: HeadTail,
    sinks: Vec<Arc<dyn ProgressSink>>,
}

impl ProgressLog {
    pub fn new(sinks: Vec<Arc<dyn ProgressSink>>) -> Self {
        Self {
            seq: AtomicU64::new(0),
            state: parking_lot::Mutex::new(ProgressState { output: HeadTail::new(MAX_OUTPUT), sinks }),
        }
    }

    /// Adds a receiver of the progress from now on; returns the output so far.
    pub(crate) fn add_sink(&self, sink: Arc<dyn ProgressSink>) -> String {
        let mut state = self.state.lock();
        state.sinks.push(sink);
        state.output.to_text()
    }

    pub(crate) fn remove_sink(&self, sink: &Arc<dyn ProgressSink>) {
        let mut state = self.state.lock();
        state.sinks.retain(|known| !std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(sink)));
    }

    /// Long texts are cut: many of them may wait for a slow client.
    pub fn report(&self, mut progress: Progress) {
        let text = match &mut progress {
            Progress::Output { text, .. } | Progress::Message { text } => Some(text),
            Progress::Update { message, .. } => message.as_mut(),
        };
        if let Some(text) = text
            && let Some((shorter, _)) = cut(text, MAX_TEXT)
        {
            *text = shorter;
        }
        let mut state = self.state.lock();
        if let Progress::Output { text, .. } = &progress {
            state.output.push(text);
        }
        // Numbered and sent under the lock, or two threads could send in a different order from
        // their numbers.
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        for sink in &state.sinks {
            sink.send(seq, &progress);
        }
    }

    pub fn message(&self, text: impl Into<String>) {
        self.report(Progress::Message { text: text.into() });
    }

    pub fn output(&self, stream: Stream, text: impl Into<String>) {
        self.report(Progress::Output { stream, text: text.into() });
    }

    /// The call's output so far; the middle is cut out when it is long.
    pub fn output_so_far(&self) -> String {
        self.state.lock().output.to_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_keeps_head_and_tail() {
        let log = ProgressLog::new(Vec::new());
        log.output(Stream::Stdout, "début ");
        for i in 0..20_000 {
            log.output(Stream::Stdout, format!("ligne é {i}\n"));
        }
        let text = log.output_so_far();
        assert!(text.starts_with("début ligne é 0\n"));
        assert!(text.ends_with("ligne é 19999\n"));
        assert!(text.contains("bytes cut"));
        assert!(text.len() < 70_000);
    }

    #[test]
    fn one_long_text_is_cut_too() {
        let log = ProgressLog::new(Vec::new());
        log.output(Stream::Stdout, "é".repeat(100_000));
        let text = log.output_so_far();
        assert!(text.len() < 70_000 && text.contains("bytes cut"));
    }
}
