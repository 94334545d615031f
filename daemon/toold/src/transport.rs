//! How clients reach the daemon, and how each of them is served.

pub mod http;
pub mod stdio;
pub mod unix;

mod descriptor_reserve;

use std::sync::Arc;

use futures_util::FutureExt;
use jsonrpsee::core::server::Methods;
use toold_proto::event::EventBody;

use crate::peer::Peer;
use crate::rpc::connection::{self, ClientStream, ServedConnection};
use crate::rpc::mcp_host::McpService;
use crate::rpc::{self, Services};

/// Serves the streams that the transports accept.
#[derive(Clone)]
pub struct ClientServer {
    pub(crate) services: Arc<Services>,
    methods: Methods,
    pub(crate) mcp: McpService,
}

impl ClientServer {
    pub fn new(services: &Arc<Services>) -> anyhow::Result<Self> {
        let methods = rpc::methods(services.clone())?;
        Ok(Self { services: services.clone(), methods, mcp: McpService::new(services) })
    }

    /// Serves a client in a task of its own.
    pub fn serve(&self, stream: impl ClientStream + 'static, peer: Peer) {
        self.services.lifecycle.tracker().spawn(self.serve_here(stream, peer));
    }

    /// Serves a client; ends when it is gone or the daemon stops.
    pub fn serve_here<S: ClientStream + 'static>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + use<S> {
        let (services, mcp) = (self.services.clone(), self.mcp.clone());
        let id = services.lifecycle.next_connection();
        let (limits, stop) = (services.limits.clone(), services.lifecycle.stopping());
        // Not one `async` block: what it captures and then awaits takes its place twice. What comes after is boxed, or
        // its size would be that of each connection.
        let serving = connection::serve(stream, id, peer, self.methods.clone(), limits, stop);
        serving.then(move |ServedConnection { connection, other }| {
            Box::pin(async move {
                services.builtins.buffers.clear_connection(id);
                if let Some(session) = connection.own_session() {
                    services.sessions.close(session);
                    services.sessions.forget(session).await;
                    services.engine.events.emit(EventBody::SessionClosed { session_id: session.clone() });
                }
                if let Some((stream, ahead)) = other {
                    mcp.serve(&connection, stream, ahead).await;
                }
            })
        })
    }
}
