//! The queue groups of this daemon's labels. It is in them while it has room for a call, so that free daemons get the calls.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use async_nats::Subscriber;
use futures_util::Stream;
use futures_util::stream::SelectAll;

use crate::member::Member;
use crate::names::FleetName;
use crate::subjects;

#[derive(Default)]
pub(super) struct LabelGroups {
    subscribed: SelectAll<LabelCalls>,
    joined: Vec<FleetName>,
}

struct LabelCalls {
    label: FleetName,
    subscriber: Subscriber,
    is_left: bool,
}

impl Stream for LabelCalls {
    type Item = (FleetName, async_nats::Message);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let label = self.label.clone();
        Pin::new(&mut self.subscriber).poll_next(context).map(|message| message.map(|message| (label, message)))
    }
}

impl LabelGroups {
    /// Joins and leaves, as the load and the settings require.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(super) async fn adjust(&mut self, member: &Member) -> Result<(), String> {
        let settings = member.settings.load_full();
        let has_room = (member.counts.running.load(Ordering::Relaxed) as usize) < settings.max_calls;
        let wanted: &[FleetName] = if has_room { &settings.labels } else { &[] };
        if self.joined == wanted {
            return Ok(());
        }
        for calls in self.subscribed.iter_mut().filter(|calls| !calls.is_left && !wanted.contains(&calls.label)) {
            // Calls that are on their way still arrive.
            calls.subscriber.drain().await.map_err(|error| error.to_string())?;
            calls.is_left = true;
        }
        for label in wanted.iter().filter(|label| !self.joined.contains(label)) {
            let subscriber = member.broker.client.queue_subscribe(subjects::any_call(label), label.to_string()).await;
            let subscriber = subscriber.map_err(|error| error.to_string())?;
            self.subscribed.push(LabelCalls { label: label.clone(), subscriber, is_left: false });
        }
        self.joined = wanted.to_vec();
        Ok(())
    }

    /// The next call for one of the labels.
    pub(super) async fn next(&mut self) -> (FleetName, async_nats::Message) {
        match futures_util::StreamExt::next(&mut self.subscribed).await {
            Some(call) => call,
            None => std::future::pending().await,
        }
    }
}
