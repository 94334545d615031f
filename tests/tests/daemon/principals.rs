//! Clients that count as a person, and the choices of all others: folders, variables, sessions.

mod agents;
mod environment;
mod joining;
mod launcher;
mod left_behind;
mod page;
mod peers;
mod workspaces;
