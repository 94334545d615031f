//! The connection to the broker.

use std::path::Path;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::kv;
use async_nats::jetstream::object_store;
use async_nats::jetstream::stream;
use async_nats::{Client, ConnectOptions, Event, jetstream};
use tokio::sync::watch;

use crate::keys::read_private;
use crate::settings::ConnectionSettings;
use crate::subjects;

/// How long a daemon's record lives without being renewed.
pub const DAEMON_LIFETIME: Duration = Duration::from_secs(30);
/// How long an ask stays in its stream.
pub(crate) const ASK_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long a text stays in the object store: far longer than the call that it belongs to takes to fetch it.
const BLOB_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The most bytes of the parts that grow, so that none of them, however full, keeps another from being written: grants least of
/// all. Together they are less than the 2 GB of `toolctl fleet broker-config`.
const AUDIT_BYTES: i64 = 1 << 30;
const ASKS_BYTES: i64 = 64 << 20;
const BLOBS_BYTES: i64 = 256 << 20;
/// A server with less room gets smaller ones, at last without a limit.
const SHARES: [i64; 3] = [1, 8, 64];
/// A broker is pinged this often, and a connection that does not answer two pings is dead.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const RECONNECT_DELAY: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerState {
    pub connected: bool,
    /// How many times it has been connected; a new number means that everything is subscribed again.
    pub connects: u64,
    /// Since when it is connected.
    pub since: Option<SystemTime>,
    /// Why it is not connected.
    pub error: Option<String>,
}

/// A connection that is made again whenever it is lost.
pub struct Broker {
    pub client: Client,
    pub jetstream: jetstream::Context,
    pub state: watch::Receiver<BrokerState>,
}

impl Broker {
    /// Returns at once; the connection is made in the background.
    ///
    /// # Errors
    /// When files of the settings cannot be read, as a sentence for the user.
    pub async fn connect(settings: &ConnectionSettings) -> Result<Self, String> {
        let (sender, state) = watch::channel(BrokerState {
            connected: false,
            connects: 0,
            since: None,
            error: Some("connecting".to_owned()),
        });
        let servers = settings.servers.clone();
        let on_event = move |event: Event| {
            sender.send_if_modified(|state| match event {
                Event::Connected => {
                    let (connects, since) = (state.connects + 1, Some(SystemTime::now()));
                    *state = BrokerState { connected: true, connects, since, error: None };
                    true
                }
                Event::Disconnected | Event::Closed => {
                    (state.connected, state.since) = (false, None);
                    state.error.get_or_insert_with(|| "the connection was lost".to_owned());
                    true
                }
                Event::ClientError(error) => {
                    tracing::debug!(%error, "the connection to the broker");
                    state.error = (!state.connected).then(|| explained(&error.to_string(), &servers));
                    !state.connected
                }
                Event::ServerError(error) => {
                    tracing::warn!(%error, "the broker reports an error");
                    state.error = Some(error.to_string());
                    true
                }
                Event::SlowConsumer(_) | Event::LameDuckMode | Event::Draining => false,
            });
            std::future::ready(())
        };
        let mut options = ConnectOptions::new()
            .name(format!("toold {}", settings.name))
            .custom_inbox_prefix(format!("_INBOX.{}", settings.name))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .ping_interval(PING_INTERVAL)
            .request_timeout(Some(REQUEST_TIMEOUT))
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::from_millis(100),
                _ => RECONNECT_DELAY,
            })
            .event_callback(on_event);
        // A server names others of its cluster, which may be reached without TLS unless it is required.
        if settings.servers.iter().all(|server| server.starts_with("tls://")) {
            options = options.require_tls(true);
        } else {
            options = options.ignore_discovered_servers();
        }
        if let Some(file) = &settings.credentials {
            options = log_in(options, file)?;
        }
        if let Some(file) = &settings.ca_file {
            options = options.add_root_certificates(file.clone());
        }
        let client = options.connect(settings.servers.clone()).await.map_err(|error| error.to_string())?;
        let jetstream = jetstream::ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        Ok(Self { client, jetstream, state })
    }

    /// Creates the buckets and streams that do not exist yet.
    ///
    /// # Errors
    /// As a sentence for the user.
    pub async fn prepare(&self) -> Result<(), String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            format!("can't create {what} on the broker, which needs JetStream: {error}")
        };
        for (bucket, max_age, description) in [
            (subjects::DAEMONS, DAEMON_LIFETIME, "Daemons of a fleet of toold"),
            (subjects::TOOLS, Duration::ZERO, "Their tools"),
            (subjects::GRANTS, Duration::ZERO, "Grants of persons"),
        ] {
            let config = kv::Config {
                bucket: bucket.to_owned(),
                description: description.to_owned(),
                max_age,
                history: 1,
                ..kv::Config::default()
            };
            if self.jetstream.get_key_value(bucket).await.is_err() {
                self.jetstream.create_key_value(config).await.map_err(|error| failed(bucket, &error))?;
            }
        }
        let asks = stream::Config {
            name: subjects::ASKS.to_owned(),
            subjects: vec!["toold.ask.>".to_owned()],
            max_messages_per_subject: 1,
            max_age: ASK_LIFETIME,
            max_bytes: ASKS_BYTES,
            allow_direct: true,
            ..stream::Config::default()
        };
        // The oldest rows go when it is full. Each daemon has them in its own audit log.
        let audit = stream::Config {
            name: subjects::AUDIT.to_owned(),
            subjects: vec!["toold.audit.>".to_owned()],
            max_bytes: AUDIT_BYTES,
            allow_direct: true,
            ..stream::Config::default()
        };
        for config in [asks, audit] {
            let name = config.name.clone();
            self.prepare_stream(config).await.map_err(|error| failed(&name, &error))?;
        }
        if self.jetstream.get_object_store(subjects::BLOBS).await.is_err() {
            let config = |max_bytes| object_store::Config {
                bucket: subjects::BLOBS.to_owned(),
                max_age: BLOB_LIFETIME,
                max_bytes,
                ..object_store::Config::default()
            };
            let made = with_room(BLOBS_BYTES, |bytes| self.jetstream.create_object_store(config(bytes))).await;
            made.map_err(|error| failed(subjects::BLOBS, &error))?;
        }
        Ok(())
    }

    /// Creates a stream, or gives one that an earlier version made the limit of `config`, and lets it be read by subject.
    async fn prepare_stream(&self, config: stream::Config) -> Result<(), String> {
        let limited = |max_bytes| stream::Config { max_bytes, ..config.clone() };
        let bytes = config.max_bytes;
        match self.jetstream.get_stream(&config.name).await {
            Ok(found) => {
                let found = &found.cached_info().config;
                if found.max_bytes > 0 && found.allow_direct {
                    return Ok(());
                }
                let bytes = if found.max_bytes > 0 { found.max_bytes } else { bytes };
                let changed = with_room(bytes, |bytes| self.jetstream.update_stream(limited(bytes))).await;
                if let Err(error) = changed {
                    tracing::warn!(%error, stream = config.name, "a stream of the fleet is as an earlier version made it");
                }
                Ok(())
            }
            Err(_) => {
                let made = with_room(bytes, |bytes| self.jetstream.get_or_create_stream(limited(bytes))).await;
                made.map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

/// Makes something of at most `bytes`, or of less where the server has not so much. The last size has no limit.
async fn with_room<T, E, F: Future<Output = Result<T, E>>>(bytes: i64, make: impl Fn(i64) -> F) -> Result<T, E> {
    for share in SHARES {
        if let Ok(made) = make(bytes / share).await {
            return Ok(made);
        }
    }
    make(-1).await
}

/// The client library says neither where it tried to connect, nor why that failed or the two sides agree on no encryption.
fn explained(error: &str, servers: &[String]) -> String {
    let is_encrypted = servers.iter().any(|server| server.starts_with("tls://"));
    let why = match (error.ends_with("IO error"), is_encrypted) {
        (true, true) => {
            "the server does not answer, it has no TLS, or its certificate is signed by no authority that is known here \
             (fleet.ca_file)"
        }
        (true, false) => "no NATS server answers there",
        (false, _) => error,
    };
    let shown: Vec<String> = servers.iter().map(|server| without_login(server)).collect();
    format!("can't connect to {}: {why}", shown.join(", "))
}

/// The address of a server without a name and a password in it.
fn without_login(server: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
    format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
}

/// Adds what a file of credentials contains.
fn log_in(options: ConnectOptions, file: &Path) -> Result<ConnectOptions, String> {
    let shown = file.display();
    let text = read_private(file)?;
    if text.contains("-----BEGIN") {
        return options.credentials(&text).map_err(|error| format!("{shown} contains no credentials of NATS: {error}"));
    }
    match text.trim() {
        "" => {
            Err(format!("{shown} is empty: it must contain credentials of NATS, the seed of a user's nkey, or a token"))
        }
        seed if seed.starts_with("SU") && nkeys::KeyPair::from_seed(seed).is_ok() => Ok(options.nkey(seed.to_owned())),
        token => Ok(options.token(token.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_what() {
        let said = |server: &str, error: &str| explained(error, &[server.to_owned()]);
        let plain = "nats://h:4222";
        assert_eq!(said(plain, "nats: IO error"), "can't connect to nats://h:4222: no NATS server answers there");
        assert_eq!(said("nats://me:hidden@h:4222", "x"), "can't connect to nats://h:4222: x");
        assert_eq!(said(plain, "authorization"), "can't connect to nats://h:4222: authorization");
        assert!(said("tls://h:4222", "nats: IO error").contains("fleet.ca_file"));
    }
}
