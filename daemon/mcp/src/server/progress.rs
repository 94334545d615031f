//! A call's progress as `notifications/progress`.

use parking_lot::Mutex;
use std::sync::Arc;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::mpsc;
use toold_engine::progress::ProgressSink;
use toold_proto::call::Progress;

use crate::server::outgoing::OutgoingNotification;

/// Progress that waits for a slow client; further progress is dropped.
const MAX_WAITING: usize = 64;
/// Bytes; of longer messages the end is kept, which is the newest part.
const MAX_MESSAGE: usize = 4_000;

/// Sends a call's progress to the request that waits for its result.
#[derive(Clone, Default)]
pub(super) struct ProgressRouter(Arc<Mutex<ProgressRoute>>);

#[derive(Default)]
struct ProgressRoute {
    to: Option<mpsc::Sender<Progress>>,
    /// The last progress, for a listener that begins later.
    last: Option<Progress>,
}

impl ProgressRouter {
    /// From now on progress goes to this request, if it asked for any.
    pub(super) fn forward_to(&self, peer: &Peer<RoleServer>, token: Option<ProgressToken>) -> ProgressForwarder {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        self.0.lock().to = token.is_some().then_some(sender);
        ProgressForwarder {
            to: token.map(|token| (peer.clone(), token)),
            receiver,
            last: None,
            counts: true,
            outgoing: OutgoingNotification::default(),
        }
    }

    /// From now on progress goes to this receiver only, beginning with the last one so far.
    pub(super) fn listen(&self) -> mpsc::Receiver<Progress> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let mut route = self.0.lock();
        if let Some(last) = route.last.take() {
            sender.try_send(last).expect("a new channel has room");
        }
        route.to = Some(sender);
        receiver
    }
}

impl ProgressSink for ProgressRouter {
    fn send(&self, _seq: u64, progress: &Progress) {
        let mut route = self.0.lock();
        if let Some(sender) = &route.to {
            // When it is full or closed, progress is dropped; the result never is.
            let _ = sender.try_send(progress.clone());
        }
        route.last = Some(progress.clone());
    }
}

/// Sends one request's progress.
pub(super) struct ProgressForwarder {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    receiver: mpsc::Receiver<Progress>,
    last: Option<f64>,
    /// The tool sent no numbers: messages are counted.
    counts: bool,
    outgoing: OutgoingNotification,
}

impl ProgressForwarder {
    /// Sends progress as it comes; never returns. Cancel-safe.
    pub(super) async fn run(&mut self) {
        loop {
            self.outgoing.sent().await;
            match self.receiver.recv().await {
                Some(progress) => self.begin(progress),
                None => std::future::pending().await,
            }
        }
    }

    /// Sends the remaining progress, before the result.
    pub(super) async fn finish(mut self) {
        self.outgoing.sent().await;
        while let Ok(progress) = self.receiver.try_recv() {
            self.begin(progress);
            self.outgoing.sent().await;
        }
    }

    fn begin(&mut self, progress: Progress) {
        let Some((peer, token)) = self.to.clone() else { return };
        let (number, total, message) = match progress {
            Progress::Output { text, .. } => (None, None, Some(text)),
            Progress::Message { text } => (None, None, Some(text)),
            Progress::Update { progress, total, message, .. } => (progress, total, message),
        };
        let number = self.next(number);
        let mut param = ProgressNotificationParam::new(token, number);
        param.total = total;
        param.message = message.map(shortened);
        // Fails when the client is gone; the end of its connection cancels the call.
        self.outgoing.begin(async move { _ = peer.notify_progress(param).await });
    }

    /// The protocol requires each number to be greater than the one before.
    fn next(&mut self, given: Option<f64>) -> f64 {
        self.counts &= given.is_none();
        let next = match (given.filter(|given| given.is_finite()), self.last) {
            (Some(given), Some(last)) if given <= last => last.next_up(),
            (Some(given), _) => given,
            (None, Some(last)) if self.counts => last + 1.0,
            (None, Some(last)) => last.next_up(),
            (None, None) => 0.0,
        };
        self.last = Some(next);
        next
    }
}

fn shortened(text: String) -> String {
    if text.len() <= MAX_MESSAGE {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - MAX_MESSAGE);
    format!("…{}", &text[from..])
}
