//! `toolctl plugins`: plugins and their errors.

mod grant;
mod packages;
mod profile;
mod repl;
mod show;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use comfy_table::Cell;
use toold_proto::method::{PluginsList, PluginsReload};
use toold_proto::plugin::{ListPlugins, Plugin, PluginError, PluginList, PluginStatus, ReloadPlugins};

use crate::commands::plugins::packages::changed::{InstalledPlugin, installed};
use crate::commands::plugins::packages::source::FORMS;
use crate::commands::plugins::packages::update::UpdateArgs;
use crate::commands::plugins::packages::{install, remove, update};
use crate::commands::plugins::repl::ReplArgs;
use crate::commands::scaffold::{self, NewPluginArgs};
use crate::commands::{author, trust};
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, WARN, one_line, plain, print_json};
use crate::views::ViewCell;
use crate::views::sources::plugin_state;
use crate::{clock, connection, table};

/// List, install and reload plugins; create, check and test your own
#[derive(Debug, Args)]
pub(crate) struct PluginsArgs {
    #[command(subcommand)]
    action: Option<PluginsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PluginsAction {
    /// List the plugins, with the errors of those that failed
    List {
        /// Include bundled plugins that are switched off
        #[arg(long)]
        all: bool,
    },
    /// Show one plugin: its tools, hooks, files and errors
    Show {
        /// The name of the plugin
        name: String,
    },
    /// Show the logs, notices, messages and errors of plugins, and whether they loaded
    Logs {
        /// Only this plugin
        name: Option<String>,
        /// Keep showing new entries until you press Ctrl-C
        #[arg(long, short)]
        follow: bool,
    },
    /// Record where a plugin spends its time, and write a flame graph
    Profile(profile::ProfileArgs),
    /// Clone a plugin into the plugin folder; without a source, all that its plugins.lock names
    Install {
        #[arg(help = FORMS)]
        source: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Update an installed plugin, or all of them; exit status 3 if one fails
    Update(UpdateArgs),
    /// Remove a plugin from the plugin folder
    Remove {
        /// The name of the plugin
        name: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Reload a plugin, or all of them; exit status 3 if one fails
    Reload {
        /// Only this plugin
        name: Option<String>,
    },
    /// Show the permissions that a plugin was refused, and grant them; exit status 3 if it does not load afterwards
    Grant(grant::GrantPluginArgs),
    Repl(ReplArgs),
    /// Review a project's configuration and plugins, and trust them
    Trust(trust::TrustArgs),
    /// Enable a plugin permanently
    Enable {
        /// The name of the plugin
        name: String,
    },
    /// Disable a plugin permanently
    Disable {
        /// The name of the plugin
        name: String,
    },
    /// Create a plugin with a working tool and its tests, and serve it
    New(NewPluginArgs),
    /// Load a plugin outside the daemon and print every problem; exit status 1 if there is one
    Check {
        /// The plugin's file or folder
        path: PathBuf,
    },
    /// Run a plugin's tests; exit status 1 if one fails
    Test(author::TestArgs),
    /// Print the type definitions of `hygge` for lua-language-server
    Types,
}

pub(crate) async fn run(args: PluginsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let action = match args.action.unwrap_or(PluginsAction::List { all: false }) {
        PluginsAction::Trust(trust) => return trust::trust(trust, args.json, globals).await,
        PluginsAction::Grant(grant) => return grant::grant(grant, args.json, globals).await,
        PluginsAction::Repl(repl) => return repl::run(repl, globals).await,
        action => action,
    };
    match &action {
        PluginsAction::New(new) => return scaffold::new(new, globals).await,
        PluginsAction::Check { path } => return author::check(path).await,
        PluginsAction::Test(test) => return author::test(test, args.json).await,
        PluginsAction::Types => return author::types(args.json),
        PluginsAction::Show { name } => return show::show(name.clone(), args.json, globals).await,
        PluginsAction::Logs { name, follow } => return show::logs(name.clone(), *follow, args.json, globals).await,
        PluginsAction::Profile(profile) => return profile::profile(profile, args.json, globals).await,
        PluginsAction::Install { source, yes } => {
            return install::install(source.as_deref(), *yes, args.json, globals).await;
        }
        PluginsAction::Update(update) => return update::update(update, args.json, globals).await,
        PluginsAction::Remove { name, yes } => return remove::remove(name, *yes, args.json, globals).await,
        PluginsAction::List { .. }
        | PluginsAction::Reload { .. }
        | PluginsAction::Grant(_)
        | PluginsAction::Trust(_)
        | PluginsAction::Repl(_)
        | PluginsAction::Enable { .. }
        | PluginsAction::Disable { .. } => {}
    }
    let client = connection::open(globals).await?;
    let all = matches!(action, PluginsAction::List { all: true });
    let (list, failure) = match action {
        PluginsAction::Enable { name } => (trust::switch(name, true, globals).await?, OK),
        PluginsAction::Disable { name } => (trust::switch(name, false, globals).await?, OK),
        PluginsAction::New(_)
        | PluginsAction::Check { .. }
        | PluginsAction::Test(_)
        | PluginsAction::Types
        | PluginsAction::Show { .. }
        | PluginsAction::Logs { .. }
        | PluginsAction::Profile(_)
        | PluginsAction::Install { .. }
        | PluginsAction::Update(_)
        | PluginsAction::Remove { .. }
        | PluginsAction::Grant(_)
        | PluginsAction::Trust(_)
        | PluginsAction::Repl(_)
        | PluginsAction::List { .. } => (client.call::<PluginsList>(ListPlugins { all }).await?, OK),
        PluginsAction::Reload { name } => {
            let list = client.call::<PluginsReload>(ReloadPlugins { name: name.clone() }).await?;
            let meant = |plugin: &Plugin| name.as_ref().is_none_or(|name| *name == plugin.name);
            let failed = list.plugins.iter().any(|plugin| meant(plugin) && plugin.status == PluginStatus::Failed);
            (list, if failed { NOT_RUN } else { OK })
        }
    };
    let installed = installed(&client, &list.plugins).await?;
    if args.json {
        let mut list = serde_json::to_value(&list)?;
        for plugin in list["plugins"].as_array_mut().into_iter().flatten() {
            if let Some(installed) = plugin["path"].as_str().and_then(|path| installed.get(path)) {
                plugin["installed"] = serde_json::to_value(installed)?;
            }
        }
        print_json(&list)?;
        return Ok(failure);
    }
    output::print(&render(&list, &installed, output::terminal_width()))?;
    if list.plugins.is_empty() {
        writeln!(
            output::stderr(),
            "no plugins of your own; `toolctl plugins list --all` shows those that ship with toold"
        )?;
    }
    Ok(failure)
}

/// Why the newest version of a plugin does not serve, on one line.
pub(crate) fn rejected(plugin: &Plugin) -> String {
    let Some(error) = &plugin.error else { return format!("{} failed", plugin.name) };
    let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
    let place = error.file.as_ref().map(|file| format!("{file}{line}: ")).unwrap_or_default();
    let message = error.message.trim().lines().next().unwrap_or_default();
    let message = message.strip_prefix(&place).unwrap_or(message);
    // Lua names the file without its folder.
    let name = error.file.as_deref().and_then(|file| Path::new(file).file_name()?.to_str());
    let message = name.and_then(|name| message.strip_prefix(&format!("{name}{line}: "))).unwrap_or(message);
    let serves = match &plugin.loaded_at {
        Some(at) => format!("; the version that was loaded at {} serves", clock::date_and_time(at)),
        None => String::new(),
    };
    format!("{}: {place}{message}{serves}", plugin.name)
}

fn render(list: &PluginList, installed: &HashMap<String, InstalledPlugin>, width: Option<u16>) -> String {
    if list.plugins.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["PLUGIN", "STATUS", "VERSION", "TOOLS", "PATH"]));
    for plugin in &list.plugins {
        let kind = match installed.get(&plugin.path) {
            _ if plugin.bundled => " (bundled)",
            Some(installed) if installed.changed => " (changed here)",
            Some(_) | None => "",
        };
        let state = plugin_state(plugin);
        rows.add_row([
            table::name(&one_line(&plugin.name)),
            ViewCell { text: format!("{}{kind}", state.text), ..state }.into(),
            Cell::new(plugin.version.as_deref().map(one_line).unwrap_or_default()),
            Cell::new(one_line(&plugin.tools.join(" "))),
            Cell::new(one_line(&plugin.path)),
        ]);
    }
    let mut text = table::render(&rows);
    for plugin in &list.plugins {
        if let Some(error) = &plugin.error {
            text.push('\n');
            text.push_str(&explain(&plugin.name, error));
            if let Some(at) = &plugin.loaded_at {
                text.push_str(&format!("  the version that was loaded at {} serves\n", clock::date_and_time(at)));
            }
        }
        if plugin.status == PluginStatus::Shadowed {
            let is_first = |other: &&Plugin| other.name == plugin.name && other.status != PluginStatus::Shadowed;
            let first = list.plugins.iter().find(is_first).map(|first| format!(": {} comes first", first.path));
            let words = format!("{} is not used{}", plugin.path, first.unwrap_or_default());
            text.push_str(&format!(
                "\n{WARN}{}{WARN:#}: {}; rename one of them\n",
                one_line(&plugin.name),
                plain(&words)
            ));
        }
        for warning in &plugin.warnings {
            text.push_str(&format!("\n{WARN}{}{WARN:#}: {}\n", one_line(&plugin.name), plain(warning)));
        }
    }
    text
}

/// The error with its place in the file, as compilers show it.
fn explain(name: &str, error: &PluginError) -> String {
    let mut text = format!("{BAD}{}{BAD:#}: {}\n", one_line(name), plain(error.message.trim()));
    if let Some(file) = &error.file {
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        text.push_str(&format!("  {DIM}-->{DIM:#} {}{line}\n", one_line(file)));
    }
    if let (Some(line), Some(source)) = (error.line, &error.source_line) {
        text.push_str(&format!("  {DIM}{line:>4} |{DIM:#} {}\n", plain(source.trim_end())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_broken_plugin_shows_where() {
        let list = serde_json::from_value(json!({"plugins": [
            {"name": "git", "path": "/p/git", "status": "loaded", "version": "1.2", "tools": ["git_log", "git_show"],
             "warnings": ["the command /log is not used"]},
            {"name": "todo", "path": "/p/todo.lua", "status": "failed", "tools": ["todo_find"],
             "error": {"message": "expected 'end'", "file": "/p/todo.lua", "line": 3, "source_line": "  return 1 +"},
             "loaded_at": "2026-11-20T10:00:00Z"}
        ]}))
        .unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&render(&list, &HashMap::new(), None)).to_string(), @r"
         PLUGIN  STATUS  VERSION  TOOLS             PATH
         git     loaded  1.2      git_log git_show  /p/git
         todo    failed           todo_find         /p/todo.lua

        git: the command /log is not used

        todo: expected 'end'
          --> /p/todo.lua:3
             3 |   return 1 +
          the version that was loaded at 2026-11-20 10:00:00Z serves
        ");
    }
}
