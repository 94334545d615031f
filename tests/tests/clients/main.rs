//! toolctl, the page, frontends and documents, as people use them with a real daemon.

mod agent_confine;
mod agent_hooks;
mod answers;
mod authors;
mod completions;
mod docs;
mod exit_statuses;
mod explained;
mod first_hour;
mod forms;
mod frontends;
mod notify;
mod other_make;
mod page;
mod plugin_logs;
mod plugins_ctl;
mod plugins_repl;
mod screen;
mod setup;
mod terminal_texts;
mod tmux;
mod tool_docs;
mod toolctl;
mod undo;
mod widths;
mod working_day;
