//! Who counts as a person, and what all others may choose: folders, variables, sessions.

mod agents;
mod environment;
mod joining;
mod left_behind;
mod peers;
mod upgrade;
mod workspaces;
