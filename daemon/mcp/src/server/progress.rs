//! A call's progress as `notifications/progress`.

use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::mpsc;
use toold_engine::progress::ProgressSink;
use toold_proto::call::Progress;

/// How much progress waits for a slow client; more is lost.
const WAITING: usize = 64;
/// Longer messages keep their end, which is the newest.
const MAX_MESSAGE: usize = 4_000;

/// Where a call's progress goes: to whichever request waits for its result.
#[derive(Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Turned>>);

#[derive(Default)]
struct Turned {
    to: Option<mpsc::Sender<Progress>>,
    /// What came last, for who begins to listen later.
    last: Option<Progress>,
}

impl Tap {
    /// From now on progress goes to this request, if it asked for any.
    pub(super) fn turn_to(&self, peer: &Peer<RoleServer>, token: Option<ProgressToken>) -> Forward {
        let (sender, receiver) = mpsc::channel(WAITING);
        let wanted = token.is_some();
        self.lock().to = wanted.then_some(sender);
        Forward { to: token.map(|token| (peer.clone(), token)), receiver, last: None, counts: true }
    }

    /// From now on progress is heard here alone, the last that there was first.
    pub(super) fn listen(&self) -> mpsc::Receiver<Progress> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut turned = self.lock();
        if let Some(last) = turned.last.take() {
            sender.try_send(last).expect("a new channel has room");
        }
        turned.to = Some(sender);
        receiver
    }

    fn lock(&self) -> MutexGuard<'_, Turned> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

impl ProgressSink for Tap {
    fn send(&self, _seq: u64, progress: &Progress) {
        let mut turned = self.lock();
        if let Some(sender) = &turned.to {
            // Full or closed: progress may be lost, the result is not.
            let _ = sender.try_send(progress.clone());
        }
        turned.last = Some(progress.clone());
    }
}

/// Sends one request's progress.
pub(super) struct Forward {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    receiver: mpsc::Receiver<Progress>,
    last: Option<f64>,
    /// No numbers came from the tool: messages are counted.
    counts: bool,
}

impl Forward {
    /// Sends what comes, for ever. Cancel-safe but for a notification that is being sent.
    pub(super) async fn run(&mut self) {
        loop {
            match self.receiver.recv().await {
                Some(progress) => self.tell(progress).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Sends what is left, before the result is.
    pub(super) async fn finish(mut self) {
        while let Ok(progress) = self.receiver.try_recv() {
            self.tell(progress).await;
        }
    }

    async fn tell(&mut self, progress: Progress) {
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
        // The client is gone: its call is cancelled by others.
        let _ = peer.notify_progress(param).await;
    }

    /// The protocol wants each number to be greater than the last.
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
