//! A daemon over months: started by a service manager, stopped when idle, replaced by a newer one,
//! reachable again after its socket was deleted.

mod handshake;
mod life;
mod replaced;
mod service;
mod serving;
