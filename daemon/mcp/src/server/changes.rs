//! Telling clients that lists changed.

use std::sync::Arc;

use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter, SubscriptionFilterBuilder};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;

use crate::server::{Connection, Host};

/// Which lists changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changed {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl Changed {
    const ALL: Self = Self { tools: true, resources: true, prompts: true };

    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Waits for changes. Several that came together are one.
struct Watch {
    host: Arc<dyn Host>,
    events: Receiver<Arc<Emitted>>,
    /// The first event that counts; `None` until plugins have loaded. What they change by that is no news: lists are
    /// answered after it.
    first: Option<u64>,
}

impl Watch {
    fn new(host: &Arc<dyn Host>) -> Self {
        let events = host.engine().events.subscribe(EventSelection::NoCalls, None).receiver;
        Self { host: host.clone(), events, first: None }
    }

    /// `None` when there will be no more. Cancel-safe.
    async fn next(&mut self) -> Option<Changed> {
        let first = match self.first {
            Some(first) => first,
            None => *self.first.insert(self.host.settled().await),
        };
        let of = |event: &Emitted| if event.seq < first { Changed::default() } else { of(&event.body) };
        loop {
            let mut changed = match self.events.recv().await {
                Ok(event) => of(&event),
                // Among what was lost may be anything.
                Err(RecvError::Lagged(_)) => Changed::ALL,
                Err(RecvError::Closed) => return None,
            };
            while let Ok(event) = self.events.try_recv() {
                let also = of(&event);
                changed.tools |= also.tools;
                changed.resources |= also.resources;
                changed.prompts |= also.prompts;
            }
            if !changed.is_none() {
                return Some(changed);
            }
        }
    }
}

fn of(what: &EventBody) -> Changed {
    Changed {
        tools: matches!(what, EventBody::ToolsChanged { .. }),
        resources: matches!(what, EventBody::ResourcesChanged {}),
        prompts: matches!(what, EventBody::PromptsChanged {}),
    }
}

/// Tells a client of the older revisions, until it is gone.
pub(super) fn tell(
    host: &Arc<dyn Host>,
    peer: Peer<RoleServer>,
    connection: Arc<Connection>,
    gone: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let mut watch = Watch::new(host);
    async move {
        loop {
            let changed = tokio::select! {
                () = gone.cancelled() => return,
                changed = watch.next() => changed,
            };
            let Some(changed) = changed else { return };
            let mut sent = Ok(());
            if changed.tools {
                sent = sent.and(peer.notify_tool_list_changed().await);
            }
            if changed.resources {
                sent = sent.and(peer.notify_resource_list_changed().await);
                // A plugin's new version may read something else at the same place.
                let watched = connection.watched.lock().expect("no code panics while it holds this lock").clone();
                for uri in watched {
                    sent = sent.and(peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await);
                }
            }
            if changed.prompts {
                sent = sent.and(peer.notify_prompt_list_changed().await);
            }
            if sent.is_err() {
                return;
            }
        }
    }
}

/// What a subscription may hear of.
pub(super) fn offered(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let all = SubscriptionFilterBuilder::default().tools_list_changed().prompts_list_changed().resources_list_changed();
    match &requested.resource_subscriptions {
        None => all.build(),
        Some(uris) => all.resource_subscriptions(uris.iter().take(MAX_WATCHED)).build(),
    }
}

/// Resources that one subscription can watch.
const MAX_WATCHED: usize = 1_000;

/// Serves one `subscriptions/listen` until the client ends it, or `over` fires.
pub(super) async fn listen(host: &Arc<dyn Host>, subscription: &SubscriptionContext, over: &CancellationToken) {
    let mut watch = Watch::new(host);
    let sink = subscription.sink();
    let wants = sink.accepted().clone();
    loop {
        let changed = tokio::select! {
            () = subscription.cancelled() => return,
            () = over.cancelled() => return,
            changed = watch.next() => changed,
        };
        let Some(changed) = changed else { return };
        let mut sent = Ok(());
        if changed.tools && wants.tools_list_changed == Some(true) {
            sent = sent.and(sink.notify_tool_list_changed().await);
        }
        if changed.resources && wants.resources_list_changed == Some(true) {
            sent = sent.and(sink.notify_resource_list_changed().await);
        }
        if changed.resources {
            for uri in wants.resource_subscriptions.iter().flatten() {
                sent = sent.and(sink.notify_resource_updated(uri).await);
            }
        }
        if changed.prompts && wants.prompts_list_changed == Some(true) {
            sent = sent.and(sink.notify_prompt_list_changed().await);
        }
        if sent.is_err() {
            return;
        }
    }
}
