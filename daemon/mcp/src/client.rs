//! The daemon as an MCP client: one copy of each mounted server for all frontends.
