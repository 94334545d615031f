//! How long a request may have no answer, by its method.

use std::time::Duration;

use toold_proto::method::{
    AuditQuery, AuditVerify, CommandsRun, DaemonReload, DaemonRestart, DaemonShutdown, FilesForget, FilesHistory,
    FilesUndo, HooksRun, McpLoginBegin, McpLoginFinish, McpLogout, McpRestart, McpTest, Method, NotifyTest,
    PermissionsReplay, PermissionsReview, PermissionsSuggest, PluginsDisable, PluginsEnable, PluginsProfile,
    PluginsReload, PluginsTrust, RemotesReconnect, SecretsList, SecretsRemove, SecretsSet, SecretsUnlock, ShellsKill,
    ShellsWrite, ToolsExecute, ToolsExecuteBatch,
};

use crate::start;

/// How long a request may have no answer before the daemon is asked whether it answers at all.
pub(crate) const QUIET: Duration = Duration::from_secs(5);

/// Requests that take as long as the tool that they call.
const CALLS: &[&str] = &[ToolsExecute::NAME, ToolsExecuteBatch::NAME];

/// Requests that wait for you, for a program that the daemon runs, or for calls in flight.
const UNBOUNDED: &[&str] = &[
    CommandsRun::NAME,
    DaemonRestart::NAME,
    DaemonShutdown::NAME,
    HooksRun::NAME,
    // The desktop may ask you to unlock the keyring.
    McpLoginBegin::NAME,
    McpLoginFinish::NAME,
    McpLogout::NAME,
    // Its own time limit is in the configuration.
    McpTest::NAME,
    PluginsProfile::NAME,
    SecretsList::NAME,
    SecretsRemove::NAME,
    SecretsSet::NAME,
    SecretsUnlock::NAME,
    ShellsKill::NAME,
    ShellsWrite::NAME,
];

/// Requests that search, load, connect, or look at many files or rows.
const SLOW: &[&str] = &[
    AuditQuery::NAME,
    AuditVerify::NAME,
    DaemonReload::NAME,
    FilesForget::NAME,
    FilesHistory::NAME,
    FilesUndo::NAME,
    McpRestart::NAME,
    NotifyTest::NAME,
    PermissionsReplay::NAME,
    PermissionsReview::NAME,
    PermissionsSuggest::NAME,
    PluginsDisable::NAME,
    PluginsEnable::NAME,
    PluginsReload::NAME,
    PluginsTrust::NAME,
    RemotesReconnect::NAME,
];

/// Whether the request calls a tool: it is never given up, and never sent twice.
pub(crate) fn is_call(method: &str) -> bool {
    CALLS.contains(&method)
}

/// How long a daemon that answers new connections may take for this request; `None` for no limit.
pub(crate) fn patience_for(method: &str) -> Option<Duration> {
    match method {
        unbounded if UNBOUNDED.contains(&unbounded) => None,
        slow if SLOW.contains(&slow) => Some(Duration::from_secs(60)),
        // Answered from memory.
        _ => Some(start::PATIENCE),
    }
}
