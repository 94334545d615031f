// The native protocol in types. Made by scripts/generate.mjs of the daemon's OpenRPC document: change nothing here.

/** Where a process wrote. */
export type Stream = "stdout" | "stderr";

/** The form of a list of tools: the daemon's own, or what a provider's API takes. */
export type Format = "native" | "anthropic" | "openai" | "openai_responses" | "gemini" | "mcp";

/** In which order the calls of a batch run. Results always come in the order of the calls. */
export type Strategy = "sequential" | "parallel" | "auto" | {
  batched: number;
};

/** How a call ended. */
export type Outcome = "ok" | "denied" | "timed_out" | "cancelled" | "invalid_args" | "overloaded" | "skipped" | "error" | "failed";

/** A piece of a result. */
export type Block = {
  type: "text";
  text: string;
} | {
  type: "image";
  /** Base64 (RFC 4648, section 4). */
  data: string;
  mime_type: string;
} | {
  type: "audio";
  /** Base64 (RFC 4648, section 4). */
  data: string;
  mime_type: string;
} | {
  type: "resource";
  uri: string;
  mime_type?: string;
  text?: string;
  /** Base64 (RFC 4648, section 4). */
  blob?: string;
};

/** What a need is about, and so which rules and grants can answer it. */
export type Category = "file.read" | "file.write" | "shell" | "network" | "mcp" | "agent" | "plugin";

/** How long a grant holds, and for whom. */
export type Scope = "once" | "session" | "project" | "always";

export interface Suggestion {
  /** How long a grant holds, and for whom. */
  scope: Scope;
  pattern: string;
}

/** Who owns a tool. */
export interface Source {
  kind: "builtin" | "plugin" | "frontend" | "mcp" | "remote";
  name: string;
  /** The file or folder of a plugin. */
  path?: string;
}

/** Hints for frontends, as in MCP's tool annotations. Claims, not facts: no decision rests on them. */
export interface Annotations {
  read_only: boolean;
  destructive: boolean;
  idempotent: boolean;
  open_world: boolean;
  /** How calls go with clients that can come back for a result. */
  task?: "optional" | "required";
}

/** What a running call tells. */
export type Progress = {
  kind: "output";
  stream: Stream;
  text: string;
} | {
  kind: "message";
  text: string;
} | {
  kind: "update";
  progress?: number;
  total?: number;
  message?: string;
  content?: Block[];
  details?: Record<string, unknown>;
};

/** Params of the notification `tools.progress`. */
export type CallProgress = {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** From 0, without gaps, as produced. */
  seq: number;
  /** How many notifications before this one a slow reader has lost. */
  dropped?: number;
} & Progress;

/** A tool as `tools.list` and `tools.schema` show it. */
export interface Tool {
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  name: string;
  /** For people; a mounted server's own name where that does not fit `ToolName`. */
  label: string;
  description: string;
  /** A JSON Schema of draft 2020-12; its root is an object schema. */
  input_schema: unknown;
  output_schema?: unknown;
  /** Who owns a tool. */
  source: Source;
  /** Whether calls may run beside others of the same session. */
  parallelizable: boolean;
  /** The categories of permission that calls may need. */
  permissions: Category[];
  cacheable: boolean;
  /** The tool's own time limit. */
  timeout_ms?: number;
  /** Hints for frontends, as in MCP's tool annotations. Claims, not facts: no decision rests on them. */
  annotations: Annotations;
  version?: string;
}

/** What a call gave. */
export interface ToolResult {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** For the model. */
  content: Block[];
  /** The tool ran and has bad news; the content says which. */
  is_error: boolean;
  /** For frontends and the audit log, not for the model. */
  metadata: Record<string, unknown>;
  /** What fits the tool's `output_schema`. */
  structured?: unknown;
  /** From the tool's start to its end; waiting for people and for lanes is not in it. */
  duration_ms: number;
  cached: boolean;
}

/** A prompt for a person. */
export interface Ask {
  request_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The call that asked first. */
  call_id: string;
  /** All the calls that wait for this answer. */
  call_ids: string[];
  /** What a need is about, and so which rules and grants can answer it. */
  category: Category;
  /** A resolved path, one simple command, a host and port, or a name. */
  target: string;
  tool: string;
  /** Who owns a tool. */
  source: Source;
  cwd: string;
  reason?: string;
  /** The whole command line that `target` is a part of. */
  command?: string;
  /** A unified diff of what would be written. */
  diff?: string;
  /** The plugins between the caller and the need, the outermost first. */
  chain?: string[];
  /** From narrow to wide; each matches the target, and no more than it shows. */
  suggestions: Suggestion[];
  /** RFC 3339, UTC. */
  asked_at: string;
  /** RFC 3339, UTC. */
  expires_at: string;
}

export type Resolution = "allow" | "deny" | "cancelled" | "expired";

/** Who answered; absent when nobody did. */
export interface Answerer {
  client?: string;
  connection: number;
}

/** What a person can say to an ask, and what a rule or a grant says. */
export type Action = "allow" | "deny";

/** An item of `permissions.subscribe`. */
export type PermissionEvent = {
  type: "asked";
  /** A prompt for a person. */
  request: Ask;
} | {
  type: "resolved";
  request_id: string;
  action: Resolution;
  /** How long a grant holds, and for whom. */
  scope?: Scope | null;
  /** Who answered; absent when nobody did. */
  by?: Answerer;
};

export interface QuestionOption {
  /** What an answer names; unique in its question. */
  id: string;
  label: string;
  description?: string;
}

/** A question that waits for a person. */
export interface Question {
  request_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The call that asks. */
  call_id: string;
  question: string;
  /** None when only a text can answer. */
  options: QuestionOption[];
  /** Whether more than one option can be chosen. */
  multiple: boolean;
  /** Whether a text of one's own is an answer. */
  allow_other: boolean;
  /**
   * A JSON Schema of an object: a form to fill in. `content` answers it, or a text that is such an object
   * or, of a form of one field, that field's value.
   */
  schema?: unknown;
  /** What the tool calls a form, for clients that are asked several things at once. */
  key?: string;
  /** RFC 3339, UTC. */
  asked_at: string;
  /** RFC 3339, UTC. */
  expires_at: string;
}

/** An item of `questions.subscribe`. */
export type QuestionEvent = {
  type: "asked";
  /** A question that waits for a person. */
  request: Question;
} | {
  type: "resolved";
  request_id: string;
  action: "answered" | "expired" | "cancelled";
  /** Who answered; absent when nobody did. */
  by?: Answerer;
};

/** The permission mode of a session. */
export type Mode = "default" | "plan" | "accept_edits" | "yolo";

/** A rule of a configuration file. */
export interface Rule {
  /** What a need is about, and so which rules and grants can answer it. */
  category: Category;
  pattern: string;
  /** What the permission engine says to a need. */
  action: "allow" | "ask" | "deny";
  tools?: string[];
  cwd?: string;
  /** File and place. */
  source: string;
}

/** A remembered permission. */
export interface Grant {
  id: string;
  /** What a need is about, and so which rules and grants can answer it. */
  category: Category;
  pattern: string;
  /** What a person can say to an ask, and what a rule or a grant says. */
  action: Action;
  /** How long a grant holds, and for whom. */
  scope: Scope;
  tools?: string[];
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  project?: string;
  chain?: string[];
  /** The client that stored it. */
  by?: string;
  /** RFC 3339, UTC. */
  granted_at: string;
  /** RFC 3339, UTC. */
  expires_at?: string;
}

/** Why a plugin did not load. */
export interface PluginError {
  message: string;
  file?: string;
  /** From 1. */
  line?: number;
  source_line?: string;
  traceback?: string;
}

export interface Plugin {
  name: string;
  path: string;
  /** The project whose sessions alone see it; absent for those that all see. */
  project?: string;
  /** It ships with the daemon, and is off unless enabled. */
  bundled?: boolean;
  status: "loaded" | "disabled" | "failed" | "untrusted" | "shadowed";
  version?: string;
  description?: string;
  /** The tools that it serves now; of a failed plugin, those of its last good version. */
  tools: string[];
  /** Why a plugin did not load. */
  error?: PluginError;
  /** RFC 3339, UTC: when the version in service was loaded. */
  loaded_at?: string;
}

/** Answer of `plugins.list` and `plugins.reload`. */
export interface PluginList {
  /** Sorted by folder order, then by name. */
  plugins: Plugin[];
}

/** A server whose tools everybody shares. */
export interface McpServer {
  name: string;
  /** Whose sessions see it; all when absent. */
  project?: string;
  state: "starting" | "running" | "disabled" | "stopped" | "failed";
  /** `stdio`, `socket`, `http`, or `none` when its configuration names no way. */
  transport: string;
  pid?: number;
  /** RFC 3339, UTC: since when it runs. */
  since?: string;
  uptime_s?: number;
  /** The revision of MCP that it speaks. */
  protocol?: string;
  /** Its tools as they are called here. A server that does not run keeps those that were known last. */
  tools: string[];
  /** What was left out of its list, and why. */
  problems: string[];
  /** Why it does not run. */
  error?: string;
  /** How long calls are refused at once; 0 when the next one tries to start it. */
  retry_ms?: number;
  /** Calls that have ended, and those of them that ended badly. */
  calls: number;
  bad_calls: number;
  /** Calls that it works on now. */
  running: number;
  starts: number;
  /** The last lines that it wrote on stderr or sent to be logged. */
  stderr: string[];
}

/** Answer of `mcp.servers` and `mcp.restart`. */
export interface McpServerList {
  /** Sorted by name. */
  servers: McpServer[];
}

export interface CallInfo {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  tool: string;
  state: "running" | "finished";
  /** RFC 3339, UTC. */
  started_at: string;
  /** What it wrote so far, its middle cut out when it is long. */
  output?: string;
  /** What a call gave. */
  result?: ToolResult;
  /** A JSON-RPC error object. */
  error?: unknown;
}

export interface SessionInfo {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  cwd: string;
  roots?: string[];
  /** The real path of the project; see the security document. */
  project: string;
  /** The permission mode of a session. */
  mode: Mode;
  client?: {
    name: string;
    version?: string;
  };
  /** How many connections are bound to it now. */
  connections: number;
  /** RFC 3339, UTC. */
  opened_at: string;
  /** How many of its calls are in flight. */
  calls: number;
}

/** One call. Secrets in it are replaced by `[redacted]`. */
export interface AuditEntry {
  /** Grows with every entry. */
  id: number;
  /** When the call began: RFC 3339, UTC. */
  at: string;
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
  /** Who owns the tool: kind and name, such as `plugin:git`. */
  source: string;
  /** The frontend that opened the session. */
  client?: string;
  /** The number of the connection, new at each start of the daemon. */
  connection: number;
  /** What was decided of each thing that the call needed leave for, in order. */
  decisions: {
    category: string;
    target: string;
    /** `allow` or `deny`. */
    verdict: string;
    /** The rule or the grant that decided, in words that name where it stands. */
    rule: string;
  }[];
  /** How a call ended. */
  outcome: Outcome;
  duration_ms: number;
  /** Of the arguments. */
  input_bytes: number;
  /** Of the result's text. */
  output_bytes: number;
}

export interface Command {
  /** Without the slash. */
  name: string;
  description: string;
  plugin: string;
}

/** An item of `events.subscribe`. */
export type Event = {
  /** Grows by one with every event of the daemon, those that a filter leaves out too. */
  seq: number;
  /** New at each start of the daemon. */
  epoch: string;
  /** RFC 3339, UTC. */
  at: string;
} & ({
  kind: "tools.changed";
  revision: number;
  /** Names, sorted. */
  added: string[];
  removed: string[];
  changed: string[];
} | {
  kind: "resources.changed";
} | {
  kind: "prompts.changed";
} | {
  kind: "call.started";
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
} | {
  kind: "call.progress";
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** What a running call tells. */
  progress: Progress;
} | {
  kind: "call.finished";
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
  /** How a call ended. */
  outcome: Outcome;
  duration_ms: number;
} | {
  kind: "permission.asked";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A prompt for a person. */
  request: Ask;
} | {
  kind: "permission.resolved";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  resolved: {
    request_id: string;
    action: Resolution;
    /** How long a grant holds, and for whom. */
    scope?: Scope | null;
    /** Who answered; absent when nobody did. */
    by?: Answerer;
  };
} | {
  kind: "question.asked";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A question that waits for a person. */
  request: Question;
} | {
  kind: "question.answered";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  resolved: {
    request_id: string;
    action: "answered" | "expired" | "cancelled";
    /** Who answered; absent when nobody did. */
    by?: Answerer;
  };
} | {
  kind: "plugin.loaded";
  plugin: string;
  path: string;
  tools: string[];
} | {
  kind: "plugin.failed";
  plugin: string;
  path: string;
  /** Why a plugin did not load. */
  error: PluginError;
} | {
  kind: "plugin.untrusted";
  plugin: string;
  path: string;
} | {
  kind: "plugin.unloaded";
  plugin: string;
  path: string;
} | {
  kind: "config.changed";
  file: string;
  /** Whose it is; absent for the user's own. */
  project?: string;
  /** What is wrong with it, in words for people. While there is anything, what was read before stays in force. */
  problems?: string[];
} | {
  kind: "session.opened";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  cwd: string;
} | {
  kind: "session.closed";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
} | {
  kind: "session.mode";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The permission mode of a session. */
  mode: Mode;
} | {
  kind: "todo.changed";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The whole list, in the order of its author. */
  items: Array<{
    /** What is to be done, such as `Run the tests`. */
    content: string;
    status: "pending" | "in_progress" | "completed" | "cancelled";
    priority?: "low" | "medium" | "high" | null;
    /** The same while it is being done, such as `Running the tests`. */
    active_form?: string;
  }>;
} | {
  kind: "shell.started";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  shell_id: string;
  command: string;
} | {
  kind: "shell.exited";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  shell_id: string;
  /** How it ended, in words. */
  status: string;
  exit_code?: number;
} | {
  kind: "notice";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The plugin that notifies; absent for the daemon itself. */
  plugin?: string;
  level: string;
  message: string;
} | {
  kind: "log";
  /** Absent outside of calls. */
  call_id?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  plugin: string;
  /** `debug`, `info`, `warn` or `error`. */
  level: string;
  message: string;
  fields?: unknown;
} | {
  kind: "message";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  plugin: string;
  role: string;
  content: string;
} | {
  kind: "lagged";
  /** How many; absent when it cannot be told. */
  missed?: number;
});

/**
 * Whether its tools may work in the folder. Absent for clients of protocol 1, some of which read no member that they
 * do not know.
 */
export type Workspace = "open" | "pending" | "none";

/** Answer of `session.open`. */
export interface Session {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** With links resolved. */
  cwd: string;
  /** Whether the session was there before. */
  resumed: boolean;
  /**
   * Whether its tools may work in the folder. Absent for clients of protocol 1, some of which read no member that they
   * do not know.
   */
  workspace?: Workspace;
  /** Names in `env` that this client may not set; they have no effect. Absent for clients of protocol 1. */
  env_ignored?: string[];
  server: {
    name: string;
    version: string;
    protocol: number;
  };
}

/** Answer of `session.share`. */
export interface SharedSession {
  /** What `session.open` takes as `session_id`, once. It does not open a session in the mode `yolo`. */
  code: string;
  /** The code is good for so many seconds. */
  expires_in: number;
}

export interface WorkspaceInfo {
  /** With links resolved. */
  path: string;
  /** How a person chose a workspace. */
  source: "config" | "allowed" | "opened" | "client";
  /** The client that it is open to; absent when it is open to all. */
  client?: string;
  /** When a person chose it: RFC 3339, UTC. */
  at?: string;
}

/** Answer of `workspaces.list`, `workspaces.allow` and `workspaces.forget`. */
export interface WorkspaceList {
  /** By their paths. */
  workspaces: WorkspaceInfo[];
}

/** Something that version 0.1 allowed and that is asked for, ignored or worth a review now. */
export interface UpgradeChange {
  kind: "rule" | "grant" | "environment" | "workspace" | "join";
  /** The rule, grant, variable, folder or session, and where it stands. */
  subject: string;
  /** How it is treated now. */
  now: string;
  /** A command or a configuration that allows it again. */
  replacement: string;
}

/** Answer of `daemon.status`. */
export interface DaemonStatus {
  pid: number;
  version: string;
  protocol: number;
  /** New at each start. */
  epoch: string;
  /** The same at each start: what it is known by to daemons that mount each other. */
  instance?: string;
  uptime_s: number;
  /** Absent when the daemon serves its parent on stdio alone. */
  socket?: string;
  /** Where MCP clients are served on HTTP; absent when they are not. */
  mcp_url?: string;
  /** Where native clients are served on a WebSocket; absent when they are not. */
  rpc_url?: string;
  /** The configuration file that was read, if there was one. */
  config?: string;
  plugin_dirs: string[];
  /** What confines the programs that tools run, such as `read-only, no network`; absent when nothing does. */
  sandbox?: string;
  /** What a trial of the sandbox mode `guard` gave; absent when programs are confined already, and where there is none. */
  guard?: {
    works: boolean;
    /** Why it does not, in words for people. */
    problem?: string;
  };
  sessions: number;
  connections: number;
  /** Tools in the global view. */
  tools: number;
  revision: number;
  calls: {
    started: number;
    finished: number;
    in_flight: number;
    /** Finished ones by outcome. */
    outcomes: Record<string, number>;
  };
  /** What waits, and where. */
  queues: {
    /** Calls that are in their tools. */
    running: number;
    /** Calls that wait for the lane of their session. */
    waiting_for_lane: number;
    /** Calls that wait for their turn in a plugin, or for an identical call that runs already. */
    waiting_for_place: number;
    /** Calls that wait for a person: for leave, or for an answer. */
    waiting_for_person: number;
    /** Notifications that wait until their clients read them. */
    outboxes: {
      /** Of all connections. */
      messages: number;
      /** Of the connection with the most. */
      most: number;
      /** Of each at most; progress beyond is dropped, and subscriptions wait. */
      capacity: number;
      /** Connections that are at `capacity`. */
      full: number;
      /** Of all connections, in notifications of 4 KiB and more. Of each at most 1 MiB, or one notification that is longer. */
      long_bytes: number;
    };
    /** Events, and who hears them. */
    events: {
      /** Since the start. */
      emitted: number;
      /** Those that listen, within the daemon and without. */
      subscribers: number;
      /** How many events the slowest of them is behind. */
      lag: number;
      /** Events that slow subscribers have lost since the start, each counted for each of them. */
      lost: number;
    };
  };
  /** The tools that were called within the last `latency_window_s` seconds, by name. */
  latency: {
    /** `(others)` stands for all tools beyond the first 512. */
    tool: string;
    /** Calls that ended. */
    calls: number;
    /** Those of them with another outcome than `ok`. */
    errors: number;
    /** Those that ran; the others were refused, or answered from the cache. */
    runs: number;
    /** Half of the runs took no longer than so many microseconds, to one part in sixteen. 0 when there were none. */
    p50_us: number;
    p90_us: number;
    p99_us: number;
    max_us: number;
  }[];
  latency_window_s: number;
  plugins: {
    loaded: number;
    failed: number;
    other: number;
  };
  /** The machines that plugins run in. */
  lua: {
    machines: number;
    /** What scripts have allocated in them, as of the end of the last call in each. */
    memory_bytes: number;
  };
  /** Resident memory of the process; absent where the system does not tell. */
  memory_bytes?: number;
  /** The memory that is set aside for parsed messages. */
  message_memory: {
    taken_bytes: number;
    limit_bytes: number;
    /**
     * Answers of more than 64 KiB that clients have not read yet. Beyond 256 MiB requests in flight are answered only to
     * clients that read.
     */
    unread_bytes: number;
  };
  /** Open file descriptors; absent where the system does not tell. */
  open_files?: number;
  /** How many there may be; absent where the system sets no limit. */
  open_files_limit?: number;
  /** What works less well than it should, in words for people. */
  problems?: string[];
  /** What is stored, and what is lost. */
  store?: {
    /** Whether the database takes anything. One that has no room for the moment does. */
    takes_writes: boolean;
    /** What is read from it may not be all that was written. */
    damaged: boolean;
    /** What people refused may be lost, so everything is asked about. */
    refusals_lost: boolean;
    /** Rows of the audit log that could not be written since the start. */
    audit_rows_lost: number;
    /** What is wrong and what to do, in words for people; also among the `problems` of all. */
    problems?: string[];
  };
}

/** What a frontend can do for the daemon beside lending tools. */
export type Role = "agent" | "compact" | "question";

export interface ProvidedTool {
  /** `[a-z][a-z0-9_]*`, at most 64 characters. */
  name: string;
  description: string;
  /** A JSON Schema of an object; any object when absent. */
  input_schema?: unknown;
  output_schema?: unknown;
  parallelizable?: boolean;
  label?: string;
  timeout_ms?: number;
  /** Hints for frontends, as in MCP's tool annotations. Claims, not facts: no decision rests on them. */
  annotations?: {
    read_only?: boolean;
    destructive?: boolean;
    idempotent?: boolean;
    open_world?: boolean;
    /** How calls go with clients that can come back for a result. */
    task?: "optional" | "required";
  };
}

/** What a lent tool gives: a text, or more. */
export type ProvidedResult = string | {
  content: string | Block[];
  is_error?: boolean;
  metadata?: Record<string, unknown>;
  structured?: unknown;
};

/** An item of `tools.provide`: a call for the frontend to run, or the end of one. */
export type InvocationItem = {
  invocation_id: string;
  name: string;
  arguments: unknown;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  cwd: string;
  /** Set when the frontend runs a built-in. */
  role?: Role;
} | {
  invocation_id: string;
  cancelled: boolean;
};

/** Params of `audit.query`. */
export interface AuditQueryParams {
  /** Calls that began then or later: RFC 3339, or how long ago, such as `15m` or `2h 30m`. */
  since?: string;
  /** Entries behind this `id`, the first of them; else the last ones are given. */
  after?: number;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool?: string;
  /** How a call ended. */
  outcome?: Outcome;
  /** At most so many entries; 100 when absent, 1,000 at most. */
  limit?: number;
}

/** Answer of `audit.query`. */
export interface AuditQueryResult {
  /** By `id`, which is the order in which the calls ended. */
  entries: AuditEntry[];
  /** Whether there are more that fit: earlier ones, or with `after` later ones. */
  more: boolean;
  /** How many calls of that time are missing, because they could not be written in time. */
  lost: number;
}

/** Params of `buffers.clear`. */
export interface BuffersClearParams {
  path: string;
}

/** Answer of `buffers.clear`. */
export interface BuffersClearResult {
  /** False when this connection had laid nothing over the file. */
  cleared: boolean;
}

/** Params of `buffers.set`. */
export interface BuffersSetParams {
  path: string;
  /** Grows with each change of the text. */
  version: number;
  text: string;
}

/** Answer of `cache.clear`. */
export interface CacheClearResult {
  /** How many results there were. */
  cleared: number;
}

/** Answer of `cache.stats`. Counts are since the daemon's start. */
export interface CacheStatsResult {
  /** Calls that were given a result that was there. */
  hits: number;
  /** Calls of cacheable tools that ran. */
  misses: number;
  /** Calls that were given the result of an identical one that was in flight. */
  shared: number;
  /** Results that had to go to make room. */
  evictions: number;
  /** Results that are there. */
  entries: number;
  /** Bytes that they take, about. */
  size: number;
  /** Bytes that they may take. */
  capacity: number;
  /** Hits in relation to hits and misses; 0 before the first. */
  hit_rate: number;
}

/** Params of `calls.get`. */
export interface CallsGetParams {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Params of `calls.list`. */
export interface CallsListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `calls.list`: what is in flight in the session, and detached calls that ended not long ago. */
export interface CallsListResult {
  /** The oldest first. */
  calls: CallInfo[];
}

/** Answer of `commands.list`. */
export interface CommandsListResult {
  commands: Command[];
}

/** Params of `commands.run`. */
export interface CommandsRunParams {
  name: string;
  /** What stands behind the command. */
  input?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  progress?: boolean;
}

/** Answer of `daemon.config`: what is in force, and where it comes from. */
export interface DaemonConfigResult {
  /** The user's configuration file, whether or not it is there. */
  file: string;
  /** Every key, in the order of the schema; what is secret by its name is left out. */
  entries: {
    /** As `limits.calls` or `permission.rules[0]`. */
    key: string;
    value: unknown;
    /** `default`, a file with the line, a variable of the environment, or a flag. */
    origin: string;
  }[];
  /** The project of the caller's session, when it has a configuration. */
  project?: {
    file: string;
    /** Whether a person trusts the file as it is now. What it denies and asks counts in any case. */
    trusted: boolean;
    entries: {
      /** As `limits.calls` or `permission.rules[0]`. */
      key: string;
      value: unknown;
      /** `default`, a file with the line, a variable of the environment, or a flag. */
      origin: string;
    }[];
    problems?: string[];
  };
  /**
   * What is wrong with the user's file, in words for people. While there is anything, what was read before stays in
   * force.
   */
  problems?: string[];
}

/** Answer of `daemon.metrics`. */
export interface DaemonMetricsResult {
  /** What `text` is, for an HTTP header. */
  content_type: string;
  text: string;
}

/** Answer of `daemon.reload`. */
export interface DaemonReloadResult {
  /** Whether the file as it is now is in force. */
  applied: boolean;
  problems?: string[];
  /** Keys that changed and count only once the daemon is restarted. */
  needs_restart?: string[];
}

/** Params of `daemon.restart`. */
export interface DaemonRestartParams {
  /** The program that serves from then on, as an absolute path; the daemon's own by default, as it is on disk now. */
  program?: string;
  /** Wait until no call and no command in the background runs. */
  when_idle?: boolean;
  /** How long to wait for that; 600,000 by default, at most 86,400,000. */
  timeout_ms?: number;
  /**
   * How long calls in flight may go on beside the new daemon before they are cancelled; at most 600,000, which is
   * the default with `when_idle`, else 5,000.
   */
  drain_ms?: number;
}

/** Answer of `daemon.restart`: the daemon that serves now. This connection ends with this answer. */
export interface DaemonRestartResult {
  pid: number;
  version: string;
  protocol: number;
  epoch: string;
  previous_pid: number;
  previous_version: string;
}

/** Params of `daemon.shutdown`. */
export interface DaemonShutdownParams {
  /** How long calls in flight may go on before they are cancelled; 5,000 by default, at most 600,000. */
  drain_ms?: number;
}

/** Params of `events.subscribe`. */
export interface EventsSubscribeParams {
  /** Names of kinds, as in `kind`; absent for all. */
  kinds?: string[];
  /** Only what belongs to this session, and what belongs to none. */
  session_id?: string;
  /** Replay what the ring still holds after this `seq`. */
  since?: number;
  /** The epoch that `since` belongs to; with another one everything that is held is replayed. */
  epoch?: string;
}

/** Params of `events.unsubscribe`. */
export interface EventsUnsubscribeParams {
  subscription: string;
}

/** Params of `files.history`. */
export interface FilesHistoryParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Those of every session, ended ones too; for people only. */
  all?: boolean;
}

/** Answer of `files.history`. */
export interface FilesHistoryResult {
  /** The oldest first. */
  changes: {
    /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
    session_id: string;
    /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
    call_id: string;
    tool: string;
    path: string;
    /** RFC 3339, UTC. */
    at: string;
    /** The change made the file. */
    created: boolean;
    /** It was taken back. */
    undone: boolean;
  }[];
}

/** Params of `files.undo`. */
export interface FilesUndoParams {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id?: string;
  path?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Whatever session made the change, ended ones too. */
  all?: boolean;
  /** Only say what would be done. */
  dry_run?: boolean;
}

/** Answer of `files.undo`. */
export interface FilesUndoResult {
  paths: string[];
  /** Of a dry run: from each file as it is to what it would be, as a unified diff. */
  diff?: string;
}

/** Answer of `hooks.list`. */
export interface HooksListResult {
  /** In the order in which they run. */
  hooks: {
    name: string;
    /** `pre_tool`, `post_tool`, `pre_message` or `post_message`. */
    event: string;
    /** The plugin, or the configuration. */
    source: Source;
    /** Lower runs first. */
    priority: number;
    /** `sync` or `async`. */
    mode: string;
    timeout_ms: number;
    /** What happens when the hook fails: `open` lets the call go on, `closed` ends it. */
    fail: string;
  }[];
}

/** Params of `hooks.run`. */
export interface HooksRunParams {
  /** Which hooks a frontend's own loop can run. */
  event: "pre_message" | "post_message";
  message: unknown;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `hooks.run`: what all hooks together say. */
export interface HooksRunResult {
  decision: "deny" | "modify" | "allow";
  reason?: string;
  /** The message after all hooks; absent when none changed it. */
  modified_message?: unknown;
  /** What hooks add to the system prompt, one under another. */
  system_prompt_append?: string;
  /** Hooks that failed and were passed over. */
  failed?: string[];
}

/** Params of `mcp.restart`. */
export interface McpRestartParams {
  name: string;
}

/** Params of `memories.list`. */
export interface MemoriesListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `memories.list`: the session's own, its project's, the user's; the oldest first in each. */
export interface MemoriesListResult {
  memories: {
    /** What `forget` takes. */
    memory_id: string;
    /** `session`, `project` or `global`. */
    scope: string;
    content: string;
    /** RFC 3339, UTC. */
    created_at: string;
    path: string;
  }[];
}

/** Params of `permissions.check`. */
export interface PermissionsCheckParams {
  /** What a need is about, and so which rules and grants can answer it. */
  category: Category;
  target: string;
  cwd?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The tool that would need it, for rules that name tools. */
  tool?: string;
  /** Of a command line: tell how it was read, too. */
  explain?: boolean;
}

/** Answer of `permissions.check`: what would happen, and why. */
export interface PermissionsCheckResult {
  /** What the permission engine says to a need. */
  verdict: "allow" | "ask" | "deny";
  /** The rule that decided, in words that name where it stands. */
  rule: string;
  /** The parts that were judged, when the target is more than one (a command line). */
  parts?: Array<{
    /** What a need is about, and so which rules and grants can answer it. */
    category: Category;
    target: string;
    /** What the permission engine says to a need. */
    verdict: "allow" | "ask" | "deny";
    rule: string;
  }>;
  /** How a command line was read, in its order; only when `explain` asks for it. */
  commands?: Array<{
    /** As it was understood; absent for a redirect. */
    command?: string;
    /** What is known of the program; absent for a program that toold does not know. */
    known?: {
      /** The program, with its subcommand. */
      name: string;
      /** The version of the program that the entry was written for. */
      version: string;
    };
    /** The words that mean something to the program, and what. */
    words?: {
      text: string;
      meaning: string;
    }[];
    /** Why it is not certain what the command does. No pattern with a wildcard covers it then. */
    unsure?: string;
    /** It changes nothing outside of its own process. */
    reads_only: boolean;
    /** The command's own permission first, then those for the files that it names. */
    parts: Array<{
      /** What a need is about, and so which rules and grants can answer it. */
      category: Category;
      target: string;
      /** What the permission engine says to a need. */
      verdict: "allow" | "ask" | "deny";
      rule: string;
    }>;
  }>;
}

/** Params of `permissions.grant`. */
export interface PermissionsGrantParams {
  /** What a need is about, and so which rules and grants can answer it. */
  category: Category;
  pattern: string;
  /** `session`, `project` or `always`. */
  scope: Scope;
  /** What a person can say to an ask, and what a rule or a grant says. */
  action?: Action;
  /** Only for these tools; absent for all. */
  tools?: string[];
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The folder whose project is meant; the session's when absent. */
  cwd?: string;
  /** The plugins between the caller and the need; absent for calls that no plugin makes. */
  chain?: string[];
  /** How long the grant lives, in seconds. */
  expires_in?: number;
}

/** Answer of `permissions.list`. */
export interface PermissionsListResult {
  /** The permission mode of a session. */
  mode: Mode;
  rules: Rule[];
  grants: Grant[];
  /** Rules that could not be read; while there are any, what they might say is denied. */
  broken?: string[];
}

/** Answer of `permissions.pending`. */
export interface PermissionsPendingResult {
  /** The oldest first. */
  asks: Ask[];
}

/** Params of `permissions.reply`. */
export interface PermissionsReplyParams {
  request_id: string;
  /** What a person can say to an ask, and what a rule or a grant says. */
  action: Action;
  /** `once` when absent. */
  scope?: Scope | null;
  /** One of the ask's suggestions, or exactly its target, which is the default. */
  pattern?: string;
  /** For the model: why not, or what to do instead. */
  message?: string;
  /** How long the grant lives, in seconds. */
  expires_in?: number;
}

/** Params of `permissions.revoke`. */
export interface PermissionsRevokeParams {
  id: string;
}

/** Params of `permissions.set_mode`. */
export interface PermissionsSetModeParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The permission mode of a session. */
  mode: Mode;
}

/** Params of `permissions.subscribe`. */
export interface PermissionsSubscribeParams {
  /** Only this session's; absent for all that the subscriber may see. */
  session_id?: string;
}

/** Params of `permissions.unsubscribe`. */
export interface PermissionsUnsubscribeParams {
  subscription: string;
}

/** Params of `plugins.disable`. */
export interface PluginsDisableParams {
  name: string;
}

/** Params of `plugins.enable`. */
export interface PluginsEnableParams {
  name: string;
}

/** Params of `plugins.list`. */
export interface PluginsListParams {
  /** The bundled plugins that are off, too. */
  all?: boolean;
}

/** Params of `plugins.logs`. */
export interface PluginsLogsParams {
  /** Absent for all plugins. */
  name?: string;
}

/** Answer of `plugins.logs`. */
export interface PluginsLogsResult {
  /** Of kinds `log`, `notice`, `message` and `plugin.*`, as far as they are still held; the oldest first. */
  events: Event[];
  /** The newest event of any kind: what comes after it comes by `events.subscribe {since}`. */
  seq: number;
  epoch: string;
}

/** Params of `plugins.reload`. */
export interface PluginsReloadParams {
  name?: string;
}

/** Params of `plugins.show`. */
export interface PluginsShowParams {
  name: string;
}

/** Answer of `plugins.show`. */
export interface PluginsShowResult {
  plugin: Plugin;
  /** What serves now. */
  tools: Tool[];
  hooks: {
    name: string;
    /** `pre_tool`, `post_tool`, `pre_message` or `post_message`. */
    event: string;
    /** The plugin, or the configuration. */
    source: Source;
    /** Lower runs first. */
    priority: number;
    /** `sync` or `async`. */
    mode: string;
    timeout_ms: number;
    /** What happens when the hook fails: `open` lets the call go on, `closed` ends it. */
    fail: string;
  }[];
  commands: Command[];
  /** Names. */
  subagents: string[];
  /** URIs and templates. */
  resources: string[];
  /** Names. */
  prompts: string[];
  /** What its manifest holds it to; absent when it holds it to nothing. */
  capabilities?: string[];
  /** Its files as they lie there now. */
  files: {
    path: string;
    bytes: number;
  }[];
  /** Who trusted which content of a project's plugin; absent when nobody did, and for all other plugins. */
  trusted?: {
    /** What the person's client calls itself. */
    client?: string;
    /** RFC 3339, UTC. */
    at: string;
    /** Of the content as it was then. */
    digest: string;
  };
}

/** Params of `plugins.trust`. */
export interface PluginsTrustParams {
  /** A folder in a project for all of the project, its `.toold/config.toml`, or a plugin's file or folder. Absolute. */
  path: string;
  /** Only tell what is there; nothing is trusted. */
  preview?: boolean;
  /** The digests that were looked at, by path: where another content lies there now, nothing is trusted. */
  expect?: Record<string, string>;
}

/** Answer of `plugins.trust`. */
export interface PluginsTrustResult {
  /** The project's real path. */
  project: string;
  items: Array<{
    kind: "config" | "plugin";
    /** The configuration file, or the plugin's file or folder. */
    path: string;
    /** Over all files of it and their names, in hexadecimal digits (BLAKE3). */
    digest: string;
    /** Whether exactly this content is trusted. */
    trusted: boolean;
    /** Who trusted what lay there last. */
    last?: {
      /** What the person's client calls itself. */
      client?: string;
      /** RFC 3339, UTC. */
      at: string;
      /** Of the content as it was then. */
      digest: string;
    };
    files: {
      path: string;
      bytes: number;
    }[];
    /** Of a configuration: the rules that allow something, which count only once they are trusted. */
    allows?: Rule[];
    /** Of a configuration: all else that counts only once it is trusted, such as commands of hooks. */
    settings?: {
      /** As `limits.calls` or `permission.rules[0]`. */
      key: string;
      value: unknown;
      /** `default`, a file with the line, a variable of the environment, or a flag. */
      origin: string;
    }[];
  }>;
}

/** Params of `prompt.parse`. */
export interface PromptParseParams {
  /** A model's answer. */
  text: string;
  /** Names of tools that there are; calls of others become errors. Absent: any name will do. */
  tools?: string[];
}

/** Answer of `prompt.parse`. */
export interface PromptParseResult {
  /** In the order in which they stand. */
  calls: {
    name: string;
    /** An object. */
    arguments: unknown;
  }[];
  /** What is neither a call nor thinking. */
  text: string;
  thinking: string;
  /** What could not be read for certain, in words that can be sent back to the model. */
  errors: string[];
}

/** Params of `prompt.render`. */
export interface PromptRenderParams {
  /** A family of text protocols; `tags` when absent. An unknown one is an error that lists them. */
  format?: string;
  /** How much a prompt says of each tool's arguments. */
  detail?: "names" | "types" | "schema";
  /** Only these tools. */
  names?: string[];
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `prompt.render`. */
export interface PromptRenderResult {
  text: string;
}

/** Params of `questions.reply`. */
export interface QuestionsReplyParams {
  request_id: string;
  /** Ids of chosen options. */
  answer_ids?: string[];
  /** A text of one's own, where the question allows one. */
  answer?: string;
  /** The fields of a form. */
  content?: Record<string, unknown>;
  /** The person says no. Tools that fill in forms can tell it from `cancelled`. */
  declined?: boolean;
  /** The person does not answer. */
  cancelled?: boolean;
}

/** Params of `questions.subscribe`. */
export interface QuestionsSubscribeParams {
  /** Only this session's; absent for all that the subscriber may see. */
  session_id?: string;
}

/** Params of `questions.unsubscribe`. */
export interface QuestionsUnsubscribeParams {
  subscription: string;
}

/** Answer of `remotes.list` and `remotes.reconnect`. */
export interface RemotesListResult {
  /** Sorted by name. */
  remotes: Array<{
    name: string;
    state: "connecting" | "connected" | "disabled" | "away";
    /** `command`, `websocket`, or `none` when its configuration names no way. */
    transport: string;
    /** Of the program that it is reached by. */
    pid?: number;
    /** RFC 3339, UTC: since when it is connected. */
    since?: string;
    /** Of the daemon there. */
    version?: string;
    /** The folder that calls work in there, with links resolved. */
    cwd?: string;
    /** Whether what it asks a person is shown here. It is where this daemon may decide there. */
    relays_asks: boolean;
    /** The daemons that are reached through it, itself first, by what each calls its own `instance`. */
    instances: string[];
    /** Its tools as they are called here. While it is away these are those that were known last. */
    tools: string[];
    /** What was left out of its list, and why. */
    problems: string[];
    /** Why it is away. */
    error?: string;
    /** When it is tried again. */
    retry_ms?: number;
    /** Calls that have ended, and those of them that ended badly. */
    calls: number;
    bad_calls: number;
    /** Calls that it works on now. */
    running: number;
    /** How often it was connected. */
    connects: number;
    /** The last lines that the program wrote on stderr. */
    stderr: string[];
  }>;
}

/** Params of `remotes.reconnect`. */
export interface RemotesReconnectParams {
  name: string;
}

/** Params of `session.close`. */
export interface SessionCloseParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
}

/** Answer of `session.close`. */
export interface SessionCloseResult {
  /** How many calls in flight were cancelled. */
  cancelled: number;
}

/** Answer of `session.list`. */
export interface SessionListResult {
  /** The oldest first. */
  sessions: SessionInfo[];
}

/** Params of `session.open`. */
export interface SessionOpenParams {
  /** An absolute path of a folder. On resuming it may be left out; another one is refused. */
  cwd?: string;
  /** An unknown id creates the session; absent makes a new one with 128 random bits. */
  session_id?: string;
  /** Folders beside `cwd` that the session works in; absolute paths. */
  roots?: string[];
  client?: {
    name: string;
    version?: string;
  };
  /** The model that the frontend talks to, for tools that ask. */
  model?: string;
  /** The protocol revision that the client speaks: 1 or 2. */
  protocol?: number;
  /** `agent` for a frontend that acts for a model: it cannot answer permission asks. */
  role?: "person" | "agent" | null;
  /**
   * Variables for the session's processes. A person's frontend may set any. All other clients may set those that
   * `[agents] env` names, and those whose value is that of the client's own process; the rest are ignored, and
   * named in the answer.
   */
  env?: Record<string, string>;
  /** Narrows the session's view of the registry. */
  tools?: {
    /** Globs over tool names. */
    enable?: string[];
    /** Globs over tool names. */
    disable?: string[];
    /** Kinds or names of sources. */
    sources?: string[];
    /** Kinds or names of sources. */
    without_sources?: string[];
  };
}

/** Params of `session.share`. */
export interface SessionShareParams {
  /** The connection's own session when absent. */
  session_id?: string;
}

/** Params of `shells.attach`. */
export interface ShellsAttachParams {
  shell_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /**
   * Begin with this many bytes of what it wrote before, at most; 0 for what comes from now on. All that is
   * kept, about 1 MiB, when absent.
   */
  tail?: number;
}

/** An item of `shells.attach`: a piece of output, or the end. */
export type ShellsAttachItem = {
  text: string;
  /** Bytes before this text that this reader was too slow for. */
  lost?: number;
} | {
  /** How it ended, in words. */
  status: string;
  exit_code?: number;
};

/** Params of `shells.detach`. */
export interface ShellsDetachParams {
  subscription: string;
}

/** Params of `shells.kill`. */
export interface ShellsKillParams {
  shell_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `shells.kill`. */
export interface ShellsKillResult {
  /** How it ended, in words: of itself, when it was over already. */
  status: string;
}

/** Params of `shells.list`. */
export interface ShellsListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Those of all sessions; for a person's frontend only. */
  all?: boolean;
}

/** Answer of `shells.list`. */
export interface ShellsListResult {
  /** The oldest first. Of those that have ended, the last 32 of each session. */
  shells: {
    shell_id: string;
    /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
    session_id: string;
    /** The call that started it. */
    call_id: string;
    command: string;
    cwd: string;
    /** RFC 3339, UTC. */
    started_at: string;
    running: boolean;
    /** `running`, or how it ended, in words. */
    status: string;
    exit_code?: number;
    /** Bytes that it has written, the forgotten ones too. */
    output_bytes: number;
    /** It has a terminal, of this size. */
    terminal?: {
      /** 1 to 1000. */
      cols: number;
      /** 1 to 1000. */
      rows: number;
    };
  }[];
}

/** Params of `shells.resize`. */
export interface ShellsResizeParams {
  shell_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** 1 to 1000. */
  cols: number;
  /** 1 to 1000. */
  rows: number;
}

/** Params of `shells.write`. */
export interface ShellsWriteParams {
  shell_id: string;
  /** The shell's session, where it is not the connection's. A person's frontend needs none. */
  session_id?: string;
  /** At most 65536 bytes. A line that is to be read ends with a line feed. */
  text?: string;
  /** Its input ends behind the text. At a terminal this is the key Ctrl-D. */
  eof?: boolean;
  /**
   * A person types this, so nobody is asked: for a person's frontend only. Otherwise each line needs
   * leave, as a command of the category `shell` that no pattern but `**` and its very text matches.
   */
  typed?: boolean;
}

/** Params of `skills.get`. */
export interface SkillsGetParams {
  name: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `skills.get`. */
export interface SkillsGetResult {
  name: string;
  description: string;
  /** `project` or `user`. */
  scope: string;
  path: string;
  /** What it may come with; absent for a flat file. */
  folder?: string;
  /** Markdown, without the front matter. */
  text: string;
}

/** Params of `skills.list`. */
export interface SkillsListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `skills.list`. */
export interface SkillsListResult {
  /** By name. */
  skills: {
    name: string;
    description: string;
    /** `project` or `user`. */
    scope: string;
    path: string;
    /** What it may come with; absent for a flat file. */
    folder?: string;
  }[];
  /** Files that were meant to be skills. */
  broken: {
    path: string;
    /** From 1. */
    line?: number;
    message: string;
  }[];
  /** Files whose name a nearer skill has. */
  shadowed: string[];
}

/** Answer of `subagents.list`. */
export interface SubagentsListResult {
  subagents: {
    name: string;
    description: string;
    system_prompt: string;
    /** Names of tools that it may use; absent for all. */
    tools?: string[];
    model?: string;
    /** `config`, the path of a Markdown file, or `plugin NAME`. */
    source: string;
    /** The plugin that describes it. */
    plugin?: string;
  }[];
}

/** Params of `todo.list`. */
export interface TodoListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `todo.list`. */
export interface TodoListResult {
  items: Array<{
    /** What is to be done, such as `Run the tests`. */
    content: string;
    status: "pending" | "in_progress" | "completed" | "cancelled";
    priority?: "low" | "medium" | "high" | null;
    /** The same while it is being done, such as `Running the tests`. */
    active_form?: string;
  }>;
}

/** Params of `tools.cancel`. */
export interface ToolsCancelParams {
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `tools.cancel`. */
export interface ToolsCancelResult {
  /** False when no such call is in flight in the caller's session. */
  cancelled: boolean;
}

/** Params of `tools.execute`. */
export interface ToolsExecuteParams {
  name: string;
  /** An object; `null` and absent are `{}`. */
  arguments?: unknown;
  /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
  call_id?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Within the session's `cwd` or roots. */
  cwd?: string;
  timeout_ms?: number;
  /** Send `tools.progress` notifications before the answer. */
  progress?: boolean;
  no_cache?: boolean;
  /** Let the call live on when its connection goes. */
  detach?: boolean;
  /** The trace that the call belongs to, as a header `traceparent` of the W3C's Trace Context names it. */
  traceparent?: string;
}

/** Params of `tools.execute_batch`. */
export interface ToolsExecuteBatchParams {
  /**
   * With a provider's `format` these are that provider's own call blocks, or the message that holds
   * them; the answer's `results` are then its result blocks.
   */
  calls: {
    name: string;
    arguments?: unknown;
    /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
    call_id?: string;
  }[];
  /** The form of a list of tools: the daemon's own, or what a provider's API takes. */
  format?: Format | null;
  /** In which order the calls of a batch run. Results always come in the order of the calls. */
  strategy?: Strategy;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  progress?: boolean;
}

/** Answer of `tools.execute_batch`. */
export interface ToolsExecuteBatchResult {
  results: {
    /** The id of a call: 1 to 128 printable characters, unique among its session's calls in flight. */
    call_id: string;
    /** What a call gave. */
    result?: ToolResult;
    /** A JSON-RPC error object. */
    error?: unknown;
  }[];
}

/** Params of `tools.interrupt`. */
export interface ToolsInterruptParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `tools.interrupt`. */
export interface ToolsInterruptResult {
  /** How many waiting calls were skipped. */
  skipped: number;
}

/** Params of `tools.list`. */
export interface ToolsListParams {
  /** Words that must stand in the name, the label or the description, in any case. */
  query?: string;
  /** The kind or the name of a source. */
  source?: string;
  names?: string[];
  /** The form of a list of tools: the daemon's own, or what a provider's API takes. */
  format?: Format | null;
  /** Answer `{revision, epoch, unchanged: true}` when this is still the revision. */
  if_revision?: number;
  /** The epoch that `if_revision` belongs to; another one never matches. */
  if_epoch?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `tools.list`, in the native form. */
export interface ToolsListResult {
  /** Grows by one with every change of the registry. */
  revision: number;
  /** New at each start of the daemon; revisions of two epochs do not compare. */
  epoch: string;
  unchanged?: boolean;
  /** Sorted by name. Absent when `unchanged`. */
  tools?: Tool[];
}

/** Params of `tools.provide`. */
export interface ToolsProvideParams {
  tools?: ProvidedTool[];
  /** Built-ins that this frontend offers to run; their invocations carry `role`. */
  roles?: Role[];
}

/** Params of `tools.provide_progress`. */
export type ToolsProvideProgressParams = {
  invocation_id: string;
} & Progress;

/** Params of `tools.provide_result`. */
export interface ToolsProvideResultParams {
  invocation_id: string;
  /** What a lent tool gives: a text, or more. */
  result?: ProvidedResult;
  /** Why there is no result; becomes a result with `is_error`. */
  error?: string;
}

/** Params of `tools.schema`. */
export interface ToolsSchemaParams {
  name: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Params of `tools.unprovide`. */
export interface ToolsUnprovideParams {
  subscription: string;
}

/** Params of `upgrade.check`. */
export interface UpgradeCheckParams {
  /** The grants of version 0.1 in the answer have been reviewed: they are not listed again. */
  reviewed?: boolean;
}

/** Answer of `upgrade.check`. */
export interface UpgradeCheckResult {
  changes: UpgradeChange[];
}

/** Params of `workspaces.allow`. */
export interface WorkspacesAllowParams {
  /** An absolute path of a folder. */
  path: string;
}

/** Params of `workspaces.forget`. */
export interface WorkspacesForgetParams {
  /** An absolute path of a folder. */
  path: string;
}

/** Requests, by method. */
export interface Methods {
  /** Lists calls of the past. */
  "audit.query": { params: AuditQueryParams; result: AuditQueryResult };
  /** Takes an unsaved text away again. */
  "buffers.clear": { params: BuffersClearParams; result: BuffersClearResult };
  /** Lays an editor's unsaved text over a file. */
  "buffers.set": { params: BuffersSetParams; result: Record<string, never> };
  /** Forgets the results that are kept. */
  "cache.clear": { params: Record<string, never>; result: CacheClearResult };
  /** Tells how the cache of results is used. */
  "cache.stats": { params: Record<string, never>; result: CacheStatsResult };
  /** Shows a call: its state, what it wrote so far, its result for a while. */
  "calls.get": { params: CallsGetParams; result: CallInfo };
  /** Lists the calls of a session. */
  "calls.list": { params: CallsListParams; result: CallsListResult };
  /** Lists the slash commands of plugins. */
  "commands.list": { params: Record<string, never>; result: CommandsListResult };
  /** Runs a slash command. */
  "commands.run": { params: CommandsRunParams; result: ToolResult };
  /** Tells what is configured, and where. */
  "daemon.config": { params: Record<string, never>; result: DaemonConfigResult };
  /** Gives what the daemon counts, as text for Prometheus. */
  "daemon.metrics": { params: Record<string, never>; result: DaemonMetricsResult };
  /** Answers. */
  "daemon.ping": { params: Record<string, never>; result: Record<string, never> };
  /** Reads the configuration anew, whole or not at all. */
  "daemon.reload": { params: Record<string, never>; result: DaemonReloadResult };
  /** Starts another daemon on the same socket, and ends when it serves. */
  "daemon.restart": { params: DaemonRestartParams; result: DaemonRestartResult };
  /** Drains and stops the daemon. */
  "daemon.shutdown": { params: DaemonShutdownParams; result: Record<string, never> };
  /** Tells how the daemon is. */
  "daemon.status": { params: Record<string, never>; result: DaemonStatus };
  /** Ends a subscription of events.subscribe. */
  "events.unsubscribe": { params: EventsUnsubscribeParams; result: boolean };
  /** Lists what a session changed. */
  "files.history": { params: FilesHistoryParams; result: FilesHistoryResult };
  /** Takes changes back; refused when a file changed since. */
  "files.undo": { params: FilesUndoParams; result: FilesUndoResult };
  /** Lists the hooks in the order in which they run. */
  "hooks.list": { params: Record<string, never>; result: HooksListResult };
  /** Runs the message hooks and gives what they say together. */
  "hooks.run": { params: HooksRunParams; result: HooksRunResult };
  /** Starts a mounted MCP server anew. */
  "mcp.restart": { params: McpRestartParams; result: McpServerList };
  /** Lists the mounted MCP servers. */
  "mcp.servers": { params: Record<string, never>; result: McpServerList };
  /** Lists what is remembered for a session. */
  "memories.list": { params: MemoriesListParams; result: MemoriesListResult };
  /** Tells what would happen to a need, and by which rule. */
  "permissions.check": { params: PermissionsCheckParams; result: PermissionsCheckResult };
  /** Stores a grant. */
  "permissions.grant": { params: PermissionsGrantParams; result: Grant };
  /** Lists rules and grants with their sources. */
  "permissions.list": { params: Record<string, never>; result: PermissionsListResult };
  /** Lists the asks that wait for a person. */
  "permissions.pending": { params: Record<string, never>; result: PermissionsPendingResult };
  /** Answers a permission ask; the first reply wins. */
  "permissions.reply": { params: PermissionsReplyParams; result: Record<string, never> };
  /** Removes a grant. */
  "permissions.revoke": { params: PermissionsRevokeParams; result: Record<string, never> };
  /** Changes the permission mode of a session. */
  "permissions.set_mode": { params: PermissionsSetModeParams; result: Record<string, never> };
  /** Ends a subscription of permissions.subscribe. */
  "permissions.unsubscribe": { params: PermissionsUnsubscribeParams; result: boolean };
  /** Switches a plugin off, for good. */
  "plugins.disable": { params: PluginsDisableParams; result: PluginList };
  /** Switches a plugin on, for good. */
  "plugins.enable": { params: PluginsEnableParams; result: PluginList };
  /** Lists the plugins, those that failed too. */
  "plugins.list": { params: PluginsListParams; result: PluginList };
  /** Gives what plugins logged, noticed and said, as far as it is still held. */
  "plugins.logs": { params: PluginsLogsParams; result: PluginsLogsResult };
  /** Loads one plugin or all anew, whether or not they changed. */
  "plugins.reload": { params: PluginsReloadParams; result: PluginList };
  /** Shows one plugin of the caller's view. */
  "plugins.show": { params: PluginsShowParams; result: PluginsShowResult };
  /** Trusts what a project configures and its plugins, as they are now. */
  "plugins.trust": { params: PluginsTrustParams; result: PluginsTrustResult };
  /** Reads the calls in a model's answer. */
  "prompt.parse": { params: PromptParseParams; result: PromptParseResult };
  /** Renders the text that teaches a model the tools. */
  "prompt.render": { params: PromptRenderParams; result: PromptRenderResult };
  /** Answers a tool's question; the first reply wins. */
  "questions.reply": { params: QuestionsReplyParams; result: Record<string, never> };
  /** Ends a subscription of questions.subscribe. */
  "questions.unsubscribe": { params: QuestionsUnsubscribeParams; result: boolean };
  /** Lists the other daemons that are mounted. */
  "remotes.list": { params: Record<string, never>; result: RemotesListResult };
  /** Connects to a mounted daemon anew. */
  "remotes.reconnect": { params: RemotesReconnectParams; result: RemotesListResult };
  /** Gives the OpenRPC document of this daemon. */
  "rpc.discover": { params: Record<string, never>; result: unknown };
  /** Ends a session and cancels its calls. */
  "session.close": { params: SessionCloseParams; result: SessionCloseResult };
  /** Lists the sessions. */
  "session.list": { params: Record<string, never>; result: SessionListResult };
  /** Opens or resumes a session and binds it to this connection. */
  "session.open": { params: SessionOpenParams; result: Session };
  /** Gives a one-time code by which an agent may join a session. */
  "session.share": { params: SessionShareParams; result: SharedSession };
  /** Ends a subscription of shells.attach. */
  "shells.detach": { params: ShellsDetachParams; result: boolean };
  /** Ends a command in the background, with all its processes. */
  "shells.kill": { params: ShellsKillParams; result: ShellsKillResult };
  /** Lists the commands in the background. */
  "shells.list": { params: ShellsListParams; result: ShellsListResult };
  /** Changes the size of a background command's terminal. */
  "shells.resize": { params: ShellsResizeParams; result: Record<string, never> };
  /** Gives input to a command in the background. */
  "shells.write": { params: ShellsWriteParams; result: Record<string, never> };
  /** Gives the text of a skill. */
  "skills.get": { params: SkillsGetParams; result: SkillsGetResult };
  /** Lists the skills for a session, and what is broken. */
  "skills.list": { params: SkillsListParams; result: SkillsListResult };
  /** Lists the sub-agents of the configuration, of Markdown files and of plugins. */
  "subagents.list": { params: Record<string, never>; result: SubagentsListResult };
  /** Lists what a session has to do. */
  "todo.list": { params: TodoListParams; result: TodoListResult };
  /** Cancels a call of the caller's session. */
  "tools.cancel": { params: ToolsCancelParams; result: ToolsCancelResult };
  /** Calls a tool. */
  "tools.execute": { params: ToolsExecuteParams; result: ToolResult };
  /** Calls several tools; results come in the order of the calls. */
  "tools.execute_batch": { params: ToolsExecuteBatchParams; result: ToolsExecuteBatchResult };
  /** Lets running calls of a session end and skips those that wait. */
  "tools.interrupt": { params: ToolsInterruptParams; result: ToolsInterruptResult };
  /** Lists the tools of the caller's view, sorted by name. */
  "tools.list": { params: ToolsListParams; result: ToolsListResult };
  /** Tells the progress of an invocation of a lent tool. */
  "tools.provide_progress": { params: ToolsProvideProgressParams; result: Record<string, never> };
  /** Answers an invocation of a lent tool. */
  "tools.provide_result": { params: ToolsProvideResultParams; result: Record<string, never> };
  /** Shows one tool. */
  "tools.schema": { params: ToolsSchemaParams; result: Tool };
  /** Ends a subscription of tools.provide. */
  "tools.unprovide": { params: ToolsUnprovideParams; result: boolean };
  /** Lists what version 0.1 allowed and this one does not. */
  "upgrade.check": { params: UpgradeCheckParams; result: UpgradeCheckResult };
  /** Lets every agent work in a folder, from now on. */
  "workspaces.allow": { params: WorkspacesAllowParams; result: WorkspaceList };
  /** Forgets that a person chose a folder; running sessions go on. */
  "workspaces.forget": { params: WorkspacesForgetParams; result: WorkspaceList };
  /** Lists the folders in which agents may work. */
  "workspaces.list": { params: Record<string, never>; result: WorkspaceList };
}

/** Subscriptions, by the method that begins them. */
export interface Subscriptions {
  /** Streams events. */
  "events.subscribe": { params: EventsSubscribeParams; item: Event };
  /** Streams permission asks; the subscriber can answer them. */
  "permissions.subscribe": { params: PermissionsSubscribeParams; item: PermissionEvent };
  /** Streams questions of tools; the subscriber can answer them. */
  "questions.subscribe": { params: QuestionsSubscribeParams; item: QuestionEvent };
  /** Streams the output of a command in the background. */
  "shells.attach": { params: ShellsAttachParams; item: ShellsAttachItem };
  /** Lends tools to the registry; items are invocations to run. */
  "tools.provide": { params: ToolsProvideParams; item: InvocationItem };
}

/** How the items of each subscription are called, and what ends it. */
export const SUBSCRIPTIONS = {
  "events.subscribe": { items: "events.event", end: "events.unsubscribe" },
  "permissions.subscribe": { items: "permissions.event", end: "permissions.unsubscribe" },
  "questions.subscribe": { items: "questions.event", end: "questions.unsubscribe" },
  "shells.attach": { items: "shells.output", end: "shells.detach" },
  "tools.provide": { items: "tools.invocation", end: "tools.unprovide" },
} as const satisfies Record<keyof Subscriptions, { items: string; end: keyof Methods }>;

/** Codes of errors, by their usual kind. */
export const ERROR_CODES = {
  /** parameters or a tool's arguments do not fit */
  invalid_params: -32602,
  /** no such tool; data.suggestions has near names */
  unknown_tool: -32001,
  /** the permission engine failed or is closing */
  permission_denied: -32002,
  /** a panic, a missing dependency, I/O set-up */
  execution_failed: -32003,
  /** no such session, plugin, request or subscription */
  unknown_session: -32004,
  /** a limit on calls is reached; nothing was run */
  overloaded: -32005,
  /** the call was cancelled */
  cancelled: -32800,
} as const;
