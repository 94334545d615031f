//! Which clients are offered `tools_search` and `tools_call`, with which they reach tools that are not in their lists.

use rmcp::service::{RequestContext, RoleServer};
use toold_engine::meta_tools::is_meta_tool;
use toold_engine::session::Session;
use toold_proto::call::ListingMode;

use crate::server::request_session::{client_of, is_modern};
use crate::server::{McpClientServer, MetaTools};

/// Whether a client sees them.
pub(super) fn are_offered(server: &McpClientServer, mode: ListingMode, context: &RequestContext<RoleServer>) -> bool {
    match server.mcp.host.meta_tools() {
        // Without them, a short list would be all that its client ever reaches.
        _ if mode == ListingMode::Deferred => true,
        MetaTools::Off => false,
        MetaTools::On => true,
        // In the stateless revisions lists are the same for all.
        MetaTools::Auto => {
            is_modern(context)
                || !client_of(context).is_some_and(|client| server.mcp.host.client(&client.name).list_changed)
        }
    }
}

/// Whether a call names one of them that its client is not offered.
pub(super) fn is_withheld(
    server: &McpClientServer,
    session: &Session,
    name: &str,
    mode: ListingMode,
    context: &RequestContext<RoleServer>,
) -> bool {
    let snapshot = server.mcp.engine().registry.snapshot();
    is_meta_tool(snapshot.view(session.project()), name) && !are_offered(server, mode, context)
}
