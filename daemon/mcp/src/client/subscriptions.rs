//! Has a server report the changes of the resources that clients watch: one by one before revision 2026-07-28, since then
//! all together by one subscription, which is replaced when they are others. Lists of whose changes a server does not report are
//! read again when they have grown old.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams};
#[expect(deprecated, reason = "for servers of earlier revisions")]
use rmcp::model::{SubscribeRequest, UnsubscribeRequest};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::time::{sleep, timeout};
use toold_mounts::adapter::ConnectionContext;
use toold_mounts::watches::Watches;

use super::connect::error_chain;

/// How long a server may take to begin or end reporting.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before a subscription that the server ended is made again.
const BETWEEN_SUBSCRIPTIONS: Duration = Duration::from_secs(1);

/// So long a list is good at least, and at most.
const SHORTEST_TTL: Duration = Duration::from_secs(5);
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Has lists read again that have grown old, as their server says. Never returns.
pub(super) async fn renew_lists(ttl: &Mutex<Option<Duration>>, context: &ConnectionContext) {
    loop {
        let ttl = *ttl.lock();
        let Some(ttl) = ttl else { return std::future::pending().await };
        sleep(ttl.clamp(SHORTEST_TTL, LONGEST_TTL)).await;
        context.report_changed_lists();
    }
}

/// Keeps the server's reports in step with the watches; returns when nothing is watched. The reports come with its other
/// notifications.
pub(super) async fn follow(peer: &Peer<RoleClient>, watches: &Watches) {
    match peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize()) {
        true => follow_one_by_one(peer, watches).await,
        false => follow_together(peer, watches).await,
    }
}

#[expect(deprecated, reason = "for servers of earlier revisions")]
async fn follow_one_by_one(peer: &Peer<RoleClient>, watches: &Watches) {
    let mut wanted = watches.wanted();
    let mut reported = BTreeSet::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        // All before the first request, since others may want one of them again meanwhile.
        reported.difference(&now).for_each(|uri| watches.forget_answer(uri));
        for uri in reported.difference(&now) {
            let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri.clone()));
            let ended = answer(peer.send_request(ClientRequest::UnsubscribeRequest(request))).await;
            if let Err(why) = ended {
                tracing::debug!(uri, why, "an MCP server did not end a subscription");
            }
        }
        for uri in now.difference(&reported) {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri.clone()));
            let begun = answer(peer.send_request(ClientRequest::SubscribeRequest(request))).await;
            watches.answer(uri, begun.map(|_| ()));
        }
        reported = now;
        if reported.is_empty() || wanted.changed().await.is_err() {
            return;
        }
    }
}

async fn follow_together(peer: &Peer<RoleClient>, watches: &Watches) {
    let mut wanted = watches.wanted();
    let mut reported = BTreeSet::new();
    // Dropped when another one has taken its place, so that no report is lost.
    let mut subscription: Option<Subscription> = None;
    loop {
        let now = wanted.borrow_and_update().clone();
        reported.difference(&now).for_each(|uri| watches.forget_answer(uri));
        if now.is_empty() {
            return;
        }
        if now != reported {
            let filter = SubscriptionFilter::builder().resource_subscriptions(now.iter()).build();
            let begun = answer(peer.listen(filter)).await;
            let accepted = begun.as_ref().map(|begun| begun.acknowledged().resource_subscriptions.clone());
            for uri in &now {
                watches.answer(
                    uri,
                    match &accepted {
                        Ok(Some(uris)) if uris.contains(uri) => Ok(()),
                        Ok(_) => Err("it does not accept the subscription".to_owned()),
                        Err(why) => Err(String::clone(why)),
                    },
                );
            }
            subscription = begun.ok();
            reported = now;
        }
        let ended = async {
            match &mut subscription {
                // The reports themselves are taken from the transport.
                Some(subscription) => while let Ok(Some(_)) = subscription.next().await {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            () = ended => {
                subscription = None;
                // Reports of the time in between are lost.
                std::mem::take(&mut reported).iter().for_each(|uri| watches.report(uri));
                sleep(BETWEEN_SUBSCRIPTIONS).await;
            }
        }
    }
}

async fn answer<T>(asked: impl Future<Output = Result<T, ServiceError>>) -> Result<T, String> {
    match timeout(ANSWER_TIMEOUT, asked).await {
        Ok(answered) => answered.map_err(|error| error_chain(&error)),
        Err(_) => Err(format!("it did not answer within {} s", ANSWER_TIMEOUT.as_secs())),
    }
}
