//! Every method of the native dialect: its name, its parameters, its answer.
//!
//! A method is a type that implements [`Method`]; `methods!` and `subscriptions!` list them all. The daemon
//! registers handlers by these types, the client calls by them, and the OpenRPC document is made
//! from them, so the three cannot disagree.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
#[cfg(test)]
use toold_schemas::plain_schema_of;

use crate::agent_request::{
    ConfineCommand, ConfinedCommand, ConfirmPerson, ConfirmationCode, FinishRequest, FinishedRequest, JudgedRequest,
    RequestPermission,
};
use crate::audit;
use crate::cache::{CacheCleared, CacheStats};
use crate::call::{
    BatchResults, CancelCall, Cancelled, Execute, ExecuteBatch, FindTools, FoundTools, Interrupt, Interrupted,
    ListTools, ToolList, ToolSchema,
};
use crate::command::{CommandList, RunCommand, SubagentList};
use crate::config::{ReloadedConfig, ShownConfig};
use crate::cost::{MeasureTools, ToolCosts};
use crate::daemon::{DaemonStatus, Done, Metrics, NoParams, PauseDaemon, PausedDaemon, Restart, Restarted, Shutdown};
use crate::event::{Event, SubscribeEvents};
use crate::file::{
    ClearBuffer, ClearedBuffer, FileChanges, FileHistory, ForgetChanges, ForgottenChanges, SetBuffer, UndoFiles,
    UndoneFiles,
};
use crate::fleet::{FleetAuditList, FleetAuditQuery, FleetGrants, FleetStatus, MakeFleetGrant, RevokeFleetGrant};
use crate::hook::{HookAction, HookList, RunHooks};
use crate::level::{SessionLevel, SetLevel, ShowLevel};
use crate::mcp::{
    BeginMcpLogin, FinishMcpLogin, FinishedMcpLogin, McpLoggedOut, McpLoginBegun, McpServerList, NameMcpLogin,
    RestartMcpServer, TestMcpServer,
};
use crate::mcp_registry::{GetRegistryServer, RegistryServer, RegistryServerList, SearchMcpRegistry};
use crate::notify::NotifyReport;
use crate::page::{OpenPage, OpenedPage, PageSessionList, RevokePageSessions, RevokedPageSessions};
use crate::permission::{
    CheckPermission, CheckedPermission, GrantInfo, GrantPermission, ObserveAgents, ObserveState, PendingAsks,
    PermissionEvent, PermissionList, PermissionReview, ReplayRules, ReplayedRules, ReplyPermission, RevokePermission,
    SetMode, SubscribePrompts, SuggestRules, SuggestedRules,
};
use crate::plugin::{
    EvaluateInPlugin, Evaluation, ListPlugins, NamePlugin, PluginDetails, PluginList, ReloadPlugins, TrustPlugins,
    TrustReport,
};
use crate::plugin_log::{LogsOfPlugin, PluginLogs};
use crate::plugin_profile::{PluginProfile, ProfilePlugin};
use crate::prompt::{ParsePrompt, ParseStream, ParsedPrompt, ParsedStream, RenderPrompt, RenderedPrompt};
use crate::provide::{
    BegunCalls, CallInfo, CallList, FindBegunCalls, GetCall, Invocation, ListCalls, Provide, ProvideProgress,
    ProvideResult,
};
use crate::question::{QuestionEvent, ReplyQuestion};
use crate::remote::{ReconnectRemote, RemoteList};
use crate::secret::{GivenBackSecret, NameSecret, SecretList, SetSecret, UnlockSecrets};
use crate::session::{CloseSession, ClosedSession, OpenSession, OpenedSession, SessionList};
use crate::shell::{AttachShell, KillShell, KilledShell, ListShells, ResizeShell, ShellList, ShellOutput, WriteShell};
use crate::skill::{GetSkill, MemoryList, OfSession, SkillList, SkillText, TodoList};
use crate::tool::{Tool, ToolResult};
use crate::workspace::{NameWorkspace, ShareSession, SharedSession, WorkspaceList};

/// A request and its answer.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + Send + 'static;
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// A stream of items. The answer to its method is a string id; items are notifications
/// `{method: ITEM_METHOD, params: {subscription, result}}`.
pub trait Subscription {
    const NAME: &'static str;
    const ITEM_METHOD: &'static str;
    const UNSUBSCRIBE: &'static str;
    type Params: Serialize + DeserializeOwned + Send + 'static;
    type Item: Serialize + DeserializeOwned + Send + 'static;
}

/// The description of one method in the OpenRPC document.
#[cfg(test)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: Value,
    pub(crate) answer: Value,
    /// For a subscription: the method of its notifications, and the schema of their items.
    pub(crate) items: Option<(&'static str, Value)>,
}

macro_rules! methods {
    ($( $type:ident = $name:literal, $summary:literal, $params:ty => $answer:ty; )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $summary)]
            #[derive(Clone, Copy, Debug)]
            pub enum $type {}
            impl Method for $type {
                const NAME: &'static str = $name;
                type Params = $params;
                type Answer = $answer;
            }
        )*
        #[cfg(test)]
        fn described_methods() -> Vec<Described> {
            vec![ $( Described {
                name: $name,
                summary: $summary,
                params: plain_schema_of::<$params>(),
                answer: plain_schema_of::<$answer>(),
                items: None,
            }, )* ]
        }
    };
}

macro_rules! subscriptions {
    ($( $type:ident = $name:literal, $item:literal, $end:literal, $summary:literal, $params:ty => $answer:ty; )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $summary)]
            #[derive(Clone, Copy, Debug)]
            pub enum $type {}
            impl Subscription for $type {
                const NAME: &'static str = $name;
                const ITEM_METHOD: &'static str = $item;
                const UNSUBSCRIBE: &'static str = $end;
                type Params = $params;
                type Item = $answer;
            }
        )*
        #[cfg(test)]
        fn described_subscriptions() -> Vec<Described> {
            [ $( [
                Described {
                    name: $name,
                    summary: $summary,
                    params: plain_schema_of::<$params>(),
                    answer: plain_schema_of::<String>(),
                    items: Some(($item, plain_schema_of::<$answer>())),
                },
                Described {
                    name: $end,
                    summary: concat!("Ends a subscription of ", $name, "."),
                    params: plain_schema_of::<crate::event::Unsubscribe>(),
                    answer: plain_schema_of::<bool>(),
                    items: None,
                },
            ], )* ].into_iter().flatten().collect()
        }
    };
}

methods! {
    SessionOpen = "session.open", "Opens or resumes a session and binds it to this connection.", OpenSession => OpenedSession;
    SessionsList = "session.list", "Lists the sessions.", NoParams => SessionList;
    SessionShare = "session.share", "Returns a one-time code that lets an agent join a session.", ShareSession => SharedSession;
    SessionClose = "session.close", "Ends a session and cancels its calls.", CloseSession => ClosedSession;
    ToolsList = "tools.list", "Lists the tools of the caller's view, sorted by name.", ListTools => ToolList;
    ToolsSchema = "tools.schema", "Shows one tool.", ToolSchema => Tool;
    ToolsSearch = "tools.search", "Finds tools by words, the best first.", FindTools => FoundTools;
    ToolsCost = "tools.cost", "Estimates the tokens that the lists of tools take.", MeasureTools => ToolCosts;
    ToolsExecute = "tools.execute", "Calls a tool.", Execute => ToolResult;
    ToolsExecuteBatch = "tools.execute_batch", "Calls several tools; results come in the order of the calls.", ExecuteBatch => BatchResults;
    ToolsInterrupt = "tools.interrupt", "Skips the waiting calls of a session; running calls finish.", Interrupt => Interrupted;
    ToolsCancel = "tools.cancel", "Cancels a call of the caller's session.", CancelCall => Cancelled;
    ToolsProvideResult = "tools.provide_result", "Answers an invocation of a provided tool.", ProvideResult => Done;
    ToolsProvideProgress = "tools.provide_progress", "Reports the progress of an invocation of a provided tool.", ProvideProgress => Done;
    CallsList = "calls.list", "Lists the calls of a session.", ListCalls => CallList;
    CallsBegun = "calls.begun", "Tells which of these calls have begun, also in a daemon that was killed.", FindBegunCalls => BegunCalls;
    CallsGet = "calls.get", "Shows a call: its state, its output so far and, for a while, its result.", GetCall => CallInfo;
    PermissionsReply = "permissions.reply", "Answers a permission ask; the first reply wins.", ReplyPermission => Done;
    PermissionsPending = "permissions.pending", "Lists the asks that wait for an answer.", NoParams => PendingAsks;
    PermissionsList = "permissions.list", "Lists rules and grants with their sources.", NoParams => PermissionList;
    PermissionsGrant = "permissions.grant", "Stores a grant.", GrantPermission => GrantInfo;
    PermissionsRevoke = "permissions.revoke", "Removes a grant.", RevokePermission => Done;
    PermissionsReview = "permissions.review", "Lists the grants with their uses, and proposes which to drop or merge.", NoParams => PermissionReview;
    PermissionsCheck = "permissions.check", "Checks whether something would be allowed, and by which rule.", CheckPermission => CheckedPermission;
    PermissionsRequest = "permissions.request", "Judges what an agent is about to do with a tool of its own.", RequestPermission => JudgedRequest;
    PermissionsDone = "permissions.done", "Reports that the tool of a judged request has ended.", FinishRequest => FinishedRequest;
    PermissionsConfine = "permissions.confine", "Says how an agent runs a command line that was judged, once.", ConfineCommand => ConfinedCommand;
    PermissionsCode = "permissions.code", "Makes a code with which a person confirms a program that an agent may have left behind.", NoParams => ConfirmationCode;
    PermissionsConfirm = "permissions.confirm", "Confirms, with a code, that a person uses this program.", ConfirmPerson => Done;
    PermissionsSetMode = "permissions.set_mode", "Changes the permission mode of a session.", SetMode => Done;
    DaemonPause = "daemon.pause", "Pauses everything: commands are stopped, and nothing is allowed until a person resumes.", PauseDaemon => PausedDaemon;
    DaemonResume = "daemon.resume", "Ends a pause.", NoParams => PausedDaemon;
    PermissionsReplay = "permissions.replay", "Decides the needs of the audit log again, by other rules or at another level.", ReplayRules => ReplayedRules;
    PermissionsSuggest = "permissions.suggest", "Proposes rules that would have answered as a person did.", SuggestRules => SuggestedRules;
    PermissionsObserve = "permissions.observe", "Records what would be asked and allowed, and leaves it to the agents, for some days.", ObserveAgents => ObserveState;
    PermissionsLevel = "permissions.level", "Shows how much runs without an approval in a session, and why.", ShowLevel => SessionLevel;
    PermissionsSetLevel = "permissions.set_level", "Changes how much runs without an approval in a session.", SetLevel => SessionLevel;
    QuestionsReply = "questions.reply", "Answers a tool's question; the first reply wins.", ReplyQuestion => Done;
    PluginsList = "plugins.list", "Lists the plugins, including those that failed.", ListPlugins => PluginList;
    PluginsReload = "plugins.reload", "Reloads one plugin or all of them, changed or not.", ReloadPlugins => PluginList;
    PluginsEvaluate = "plugins.evaluate", "Runs Lua that a person typed in a plugin's main Lua state, as a call.", EvaluateInPlugin => Evaluation;
    ShellsList = "shells.list", "Lists the background commands.", ListShells => ShellList;
    ShellsWrite = "shells.write", "Sends input to a background command.", WriteShell => Done;
    ShellsResize = "shells.resize", "Changes the size of a background command's terminal.", ResizeShell => Done;
    ShellsKill = "shells.kill", "Kills a background command and all its processes.", KillShell => KilledShell;
    PluginsShow = "plugins.show", "Shows one plugin of the caller's view.", NamePlugin => PluginDetails;
    PluginsLogs = "plugins.logs", "Returns the log lines, notices and messages of plugins that are still buffered.", LogsOfPlugin => PluginLogs;
    PluginsProfile = "plugins.profile", "Records for a while where a plugin spends its time.", ProfilePlugin => PluginProfile;
    PluginsEnable = "plugins.enable", "Enables a plugin permanently.", NamePlugin => PluginList;
    PluginsDisable = "plugins.disable", "Disables a plugin permanently.", NamePlugin => PluginList;
    PluginsTrust = "plugins.trust", "Trusts a project's configuration and plugins as they are now.", TrustPlugins => TrustReport;
    McpServersList = "mcp.servers", "Lists the mounted MCP servers.", NoParams => McpServerList;
    McpRestart = "mcp.restart", "Restarts a mounted MCP server.", RestartMcpServer => McpServerList;
    McpTest = "mcp.test", "Starts a mounted MCP server if it does not run, and lists its tools again.", TestMcpServer => McpServerList;
    McpRegistrySearch = "mcp.registry.search", "Searches the MCP registry of the configuration.", SearchMcpRegistry => RegistryServerList;
    McpRegistryGet = "mcp.registry.get", "Shows a server of the MCP registry, and how it can be run.", GetRegistryServer => RegistryServer;
    McpLoginBegin = "mcp.login.begin", "Prepares a login at a remote MCP server; a person opens the page.", BeginMcpLogin => McpLoginBegun;
    McpLoginFinish = "mcp.login.finish", "Ends a login with the URL that its page redirected to.", FinishMcpLogin => FinishedMcpLogin;
    McpLogout = "mcp.logout", "Forgets the login at a remote MCP server, and has its tokens revoked.", NameMcpLogin => McpLoggedOut;
    SecretsSet = "secrets.set", "Stores a secret that the configuration uses.", SetSecret => SecretList;
    SecretsGiveBack = "secrets.give_back", "Returns a secret that was moved out of another program's file, to a person on this machine who puts it back.", NameSecret => GivenBackSecret;
    SecretsList = "secrets.list", "Lists the secrets by name, without their values.", NoParams => SecretList;
    SecretsRemove = "secrets.remove", "Removes a secret.", NameSecret => SecretList;
    SecretsUnlock = "secrets.unlock", "Opens the encrypted file of secrets with its passphrase, or makes it.", UnlockSecrets => SecretList;
    RemotesList = "remotes.list", "Lists the mounted daemons.", NoParams => RemoteList;
    RemotesReconnect = "remotes.reconnect", "Reconnects to a mounted daemon.", ReconnectRemote => RemoteList;
    FleetGetStatus = "fleet.status", "The daemon's fleet: daemons, labels, load and refused messages.", NoParams => FleetStatus;
    FleetGrantsList = "fleet.grants", "Lists the grants of the fleet.", NoParams => FleetGrants;
    FleetGrantMake = "fleet.grant", "Makes a grant that is valid in the whole fleet.", MakeFleetGrant => FleetGrants;
    FleetSearchAudit = "fleet.audit", "Finds calls in the audit logs of all daemons of the fleet.", FleetAuditQuery => FleetAuditList;
    FleetGrantRevoke = "fleet.revoke", "Revokes a grant of the fleet, everywhere.", RevokeFleetGrant => FleetGrants;
    FilesHistory = "files.history", "Lists the file changes of a session.", FileHistory => FileChanges;
    FilesForget = "files.forget", "Removes recorded changes, and what is kept to undo them.", ForgetChanges => ForgottenChanges;
    FilesUndo = "files.undo", "Undoes changes; refused when a file has changed since.", UndoFiles => UndoneFiles;
    BuffersSet = "buffers.set", "Gives tools an editor's unsaved text in place of a file.", SetBuffer => Done;
    BuffersClear = "buffers.clear", "Removes an unsaved text.", ClearBuffer => ClearedBuffer;
    CommandsList = "commands.list", "Lists the slash commands of plugins.", NoParams => CommandList;
    CommandsRun = "commands.run", "Runs a slash command.", RunCommand => ToolResult;
    SubagentsList = "subagents.list", "Lists the sub-agents of the configuration, of Markdown files and of plugins.", NoParams => SubagentList;
    SkillsList = "skills.list", "Lists the skills of a session, including broken ones.", OfSession => SkillList;
    SkillsGet = "skills.get", "Returns the text of a skill.", GetSkill => SkillText;
    MemoriesList = "memories.list", "Lists the memories of a session.", OfSession => MemoryList;
    TodosList = "todo.list", "Lists the to-do items of a session.", OfSession => TodoList;
    HooksList = "hooks.list", "Lists the hooks in the order in which they run.", NoParams => HookList;
    HooksRun = "hooks.run", "Runs the message hooks and returns their combined answer.", RunHooks => HookAction;
    PromptRender = "prompt.render", "Renders the text that teaches a model the tools.", RenderPrompt => RenderedPrompt;
    PromptParse = "prompt.parse", "Reads the calls in a model's answer.", ParsePrompt => ParsedPrompt;
    PromptParseStream = "prompt.parse_stream", "Reads the calls in a model's answer as it comes in.", ParseStream => ParsedStream;
    WorkspacesList = "workspaces.list", "Lists the folders in which agents may work.", NoParams => WorkspaceList;
    WorkspacesAllow = "workspaces.allow", "Allows every agent to work in a folder from now on.", NameWorkspace => WorkspaceList;
    WorkspacesForget = "workspaces.forget", "Removes a folder from the workspaces; running sessions keep it.", NameWorkspace => WorkspaceList;
    PageOpen = "page.open", "Makes a link that signs one browser in to the daemon's page.", OpenPage => OpenedPage;
    PageSessionsList = "page.sessions", "Lists the browsers that are signed in to the page.", NoParams => PageSessionList;
    PageRevoke = "page.revoke", "Signs browsers out of the page.", RevokePageSessions => RevokedPageSessions;
    NotifyTest = "notify.test", "Sends a test notification in each way that the configuration sets.", NoParams => NotifyReport;
    CacheGetStats = "cache.stats", "Shows statistics of the result cache.", NoParams => CacheStats;
    CacheClear = "cache.clear", "Clears the result cache.", NoParams => CacheCleared;
    AuditQuery = "audit.query", "Lists past calls.", audit::AuditQuery => audit::AuditList;
    AuditVerify = "audit.verify", "Checks whether rows of the audit log were removed or changed.", NoParams => audit::AuditVerification;
    DaemonGetStatus = "daemon.status", "Shows daemon status.", NoParams => DaemonStatus;
    DaemonGetMetrics = "daemon.metrics", "Returns the daemon's metrics as text for Prometheus.", NoParams => Metrics;
    DaemonPing = "daemon.ping", "Answers.", NoParams => Done;
    DaemonGetConfig = "daemon.config", "Shows the configuration and where each value comes from.", NoParams => ShownConfig;
    DaemonReload = "daemon.reload", "Reloads the configuration; an invalid file is rejected as a whole.", NoParams => ReloadedConfig;
    DaemonShutdown = "daemon.shutdown", "Drains and stops the daemon.", Shutdown => Done;
    DaemonRestart = "daemon.restart", "Starts a new daemon on the same socket and exits once it serves.", Restart => Restarted;
    RpcDiscover = "rpc.discover", "Returns the OpenRPC document of this daemon.", NoParams => Value;
}

subscriptions! {
    EventsSubscribe = "events.subscribe", "events.event", "events.unsubscribe", "Streams events.", SubscribeEvents => Event;
    ShellsAttach = "shells.attach", "shells.output", "shells.detach", "Streams the output of a background command.", AttachShell => ShellOutput;
    ToolsProvide = "tools.provide", "tools.invocation", "tools.unprovide", "Provides tools to the registry; the items are invocations to run.", Provide => Invocation;
    PermissionsSubscribe = "permissions.subscribe", "permissions.event", "permissions.unsubscribe", "Streams permission asks; the subscriber can answer them.", SubscribePrompts => PermissionEvent;
    QuestionsSubscribe = "questions.subscribe", "questions.event", "questions.unsubscribe", "Streams questions of tools; the subscriber can answer them.", SubscribePrompts => QuestionEvent;
}

/// All methods and subscriptions, in the order of their names.
#[cfg(test)]
pub(crate) fn describe_all() -> Vec<Described> {
    let mut all = described_methods();
    all.extend(described_subscriptions());
    all.sort_by_key(|described| described.name);
    all
}
