//! The events that were sent on the streams of requests, for clients that come back with `Last-Event-ID`.
//!
//! A stream belongs to one session: another session that names its events gets nothing.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long a stream is kept once its request is answered.
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);
/// Answered requests that are kept for each session.
const MAX_ANSWERED: usize = 64;
/// Events of one stream; beyond it the oldest notifications go.
const MAX_EVENTS: usize = 256;
/// Bytes of all streams; beyond it the oldest answered ones go.
const MAX_BYTES: usize = 64 << 20;
/// Notifications on their way to a client; beyond it they are left out.
const CHANNEL: usize = 64;

/// A stream of one request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StreamKey {
    pub(super) session: SessionId,
    pub(super) stream: u64,
}

#[derive(Default)]
pub(super) struct SentStreams {
    kept: Mutex<KeptStreams>,
    /// The number of the next stream, which goes on over a restart of the daemon.
    next_stream: Arc<AtomicU64>,
}

#[derive(Default)]
struct KeptStreams {
    streams: HashMap<StreamKey, SentStream>,
    /// The streams whose requests are answered, the oldest answer first.
    answered: VecDeque<(Instant, StreamKey)>,
    bytes: usize,
}

struct SentStream {
    events: VecDeque<SentEvent>,
    next_index: u64,
    /// The client that listens; `None` once the request is answered.
    listener: Option<mpsc::Sender<ServerSseMessage>>,
}

struct SentEvent {
    index: u64,
    event: ServerSseMessage,
    bytes: usize,
}

impl SentStreams {
    pub(super) fn new(next_stream: Arc<AtomicU64>) -> Self {
        Self { kept: Mutex::default(), next_stream }
    }

    /// A new stream, and the end of it that its client gets.
    pub(super) fn begin(&self, session: &SessionId) -> (StreamKey, mpsc::Receiver<ServerSseMessage>) {
        let (listener, events) = mpsc::channel(CHANNEL);
        let mut kept = self.kept.lock();
        let key = StreamKey { session: session.clone(), stream: self.next_stream.fetch_add(1, Ordering::Relaxed) };
        let stream = SentStream { events: VecDeque::new(), next_index: 0, listener: Some(listener) };
        kept.streams.insert(key.clone(), stream);
        (key, events)
    }

    /// Keeps an event, and gives it its id; `None` when the session is over.
    pub(super) fn add(
        &self,
        key: &StreamKey,
        mut event: ServerSseMessage,
    ) -> Option<(ServerSseMessage, mpsc::Sender<ServerSseMessage>)> {
        let bytes = event.message.as_deref().map_or(0, length);
        let mut kept = self.kept.lock();
        let stream = kept.streams.get_mut(key)?;
        let listener = stream.listener.clone()?;
        let index = stream.next_index;
        stream.next_index += 1;
        event.event_id = Some(format!("{index}/{}", key.stream));
        stream.events.push_back(SentEvent { index, event: event.clone(), bytes });
        let is_notification =
            |sent: &SentEvent| matches!(sent.event.message.as_deref(), Some(ServerJsonRpcMessage::Notification(_)));
        let surplus = match stream.events.len() > MAX_EVENTS {
            true => stream.events.iter().position(is_notification).and_then(|oldest| stream.events.remove(oldest)),
            false => None,
        };
        kept.bytes += bytes;
        kept.bytes -= surplus.map_or(0, |surplus| surplus.bytes);
        kept.clean(&key.session);
        Some((event, listener))
    }

    /// The request is answered: the client that listens has got all there is.
    pub(super) fn end(&self, key: &StreamKey) {
        let mut kept = self.kept.lock();
        let Some(stream) = kept.streams.get_mut(key) else { return };
        stream.listener = None;
        kept.answered.push_back((Instant::now(), key.clone()));
        kept.clean(&key.session);
    }

    /// The events after the one of this index, and those to come. Whoever listened before hears no more. `None` when the
    /// stream is not this session's, or is not kept any more.
    pub(super) fn resume(&self, key: &StreamKey, index: u64) -> Option<mpsc::Receiver<ServerSseMessage>> {
        let mut kept = self.kept.lock();
        kept.clean(&key.session);
        let stream = kept.streams.get_mut(key)?;
        let missed: Vec<ServerSseMessage> =
            stream.events.iter().filter(|sent| sent.index > index).map(|sent| sent.event.clone()).collect();
        let (sender, events) = mpsc::channel(missed.len() + CHANNEL);
        for event in missed {
            // There is room for all of them.
            let _ = sender.try_send(event);
        }
        if let Some(listener) = &mut stream.listener {
            *listener = sender;
        }
        Some(events)
    }

    /// The session is over.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut kept = self.kept.lock();
        kept.answered.retain(|(_, key)| key.session != *session);
        let gone: Vec<StreamKey> = kept.streams.keys().filter(|key| key.session == *session).cloned().collect();
        gone.iter().for_each(|key| kept.remove(key));
    }

    /// The index and the stream of an event; `None` for an event of the stream that belongs to no request.
    pub(super) fn read_event_id(id: &str) -> Option<(u64, u64)> {
        let (index, stream) = id.split_once('/')?;
        index.parse().ok().zip(stream.parse().ok())
    }
}

impl KeptStreams {
    /// Applies the limits.
    fn clean(&mut self, session: &SessionId) {
        let answered = self.answered.iter().filter(|(_, key)| key.session == *session).count();
        let mut surplus = answered.saturating_sub(MAX_ANSWERED);
        let mut excess = self.bytes.saturating_sub(MAX_BYTES);
        let Self { streams, answered, .. } = self;
        let mut gone = Vec::new();
        answered.retain(|(since, key)| {
            let is_surplus = surplus > 0 && key.session == *session;
            let goes = since.elapsed() >= KEPT_FOR || excess > 0 || is_surplus;
            if goes {
                surplus -= usize::from(is_surplus);
                excess = excess.saturating_sub(streams.get(key).map_or(0, SentStream::bytes));
                gone.push(key.clone());
            }
            !goes
        });
        gone.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &StreamKey) {
        self.bytes -= self.streams.remove(key).map_or(0, |stream| stream.bytes());
    }
}

impl SentStream {
    fn bytes(&self) -> usize {
        self.events.iter().map(|sent| sent.bytes).sum()
    }
}

/// The length of the JSON text.
fn length(message: &ServerJsonRpcMessage) -> usize {
    struct CountedBytes(usize);
    impl io::Write for CountedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = CountedBytes(0);
    // A message that cannot be written is not sent either.
    let _ = serde_json::to_writer(&mut counted, message);
    counted.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> ServerSseMessage {
        let value =
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}});
        ServerSseMessage::from_message(serde_json::from_value(value).unwrap())
    }

    fn drain(mut events: mpsc::Receiver<ServerSseMessage>) -> Vec<Option<String>> {
        std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.event_id).collect()
    }

    #[test]
    fn answers_are_kept_for_their_session_alone_and_within_bounds() {
        let streams = SentStreams::default();
        let (one, other): (SessionId, SessionId) = ("one".into(), "other".into());
        let keys: Vec<StreamKey> = (0..MAX_ANSWERED + 2)
            .map(|_| {
                let (key, events) = streams.begin(&one);
                drop(events);
                streams.add(&key, ServerSseMessage::retry(Duration::from_secs(3))).unwrap();
                streams.add(&key, answer("x")).unwrap();
                streams.end(&key);
                key
            })
            .collect();
        let (first, last) = (&keys[0], &keys[MAX_ANSWERED + 1]);
        assert!(streams.resume(first, 0).is_none(), "the oldest goes");
        assert_eq!(drain(streams.resume(last, 0).unwrap()), [Some(format!("1/{}", last.stream))]);
        assert!(streams.resume(&StreamKey { session: other, ..last.clone() }, 0).is_none());
        streams.forget(&one);
        assert!(streams.resume(last, 0).is_none());
        assert_eq!(streams.kept.lock().bytes, 0);
    }

    #[test]
    fn the_bytes_of_all_answers_are_limited() {
        let streams = SentStreams::default();
        let session: SessionId = "one".into();
        let large = "x".repeat(MAX_BYTES / 4);
        let mut keys = Vec::new();
        for _ in 0..5 {
            let (key, _events) = streams.begin(&session);
            streams.add(&key, answer(&large)).unwrap();
            streams.end(&key);
            keys.push(key);
        }
        assert!(streams.resume(&keys[0], 0).is_none() && streams.resume(&keys[4], 0).is_some());
        assert!(streams.kept.lock().bytes <= MAX_BYTES);
    }
}
