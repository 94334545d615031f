//! `toolctl do`: the slash commands of plugins.

use std::io::Write;

use clap::Args;
use toold_proto::command::RunCommand;
use toold_proto::daemon::NoParams;
use toold_proto::method::{CommandsList, CommandsRun};

use crate::connection;
use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::output::{self, one_line, print_foreign, print_json};

/// Run a command of a plugin, or list the commands
#[derive(Debug, Args)]
pub(crate) struct DoArgs {
    /// The command, with or without its slash; without it, all commands are listed
    name: Option<String>,
    /// The input of the command: the words behind its name
    #[arg(value_name = "INPUT", trailing_var_arg = true, allow_hyphen_values = true)]
    input: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DoArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let Some(name) = args.name else {
        let list = client.call::<CommandsList>(NoParams {}).await?;
        if args.json {
            print_json(&list)?;
            return Ok(OK);
        }
        for command in &list.commands {
            let (name, about) = (one_line(&command.name), one_line(&command.description));
            writeln!(output::stdout(), "{name}  {about}  ({})", one_line(&command.plugin))?;
        }
        if list.commands.is_empty() {
            writeln!(output::stderr(), "no plugin has a command")?;
        }
        return Ok(OK);
    };
    let run = RunCommand { name, input: args.input.join(" "), session_id: None, progress: false };
    let result = client.call::<CommandsRun>(run).await?;
    match args.json {
        true => print_json(&result)?,
        false => {
            let text = result.text();
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            print_foreign(&format!("{text}{end}"))?;
        }
    }
    Ok(if result.is_error { TOOL_ERROR } else { OK })
}
