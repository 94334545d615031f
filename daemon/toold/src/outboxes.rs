//! Where notifications wait for their clients, and how many do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toold_proto::daemon::OutboxesFill;

type Message = Box<RawValue>;

/// Notifications that wait for a slow client; progress beyond is lost, subscriptions wait.
const CAPACITY: usize = 256;

/// Notifications for one client. There is a channel from the first one on: most clients hear of nothing, and a channel
/// takes more than a kilobyte.
#[derive(Debug)]
pub struct Outbox {
    connection: u64,
    outboxes: Arc<Outboxes>,
    opened: OnceLock<mpsc::Sender<Message>>,
    /// Until its reader has come for it.
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
    reader: AtomicWaker,
}

impl Outbox {
    pub fn new(connection: u64, outboxes: &Arc<Outboxes>) -> Self {
        Self {
            connection,
            outboxes: outboxes.clone(),
            opened: OnceLock::new(),
            receiver: Mutex::default(),
            reader: AtomicWaker::new(),
        }
    }

    /// The end that is written to. Bounded: 256 messages wait for a slow client.
    pub fn sender(&self) -> mpsc::Sender<Message> {
        let sender = self.opened.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(CAPACITY);
            *self.receiver.lock().expect("no code panics while it holds this lock") = Some(receiver);
            self.reader.wake();
            self.outboxes.lock().insert(self.connection, sender.downgrade());
            sender
        });
        sender.clone()
    }

    /// The end that is read from, when somebody has written, and nobody has taken it yet.
    pub fn take_receiver(&self) -> Option<mpsc::Receiver<Message>> {
        self.receiver.lock().expect("no code panics while it holds this lock").take()
    }

    /// The next message. Cancel-safe. `receiver` is where the one reader keeps its end.
    pub async fn next(&self, receiver: &mut Option<mpsc::Receiver<Message>>) -> Message {
        std::future::poll_fn(|context| {
            if receiver.is_none() {
                self.reader.register(context.waker());
                *receiver = self.take_receiver();
            }
            let Some(receiver) = receiver else { return Poll::Pending };
            match receiver.poll_recv(context) {
                Poll::Ready(Some(message)) => Poll::Ready(message),
                // It does not end: a sender is kept here.
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if self.opened.get().is_some() {
            self.outboxes.lock().remove(&self.connection);
        }
    }
}

/// The outboxes of all connections that have one.
#[derive(Debug, Default)]
pub struct Outboxes(Mutex<HashMap<u64, mpsc::WeakSender<Message>>>);

impl Outboxes {
    pub fn fill(&self) -> OutboxesFill {
        let mut fill = OutboxesFill { capacity: CAPACITY as u64, ..OutboxesFill::default() };
        for outbox in self.lock().values().filter_map(mpsc::WeakSender::upgrade) {
            let waiting = (outbox.max_capacity() - outbox.capacity()) as u64;
            fill.messages += waiting;
            fill.most = fill.most.max(waiting);
            fill.full += u64::from(outbox.capacity() == 0);
        }
        fill
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::WeakSender<Message>>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}
