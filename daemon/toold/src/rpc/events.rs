//! `events.*`

use std::sync::Arc;

use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use tokio::sync::broadcast::error::RecvError;
use toold_engine::events::{Emitted, EventSelection, Events, ProgressListener, Subscribed};
use toold_proto::event::{Event, EventBody, SubscribeEvents};
use toold_proto::method::EventsSubscribe;
use toold_proto::tool::SessionId;

use crate::rpc::error::invalid_params;
use crate::rpc::located::for_onlooker;
use crate::rpc::subscription::{ItemSubscriber, SubscriberGone, add_subscription};
use crate::rpc::{MethodRequest, MethodTable, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    let open = |request: &MethodRequest, wanted: SubscribeEvents, _: &SubscriptionId<'_>| {
        check_kinds(&wanted)?;
        let own = request.connection().session().map(|session| session.id.clone());
        let filter = EventFilter { wanted, sees_all: may_decide(request), own };
        Ok(Listening::new(request.services.engine.events.clone(), filter))
    };
    add_subscription::<EventsSubscribe, _, _>(module, open, stream)
}

fn check_kinds(wanted: &SubscribeEvents) -> Result<(), ErrorObjectOwned> {
    let unknown = wanted.kinds.iter().flatten().find(|kind| !EventBody::KINDS.contains(&kind.as_str()));
    match unknown {
        Some(kind) => {
            Err(invalid_params(&format!("kinds: unknown kind {kind}; expected one of {}", EventBody::KINDS.join(", "))))
        }
        None => Ok(()),
    }
}

/// The events that one subscriber receives.
struct EventFilter {
    wanted: SubscribeEvents,
    /// People see all sessions, others their own.
    sees_all: bool,
    own: Option<SessionId>,
}

impl EventFilter {
    fn lets(&self, what: &EventBody) -> bool {
        let kind = self.wanted.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == what.kind()));
        let session = what.session_id();
        let asked = match (&self.wanted.session_id, session) {
            (Some(wanted), Some(session)) => wanted == session,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        let allowed = self.sees_all || session.is_none() || session == self.own.as_ref();
        kind && asked && allowed
    }
}

/// The source of a subscriber's events, beginning with its request.
struct Listening {
    events: Arc<Events>,
    filter: EventFilter,
    subscribed: Subscribed,
    _progress: Option<ProgressListener>,
}

impl Listening {
    fn new(events: Arc<Events>, filter: EventFilter) -> Self {
        let kinds = filter.wanted.kinds.as_ref();
        let wants = |what: &str| kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind.starts_with(what)));
        let progress = wants("call.progress").then(|| events.listen_to_progress());
        let hears = if wants("call.") { EventSelection::All } else { EventSelection::NoCalls };
        let same_epoch = filter.wanted.epoch.as_ref().is_none_or(|epoch| epoch == events.epoch());
        let subscribed = match same_epoch {
            true => events.subscribe(hears, filter.wanted.since),
            false => events.subscribe_from_start(hears),
        };
        Self { events, filter, subscribed, _progress: progress }
    }
}

async fn stream(subscriber: ItemSubscriber<EventsSubscribe>, listening: Listening) {
    let Listening { events, filter, subscribed: Subscribed { replay, missed, mut receiver }, _progress } = listening;
    let mut next = replay.first().map_or(0, |first| first.seq);
    if missed > 0 && report_lag(&subscriber, events.epoch(), next, missed).await.is_err() {
        return;
    }
    for emitted in replay {
        next = emitted.seq + 1;
        if send(&subscriber, events.epoch(), &filter, &emitted).await.is_err() {
            return;
        }
    }
    loop {
        let received = tokio::select! {
            () = subscriber.gone() => return,
            received = receiver.recv() => received,
        };
        let sent = match received {
            Ok(emitted) => {
                next = emitted.seq + 1;
                send(&subscriber, events.epoch(), &filter, &emitted).await
            }
            Err(RecvError::Lagged(missed)) => {
                events.count_lost(missed);
                report_lag(&subscriber, events.epoch(), next, missed).await
            }
            Err(RecvError::Closed) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Waits for a slow reader; meanwhile the ring moves on, and lost events are reported as lag.
async fn send(
    subscriber: &ItemSubscriber<EventsSubscribe>,
    epoch: &str,
    filter: &EventFilter,
    emitted: &Emitted,
) -> Result<(), SubscriberGone> {
    if !filter.lets(&emitted.body) {
        return Ok(());
    }
    let mut event = emitted.to_wire(epoch);
    if let EventBody::PermissionAsked { request, .. } = &mut event.body
        && !filter.sees_all
    {
        for_onlooker(request);
    }
    subscriber.send(&event).await
}

async fn report_lag(
    subscriber: &ItemSubscriber<EventsSubscribe>,
    epoch: &str,
    seq: u64,
    missed: u64,
) -> Result<(), SubscriberGone> {
    let at = toold_engine::time::rfc3339(std::time::SystemTime::now());
    subscriber.send(&Event { seq, epoch: epoch.to_owned(), at, body: EventBody::Lagged { missed: Some(missed) } }).await
}
