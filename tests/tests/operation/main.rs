//! How a daemon is run for months: started by a service manager, ended when nobody uses it, replaced by a newer one,
//! found again when its socket is gone.

mod handshake;
mod life;
mod replaced;
mod service;
mod serving;
