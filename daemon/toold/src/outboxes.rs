//! How full the outboxes of all connections are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toold_proto::daemon::OutboxesFill;

type Message = Box<RawValue>;

/// The outboxes of the connections that are open.
#[derive(Debug, Default)]
pub struct Outboxes(Mutex<HashMap<u64, mpsc::WeakSender<Message>>>);

/// An outbox that is in the list, until this is dropped.
#[derive(Debug)]
pub struct Listed {
    outboxes: Arc<Outboxes>,
    connection: u64,
}

impl Outboxes {
    pub fn enter(self: &Arc<Self>, connection: u64, outbox: &mpsc::Sender<Message>) -> Listed {
        self.lock().insert(connection, outbox.downgrade());
        Listed { outboxes: self.clone(), connection }
    }

    pub fn fill(&self) -> OutboxesFill {
        let mut fill = OutboxesFill::default();
        for outbox in self.lock().values().filter_map(mpsc::WeakSender::upgrade) {
            let waiting = (outbox.max_capacity() - outbox.capacity()) as u64;
            fill.messages += waiting;
            fill.most = fill.most.max(waiting);
            fill.full += u64::from(outbox.capacity() == 0);
            fill.capacity = outbox.max_capacity() as u64;
        }
        fill
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::WeakSender<Message>>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.outboxes.lock().remove(&self.connection);
    }
}
