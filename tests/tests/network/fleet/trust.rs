//! Messages that a broker, or somebody with access to it, replays, changes or invents: each is refused, counted under its
//! reason, and causes nothing.

mod asks;
mod broken_brokers;
mod calls;
mod forgeries;
mod garbage;
mod grants;
mod records;
mod scene;
