//! How the daemon's process starts, restarts, cleans up and stops, and what it keeps of its life.

pub mod cleaning;
pub mod idle;
pub mod logging;
pub mod persistence;
pub mod process_statistics;
pub mod restart;
pub mod service_manager;
pub mod spool;
pub mod stop_deadline;
pub mod traces;
pub mod upgrade;
