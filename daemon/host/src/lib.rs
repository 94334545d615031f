//! Access to the system that built-in tools and plugins share: processes, files and the web.
//!
//! - Processes: [`process`] runs programs in an [`environment`] of their own, confined by the [`sandbox`], and keeps their
//!   output within bounds ([`output_buffer`]). The [`launcher`] stands between the daemon and a program, and gives it its
//!   [`tool_mark`]. [`process_registry`] records which call started a process, [`descendants`] finds them all, and
//!   [`stderr_log`] logs the stderr of servers.
//! - Commands: [`shell_grammar`] reads a command line and lists the permissions that it needs.
//! - Files: [`files`] resolves and opens paths, [`replace`] writes them atomically, [`file_needs`] lists the permissions for
//!   them, [`exclude`] reads `.aiexclude` and `.toolignore`, and [`read_access`] tells which files a call may read.
//!   [`tree`] walks folders and skips files named by [`ignore_files`]. [`checked_out`] knows what files hold in a
//!   commit, and [`git_state`] whether a command has changed branches or the index.
//! - Changes of files: [`stamps`] for cached results, [`times`] and [`folders`] for walks and watchers, and
//!   [`file_systems`] for those that report no changes or do not answer.
//! - [`secrets`] keeps the values that [`secret_text`] names.
//! - [`http`] makes requests to the web; [`state_file`] saves small JSON files of the daemon's own.

pub mod descendants;
pub mod desktop;
pub mod environment;
pub mod kept_programs;
pub mod launcher;
pub mod memory_reserve;
pub mod output_buffer;
pub mod process;
pub mod process_registry;
pub mod sandbox;
pub mod stderr_log;
mod terminal;
pub mod tool_mark;

pub mod shell_grammar;

pub mod checked_out;
mod credentials;
pub mod exclude;
pub mod file_facts;
pub mod file_needs;
pub mod file_systems;
pub mod files;
pub mod folder_events;
mod folder_names;
pub mod folders;
mod git_index;
mod git_settings;
pub mod git_state;
pub mod ignore_files;
mod pattern_budget;
mod random;
pub mod read_access;
pub mod replace;
pub mod stamps;
pub mod state_file;
pub mod times;
pub mod tree;

pub mod secret_text;
pub mod secrets;

pub mod http;
