//! The values of arguments, each with a description.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::pin::Pin;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use toold_client::{Client, ClientError, place};
use toold_proto::call::ListTools;
use toold_proto::daemon::NoParams;
use toold_proto::event::{EventBody, Outcome};
use toold_proto::file::FileHistory;
use toold_proto::fleet::{FleetDaemon, FleetStatus};
use toold_proto::mcp::{ALL_TOOLS, WITHOUT_FILES_AND_SHELL};
use toold_proto::method::{
    CommandsList, DaemonGetConfig, FilesHistory, FleetGetStatus, FleetGrantsList, McpServersList, MemoriesList,
    PageSessionsList, PermissionsList, PermissionsPending, PluginsList, RemotesList, SecretsList, SessionsList,
    ShellsList, SkillsList, ToolsList, WorkspacesList,
};
use toold_proto::plugin::ListPlugins;
use toold_proto::shell::ListShells;
use toold_proto::skill::OfSession;
use toold_proto::tool::{Category, SourceKind, Tool};

use crate::completion::line;
use crate::connection;
use crate::output::{first_sentence, one_line, shorten};
use crate::{path_names, profiles};

/// Time limit of one question to the daemon.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    offer(current, all_tools().iter().map(|tool| (tool.name.to_string(), first_sentence(&tool.description, 80))))
}

pub(super) fn sources(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut sources: Vec<(String, String)> =
        SourceKind::ALL.map(|kind| (kind.as_str().to_owned(), "all of this kind".to_owned())).to_vec();
    for tool in all_tools() {
        if !sources.iter().any(|(name, _)| *name == tool.source.name) {
            sources.push((tool.source.name, tool.source.kind.as_str().to_owned()));
        }
    }
    offer(current, sources)
}

pub(super) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client: Client| profiles::names(&client).await);
    let names = names.unwrap_or_else(|| [ALL_TOOLS, WITHOUT_FILES_AND_SHELL].map(str::to_owned).to_vec());
    offer(current, names.into_iter().map(|name| (name, String::new())))
}

pub(super) fn plugins(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<PluginsList>(ListPlugins { all: true }).await);
    let plugins = list.into_iter().flat_map(|list| list.plugins);
    let about = |description: Option<String>| first_sentence(&description.unwrap_or_default(), 80);
    offer(current, plugins.map(|plugin| (plugin.name, about(plugin.description))))
}

pub(super) fn commands(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<CommandsList>(NoParams {}).await);
    let commands = list.into_iter().flat_map(|list| list.commands);
    offer(current, commands.map(|command| (command.name, first_sentence(&command.description, 80))))
}

pub(super) fn shells(current: &OsStr) -> Vec<CompletionCandidate> {
    let params = ListShells { session_id: None, all: true };
    let list = ask(async |client: Client| client.call::<ShellsList>(params).await);
    let shells = list.into_iter().flat_map(|list| list.shells);
    offer(current, shells.map(|shell| (shell.shell_id, shell.command)))
}

pub(super) fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<SessionsList>(NoParams {}).await);
    let sessions = list.into_iter().flat_map(|list| list.sessions);
    offer(
        current,
        sessions.map(|session| {
            let client = session.client.map(|client| format!("{} in ", client.name)).unwrap_or_default();
            (session.session_id.to_string(), format!("{client}{}", session.cwd))
        }),
    )
}

pub(super) fn grants(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<PermissionsList>(NoParams {}).await);
    let grants = list.into_iter().flat_map(|list| list.grants);
    offer(
        current,
        grants.map(|grant| {
            let action = serde_json::to_value(grant.action).unwrap_or_default();
            let action = action.as_str().unwrap_or_default().to_owned();
            (grant.id, format!("{action} {} {} {}", grant.category, grant.pattern, grant.scope.as_str()))
        }),
    )
}

pub(super) fn asks(current: &OsStr) -> Vec<CompletionCandidate> {
    let pending = ask(async |client: Client| client.call::<PermissionsPending>(NoParams {}).await);
    let asks = pending.into_iter().flat_map(|pending| pending.asks);
    offer(current, asks.map(|ask| (ask.request_id, format!("{}: {} {}", ask.tool, ask.category, ask.target))))
}

/// The patterns of the prompt that the line names; of all without one.
pub(super) fn suggested_patterns(current: &OsStr) -> Vec<CompletionCandidate> {
    let pending = ask(async |client: Client| client.call::<PermissionsPending>(NoParams {}).await);
    let mut asks = pending.map(|pending| pending.asks).unwrap_or_default();
    if let Some(at) = asks.iter().position(|ask| line::words().contains(&ask.request_id)) {
        asks = vec![asks.swap_remove(at)];
    }
    let suggestions = asks.into_iter().flat_map(|ask| ask.suggestions);
    offer(current, suggestions.map(|suggestion| (suggestion.pattern, suggestion.scope.as_str().to_owned())))
}

/// Browsers that are signed in to the page.
pub(super) fn page_sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<PageSessionsList>(NoParams {}).await);
    let sessions = list.into_iter().flat_map(|list| list.sessions);
    offer(current, sessions.map(|session| (session.id.to_string(), session.browser)))
}

pub(super) fn skills(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask_in_session(async |client: Client| client.call::<SkillsList>(OfSession::default()).await);
    let skills = list.into_iter().flat_map(|list| list.skills);
    offer(current, skills.map(|skill| (skill.name, first_sentence(&skill.description, 80))))
}

pub(super) fn memories(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask_in_session(async |client: Client| client.call::<MemoriesList>(OfSession::default()).await);
    let memories = list.into_iter().flat_map(|list| list.memories);
    offer(current, memories.map(|memory| (memory.memory_id, memory.content)))
}

pub(super) fn mcp_servers(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<McpServersList>(NoParams {}).await);
    let servers = list.into_iter().flat_map(|list| list.servers);
    offer(current, servers.map(|server| (server.name, server.state.as_str().to_owned())))
}

pub(super) fn remotes(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<RemotesList>(NoParams {}).await);
    let remotes = list.into_iter().flat_map(|list| list.remotes);
    offer(current, remotes.map(|remote| (remote.name, remote.state.as_str().to_owned())))
}

pub(super) fn fleet_daemons(current: &OsStr) -> Vec<CompletionCandidate> {
    offer(current, fleet().into_iter().flat_map(|fleet| fleet.daemons.into_iter().map(daemon_with_state)))
}

/// Daemons and persons of the fleet.
pub(super) fn fleet_members(current: &OsStr) -> Vec<CompletionCandidate> {
    let config = ask(async |client: Client| client.call::<DaemonGetConfig>(NoParams {}).await);
    let entries = config.into_iter().flat_map(|config| config.entries);
    let people = entries.filter_map(|entry| {
        let (name, _) = entry.key.strip_prefix("fleet.people.")?.split_once('.')?;
        Some((name.to_owned(), "person".to_owned()))
    });
    let daemons = fleet().into_iter().flat_map(|fleet| fleet.daemons.into_iter().map(daemon_with_state));
    offer(current, daemons.chain(people).collect::<BTreeMap<_, _>>())
}

fn fleet() -> Option<FleetStatus> {
    ask(async |client: Client| client.call::<FleetGetStatus>(NoParams {}).await)
}

fn daemon_with_state(daemon: FleetDaemon) -> (String, String) {
    (daemon.name, daemon.state.as_str().to_owned())
}

pub(super) fn fleet_grants(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<FleetGrantsList>(NoParams {}).await);
    let grants = list.into_iter().flat_map(|list| list.grants);
    offer(current, grants.map(|grant| (grant.id, format!("{} {}", grant.category, grant.pattern))))
}

pub(super) fn secrets(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<SecretsList>(NoParams {}).await);
    let secrets = list.into_iter().flat_map(|list| list.secrets);
    let used =
        |names: Vec<String>| if names.is_empty() { String::new() } else { format!("used by {}", names.join(", ")) };
    offer(current, secrets.map(|secret| (secret.name, used(secret.used_by))))
}

pub(super) fn workspaces(current: &OsStr) -> Vec<CompletionCandidate> {
    let list = ask(async |client: Client| client.call::<WorkspacesList>(NoParams {}).await);
    let workspaces = list.into_iter().flat_map(|list| list.workspaces);
    offer(current, workspaces.map(|workspace| (workspace.path, String::new())))
}

/// Calls that changed files below the current folder, the last ones first.
pub(super) fn changing_calls(current: &OsStr) -> Vec<CompletionCandidate> {
    let history = FileHistory { session_id: None, all: true };
    let known = ask(async |client: Client| client.call::<FilesHistory>(history).await);
    let changes = known.into_iter().flat_map(|known| known.changes.into_iter().rev());
    let undoable = changes.filter(|change| !change.undone);
    offer(current, undoable.map(|change| (change.call_id.to_string(), format!("{} {}", change.tool, change.path))))
}

pub(super) fn config_keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let config = ask(async |client: Client| client.call::<DaemonGetConfig>(NoParams {}).await);
    let entries = config.into_iter().flat_map(|config| config.entries);
    offer(current, entries.map(|entry| (entry.key, entry.value.to_string())))
}

pub(super) fn event_kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    // Kinds are given with commas between them.
    let before = text.rfind(',').map_or("", |comma| &text[..=comma]);
    offer(current, EventBody::KINDS.iter().map(|kind| (format!("{before}{kind}"), String::new())))
}

pub(super) fn outcomes(current: &OsStr) -> Vec<CompletionCandidate> {
    offer(current, Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), String::new())))
}

pub(super) fn categories(current: &OsStr) -> Vec<CompletionCandidate> {
    let words = line::words();
    let before = words.len().checked_sub(2).and_then(|at| words.get(at));
    // The word behind a category is its target.
    if before.is_some_and(|word| Category::parse(word).is_some()) {
        return paths(current);
    }
    offer(current, Category::ALL.map(|category| (category.as_str().to_owned(), String::new())))
}

/// `@` and the path of a file, for a value that may be the content of one.
pub(super) fn contents(current: &OsStr) -> Vec<CompletionCandidate> {
    let files = path_names::contents_matching(&current.to_string_lossy());
    offer(current, files.into_iter().map(|file| (file, String::new())))
}

/// Behind a category of files.
pub(super) fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    let of_files = |word: &String| matches!(Category::parse(word), Some(Category::FileRead | Category::FileWrite));
    if !line::words().iter().any(of_files) {
        return Vec::new();
    }
    let paths = path_names::matching(&current.to_string_lossy());
    offer(current, paths.into_iter().map(|path| (path, String::new())))
}

fn all_tools() -> Vec<Tool> {
    let list = ask(async |client: Client| client.call::<ToolsList>(ListTools::default()).await);
    list.and_then(|list| list.tools).unwrap_or_default()
}

/// Asks a running daemon; `None` when there is none, or it does not answer in time.
pub(super) fn ask<T>(question: impl AsyncFnOnce(Client) -> Result<T, ClientError>) -> Option<T> {
    let socket = line::option("--socket").map(Into::into).or_else(|| place::find_socket().ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let mut answer = None;
    // In a box, so that all questions share the code of the runtime.
    let asking: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(async {
        if let Ok(client) = Client::connect(&socket).await {
            answer = question(client).await.ok();
        }
    });
    // What has been answered when the time is over counts.
    let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, asking).await });
    answer
}

/// The same, in a session of the current folder.
fn ask_in_session<T>(question: impl AsyncFnOnce(Client) -> Result<T, ClientError>) -> Option<T> {
    ask(async |client: Client| {
        let Ok(session) = connection::open_session(&client, None, None).await else { return Ok(None) };
        let answer = question(client.clone()).await;
        session.close(&client).await;
        answer.map(Some)
    })
    .flatten()
}

/// The words that begin with the current one, with their descriptions.
pub(super) fn offer(current: &OsStr, words: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    words
        .into_iter()
        .filter(|(word, _)| word.starts_with(&*current))
        .map(|(word, help)| {
            let help = (!help.is_empty()).then(|| shorten(&one_line(&help), 100).into());
            CompletionCandidate::new(word).help(help)
        })
        .collect()
}
