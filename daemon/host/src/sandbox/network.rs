//! The network by host: commands of a session share a network namespace, whose only way out is a guard of the daemon. It
//! asks for permission for each host, and connects for the command.
//!
//! [`hosts`] is what the configuration lists, [`namespace`] makes the namespace, [`proxy`] speaks with the programs in it,
//! [`call`] decides for one call, and [`variables`] tells programs of it all.

pub mod call;
pub mod hosts;

pub(super) mod namespace;
mod proxy;
mod proxy_request;
mod relay;
mod variables;

use std::net::{SocketAddr, TcpListener as UnregisteredListener};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use toold_engine::cx::Cx;

use crate::launcher::order::Confinement;
use crate::random::random;
use crate::sandbox::network::call::{CallHosts, CallNetwork};
use crate::sandbox::network::hosts::{LoopbackPlace, NetworkHosts};
use crate::sandbox::network::namespace::Namespace;

/// The most connections of a session at once. Further ones wait.
const MAX_CONNECTIONS: usize = 256;
/// How long to wait when no descriptor is left for a connection.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// The network of a session, made for its first command. It is there while the session is.
#[derive(Default)]
struct SessionNetwork {
    made: tokio::sync::Mutex<Option<Arc<MadeNetwork>>>,
}

/// A namespace, and the calls whose programs are in it.
struct MadeNetwork {
    namespace: Namespace,
    /// Where the guard listens in the namespace.
    guard: SocketAddr,
    /// Ports of this machine's loopback that are reached at the same port of the namespace's.
    forwarded: Mutex<Vec<u16>>,
    /// By their secrets, the newest last.
    calls: Mutex<Vec<(String, Weak<CallHosts>)>>,
    connections: Arc<Semaphore>,
}

/// What a listener of the namespace is for.
#[derive(Clone)]
enum Listens {
    Guard,
    Forward(LoopbackPlace),
}

/// Checks whether this system supports a network by host. Blocks for some milliseconds.
///
/// # Errors
/// The missing feature, in words for people.
pub(super) fn try_out(confinement: &Confinement) -> Result<(), String> {
    let failed = |error| format!("network by host: {error}");
    let made = namespace::make().map_err(failed)?;
    let join = made.namespace.paths();
    let confinement = Confinement { network: false, by_host: true, join, ..confinement.clone() };
    confinement.try_out("/bin/true", &[]).map_err(failed)
}

/// Opens the network for the program of a call, which `confinement` then makes it enter. `line` is the command line, for
/// the person who is asked; a program in the background outlives its call.
///
/// # Errors
/// Why the namespace cannot be made, in words for people.
pub(super) async fn open(
    cx: &Cx,
    hosts: Arc<NetworkHosts>,
    line: &str,
    background: bool,
    confinement: &mut Confinement,
) -> Result<Arc<CallNetwork>, String> {
    let made = cx.session.slot::<SessionNetwork>().made(cx, &hosts).await?;
    confinement.join = made.namespace.paths();
    let secret = secret()?;
    let call = Arc::new(CallHosts::new(cx, hosts, line, background));
    made.calls.lock().push((secret.clone(), Arc::downgrade(&call)));
    Ok(Arc::new(CallNetwork::new(call, made, secret)))
}

/// A text that nobody guesses.
fn secret() -> Result<String, String> {
    Ok(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl SessionNetwork {
    async fn made(&self, cx: &Cx, hosts: &NetworkHosts) -> Result<Arc<MadeNetwork>, String> {
        let mut made = self.made.lock().await;
        let network = match &*made {
            Some(network) => network.clone(),
            None => made.insert(MadeNetwork::make(cx).await?).clone(),
        };
        network.forward(cx, hosts.loopback_places()).await?;
        Ok(network)
    }
}

impl MadeNetwork {
    async fn make(cx: &Cx) -> Result<Arc<Self>, String> {
        let made = spawn_blocking(namespace::make).await.map_err(|error| error.to_string())??;
        let guard = made.guard.local_addr().map_err(|error| error.to_string())?;
        let network = Arc::new(Self {
            namespace: made.namespace,
            guard,
            forwarded: Mutex::default(),
            calls: Mutex::default(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        });
        network.listen(cx, made.guard, Listens::Guard)?;
        Ok(network)
    }

    /// Listens at the ports at which it does not listen yet. A port that a program of the session uses stays its own.
    async fn forward(self: &Arc<Self>, cx: &Cx, places: Vec<LoopbackPlace>) -> Result<(), String> {
        let is_new = |place: &LoopbackPlace| !self.forwarded.lock().contains(&place.port);
        let new: Vec<LoopbackPlace> = places.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let (join, ports) = (self.namespace.paths(), new.iter().map(|place| place.port).collect::<Vec<_>>());
        let listeners =
            spawn_blocking(move || namespace::listen(&join, &ports)).await.map_err(|error| error.to_string())??;
        for listener in listeners {
            let port = listener.local_addr().map_err(|error| error.to_string())?.port();
            let Some(place) = new.iter().find(|place| place.port == port) else { continue };
            self.forwarded.lock().push(port);
            self.listen(cx, listener, Listens::Forward(place.clone()))?;
        }
        Ok(())
    }

    /// Serves a listener until the session is closed or the daemon stops.
    fn listen(self: &Arc<Self>, cx: &Cx, listener: UnregisteredListener, listens: Listens) -> Result<(), String> {
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        let (network, closed, stop) = (self.clone(), cx.session.closed.clone(), cx.engine.stop.clone());
        let tasks = cx.engine.tasks.clone();
        cx.engine.tasks.spawn(async move {
            let accept = async {
                loop {
                    let Ok(permit) = network.connections.clone().acquire_owned().await else { return };
                    let stream = match listener.accept().await {
                        Ok((stream, _)) => stream,
                        Err(_) => {
                            tokio::time::sleep(NO_DESCRIPTOR).await;
                            continue;
                        }
                    };
                    let (network, listens) = (network.clone(), listens.clone());
                    let (closed, stop) = (closed.clone(), stop.clone());
                    tasks.spawn(async move {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = closed.cancelled() => {}
                            () = network.serve(stream, listens) => {}
                        }
                        drop(permit);
                    });
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = closed.cancelled() => {}
                () = accept => {}
            }
        });
        Ok(())
    }

    async fn serve(&self, stream: TcpStream, listens: Listens) {
        // Fails only for a connection that is gone.
        let _ = stream.set_nodelay(true);
        match listens {
            Listens::Guard => proxy::serve(stream, &|secret| self.call_of(secret)).await,
            // Nothing says which program connects, so it is the newest one.
            Listens::Forward(place) => {
                if let Some(call) = self.newest() {
                    proxy::forward(stream, &call, &place.target()).await;
                }
            }
        }
    }

    fn call_of(&self, secret: &str) -> Option<Arc<CallHosts>> {
        self.calls.lock().iter().find(|(known, _)| known == secret)?.1.upgrade()
    }

    fn newest(&self) -> Option<Arc<CallHosts>> {
        self.calls.lock().iter().rev().find_map(|(_, call)| call.upgrade())
    }

    fn forget(&self, secret: &str) {
        self.calls.lock().retain(|(known, _)| known != secret);
    }
}
