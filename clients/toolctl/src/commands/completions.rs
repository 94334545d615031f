//! `toolctl completions`: the completion script of a shell.

use std::io::Write;

use clap::{Args, ValueEnum};

use crate::completion::shells::write_script;
use crate::exit::OK;

/// Print the completion script for a shell, which also completes tools, their arguments, and ids
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
    let mut out = std::io::stdout().lock();
    write_script(name, &mut out)?;
    out.flush()?;
    Ok(OK)
}
