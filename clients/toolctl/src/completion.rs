//! Completions for a shell, from the daemon if one is running. Never starts one, never waits long, and
//! offers nothing when anything fails.

use std::ffi::OsStr;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use serde_json::Value;
use toold_client::{Client, ClientError, place};
use toold_proto::call::{ListTools, ToolSchema};
use toold_proto::event::EventBody;
use toold_proto::mcp::{ALL_TOOLS, WITHOUT_FILES_AND_SHELL};
use toold_proto::method::{PluginsList, ShellsList, ToolsList, ToolsSchema};
use toold_proto::plugin::ListPlugins;
use toold_proto::shell::ListShells;
use toold_proto::tool::Tool;

use crate::output::first_sentence;
use crate::profiles;

/// The user waits at the keyboard.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let tools = all_tools();
    offer(current, tools.iter().map(|tool| (tool.name.to_string(), first_sentence(&tool.description, 80))))
}

pub(crate) fn sources(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names: Vec<String> = ["builtin", "frontend", "mcp", "plugin"].map(str::to_owned).to_vec();
    names.extend(all_tools().into_iter().map(|tool| tool.source.name));
    names.sort();
    names.dedup();
    offer(current, names.into_iter().map(|name| (name, String::new())))
}

pub(crate) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client: Client| profiles::names(&client).await);
    let names = names.unwrap_or_else(|| [ALL_TOOLS, WITHOUT_FILES_AND_SHELL].map(str::to_owned).to_vec());
    offer(current, names.into_iter().map(|name| (name, String::new())))
}

pub(crate) fn plugins(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<PluginsList>(ListPlugins { all: true }).await);
    let plugins = list.map(|list| list.plugins).unwrap_or_default();
    offer(current, plugins.into_iter().map(|plugin| (plugin.name, plugin.description.unwrap_or_default())))
}

pub(crate) fn shells(current: &OsStr) -> Vec<CompletionCandidate> {
    let params = ListShells { session_id: None, all: true };
    let list = ask(async |client: Client| client.call::<ShellsList>(params).await);
    let shells = list.map(|list| list.shells).unwrap_or_default();
    offer(current, shells.into_iter().map(|shell| (shell.shell_id, shell.command)))
}

pub(crate) fn event_kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    offer(current, EventBody::KINDS.iter().map(|kind| ((*kind).to_owned(), String::new())))
}

/// `key=` for the arguments of the tool that the line names, and `key=value` where the values are
/// few.
pub(crate) fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(name) = tool_on_the_line() else { return Vec::new() };
    let tool = ask(async |client: Client| client.call::<ToolsSchema>(ToolSchema { name, session_id: None }).await);
    let Some(tool) = tool else { return Vec::new() };
    let text = current.to_string_lossy();
    let mut words = Vec::new();
    for (key, schema) in tool.input_schema["properties"].as_object().into_iter().flatten() {
        if text.starts_with(&format!("{key}=")) {
            words.extend(values(schema).into_iter().map(|value| (format!("{key}={value}"), String::new())));
        } else {
            words.push((format!("{key}="), first_sentence(schema["description"].as_str().unwrap_or_default(), 80)));
        }
    }
    offer(current, words.into_iter())
}

fn values(schema: &Value) -> Vec<String> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    }
    if schema["type"] == "boolean" { vec!["true".to_owned(), "false".to_owned()] } else { Vec::new() }
}

/// The word after `call`, in the line that the shell passes.
fn tool_on_the_line() -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != "call").skip(1);
    words.find(|word| !word.starts_with('-'))
}

fn all_tools() -> Vec<Tool> {
    let list = ask(async |client: Client| client.call::<ToolsList>(ListTools::default()).await);
    list.and_then(|list| list.tools).unwrap_or_default()
}

fn ask<T>(question: impl AsyncFnOnce(Client) -> Result<T, ClientError>) -> Option<T> {
    let socket = place::find_socket().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let answer = async { question(Client::connect(&socket).await?).await };
        tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()
    })
}

fn offer(current: &OsStr, words: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    words
        .filter(|(word, _)| word.starts_with(&*current))
        .map(|(word, help)| {
            let help = (!help.is_empty()).then(|| help.into());
            CompletionCandidate::new(word).help(help)
        })
        .collect()
}
