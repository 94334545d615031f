//! Daemons and other programs: MCP in both directions, HTTP, other daemons, and fleets.

mod fleet;
mod fleet_chaos;
mod fleet_ctl;
mod fleet_scale;
mod http_flood;
mod mcp;
mod mcp_asks;
mod mcp_client;
mod mcp_commands;
mod mcp_http;
mod mcp_install;
mod mcp_login;
mod mcp_odd_lines;
mod mcp_offers;
mod mcp_profiles;
mod mcp_registry;
mod mcp_scopes;
mod mcp_server_requests;
mod mcp_skills;
mod mcp_sse;
mod mcp_streamable;
mod mcp_tasks;
mod mcp_tolerance;
mod remotes;
mod web;
mod websocket;
