//! One file for each panel: its columns, its rows, and the details of a row.

pub(super) mod audit;
pub(super) mod calls;
pub(super) mod changes;
pub(super) mod events;
pub(super) mod rules;
pub(super) mod sessions;
pub(super) mod shells;
pub(super) mod sources;
pub(super) mod tools;
