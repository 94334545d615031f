//! The queues of notifications for clients, and their total.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
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
const LONG: usize = 1024;
/// Bytes of long notifications that wait for a slow client; a single one may be longer.
const LONG_CAPACITY: u32 = 1024 * 1024;
/// Bytes of long notifications that wait for all clients together. Beyond, one at a time waits for each client: a client
/// that does not read holds up no other.
const ALL_CAPACITY: i64 = 64 * 1024 * 1024;

/// Notifications for one client. The channel is created for the first one: most clients receive
/// none, and a channel takes more than a kilobyte.
#[derive(Debug)]
pub struct Outbox {
    connection: u64,
    outboxes: Arc<Outboxes>,
    opened: OnceLock<OutboxWriter>,
    /// Nobody will read any more.
    closed: AtomicBool,
    /// Until its reader takes it.
    receiver: Mutex<Option<mpsc::Receiver<OutboxMessage>>>,
    reader: AtomicWaker,
}

/// The end that is written to.
#[derive(Clone, Debug)]
pub struct OutboxWriter {
    sender: mpsc::Sender<OutboxMessage>,
    room: Arc<LongRoom>,
}

/// The room for long notifications of one client.
#[derive(Debug)]
struct LongRoom {
    /// Bytes that may still be added.
    left: Semaphore,
    /// Bytes that wait for all clients. Below zero for a moment, when a notification is read before it is counted.
    all: Arc<AtomicI64>,
}

impl LongRoom {
    fn waiting(&self) -> u64 {
        u64::from(LONG_CAPACITY).saturating_sub(self.left.available_permits() as u64)
    }

    /// How much must be free for a notification.
    fn needed(&self, counted: u32) -> u32 {
        let over = counted > 0 && self.all.load(Ordering::Relaxed) + i64::from(counted) > ALL_CAPACITY;
        if over { LONG_CAPACITY } else { counted }
    }
}

impl Drop for LongRoom {
    fn drop(&mut self) {
        self.all.fetch_sub(self.waiting() as i64, Ordering::Relaxed);
    }
}

/// Room that is reserved for one notification, and free again when this is dropped.
pub struct OutboxRoom<'r> {
    permit: SemaphorePermit<'r>,
    all: &'r AtomicI64,
}

impl<'r> OutboxRoom<'r> {
    fn new(mut permit: SemaphorePermit<'r>, counted: u32, room: &'r LongRoom) -> Self {
        let surplus = permit.num_permits() - counted as usize;
        drop(permit.split(surplus));
        Self { permit, all: &room.all }
    }

    /// The notification was added: its bytes count until it is read.
    pub fn keep(self) {
        self.all.fetch_add(self.permit.num_permits() as i64, Ordering::Relaxed);
        self.permit.forget();
    }
}

impl OutboxWriter {
    fn new(sender: mpsc::Sender<OutboxMessage>, all: &Arc<AtomicI64>) -> Self {
        let left = Semaphore::new(LONG_CAPACITY as usize);
        Self { sender, room: Arc::new(LongRoom { left, all: all.clone() }) }
    }

    /// Adds the message of `make`, unless too much waits or nobody reads; false then. Never waits.
    pub fn try_send(&self, make: impl FnOnce() -> Option<OutboxMessage>) -> bool {
        let Ok(place) = self.sender.try_reserve() else { return false };
        let Some(message) = make() else { return true };
        let counted = counted(message.get().len());
        let Ok(permit) = self.room.left.try_acquire_many(self.room.needed(counted)) else { return false };
        OutboxRoom::new(permit, counted, &self.room).keep();
        place.send(message);
        true
    }

    /// Waits until there is room for the bytes of a message; `None` when nobody will read it. Cancel-safe.
    pub async fn room_for(&self, bytes: usize) -> Option<OutboxRoom<'_>> {
        let counted = counted(bytes);
        let permit = self.room.left.acquire_many(self.room.needed(counted)).await.ok()?;
        Some(OutboxRoom::new(permit, counted, &self.room))
    }

    fn read(&self, message: &OutboxMessage) {
        // jsonrpsee's own answers were not counted.
        let bytes = u64::from(counted(message.get().len())).min(self.room.waiting());
        self.room.all.fetch_sub(bytes as i64, Ordering::Relaxed);
        self.room.left.add_permits(bytes as usize);
    }

    /// Whoever waits for room waits no more.
    fn close(&self) {
        self.room.left.close();
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
            closed: AtomicBool::new(false),
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
            let writer = OutboxWriter::new(sender, &self.outboxes.long_bytes);
            self.outboxes.writers.lock().insert(self.connection, writer.clone());
            if self.closed.load(Ordering::SeqCst) {
                self.discard(&writer);
            }
            writer
        })
    }

    /// Says that nobody will read any more. What waits is discarded, and whoever waits for room goes on at once: a
    /// subscription holds its connection, so it must not wait for a reader that has gone. `receiver` is where the one
    /// reader keeps its end.
    pub fn close(&self, receiver: &mut Option<mpsc::Receiver<OutboxMessage>>) {
        self.closed.store(true, Ordering::SeqCst);
        *receiver = None;
        if let Some(writer) = self.opened.get() {
            self.discard(writer);
        }
    }

    fn discard(&self, writer: &OutboxWriter) {
        writer.close();
        drop(self.take_receiver());
        self.outboxes.writers.lock().remove(&self.connection);
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
            self.outboxes.writers.lock().remove(&self.connection);
        }
    }
}

/// The outboxes of all connections that have one.
#[derive(Debug, Default)]
pub struct Outboxes {
    writers: Mutex<HashMap<u64, OutboxWriter>>,
    /// Bytes of long notifications that wait.
    long_bytes: Arc<AtomicI64>,
}

impl Outboxes {
    pub fn fill(&self) -> OutboxesFill {
        let mut fill = OutboxesFill { capacity: CAPACITY as u64, ..OutboxesFill::default() };
        for writer in self.writers.lock().values() {
            let sender = &writer.sender;
            let waiting = (sender.max_capacity() - sender.capacity()) as u64;
            fill.messages += waiting;
            fill.most = fill.most.max(waiting);
            fill.full += u64::from(sender.capacity() == 0);
            fill.long_bytes += writer.room.waiting();
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
        writer.room_for(4 * half).await.unwrap().keep();
        // Uncounted bytes are not released.
        outbox.sender().try_send(text(4 * half).unwrap()).unwrap();
        outbox.sender().try_send(text(4 * half).unwrap()).unwrap();
        while outbox.try_next(&mut receiver).is_some() {}
        assert_eq!(outboxes.fill().long_bytes, 0);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_reader_that_has_gone() {
        let outboxes = Arc::<Outboxes>::default();
        let outbox = Outbox::new(1, &outboxes);
        let writer = outbox.writer().clone();
        writer.room_for(LONG_CAPACITY as usize).await.unwrap().keep();
        let mut waiting = Box::pin(writer.room_for(LONG));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        outbox.close(&mut None);
        assert!(waiting.await.is_none());
        assert!(!writer.try_send(|| text(10)) && outbox.sender().is_closed());
        // One that is opened afterwards is closed, too.
        let late = Outbox::new(2, &outboxes);
        late.close(&mut None);
        assert!(late.sender().is_closed() && late.writer().room_for(LONG).await.is_none());
        drop((writer, outbox));
        assert_eq!(outboxes.long_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(outboxes.fill().messages, 0);
    }

    #[tokio::test]
    async fn clients_that_do_not_read_have_one_bound_together_and_hold_up_no_other() {
        let outboxes = Arc::<Outboxes>::default();
        let deaf: Vec<Outbox> = (0..200).map(|id| Outbox::new(id, &outboxes)).collect();
        let half = LONG_CAPACITY as usize / 2;
        let sent = deaf
            .iter()
            .map(|outbox| {
                usize::from(outbox.writer().try_send(|| text(half)))
                    + usize::from(outbox.writer().try_send(|| text(half)))
            })
            .sum::<usize>();
        // Each may have one message.
        assert_eq!(sent, 128 + 136);
        let (reads, mut receiver) = (Outbox::new(1_000, &outboxes), None);
        for _ in 0..100 {
            assert!(reads.writer().try_send(|| text(half)));
            assert!(!reads.writer().try_send(|| text(LONG)), "it reads one after another");
            assert!(reads.try_next(&mut receiver).is_some());
        }
        drop((deaf, reads, receiver));
        assert_eq!(outboxes.long_bytes.load(Ordering::Relaxed), 0);
    }
}
