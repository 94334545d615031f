//! `toolctl man`: the manual pages.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};

use crate::exit::{OK, usage};
use crate::output;

/// Write the manual pages, one for each subcommand, into a folder
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder, such as ~/.local/share/man/man1; it is created if missing
    folder: PathBuf,
}

pub(crate) fn run(args: &ManArgs, toolctl: Command) -> anyhow::Result<u8> {
    let folder = &args.folder;
    if folder.as_os_str() == "-" {
        return Err(usage("expected a folder: each subcommand has a page of its own, so - cannot stand for stdout"));
    }
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    clap_mangen::generate_to(toolctl, folder).with_context(|| format!("can't write to {}", folder.display()))?;
    writeln!(output::stderr(), "wrote the manual pages to {}", folder.display())?;
    Ok(OK)
}
