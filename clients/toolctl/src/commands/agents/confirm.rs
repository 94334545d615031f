//! `toolctl agents confirm`: a person vouches for a program that toold cannot tell from one that an agent left behind.

use std::io::Write;

use clap::Args;
use toold_proto::agent_request::ConfirmPerson;
use toold_proto::daemon::NoParams;
use toold_proto::method::{PermissionsCode, PermissionsConfirm};

use crate::connection;
use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::output;
use crate::person::is_below_first_shell;

/// Allow a program that has no terminal and no parent, such as one started from the desktop menu, to answer prompts
///
/// toold can't tell such a program from one that an agent left behind. In a terminal, this prints a code, which is valid once
/// and for two minutes. Below the program, such as in its own command line, it takes the code; until the program ends, it may
/// then decide.
#[derive(Debug, Args)]
pub(crate) struct AgentsConfirmArgs {
    /// The code that another terminal shows
    code: Option<String>,
}

pub(crate) async fn run(args: AgentsConfirmArgs, globals: &Globals) -> anyhow::Result<u8> {
    if args.code.is_some() && is_below_first_shell() {
        return Err(usage(
            "the shell of this terminal is process 1, so that the code would count for this command alone: start another \
             shell (`bash`), and give the code there",
        ));
    }
    let client = connection::open(globals).await?;
    let mut out = output::stdout();
    match args.code {
        Some(code) => {
            client.call::<PermissionsConfirm>(ConfirmPerson { code }).await?;
            writeln!(out, "confirmed: this program may decide until it ends")?;
        }
        None => {
            let made = client.call::<PermissionsCode>(NoParams {}).await?;
            writeln!(out, "{}\nfor `toolctl agents confirm CODE`, once, until {}", made.code, made.expires_at)?;
        }
    }
    Ok(OK)
}
