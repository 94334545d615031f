//! Every method of the native dialect: its name, its parameters, its answer.
//!
//! A method is a type that implements [`Method`]; [`describe_all`] is the visible list. The daemon
//! registers handlers by these types, the client calls by them, and the OpenRPC document is made
//! from them, so the three cannot disagree.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::audit;
use crate::cache::{CacheCleared, CacheStats};
use crate::call::{
    BatchResults, CancelCall, Cancelled, Execute, ExecuteBatch, Interrupt, Interrupted, ListTools, ToolList, ToolSchema,
};
use crate::command::{CommandList, RunCommand, SubagentList};
use crate::config::{ReloadedConfig, ShownConfig};
use crate::daemon::{DaemonStatus, Done, Metrics, NoParams, Restart, Restarted, Shutdown};
use crate::event::{Event, SubscribeEvents, Unsubscribe};
use crate::file::{ClearBuffer, ClearedBuffer, FileChanges, FileHistory, SetBuffer, UndoFiles, UndoneFiles};
use crate::hook::{HookAction, HookList, RunHooks};
use crate::mcp::{McpServerList, RestartMcpServer};
use crate::permission::{
    CheckPermission, CheckedPermission, GrantInfo, GrantPermission, PendingAsks, PermissionEvent, PermissionList,
    ReplyPermission, RevokePermission, SetMode, SubscribePrompts,
};
use crate::plugin::{
    ListPlugins, LogsOfPlugin, NamePlugin, PluginDetails, PluginList, PluginLogs, ReloadPlugins, TrustPlugins,
    TrustReport,
};
use crate::prompt::{ParsePrompt, ParsedPrompt, RenderPrompt, RenderedPrompt};
use crate::provide::{CallInfo, CallList, GetCall, Invocation, ListCalls, Provide, ProvideProgress, ProvideResult};
use crate::question::{QuestionEvent, ReplyQuestion};
use crate::remote::{ReconnectRemote, RemoteList};
use crate::schema_of;
use crate::session::{CloseSession, ClosedSession, OpenSession, OpenedSession, SessionList};
use crate::shell::{AttachShell, KillShell, KilledShell, ListShells, ResizeShell, ShellList, ShellOutput, WriteShell};
use crate::skill::{GetSkill, MemoryList, OfSession, SkillList, SkillText, TodoList};
use crate::tool::{Tool, ToolResult};
use crate::upgrade::{CheckUpgrade, UpgradeReport};
use crate::workspace::{NameWorkspace, ShareSession, SharedSession, WorkspaceList};

/// A request and its answer.
pub trait Method {
    const NAME: &'static str;
    /// One sentence, for the OpenRPC document.
    const SUMMARY: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// A stream of items. The answer to its method is a string id; items are notifications
/// `{method: ITEM_METHOD, params: {subscription, result}}`.
pub trait Subscription {
    const NAME: &'static str;
    const ITEM_METHOD: &'static str;
    const UNSUBSCRIBE: &'static str;
    const SUMMARY: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    type Item: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// What the OpenRPC document says of one method.
#[derive(Clone, Debug)]
pub struct Described {
    pub name: &'static str,
    pub summary: &'static str,
    pub params: Value,
    pub answer: Value,
    /// For a subscription: the method of its notifications, and the schema of their items.
    pub items: Option<(&'static str, Value)>,
}

macro_rules! methods {
    ($( $type:ident = $name:literal, $summary:literal, $params:ty => $answer:ty; )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $summary)]
            #[derive(Clone, Copy, Debug)]
            pub enum $type {}
            impl Method for $type {
                const NAME: &'static str = $name;
                const SUMMARY: &'static str = $summary;
                type Params = $params;
                type Answer = $answer;
            }
        )*
        fn described_methods() -> Vec<Described> {
            vec![ $( Described {
                name: $name,
                summary: $summary,
                params: schema_of::<$params>(),
                answer: schema_of::<$answer>(),
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
                const SUMMARY: &'static str = $summary;
                type Params = $params;
                type Item = $answer;
            }
        )*
        fn described_subscriptions() -> Vec<Described> {
            [ $( [
                Described {
                    name: $name,
                    summary: $summary,
                    params: schema_of::<$params>(),
                    answer: schema_of::<String>(),
                    items: Some(($item, schema_of::<$answer>())),
                },
                Described {
                    name: $end,
                    summary: concat!("Ends a subscription of ", $name, "."),
                    params: schema_of::<Unsubscribe>(),
                    answer: schema_of::<bool>(),
                    items: None,
                },
            ], )* ].into_iter().flatten().collect()
        }
    };
}

methods! {
    SessionOpen = "session.open", "Opens or resumes a session and binds it to this connection.", OpenSession => OpenedSession;
    SessionsList = "session.list", "Lists the sessions.", NoParams => SessionList;
    SessionShare = "session.share", "Gives a one-time code by which an agent may join a session.", ShareSession => SharedSession;
    SessionClose = "session.close", "Ends a session and cancels its calls.", CloseSession => ClosedSession;
    ToolsList = "tools.list", "Lists the tools of the caller's view, sorted by name.", ListTools => ToolList;
    ToolsSchema = "tools.schema", "Shows one tool.", ToolSchema => Tool;
    ToolsExecute = "tools.execute", "Calls a tool.", Execute => ToolResult;
    ToolsExecuteBatch = "tools.execute_batch", "Calls several tools; results come in the order of the calls.", ExecuteBatch => BatchResults;
    ToolsInterrupt = "tools.interrupt", "Lets running calls of a session end and skips those that wait.", Interrupt => Interrupted;
    ToolsCancel = "tools.cancel", "Cancels a call of the caller's session.", CancelCall => Cancelled;
    ToolsProvideResult = "tools.provide_result", "Answers an invocation of a lent tool.", ProvideResult => Done;
    ToolsProvideProgress = "tools.provide_progress", "Tells the progress of an invocation of a lent tool.", ProvideProgress => Done;
    CallsList = "calls.list", "Lists the calls of a session.", ListCalls => CallList;
    CallsGet = "calls.get", "Shows a call: its state, what it wrote so far, its result for a while.", GetCall => CallInfo;
    PermissionsReply = "permissions.reply", "Answers a permission ask; the first reply wins.", ReplyPermission => Done;
    PermissionsPending = "permissions.pending", "Lists the asks that wait for a person.", NoParams => PendingAsks;
    PermissionsList = "permissions.list", "Lists rules and grants with their sources.", NoParams => PermissionList;
    PermissionsGrant = "permissions.grant", "Stores a grant.", GrantPermission => GrantInfo;
    PermissionsRevoke = "permissions.revoke", "Removes a grant.", RevokePermission => Done;
    PermissionsCheck = "permissions.check", "Tells what would happen to a need, and by which rule.", CheckPermission => CheckedPermission;
    PermissionsSetMode = "permissions.set_mode", "Changes the permission mode of a session.", SetMode => Done;
    QuestionsReply = "questions.reply", "Answers a tool's question; the first reply wins.", ReplyQuestion => Done;
    PluginsList = "plugins.list", "Lists the plugins, those that failed too.", ListPlugins => PluginList;
    PluginsReload = "plugins.reload", "Loads one plugin or all anew, whether or not they changed.", ReloadPlugins => PluginList;
    ShellsList = "shells.list", "Lists the commands in the background.", ListShells => ShellList;
    ShellsWrite = "shells.write", "Gives input to a command in the background.", WriteShell => Done;
    ShellsResize = "shells.resize", "Changes the size of a background command's terminal.", ResizeShell => Done;
    ShellsKill = "shells.kill", "Ends a command in the background, with all its processes.", KillShell => KilledShell;
    PluginsShow = "plugins.show", "Shows one plugin of the caller's view.", NamePlugin => PluginDetails;
    PluginsLogs = "plugins.logs", "Gives what plugins logged, noticed and said, as far as it is still held.", LogsOfPlugin => PluginLogs;
    PluginsEnable = "plugins.enable", "Switches a plugin on, for good.", NamePlugin => PluginList;
    PluginsDisable = "plugins.disable", "Switches a plugin off, for good.", NamePlugin => PluginList;
    PluginsTrust = "plugins.trust", "Trusts what a project configures and its plugins, as they are now.", TrustPlugins => TrustReport;
    McpServersList = "mcp.servers", "Lists the mounted MCP servers.", NoParams => McpServerList;
    McpRestart = "mcp.restart", "Starts a mounted MCP server anew.", RestartMcpServer => McpServerList;
    RemotesList = "remotes.list", "Lists the other daemons that are mounted.", NoParams => RemoteList;
    RemotesReconnect = "remotes.reconnect", "Connects to a mounted daemon anew.", ReconnectRemote => RemoteList;
    FilesHistory = "files.history", "Lists what a session changed.", FileHistory => FileChanges;
    FilesUndo = "files.undo", "Takes changes back; refused when a file changed since.", UndoFiles => UndoneFiles;
    BuffersSet = "buffers.set", "Lays an editor's unsaved text over a file.", SetBuffer => Done;
    BuffersClear = "buffers.clear", "Takes an unsaved text away again.", ClearBuffer => ClearedBuffer;
    CommandsList = "commands.list", "Lists the slash commands of plugins.", NoParams => CommandList;
    CommandsRun = "commands.run", "Runs a slash command.", RunCommand => ToolResult;
    SubagentsList = "subagents.list", "Lists the sub-agents of the configuration, of Markdown files and of plugins.", NoParams => SubagentList;
    SkillsList = "skills.list", "Lists the skills for a session, and what is broken.", OfSession => SkillList;
    SkillsGet = "skills.get", "Gives the text of a skill.", GetSkill => SkillText;
    MemoriesList = "memories.list", "Lists what is remembered for a session.", OfSession => MemoryList;
    TodosList = "todo.list", "Lists what a session has to do.", OfSession => TodoList;
    HooksList = "hooks.list", "Lists the hooks in the order in which they run.", NoParams => HookList;
    HooksRun = "hooks.run", "Runs the message hooks and gives what they say together.", RunHooks => HookAction;
    PromptRender = "prompt.render", "Renders the text that teaches a model the tools.", RenderPrompt => RenderedPrompt;
    PromptParse = "prompt.parse", "Reads the calls in a model's answer.", ParsePrompt => ParsedPrompt;
    WorkspacesList = "workspaces.list", "Lists the folders in which agents may work.", NoParams => WorkspaceList;
    WorkspacesAllow = "workspaces.allow", "Lets every agent work in a folder, from now on.", NameWorkspace => WorkspaceList;
    WorkspacesForget = "workspaces.forget", "Forgets that a person chose a folder; running sessions go on.", NameWorkspace => WorkspaceList;
    UpgradeCheck = "upgrade.check", "Lists what version 0.1 allowed and this one does not.", CheckUpgrade => UpgradeReport;
    CacheGetStats = "cache.stats", "Tells how the cache of results is used.", NoParams => CacheStats;
    CacheClear = "cache.clear", "Forgets the results that are kept.", NoParams => CacheCleared;
    AuditQuery = "audit.query", "Lists calls of the past.", audit::AuditQuery => audit::AuditList;
    DaemonGetStatus = "daemon.status", "Tells how the daemon is.", NoParams => DaemonStatus;
    DaemonGetMetrics = "daemon.metrics", "Gives what the daemon counts, as text for Prometheus.", NoParams => Metrics;
    DaemonPing = "daemon.ping", "Answers.", NoParams => Done;
    DaemonGetConfig = "daemon.config", "Tells what is configured, and where.", NoParams => ShownConfig;
    DaemonReload = "daemon.reload", "Reads the configuration anew, whole or not at all.", NoParams => ReloadedConfig;
    DaemonShutdown = "daemon.shutdown", "Drains and stops the daemon.", Shutdown => Done;
    DaemonRestart = "daemon.restart", "Starts another daemon on the same socket, and ends when it serves.", Restart => Restarted;
    RpcDiscover = "rpc.discover", "Gives the OpenRPC document of this daemon.", NoParams => Value;
}

subscriptions! {
    EventsSubscribe = "events.subscribe", "events.event", "events.unsubscribe", "Streams events.", SubscribeEvents => Event;
    ShellsAttach = "shells.attach", "shells.output", "shells.detach", "Streams the output of a command in the background.", AttachShell => ShellOutput;
    ToolsProvide = "tools.provide", "tools.invocation", "tools.unprovide", "Lends tools to the registry; items are invocations to run.", Provide => Invocation;
    PermissionsSubscribe = "permissions.subscribe", "permissions.event", "permissions.unsubscribe", "Streams permission asks; the subscriber can answer them.", SubscribePrompts => PermissionEvent;
    QuestionsSubscribe = "questions.subscribe", "questions.event", "questions.unsubscribe", "Streams questions of tools; the subscriber can answer them.", SubscribePrompts => QuestionEvent;
}

/// All methods and subscriptions, in the order of their names.
pub fn describe_all() -> Vec<Described> {
    let mut all = described_methods();
    all.extend(described_subscriptions());
    all.sort_by_key(|described| described.name);
    all
}
