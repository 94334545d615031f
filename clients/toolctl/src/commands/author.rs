//! `toolctl plugins check|test|types`: for plugin authors.
//!
//! `toolctl` has no Lua of its own: checks and tests run in the `toold` beside it, outside any daemon.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::exit::{OK, not_found};
use crate::{output, program};

/// The type definitions of `hygge` for lua-language-server.
pub(crate) const STUBS: &str = include_str!("../../../../plugins/types/hygge.lua");

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The plugin's file or folder
    path: PathBuf,
    /// Also show which lines ran
    #[arg(long)]
    coverage: bool,
    /// Write the lines that ran into a file, in the format of lcov
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
}

pub(crate) async fn check(path: &Path) -> anyhow::Result<u8> {
    must_exist(path)?;
    program::run(&["plugin".as_ref(), "check".as_ref(), path.as_ref()]).await
}

/// Shows a plugin that may be installed, on stderr: loads it outside the daemon, with access to its own folder only.
/// Whether it loads without errors.
pub(crate) async fn preview(path: &Path) -> anyhow::Result<bool> {
    program::run_on_stderr(&["plugin".as_ref(), "check".as_ref(), path.as_ref()]).await
}

/// Tests may take as long as their author lets them.
pub(crate) async fn test(test: &TestArgs, json: bool) -> anyhow::Result<u8> {
    must_exist(&test.path)?;
    let mut arguments: Vec<&OsStr> = vec!["plugin".as_ref(), "test".as_ref(), test.path.as_ref()];
    arguments.extend(test.coverage.then_some(OsStr::new("--coverage")));
    arguments.extend(json.then_some(OsStr::new("--json")));
    if let Some(file) = &test.lcov {
        arguments.extend(["--lcov".as_ref(), file.as_os_str()]);
    }
    program::run_to_the_end(&arguments).await
}

/// # Errors
/// There is nothing at the path.
pub(crate) fn must_exist(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Ok(());
    }
    Err(not_found(format!("there is no file or folder {}", path.display())))
}

pub(crate) fn types(json: bool) -> anyhow::Result<u8> {
    if json {
        output::print_json(&json!({"types": STUBS}))?;
    } else {
        output::print_unfolded(STUBS)?;
    }
    Ok(OK)
}
