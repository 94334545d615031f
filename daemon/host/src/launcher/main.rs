//! The launcher as a program of its own, which `build.rs` compiles and the daemon contains. It consists of these modules
//! and the standard library.

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod entry;
mod kernel;
mod life;
mod mounts;
mod network;
mod order;
mod renew;
mod stand_in;
mod system;

use std::process::ExitCode;

fn main() -> ExitCode {
    let no_filter = |_: &order::Confinement| Err("expected --filter".to_owned());
    order::run_if_asked(std::env::args_os(), no_filter).unwrap_or(ExitCode::from(order::FAILED))
}
