//! The command line of toold. [`cli`] lists the subcommands; each is a file in `commands/`.

mod cli;
mod commands;

mod arguments;
mod completion;
mod confirm;
mod connection;
mod event_line;
mod exit;
mod flame_graph;
mod follow;
mod form;
mod globals;
mod keys;
mod live;
mod local_time;
mod output;
mod profiles;
mod program;
mod prompts;
mod screen;
mod sources;
mod table;
mod tool_title;
mod version_check;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

fn main() -> ExitCode {
    // Before anything is read or written: a shell asks for completions by an environment variable.
    let current_dir = std::env::current_dir().ok();
    match clap_complete::CompleteEnv::with_factory(cli::Cli::command)
        .try_complete(std::env::args_os(), current_dir.as_deref())
    {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        // Nobody reads the messages of a completion, and a closed pipe is not a failure.
        Err(_) => return ExitCode::from(exit::USAGE),
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::hook::run_first(&arguments) {
        return code;
    }
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Fails when the help goes to a closed pipe, as when a pager exits.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("can't start the runtime")),
    };
    let code = match runtime.block_on(run(cli)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => exit::report(&error),
    };
    // A thread that waits for a key must not keep the process alive.
    runtime.shutdown_background();
    code
}

async fn run(cli: cli::Cli) -> anyhow::Result<u8> {
    let globals = cli.globals.clone();
    match cli::run(cli).await {
        Ok(status) => Ok(status),
        Err(error) => Err(version_check::explain(error, &globals).await),
    }
}
