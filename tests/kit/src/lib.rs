//! What tests of several crates share. Tests with whole daemons have more, in `toold_tests`.
//!
//! `cargo test` runs the tests of a program as threads of one process, `cargo nextest` each in a process of its own. Every
//! test passes in both, since none changes what a process has only once:
//!
//! - Environment variables, the current folder, the umask, limits, and signal handlers. Tests set them for the programs
//!   that they start, and pass folders and variables to the code that they call.
//! - The mark of tools and the reaper, which all daemons of a process share. `toold_host::process::reaper::allow` is for
//!   the daemon's own program; without it, commands run unmarked, and nothing ends them if the test is killed.
//! - The folder for names of temporary files (`toold_host::replace::record::keep_in`), which is set once and then serves
//!   every daemon of the process.
//! - The values that `toold_engine::redact::hide` removes from all texts. They only become more, so a test hides values
//!   that no other test expects to see.
//!
//! A test that needs one of these to be different, or a process that it can kill, runs a test of its own program once more
//! with [`own_process`]. A daemon as users run it is a process of its own anyway: `toold_tests::TestDaemon`.

mod calls;
mod git;
mod own_process;
mod processes;
mod progress_record;
mod sample_tool;
mod scripted_server;
mod skip;
mod wait;

pub use calls::{new_session, person, prepare_call};
pub use git::git;
pub use own_process::own_process;
pub use processes::{has_ended, wait_until_ended};
pub use progress_record::ProgressRecord;
pub use sample_tool::{SampleTool, sample_spec};
pub use scripted_server::{ScriptedServer, ServerStep, answer, ok, redirect};
pub use skip::{skip, skip_uninstalled};
pub use wait::{PATIENCE, until};
