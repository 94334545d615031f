//! The hosts of one call: each is decided once, with an ask if it needs one, and its addresses are checked before each
//! connection.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::deadline::Deadline;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_proto::cut::cut_chars;

use crate::environment::Environment;
use crate::http::resolve::{AddressLookup, SystemLookup};
use crate::http::target::HostPort;
use crate::sandbox::network::MadeNetwork;
use crate::sandbox::network::hosts::{NetworkHosts, is_loopback_name, not_named};
use crate::sandbox::network::relay::TrafficCounter;
use crate::sandbox::network::variables::with_guard;

/// The most hosts of a call.
const MAX_HOSTS: usize = 256;
/// The most refusals that a result tells of.
const MAX_REFUSED: usize = 8;
/// The length of a command line in an ask, in characters.
const MAX_LINE: usize = 200;
const LOOKUP: Duration = Duration::from_secs(20);
/// For each address of a host.
const CONNECT: Duration = Duration::from_secs(20);

/// The network of a program while it runs. Dropping it ends all its connections and asks.
pub struct CallNetwork {
    call: Arc<CallHosts>,
    made: Arc<MadeNetwork>,
    secret: String,
}

/// The hosts that the programs of a call connect to.
pub(super) struct CallHosts {
    cx: Arc<Cx>,
    rules: Arc<NetworkHosts>,
    line: String,
    /// The program outlives its call.
    background: bool,
    ended: CancellationToken,
    /// The time limit of the program. It stands still while a person is asked.
    clock: Mutex<Option<Arc<Deadline>>>,
    hosts: Mutex<HashMap<String, KnownHost>>,
    refused: Mutex<Vec<String>>,
    lookup: Arc<dyn AddressLookup>,
}

struct KnownHost {
    /// `None` while it is being decided.
    decided: watch::Receiver<Option<Result<(), HostRefusal>>>,
    counter: Arc<TrafficCounter>,
}

/// Why there is no connection, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostRefusal {
    Denied(String),
    Unreachable(String),
}

impl CallNetwork {
    pub(super) fn new(call: Arc<CallHosts>, made: Arc<MadeNetwork>, secret: String) -> Self {
        Self { call, made, secret }
    }

    /// The environment with the variables by which programs find the network.
    pub fn in_environment(&self, environment: Environment) -> Environment {
        let wait = self.call.cx.engine.settings.load().ask_timeout;
        with_guard(environment, self.made.guard, &self.secret, wait)
    }

    /// The program's time limit, which stands still while a person is asked.
    pub(crate) fn limited_by(&self, clock: Arc<Deadline>) {
        *self.call.clock.lock() = Some(clock);
    }

    /// The hosts that it was not connected to, each as a sentence.
    pub fn refused(&self) -> Vec<String> {
        self.call.refused.lock().clone()
    }
}

impl Drop for CallNetwork {
    fn drop(&mut self) {
        self.made.forget(&self.secret);
        self.call.end();
    }
}

impl fmt::Debug for CallNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallNetwork").field("guard", &self.made.guard).finish_non_exhaustive()
    }
}

impl CallHosts {
    pub(super) fn new(cx: &Cx, rules: Arc<NetworkHosts>, line: &str, background: bool) -> Self {
        let ended = CancellationToken::new();
        Self {
            cx: if background { cx.in_background(ended.clone()) } else { cx.shared() },
            rules,
            line: cut_chars(line, MAX_LINE, "…").into_owned(),
            background,
            ended,
            clock: Mutex::default(),
            hosts: Mutex::default(),
            refused: Mutex::default(),
            lookup: Arc::new(SystemLookup),
        }
    }

    /// Waits until the program has ended. Cancel-safe.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    fn end(&self) {
        self.ended.cancel();
        for (target, host) in self.hosts.lock().drain() {
            let traffic = host.counter.total();
            if traffic.connections > 0 {
                self.cx.note_traffic(&target, traffic);
            }
        }
        if self.background {
            self.cx.audit_background();
        }
    }

    /// Connects to a host if that is allowed, and counts what is exchanged. Waits for a person where one is asked; all
    /// connections of the call to the same host wait for the same answer.
    pub(super) async fn connect(
        self: &Arc<Self>,
        target: &HostPort,
    ) -> Result<(TcpStream, Arc<TrafficCounter>), HostRefusal> {
        let connected = self.try_connect(target).await;
        if let Err(HostRefusal::Denied(why)) = &connected {
            let mut refused = self.refused.lock();
            if refused.len() < MAX_REFUSED && !refused.contains(why) {
                refused.push(why.clone());
            }
        }
        connected
    }

    async fn try_connect(self: &Arc<Self>, target: &HostPort) -> Result<(TcpStream, Arc<TrafficCounter>), HostRefusal> {
        let need = self.rules.need(target).because(format!("connection of: {}", self.line));
        let counter = self.decide(need).await?;
        let addresses = self.addresses(target).await?;
        let mut last = String::new();
        for address in addresses {
            match timeout(CONNECT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    counter.connections.fetch_add(1, Ordering::Relaxed);
                    return Ok((stream, counter));
                }
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = format!("no connection within {} s", CONNECT.as_secs()),
            }
        }
        Err(HostRefusal::Unreachable(format!("can't connect to {target}: {last}")))
    }

    async fn decide(self: &Arc<Self>, need: Need) -> Result<Arc<TrafficCounter>, HostRefusal> {
        let (mut decided, counter) = {
            let mut hosts = self.hosts.lock();
            if self.ended.is_cancelled() {
                return Err(HostRefusal::Denied("the call has ended".to_owned()));
            }
            if hosts.len() >= MAX_HOSTS && !hosts.contains_key(&need.target) {
                return Err(HostRefusal::Denied(format!("a call connects to at most {MAX_HOSTS} hosts")));
            }
            let host = hosts.entry(need.target.clone()).or_insert_with(|| self.start_deciding(need));
            (host.decided.clone(), host.counter.clone())
        };
        let answer = match decided.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone(),
            Err(_) => None,
        };
        answer.unwrap_or_else(|| Err(HostRefusal::Denied("the call has ended".to_owned()))).map(|()| counter)
    }

    /// In a task of its own: a program that gives up and tries again finds the same ask.
    fn start_deciding(self: &Arc<Self>, need: Need) -> KnownHost {
        let (sender, decided) = watch::channel(None);
        let call = self.clone();
        self.cx.engine.tasks.spawn(async move {
            let clock = call.clock.lock().clone();
            let paused = clock.as_ref().map(|clock| clock.pause());
            let answer = tokio::select! {
                () = call.ended.cancelled() => return,
                answer = call.cx.require(need) => answer,
            };
            drop(paused);
            sender.send_replace(Some(answer.map_err(|error| match error {
                ToolError::Denied(denial) => HostRefusal::Denied(denial.message.clone()),
                other => HostRefusal::Denied(other.to_string()),
            })));
        });
        KnownHost { decided, counter: Arc::default() }
    }

    /// The addresses of the host that may be connected to. Exactly these are connected to.
    async fn addresses(&self, target: &HostPort) -> Result<Vec<SocketAddr>, HostRefusal> {
        let unknown = |why: String| HostRefusal::Unreachable(format!("{} has no address: {why}", target.host));
        let found = match target.address {
            Some(address) => vec![address],
            None if is_loopback_name(&target.host) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            None => match timeout(LOOKUP, self.lookup.lookup(target.host.clone())).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    // The system's message describes its internals.
                    return Err(unknown(error.to_string().replace("failed to lookup address information: ", "")));
                }
                Err(_) => return Err(unknown(format!("no answer within {} s", LOOKUP.as_secs()))),
            },
        };
        let admitted = |address: &&IpAddr| self.rules.admits(**address, target);
        let good: Vec<SocketAddr> =
            found.iter().filter(admitted).map(|address| SocketAddr::new(*address, target.port)).collect();
        match (good.is_empty(), found.first()) {
            (false, _) => Ok(good),
            (true, Some(address)) => Err(HostRefusal::Denied(format!("{target}: {}", not_named(*address, target)))),
            (true, None) => Err(unknown("none was given".to_owned())),
        }
    }
}
