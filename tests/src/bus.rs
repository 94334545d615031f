//! A client of a NATS server that sees and sends raw messages: the broker, or somebody with access to it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Runtime;
use toold_test_kit::{PATIENCE, until};

/// A message as the server delivered it.
#[derive(Clone, Debug)]
pub struct BusMessage {
    pub subject: String,
    pub reply: Option<String>,
    pub payload: Vec<u8>,
}

impl BusMessage {
    /// Null for one that is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap_or_default()
    }
}

/// Connected to a server; records everything that is sent from then on.
pub struct Bus {
    runtime: Runtime,
    client: async_nats::Client,
    jetstream: jetstream::Context,
    seen: Arc<Mutex<Vec<BusMessage>>>,
}

impl Bus {
    pub fn connect(url: &str) -> Self {
        Self::connect_by(url, async_nats::ConnectOptions::new())
    }

    /// The same with other options, such as a password.
    pub fn connect_by(url: &str, options: async_nats::ConnectOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::<Mutex<Vec<BusMessage>>>::default();
        let client = runtime.block_on(async {
            let client = options.retry_on_initial_connect().connect(url).await.unwrap();
            let mut all = client.subscribe(">").await.unwrap();
            client.flush().await.unwrap();
            let seen = seen.clone();
            tokio::spawn(async move {
                while let Some(message) = all.next().await {
                    seen.lock().push(BusMessage {
                        subject: message.subject.to_string(),
                        reply: message.reply.map(|reply| reply.to_string()),
                        payload: message.payload.to_vec(),
                    });
                }
            });
            client
        });
        // It spawns a task.
        let jetstream = runtime.block_on(async { jetstream::new(client.clone()) });
        Self { runtime, client, jetstream, seen }
    }

    /// Which of these subjects the server refuses to somebody who logs in so: to publish to, and to subscribe to.
    pub fn refused(
        url: &str,
        options: async_nats::ConnectOptions,
        publish: &[&str],
        subscribe: &[&str],
    ) -> Vec<String> {
        /// Refused to everybody. Answers come in order, so all others have come before.
        const LAST: &str = "refused.to.everybody";
        let (sender, violations) = std::sync::mpsc::channel();
        let options = options.event_callback(move |event| {
            if let async_nats::Event::ServerError(error) = event {
                // Fails only when nobody waits any more.
                let _ = sender.send(error.to_string());
            }
            std::future::ready(())
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _subscribed = runtime.block_on(async {
            let client = options.connect(url).await.unwrap();
            let mut subscribed = Vec::new();
            for subject in subscribe {
                subscribed.push(client.subscribe((*subject).to_owned()).await.unwrap());
            }
            for subject in publish.iter().chain([&LAST]) {
                client.publish((*subject).to_owned(), "".into()).await.unwrap();
            }
            client.flush().await.unwrap();
            (client, subscribed)
        });
        // Permissions Violation for Publish to "subject"
        let next = || violations.recv_timeout(PATIENCE).expect("the last one is refused");
        let subject = || next().split('"').nth(1).unwrap_or_default().to_owned();
        std::iter::repeat_with(subject).take_while(|subject| subject != LAST).collect()
    }

    /// Everything that has been recorded and fits, in the order of its arrival.
    pub fn seen(&self, fits: impl Fn(&BusMessage) -> bool) -> Vec<BusMessage> {
        self.seen.lock().iter().filter(|message| fits(message)).cloned().collect()
    }

    /// The last one that was or will be recorded and fits.
    #[track_caller]
    pub fn wait_for(&self, what: &str, fits: impl Fn(&BusMessage) -> bool) -> BusMessage {
        until(what, || self.seen.lock().iter().rev().find(|message| fits(message)).cloned())
    }

    /// The last message of a kind of the fleet on a subject that begins like this.
    #[track_caller]
    pub fn of_kind(&self, kind: &str, subject: &str) -> BusMessage {
        self.wait_for(&format!("a message of kind {kind} on {subject}"), |message| {
            message.subject.starts_with(subject) && message.json()["kind"] == kind
        })
    }

    /// Forgets the record.
    pub fn forget(&self) {
        self.seen.lock().clear();
    }

    /// Sends a message, and waits until the server has it.
    pub fn send(&self, subject: &str, reply: Option<&str>, payload: &[u8]) {
        let (subject, payload) = (subject.to_owned(), payload.to_vec().into());
        self.runtime.block_on(async {
            match reply {
                Some(reply) => self.client.publish_with_reply(subject, reply.to_owned(), payload).await.unwrap(),
                None => self.client.publish(subject, payload).await.unwrap(),
            }
            self.client.flush().await.unwrap();
        });
    }

    /// Sends many without waiting for each.
    pub fn flood(&self, messages: impl Iterator<Item = (String, Vec<u8>)>) {
        self.runtime.block_on(async {
            for (subject, payload) in messages {
                self.client.publish(subject, payload.into()).await.unwrap();
            }
            self.client.flush().await.unwrap();
        });
    }

    /// Sends a request; `None` when nobody answers it in time.
    pub fn request(&self, subject: &str, payload: &[u8], timeout: Duration) -> Option<BusMessage> {
        let (subject, payload) = (subject.to_owned(), payload.to_vec().into());
        let answer = self.runtime.block_on(async {
            tokio::time::timeout(timeout, self.client.request(subject, payload)).await.ok()?.ok()
        })?;
        Some(BusMessage { subject: answer.subject.to_string(), reply: None, payload: answer.payload.to_vec() })
    }

    /// Writes a value of a bucket.
    pub fn put(&self, bucket: &str, key: &str, value: &[u8]) {
        let value = value.to_vec().into();
        self.runtime
            .block_on(async { self.jetstream.get_key_value(bucket).await.unwrap().put(key, value).await })
            .unwrap();
    }

    /// Deletes a value of a bucket.
    pub fn delete(&self, bucket: &str, key: &str) {
        self.runtime.block_on(async { self.jetstream.get_key_value(bucket).await.unwrap().purge(key).await }).unwrap();
    }

    /// The value of a key in a bucket, as JSON; `None` without one.
    pub fn value(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let value =
            self.runtime.block_on(async { self.jetstream.get_key_value(bucket).await.ok()?.get(key).await.ok()? });
        value.map(|value| value.to_vec())
    }

    /// Deletes a message of a stream.
    pub fn erase(&self, stream: &str, sequence: u64) {
        let erased = async { self.jetstream.get_stream(stream).await.unwrap().delete_message(sequence).await };
        self.runtime.block_on(erased).unwrap();
    }

    /// Deletes all messages of a stream.
    pub fn purge(&self, stream: &str) {
        self.runtime.block_on(async { self.jetstream.get_stream(stream).await.unwrap().purge().await }).unwrap();
    }

    /// All messages of a stream, in their order; none while there is no such stream.
    pub fn stored(&self, stream: &str) -> Vec<BusMessage> {
        self.runtime.block_on(async {
            let Ok(stream) = self.jetstream.get_stream(stream).await else { return Vec::new() };
            let state = stream.cached_info().state.clone();
            let mut stored = Vec::new();
            for sequence in state.first_sequence..=state.last_sequence {
                // A gap is a message that was replaced by a newer one of its subject, or that was too old.
                if let Ok(message) = stream.get_raw_message(sequence).await {
                    let (subject, payload) = (message.subject.to_string(), message.payload.to_vec());
                    stored.push(BusMessage { subject, reply: None, payload });
                }
            }
            stored
        })
    }
}
