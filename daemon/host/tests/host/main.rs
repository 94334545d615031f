//! Processes, files, HTTP and the shell's grammar, as tools use them.

mod commands;
mod crash;
mod http;
mod process;
mod shell_and_bash;
mod shell_corpus;
mod stale;
