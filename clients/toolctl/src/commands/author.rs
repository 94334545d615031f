//! `toolctl plugins new|check|test|types`: for plugin authors.
//!
//! `toolctl` has no Lua of its own: checks and tests run in the `toold` beside it, outside any daemon.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::exit::OK;
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
    program::run(&["plugin".as_ref(), "check".as_ref(), path.as_ref()]).await
}

/// Shows a plugin that may be installed, on stderr: loads it outside the daemon, with access to its own folder only.
/// Whether it loads without errors.
pub(crate) async fn preview(path: &Path) -> anyhow::Result<bool> {
    program::run_on_stderr(&["plugin".as_ref(), "check".as_ref(), path.as_ref()]).await
}

/// Tests may take as long as their author lets them.
pub(crate) async fn test(test: &TestArgs, json: bool) -> anyhow::Result<u8> {
    let mut arguments: Vec<&OsStr> = vec!["plugin".as_ref(), "test".as_ref(), test.path.as_ref()];
    arguments.extend(test.coverage.then_some(OsStr::new("--coverage")));
    arguments.extend(json.then_some(OsStr::new("--json")));
    if let Some(file) = &test.lcov {
        arguments.extend(["--lcov".as_ref(), file.as_os_str()]);
    }
    program::run_to_the_end(&arguments).await
}

pub(crate) fn types() -> anyhow::Result<u8> {
    output::stdout().write_all(STUBS.as_bytes())?;
    Ok(OK)
}

/// Creates a folder with a working tool, its test, and settings for lua-language-server.
pub(crate) fn new(name: &str, parent: &Path) -> anyhow::Result<u8> {
    let fits = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if !fits {
        bail!("{name:?} is not a plugin name: expected [a-z][a-z0-9_-]*");
    }
    let dir = parent.join(name);
    std::fs::create_dir(&dir).with_context(|| format!("can't create {}", dir.display()))?;
    let tool = name.replace('-', "_");
    let files: [(PathBuf, String); 5] = [
        (
            dir.join("plugin.toml"),
            format!(
                "name = \"{name}\"\nversion = \"0.1.0\"\ndescription = \"What {name} is for\"\napi = \"toold\"\n\n[capabilities]\ntools = true\n"
            ),
        ),
        (
            dir.join("plugin.lua"),
            format!(
                "hygge.register_tool{{\n  name = \"{tool}\",\n  description = \"Says hello\",\n  parallelizable = true,\n  \
                 input_schema = {{\n    type = \"object\",\n    properties = {{name = {{type = \"string\", description = \"whom to greet\"}}}},\n    \
                 required = {{\"name\"}},\n    additionalProperties = false,\n  }},\n  execute = function(ctx, input)\n    \
                 return \"hello \" .. input.name\n  end,\n}}\n"
            ),
        ),
        (
            dir.join("plugin_test.lua"),
            format!(
                "describe(\"{tool}\", function()\n  it(\"greets by name\", function()\n    \
                 local result = call(\"{tool}\", {{name = \"Ada\"}})\n    expect(result.content).to_be(\"hello Ada\")\n  end)\nend)\n"
            ),
        ),
        (
            dir.join(".luarc.json"),
            "{\n  \"runtime.version\": \"Lua 5.1\",\n  \"workspace.library\": [\"types\"]\n}\n".to_owned(),
        ),
        (dir.join("types/hygge.lua"), STUBS.to_owned()),
    ];
    std::fs::create_dir(dir.join("types")).with_context(|| format!("can't create {}/types", dir.display()))?;
    for (path, text) in &files {
        std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    writeln!(output::stdout(), "{}", dir.display())?;
    writeln!(output::stderr(), "test it with: toolctl plugins test {}", dir.display())?;
    Ok(OK)
}
