//! How clients reach the daemon, and how each of them is served.

pub mod framed;
pub mod framing;
pub mod http;
pub mod stdio;
pub mod unix;

mod descriptor_reserve;
mod whole_message;

use std::sync::Arc;

use futures_util::FutureExt;
use jsonrpsee::core::server::Methods;
use toold_proto::event::EventBody;

use crate::peer::Peer;
use crate::rpc::byte_stream::ByteStream;
use crate::rpc::connection::message_stream::MessageStream;
use crate::rpc::connection::{self, ServedConnection};
use crate::rpc::mcp_host::McpService;
use crate::rpc::{self, Services};
use crate::transport::framed::FramedStream;

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
    pub fn serve(&self, stream: impl ByteStream + 'static, peer: Peer) {
        self.services.lifecycle.tracker().spawn(self.serve_here(stream, peer));
    }

    /// Serves a client; ends when it is gone or the daemon stops.
    pub fn serve_here<S: ByteStream + 'static>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + use<S> {
        let stream = FramedStream::new(stream, &self.services.limits);
        self.serve_messages(stream, peer, |stream| Some(stream.into_parts()))
    }

    /// The same for a transport that has messages. `into_parts` gives its bytes, and those of the first message, to the
    /// server of the Model Context Protocol; none when it has no bytes to give.
    fn serve_messages<M, S>(
        &self,
        stream: M,
        peer: Peer,
        into_parts: fn(M) -> Option<(S, Vec<u8>)>,
    ) -> impl Future<Output = ()> + use<M, S>
    where
        M: MessageStream + 'static,
        S: ByteStream + 'static,
    {
        let (services, mcp_service) = (self.services.clone(), self.mcp.clone());
        let id = services.lifecycle.next_connection();
        let (limits, stop) = (services.limits.clone(), services.lifecycle.stopping());
        // Not one `async` block: what it captures and then awaits takes its place twice. What comes after is boxed, or
        // its size would be that of each connection.
        let serving = connection::serve(stream, id, peer, self.methods.clone(), limits, stop);
        serving.then(move |ServedConnection { connection, mcp }| {
            Box::pin(async move {
                services.builtins.buffers.clear_connection(id);
                if let Some(session) = connection.own_session() {
                    services.sessions.close(session);
                    // It was never stored.
                    let _ = services.sessions.forget(session).await;
                    services.engine.events.emit(EventBody::SessionClosed { session_id: session.clone() });
                }
                if let Some((stream, ahead)) = mcp.and_then(into_parts) {
                    mcp_service.serve(&connection, stream, ahead).await;
                }
            })
        })
    }
}
