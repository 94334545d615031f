//! The command line of toold. [`cli`] lists the subcommands; each is a file in `commands/`.

mod browser;
mod cli;
mod commands;

mod amount;
mod arguments;
mod clock;
mod completion;
mod config_file;
mod confirm;
mod connection;
mod event_line;
mod exit;
mod finding;
mod flame_graph;
mod follow;
mod form;
mod globals;
mod groups;
mod keys;
mod live;
mod made_folders;
mod new_grant;
mod output;
mod path_names;
mod person;
mod profiles;
mod program;
mod prompts;
mod screen;
mod secret_texts;
mod sources;
mod table;
mod terminal;
mod tool_names;
mod tool_title;
mod version_check;
mod views;

use std::io::Write;
use std::pin::Pin;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = completion::run_if_asked(cli::command) {
        return code;
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::hook::run_first(&arguments) {
        return code;
    }
    if let Some(code) = commands::confine::run_first(&arguments) {
        return code;
    }
    let cli = match cli::parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let is_usage = error.use_stderr();
            let printed = match is_usage {
                true => write!(output::stderr(), "{}", error.render().ansi()),
                false => error.print(),
            };
            return match printed {
                // When stderr is closed, the exit status has to say it all.
                Ok(()) | Err(_) if is_usage => ExitCode::from(exit::USAGE),
                Ok(()) => ExitCode::from(exit::OK),
                Err(error) => exit::report(&error.into()),
            };
        }
    };
    output::present(output::Presentation {
        plain: cli.globals.plain,
        dumb: std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb"),
        utc: cli.globals.utc,
    });
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("can't start the runtime")),
    };
    // In a box, or the code would be compiled for each kind of runtime.
    let running: Pin<Box<dyn Future<Output = anyhow::Result<u8>>>> = Box::pin(run(cli));
    let code = match runtime.block_on(running) {
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
