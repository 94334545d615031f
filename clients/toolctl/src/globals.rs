//! The options that every subcommand takes.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct Globals {
    /// The daemon's socket; defaults to $TOOLD_SOCKET, else to that of the running daemon
    #[arg(long, global = true, value_name = "PATH", help_heading = "Daemon")]
    pub(crate) socket: Option<PathBuf>,
    /// Do not start a daemon if none is running
    #[arg(long, global = true, help_heading = "Daemon")]
    pub(crate) no_start: bool,
    /// Plain text: no colours, no columns, one fact per line, nothing that is overwritten; for screen readers and logs
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) plain: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) utc: bool,
}
