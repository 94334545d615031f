//! Notifies clients that lists, or resources that they subscribed to, changed.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter, SubscriptionFilterBuilder};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use toold_engine::events::{Emitted, EventSelection};
use toold_proto::event::EventBody;

use crate::server::request::plain_call;
use crate::server::subscriptions::{MAX_SUBSCRIPTIONS, ResourceSubscriptions};
use crate::server::{McpClientServer, McpConnection, McpHost};

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

/// The least time between two notifications about resources: a source may report changes all the time.
const BETWEEN_UPDATES: Duration = Duration::from_millis(50);

/// Notifies a client of the older revisions, until it is gone.
pub(super) fn notify(
    host: &Arc<dyn McpHost>,
    peer: Peer<RoleServer>,
    connection: Arc<McpConnection>,
    gone: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let mut watch = ListWatch::new(host);
    let host = host.clone();
    async move {
        let subscriptions = &connection.subscriptions;
        loop {
            let (changed, updated) = tokio::select! {
                () = gone.cancelled() => return,
                changed = watch.next() => match changed {
                    Some(changed) => (changed, BTreeSet::new()),
                    None => return,
                },
                updated = subscriptions.next() => (ListChanges::default(), updated),
            };
            let mut sent = Ok(());
            if changed.tools {
                sent = sent.and(peer.notify_tool_list_changed().await);
            }
            if changed.resources {
                sent = sent.and(peer.notify_resource_list_changed().await);
            }
            if changed.prompts {
                sent = sent.and(peer.notify_prompt_list_changed().await);
            }
            if changed.resources || !updated.is_empty() {
                host.engine().tasks.spawn(renew(&host, &connection, subscriptions, &gone));
            }
            let has_updates = !updated.is_empty();
            for uri in updated {
                sent = sent.and(peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await);
            }
            if sent.is_err() {
                return;
            }
            if has_updates {
                sleep(BETWEEN_UPDATES).await;
            }
        }
    }
}

/// Watches what sources have replaced, in a task of its own: a person may be asked.
fn renew(
    host: &Arc<dyn McpHost>,
    connection: &Arc<McpConnection>,
    subscriptions: &Arc<ResourceSubscriptions>,
    over: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let (host, connection) = (host.clone(), connection.clone());
    let (subscriptions, over) = (subscriptions.clone(), over.clone());
    async move {
        let call = |session| plain_call(host.as_ref(), &connection, session, over.child_token());
        tokio::select! {
            () = over.cancelled() => {}
            () = subscriptions.renew(host.engine(), call) => {}
        }
    }
}

/// The changes that a subscription reports.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let all = SubscriptionFilterBuilder::default().tools_list_changed().prompts_list_changed().resources_list_changed();
    match &requested.resource_subscriptions {
        None => all.build(),
        Some(uris) => all.resource_subscriptions(uris.iter().take(MAX_SUBSCRIPTIONS)).build(),
    }
}

/// Serves one `subscriptions/listen` until the client ends it, or its connection is half closed.
pub(super) async fn listen(server: &McpClientServer, subscription: &SubscriptionContext) -> Result<(), ErrorData> {
    let (host, connection) = (&server.mcp.host, &server.connection);
    let mut watch = ListWatch::new(host);
    let sink = subscription.sink();
    let wants = sink.accepted().clone();
    let subscriptions = Arc::new(ResourceSubscriptions::default());
    let over = connection.half_closed.child_token();
    // Also when this is dropped: then nothing more is renewed.
    let _over = over.clone().drop_guard();
    let mut begin = pin!(begin(server, subscription, &wants, &subscriptions, &over).fuse());
    loop {
        let (changed, updated) = tokio::select! {
            () = subscription.cancelled() => return Ok(()),
            () = over.cancelled() => return Ok(()),
            begun = &mut begin => match begun {
                Ok(()) => continue,
                Err(error) => return Err(error),
            },
            changed = watch.next() => match changed {
                Some(changed) => (changed, BTreeSet::new()),
                None => return Ok(()),
            },
            updated = subscriptions.next() => (ListChanges::default(), updated),
        };
        let mut sent = Ok(());
        if changed.tools && wants.tools_list_changed == Some(true) {
            sent = sent.and(sink.notify_tool_list_changed().await);
        }
        if changed.resources && wants.resources_list_changed == Some(true) {
            sent = sent.and(sink.notify_resource_list_changed().await);
        }
        if changed.prompts && wants.prompts_list_changed == Some(true) {
            sent = sent.and(sink.notify_prompt_list_changed().await);
        }
        if changed.resources || !updated.is_empty() {
            host.engine().tasks.spawn(renew(host, connection, &subscriptions, &over));
        }
        let has_updates = !updated.is_empty();
        for uri in updated {
            sent = sent.and(sink.notify_resource_updated(uri).await);
        }
        if sent.is_err() {
            return Ok(());
        }
        if has_updates {
            sleep(BETWEEN_UPDATES).await;
        }
    }
}

/// Subscribes to the resources that the client names. Those that it may not read stay silent: they have been accepted
/// before a person can be asked.
async fn begin(
    server: &McpClientServer,
    subscription: &SubscriptionContext,
    wants: &SubscriptionFilter,
    subscriptions: &ResourceSubscriptions,
    over: &CancellationToken,
) -> Result<(), ErrorData> {
    let Some(uris) = wants.resource_subscriptions.as_ref().filter(|uris| !uris.is_empty()) else { return Ok(()) };
    let session = server.session(subscription.request_context()).await?;
    server.mcp.host.settled().await;
    let engine = server.mcp.engine();
    for uri in uris {
        let call = plain_call(server.mcp.host.as_ref(), &server.connection, session.clone(), over.child_token());
        if let Err(error) = subscriptions.add(engine, uri, call).await {
            tracing::info!(uri, %error, "a client does not hear of changes of a resource that it subscribed to");
        }
    }
    Ok(())
}
