//! `toolctl plugins new`: a plugin that works, to change.
//!
//! Its files are in the folder `scaffold`; `{{name}}`, `{{tool}}` and `{{path}}` are filled in.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use toold_proto::daemon::NoParams;
use toold_proto::method::{DaemonGetStatus, PluginsList};
use toold_proto::plugin::{ListPlugins, Plugin};
use toold_proto::shell_word::quoted;

use crate::commands::author::STUBS;
use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::{connection, output};

const PLUGIN: &str = include_str!("scaffold/plugin.lua.in");
const TESTS: &str = include_str!("scaffold/plugin_test.lua.in");

/// The files of a folder.
const FILES: [(&str, &str); 7] = [
    ("plugin.toml", include_str!("scaffold/plugin.toml.in")),
    ("plugin.lua", PLUGIN),
    ("plugin_test.lua", TESTS),
    ("README.md", include_str!("scaffold/README.md.in")),
    (".gitignore", include_str!("scaffold/gitignore.in")),
    (".luarc.json", include_str!("scaffold/luarc.json.in")),
    ("types/hygge.lua", STUBS),
];

/// The plugin to create, and its place
#[derive(Debug, Args)]
pub(crate) struct NewPluginArgs {
    /// Lower-case letters, digits, `_` and `-`
    name: String,
    /// The folder to create it in; the daemon's plugin folder by default, where it is served at once
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Create one file and its test, instead of a folder
    #[arg(long)]
    single: bool,
}

pub(crate) async fn new(args: &NewPluginArgs, globals: &Globals) -> anyhow::Result<u8> {
    let NewPluginArgs { name, dir, single } = args;
    check_name(name)?;
    let parent = match dir {
        Some(dir) => dir.clone(),
        None => plugin_folder(name, globals).await?,
    };
    ensure!(
        parent.is_dir(),
        "there is no folder {}: create it first, or give another one with --dir",
        parent.display()
    );
    let path = parent.join(if *single { format!("{name}.lua") } else { name.clone() });
    let tests = parent.join(format!("{name}_test.lua"));
    for taken in [&path, &tests].iter().take(if *single { 2 } else { 1 }) {
        ensure!(!taken.exists(), "{} already exists: choose another name, or remove it", taken.display());
    }
    let tool = name.replace('-', "_");
    let fill = |text: &str| {
        let path = path.display().to_string();
        text.replace("{{name}}", name).replace("{{tool}}", &tool).replace("{{path}}", &path)
    };
    if *single {
        write(&tests, &fill(TESTS))?;
        write(&path, &fill(PLUGIN))?;
    } else {
        // Hidden until it is whole: the daemon may watch the folder.
        let beside = parent.join(format!(".new-{name}-{}", std::process::id()));
        let made = FILES.iter().try_for_each(|(file, text)| write(&beside.join(file), &fill(text)));
        let made = made
            .and_then(|()| std::fs::rename(&beside, &path).with_context(|| format!("can't create {}", path.display())));
        if made.is_err() {
            // Parts of it may remain.
            let _ = std::fs::remove_dir_all(&beside);
        }
        made?;
    }
    if dir.is_none() {
        wait_until_found(name, globals).await?;
    }
    writeln!(output::stdout(), "{}", path.display())?;
    output::stderr().write_all(next_steps(&path, &tool, dir.is_none(), *single).as_bytes())?;
    Ok(OK)
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_letter = |c: char| c.is_ascii_lowercase();
    let fits = |name: &str| {
        name.starts_with(is_letter)
            && name.len() <= 60
            && name.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '_' || c == '-')
    };
    if fits(name) {
        return Ok(());
    }
    let nearest: String = name
        .to_lowercase()
        .chars()
        .map(|c| if is_letter(c) || c.is_ascii_digit() || c == '-' { c } else { '_' })
        .skip_while(|c| !is_letter(*c))
        .collect();
    let suggestion = if fits(&nearest) { format!("; {nearest} is one") } else { String::new() };
    Err(usage(format!(
        "{name:?} is not a plugin name: expected a lower-case letter, then letters, digits, _ and -, at most 60{suggestion}"
    )))
}

/// The daemon's first plugin folder, if no plugin has the name yet.
async fn plugin_folder(name: &str, globals: &Globals) -> anyhow::Result<PathBuf> {
    let client = connection::open(globals).await?;
    let list = client.call::<PluginsList>(ListPlugins { all: true }).await?;
    if let Some(Plugin { path, bundled, .. }) = list.plugins.iter().find(|plugin| plugin.name == name) {
        let kind = if *bundled { "bundled plugin" } else { "plugin" };
        return Err(usage(format!("there is a {kind} {name} already, at {path}: choose another name")));
    }
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    let folder =
        status.plugin_dirs.first().map(PathBuf::from).context("the daemon has no plugin folder: give --dir")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
    Ok(folder)
}

/// Waits until the daemon has noticed the plugin, so that the next command can use it; five seconds at most.
async fn wait_until_found(name: &str, globals: &Globals) -> anyhow::Result<()> {
    let client = connection::open(globals).await?;
    for _ in 0..50 {
        let list = client.call::<PluginsList>(ListPlugins { all: false }).await?;
        if list.plugins.iter().any(|plugin| plugin.name == name) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))
}

fn next_steps(path: &Path, tool: &str, is_served: bool, single: bool) -> String {
    let shown = quoted(&path.display().to_string());
    let script = if single { String::new() } else { "/plugin.lua".to_owned() };
    let first = match is_served {
        true => format!("  toolctl call {tool} path={shown}{script}\n"),
        false => format!("  toolctl plugins check {shown}\n"),
    };
    let after = match is_served {
        true => "the tool changes in every client",
        false => "it is served once it is in a plugin folder: toolctl status shows them",
    };
    format!("next:\n{first}  toolctl plugins test {shown}\nedit {shown}{script} and save: {after}\n")
}
