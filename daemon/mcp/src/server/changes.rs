//! Notifies clients that lists changed.

use std::sync::Arc;

use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter, SubscriptionFilterBuilder};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;

use crate::server::{McpConnection, McpHost};

/// Which lists changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ListChanges {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl ListChanges {
    const ALL: Self = Self { tools: true, resources: true, prompts: true };

    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Waits for changes, and merges those that occur together.
struct ListWatch {
    host: Arc<dyn McpHost>,
    events: Receiver<Arc<Emitted>>,
    /// The first relevant event; `None` until plugins have loaded. Earlier changes are not
    /// reported, since lists are answered only after loading.
    first: Option<u64>,
}

impl ListWatch {
    fn new(host: &Arc<dyn McpHost>) -> Self {
        let events = host.engine().events.subscribe(EventSelection::NoCalls, None).receiver;
        Self { host: host.clone(), events, first: None }
    }

    /// `None` when there will be no more changes. Cancel-safe.
    async fn next(&mut self) -> Option<ListChanges> {
        let first = match self.first {
            Some(first) => first,
            None => *self.first.insert(self.host.settled().await),
        };
        let of = |event: &Emitted| if event.seq < first { ListChanges::default() } else { of(&event.body) };
        loop {
            let mut changed = match self.events.recv().await {
                Ok(event) => of(&event),
                // The lost events may have been of any kind.
                Err(RecvError::Lagged(_)) => ListChanges::ALL,
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

fn of(what: &EventBody) -> ListChanges {
    ListChanges {
        tools: matches!(what, EventBody::ToolsChanged { .. }),
        resources: matches!(what, EventBody::ResourcesChanged {}),
        prompts: matches!(what, EventBody::PromptsChanged {}),
    }
}

/// Notifies a client of the older revisions, until it is gone.
pub(super) fn notify(
    host: &Arc<dyn McpHost>,
    peer: Peer<RoleServer>,
    connection: Arc<McpConnection>,
    gone: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let mut watch = ListWatch::new(host);
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
                // A new version of a plugin may return other contents for the same URI.
                let watched = connection.watched.lock().clone();
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

/// The changes that a subscription reports.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let all = SubscriptionFilterBuilder::default().tools_list_changed().prompts_list_changed().resources_list_changed();
    match &requested.resource_subscriptions {
        None => all.build(),
        Some(uris) => all.resource_subscriptions(uris.iter().take(MAX_WATCHED)).build(),
    }
}

/// Resources that one subscription can watch.
const MAX_WATCHED: usize = 1_000;

/// Serves one `subscriptions/listen` until the client ends it, or `over` fires.
pub(super) async fn listen(host: &Arc<dyn McpHost>, subscription: &SubscriptionContext, over: &CancellationToken) {
    let mut watch = ListWatch::new(host);
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
