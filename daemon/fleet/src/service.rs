//! NATS's services API: `nats service list` and `nats service stats toold` show the daemons of the fleet.
//!
//! The answers are not signed, and nothing here depends on them. The client library's own service would have a random id;
//! here the id is the daemon's name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use async_nats::Message;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use serde::Serialize;
use toold_engine::time::rfc3339;

use crate::member::Member;
use crate::subjects;

const DESCRIPTION: &str = "Tools of a daemon of toold";

/// The questions of the services API.
#[derive(Clone, Copy)]
enum ServiceVerb {
    Ping,
    Info,
    Stats,
}

impl ServiceVerb {
    const ALL: [Self; 3] = [Self::Ping, Self::Info, Self::Stats];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ping => "PING",
            Self::Info => "INFO",
            Self::Stats => "STATS",
        }
    }
}

/// An answer, in the form of NATS's ADR-32.
#[derive(Serialize)]
struct ServiceAnswer {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    id: String,
    version: &'static str,
    metadata: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<ServiceEndpoint>>,
}

#[derive(Serialize)]
struct ServiceEndpoint {
    name: &'static str,
    subject: String,
    queue_group: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    stats: Option<EndpointStats>,
}

#[derive(Serialize)]
struct EndpointStats {
    num_requests: u64,
    num_errors: u64,
    last_error: String,
    /// In nanoseconds.
    processing_time: u64,
    average_processing_time: u64,
}

/// Runs while the broker is connected. Cancelled when the connection is lost.
///
/// # Errors
/// Why it cannot go on, as a sentence for the user; it is tried again after a while.
pub(crate) async fn run(member: &Arc<Member>) -> Result<(), String> {
    let started = rfc3339(SystemTime::now());
    let (client, name) = (&member.broker.client, &member.name);
    let mut questions = Vec::new();
    for verb in ServiceVerb::ALL {
        let all = format!("$SRV.{}", verb.as_str());
        let of_kind = format!("{all}.{}", subjects::SERVICE);
        for subject in [all, of_kind.clone(), format!("{of_kind}.{name}")] {
            let subscribed = client.subscribe(subject).await.map_err(|error| error.to_string())?;
            questions.push(subscribed.map(move |question| (verb, question)));
        }
    }
    let mut questions = select_all(questions);
    while let Some((verb, Message { reply, .. })) = questions.next().await {
        let Some(reply) = reply else { continue };
        let answer = serde_json::to_vec(&answer(member, verb, &started)).map_err(|error| error.to_string())?;
        client.publish(reply, answer.into()).await.map_err(|error| error.to_string())?;
    }
    Err("the subscriptions ended".to_owned())
}

fn answer(member: &Member, verb: ServiceVerb, started: &str) -> ServiceAnswer {
    let settings = member.settings.load();
    let labels: Vec<&str> = settings.labels.iter().map(|label| label.as_str()).collect();
    let metadata = [("labels", labels.join(",")), ("instance", member.instance.clone())];
    let bare = ServiceAnswer {
        kind: "io.nats.micro.v1.ping_response",
        name: subjects::SERVICE,
        id: member.name.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        metadata: metadata.into(),
        description: None,
        started: None,
        endpoints: None,
    };
    let endpoint = |stats| ServiceEndpoint {
        name: "call",
        subject: subjects::call(&member.name),
        queue_group: String::new(),
        stats,
    };
    match verb {
        ServiceVerb::Ping => bare,
        ServiceVerb::Info => ServiceAnswer {
            kind: "io.nats.micro.v1.info_response",
            description: Some(DESCRIPTION),
            endpoints: Some(vec![endpoint(None)]),
            ..bare
        },
        ServiceVerb::Stats => ServiceAnswer {
            kind: "io.nats.micro.v1.stats_response",
            started: Some(started.to_owned()),
            endpoints: Some(vec![endpoint(Some(stats(member)))]),
            ..bare
        },
    }
}

/// Errors are messages that were refused.
fn stats(member: &Member) -> EndpointStats {
    let counts = &member.counts;
    let (served, running) = (counts.served.load(Ordering::Relaxed), counts.running.load(Ordering::Relaxed));
    let processing_time = counts.processing_ns.load(Ordering::Relaxed);
    EndpointStats {
        num_requests: served + running,
        num_errors: counts.refused().map(|(_, number)| number).sum(),
        last_error: counts.last_refused().unwrap_or_default(),
        processing_time,
        average_processing_time: processing_time.checked_div(served).unwrap_or_default(),
    }
}
