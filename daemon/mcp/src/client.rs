//! The daemon as an MCP client: one copy of each mounted server for all frontends.
//!
//! [`adapter`] implements MCP for the supervisor of mounts; [`endpoint`] describes where a server
//! is, [`connect`] reaches it, [`logins`] has its logins, [`listing`] checks the tools that it lists, [`call`] runs a call,
//! [`offers`] has its resources and prompts, [`subscriptions`] their changes, and [`requests`] answers what a server asks
//! meanwhile. A server does not see the environment of any frontend: it gets its configuration, the arguments of its calls,
//! and the folders of those who call it if it asks for roots.

pub mod adapter;
mod call;
mod connect;
mod discarded;
mod elicitation;
pub mod endpoint;
mod exact_integers;
mod greeting;
mod http_client;
mod http_with_sse;
mod intercepting;
mod lines;
mod listing;
mod logging;
pub mod logins;
mod memory;
mod notifications;
mod offer_listing;
mod offers;
mod requests;
mod result;
mod roots;
mod sampling;
mod subscriptions;
mod transport_words;
mod turns;
mod wedged;
