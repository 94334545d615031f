//! The queues of notifications for clients, and their total.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use toold_proto::daemon::OutboxesFill;

type OutboxMessage = Box<RawValue>;

/// Notifications that wait for a slow client; beyond, progress is lost and subscriptions wait.
const CAPACITY: usize = 256;
/// The size from which a notification also counts by its bytes.
const LONG: usize = 4 * 1024;
/// Bytes of long notifications that wait for a slow client; a single one may be longer.
const LONG_CAPACITY: u32 = 1024 * 1024;

/// Notifications for one client. The channel is created for the first one: most clients receive
/// none, and a channel takes more than a kilobyte.
#[derive(Debug)]
pub struct Outbox {
    connection: u64,
    outboxes: Arc<Outboxes>,
    opened: OnceLock<OutboxWriter>,
    /// Until its reader takes it.
    receiver: Mutex<Option<mpsc::Receiver<OutboxMessage>>>,
    reader: AtomicWaker,
}

/// The end that is written to.
#[derive(Clone, Debug)]
pub struct OutboxWriter {
    sender: mpsc::Sender<OutboxMessage>,
    /// Bytes of long notifications that may still be added.
    room: Arc<Semaphore>,
}

impl OutboxWriter {
    fn new(sender: mpsc::Sender<OutboxMessage>) -> Self {
        Self { sender, room: Arc::new(Semaphore::new(LONG_CAPACITY as usize)) }
    }

    /// Adds the message of `make`, unless too much waits; false then. Never waits.
    pub fn try_send(&self, make: impl FnOnce() -> Option<OutboxMessage>) -> bool {
        let Ok(place) = self.sender.try_reserve() else { return false };
        let Some(message) = make() else { return true };
        let Ok(room) = self.room.try_acquire_many(counted(message.get().len())) else { return false };
        room.forget();
        place.send(message);
        true
    }

    /// Waits until there is room for the bytes of a message. They count until it is read, once the
    /// room is forgotten. Cancel-safe.
    pub async fn room_for(&self, bytes: usize) -> SemaphorePermit<'_> {
        self.room.acquire_many(counted(bytes)).await.expect("it is never closed")
    }

    fn read(&self, message: &OutboxMessage) {
        let bytes = counted(message.get().len()) as usize;
        // jsonrpsee's own answers were not counted.
        self.room.add_permits(bytes.min(LONG_CAPACITY as usize - self.room.available_permits()));
    }

    fn waiting_bytes(&self) -> u64 {
        u64::from(LONG_CAPACITY) - self.room.available_permits() as u64
    }
}

/// How much room a notification takes.
fn counted(bytes: usize) -> u32 {
    if bytes < LONG { 0 } else { u32::try_from(bytes).unwrap_or(u32::MAX).min(LONG_CAPACITY) }
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

    /// The sending end. Bounded: 256 messages wait for a slow client, with 1 MiB of long ones.
    pub fn writer(&self) -> &OutboxWriter {
        self.opened.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(CAPACITY);
            *self.receiver.lock() = Some(receiver);
            self.reader.wake();
            let writer = OutboxWriter::new(sender);
            self.outboxes.0.lock().insert(self.connection, writer.clone());
            writer
        })
    }

    /// The same for jsonrpsee, which sends the items that [`OutboxWriter::room_for`] has made room
    /// for.
    pub fn sender(&self) -> mpsc::Sender<OutboxMessage> {
        self.writer().sender.clone()
    }

    /// The receiving end, if somebody has written, and nobody has taken it yet.
    fn take_receiver(&self) -> Option<mpsc::Receiver<OutboxMessage>> {
        self.receiver.lock().take()
    }

    /// A message that is ready now. `receiver` is where the one reader keeps its end.
    pub fn try_next(&self, receiver: &mut Option<mpsc::Receiver<OutboxMessage>>) -> Option<OutboxMessage> {
        if receiver.is_none() {
            *receiver = self.take_receiver();
        }
        match receiver.as_mut()?.try_recv() {
            Ok(message) => Some(self.read(message)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// The next message. Cancel-safe. `receiver` is where the one reader keeps its end.
    pub async fn next(&self, receiver: &mut Option<mpsc::Receiver<OutboxMessage>>) -> OutboxMessage {
        std::future::poll_fn(|context| {
            if receiver.is_none() {
                self.reader.register(context.waker());
                *receiver = self.take_receiver();
            }
            let Some(receiver) = receiver else { return Poll::Pending };
            match receiver.poll_recv(context) {
                Poll::Ready(Some(message)) => Poll::Ready(self.read(message)),
                // It does not end: a sender is kept here.
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn read(&self, message: OutboxMessage) -> OutboxMessage {
        if let Some(writer) = self.opened.get() {
            writer.read(&message);
        }
        message
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if self.opened.get().is_some() {
            self.outboxes.0.lock().remove(&self.connection);
        }
    }
}

/// The outboxes of all connections that have one.
#[derive(Debug, Default)]
pub struct Outboxes(Mutex<HashMap<u64, OutboxWriter>>);

impl Outboxes {
    pub fn fill(&self) -> OutboxesFill {
        let mut fill = OutboxesFill { capacity: CAPACITY as u64, ..OutboxesFill::default() };
        for writer in self.0.lock().values() {
            let sender = &writer.sender;
            let waiting = (sender.max_capacity() - sender.capacity()) as u64;
            fill.messages += waiting;
            fill.most = fill.most.max(waiting);
            fill.full += u64::from(sender.capacity() == 0);
            fill.long_bytes += writer.waiting_bytes();
        }
        fill
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    fn text(bytes: usize) -> Option<OutboxMessage> {
        Some(to_raw_value(&"x".repeat(bytes - 2)).unwrap())
    }

    #[tokio::test]
    async fn long_notifications_wait_for_unread_ones() {
        let outboxes = Arc::<Outboxes>::default();
        let outbox = Outbox::new(1, &outboxes);
        let half = LONG_CAPACITY as usize / 2;
        let writer = outbox.writer().clone();
        assert!(writer.try_send(|| text(half)) && writer.try_send(|| text(half)));
        assert!(!writer.try_send(|| text(LONG)));
        assert!(writer.try_send(|| text(LONG - 1)));
        assert_eq!((outboxes.fill().messages, outboxes.fill().long_bytes), (3, u64::from(LONG_CAPACITY)));
        let mut receiver = None;
        assert_eq!(outbox.next(&mut receiver).await.get().len(), half);
        // A message longer than the limit is queued alone.
        assert!(!writer.try_send(|| text(4 * half)));
        while outbox.try_next(&mut receiver).is_some() {}
        assert!(writer.try_send(|| text(4 * half)));
        assert!(!writer.try_send(|| text(LONG)));
        assert!(outbox.try_next(&mut receiver).is_some());
        assert_eq!(outboxes.fill().long_bytes, 0);
        writer.room_for(4 * half).await.forget();
        // Uncounted bytes are not released.
        outbox.sender().try_send(text(4 * half).unwrap()).unwrap();
        outbox.sender().try_send(text(4 * half).unwrap()).unwrap();
        while outbox.try_next(&mut receiver).is_some() {}
        assert_eq!(outboxes.fill().long_bytes, 0);
    }
}
