//! `toolctl completions`: the completion script of a shell.

use std::io::Write;

use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;

use crate::exit::OK;

/// Print the completion script for a shell, which also completes tool names
///
/// bash: source <(toolctl completions bash)
/// zsh:  source <(toolctl completions zsh)
/// fish: toolctl completions fish | source
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: CompletionShell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let name = match args.shell {
        CompletionShell::Bash => "bash",
        CompletionShell::Elvish => "elvish",
        CompletionShell::Fish => "fish",
        CompletionShell::Powershell => "powershell",
        CompletionShell::Zsh => "zsh",
    };
    let shells = Shells::builtins();
    let completer = shells.completer(name).context("this build does not support the shell")?;
    let mut script = Vec::new();
    completer.write_registration("COMPLETE", "toolctl", "toolctl", "toolctl", &mut script)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(OK)
}
