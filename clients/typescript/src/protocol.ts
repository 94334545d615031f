// The native protocol in types. Made by scripts/generate.mjs of the daemon's OpenRPC document: change nothing here.

/** The stream that a process wrote to. */
export type Stream = "stdout" | "stderr";

/** The form of a list of tools: the daemon's own, or that of a provider's API. */
export type Format = "native" | "anthropic" | "openai" | "openai_responses" | "gemini" | "mcp";

/** When absent, the configuration says which list the client gets, unless `query`, `source` or `names` choose tools. */
export type Listing = "all" | "deferred";

/** The order in which the calls of a batch run. Results always come in the order of the calls. */
export type Strategy = "sequential" | "parallel" | "auto" | {
  batched: number;
};

/** How a call ended. */
export type Outcome = "ok" | "denied" | "timed_out" | "cancelled" | "invalid_args" | "overloaded" | "skipped" | "error" | "failed" | "interrupted";

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
  /** Only for a link. */
  name?: string;
  /** Only for a link. */
  description?: string;
  /** The `_meta` of a mounted MCP server, unchanged. */
  meta?: Record<string, unknown>;
};

/** The category of a permission: which rules and grants apply to it. */
export type Category = "file.read" | "file.write" | "shell" | "network" | "mcp" | "agent" | "plugin";

/** How long a grant holds, and for whom. */
export type Scope = "once" | "session" | "project" | "always";

export interface Suggestion {
  /** How long a grant holds, and for whom. */
  scope: Scope;
  pattern: string;
  /** What the pattern covers, in words, where it does not say so itself. */
  covers?: string;
}

/** Who owns a tool. */
export interface Source {
  kind: "builtin" | "plugin" | "frontend" | "mcp" | "remote" | "fleet";
  name: string;
  /** The file or folder of a plugin. */
  path?: string;
}

/**
 * Hints for frontends, as in MCP's tool annotations. They are claims, not facts: a decision depends only on those of a server that
 * a person trusts. A hint that a tool does not declare is absent, which claims nothing.
 */
export interface Annotations {
  read_only?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  open_world?: boolean;
  /** Whether clients that can fetch results later get a task. */
  task?: "optional" | "required";
}

/** Progress of a running call. */
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
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** Counts from 0 in the order of production, without gaps. */
  seq: number;
  /** How many notifications before this one a slow reader has lost. */
  dropped?: number;
} & Progress;

/** A tool as `tools.list` and `tools.schema` show it. */
export interface Tool {
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  name: string;
  /** For people; a mounted server's own name where that is not a valid tool name. */
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
  /**
   * Hints for frontends, as in MCP's tool annotations. They are claims, not facts: a decision depends only on those of a server that
   * a person trusts. A hint that a tool does not declare is absent, which claims nothing.
   */
  annotations: Annotations;
  version?: string;
  /**
   * For a tool whose arguments are one string: the grammar of that string. Providers that have such tools let the
   * model write it as it is, and not as JSON.
   */
  grammar?: {
    /** The language of a grammar. */
    syntax: "lark" | "regex";
    definition: string;
  };
}

/** A tool that a search found. */
export interface FoundTool {
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  name: string;
  /** The first sentence of the description; with `schemas`, all of it. */
  description: string;
  /** Who owns a tool. */
  source: Source;
  /** Only with `schemas`. */
  input_schema?: unknown;
}

/** The result of a call. */
export interface ToolResult {
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** For the model. */
  content: Block[];
  /** The tool failed; the content says why. */
  is_error: boolean;
  /** For frontends and the audit log, not for the model. */
  metadata: Record<string, unknown>;
  /** A value that matches the tool's `output_schema`. */
  structured?: unknown;
  /** From the start of the tool to its end, without waiting for people or lanes. */
  duration_ms: number;
  cached: boolean;
}

/** A request for permission that a person answers. */
export interface Ask {
  request_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The call that asked first. */
  call_id: string;
  /** All calls that wait for this answer. */
  call_ids: string[];
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  /** A resolved path, one simple command, a host and port, or a name. */
  target: string;
  tool: string;
  /** Who owns a tool. */
  source: Source;
  /**
   * The program whose session the call belongs to, as it named itself, or the agent that is about to use a tool of its
   * own; absent when it did not name itself.
   */
  agent?: string;
  /** Who waits for the answer, in words, when that is more than one agent in one session; `agent` is the first of them. */
  agents?: string[];
  /** The sub-agent that asks, by its kind and id, as the agent names it; absent for the agent itself. */
  subagent?: string;
  /** The session as people know it, such as `terminal pts/5` or `this codex session`: an answer for the session holds there. */
  session_name?: string;
  /** How much runs without an approval in the session. */
  level: "read" | "edit" | "develop" | "operate";
  cwd: string;
  reason?: string;
  /** The model's own words about its command. toold does not know whether they are true. */
  description?: string;
  /**
   * What is easily misread in the texts of the ask, as sentences: characters that cannot be seen, and letters that look
   * like others.
   */
  misleading?: string[];
  /** The whole command line that `target` is a part of. */
  command?: string;
  /** The effects of a command, as far as they are known, the worst first. `reason` says them in words. */
  effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
  /** A unified diff of what would be written. */
  diff?: string;
  /** The plugins that the call passes through, the outermost first. */
  chain?: string[];
  /** From narrow to wide; each matches the target, and nothing beyond what it shows. */
  suggestions: Suggestion[];
  /**
   * Everything that the call asks for one after another, such as the commands of a line, with this ask as number
   * `part`. Empty when that is this ask alone.
   */
  parts?: {
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    target: string;
    /** What a command does beyond reading, in words, as far as it is known. */
    does?: string;
  }[];
  /** The place of this ask among `parts`, from 1; absent without `parts`. */
  part?: number;
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

/** The action of a reply to an ask, of a rule or of a grant. */
export type Action = "allow" | "deny";

/** An item of `permissions.subscribe`. */
export type PermissionEvent = {
  type: "asked";
  /** A request for permission that a person answers. */
  request: Ask;
} | {
  type: "resolved";
  request_id: string;
  action: Resolution;
  /** How long a grant holds, and for whom. */
  scope?: Scope | null;
  /** Who answered; absent when nobody did. */
  by?: Answerer;
  /** How it ended, in words: `allowed by toolctl (once)`, `the call ended`. */
  how: string;
};

export interface QuestionOption {
  /** The id that an answer names; unique within its question. */
  id: string;
  label: string;
  description?: string;
}

/** A question that waits for an answer. */
export interface Question {
  request_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** The call that asks. */
  call_id: string;
  /** The tool that asks. */
  tool?: string;
  /** The program whose session the call belongs to, as it named itself; absent when it did not. */
  agent?: string;
  cwd?: string;
  question: string;
  /** Empty when only free text can answer. */
  options: QuestionOption[];
  /** Whether more than one option can be chosen. */
  multiple: boolean;
  /** Whether free text is an answer. */
  allow_other: boolean;
  /**
   * The JSON Schema of an object: a form to fill in. The answer is `content`, or a text that is such an object
   * or, for a form with one field, the value of that field.
   */
  schema?: unknown;
  /** The tool's name for a form, for clients that are asked several things at once. */
  key?: string;
  /** RFC 3339, UTC. */
  asked_at: string;
  /** RFC 3339, UTC. */
  expires_at: string;
}

/** An item of `questions.subscribe`. */
export type QuestionEvent = {
  type: "asked";
  /** A question that waits for an answer. */
  request: Question;
} | {
  type: "resolved";
  request_id: string;
  action: "answered" | "expired" | "cancelled";
  /** Who answered; absent when nobody did. */
  by?: Answerer;
  /** How it ended, in words: `answered by nvim`, `the call ended`. */
  how: string;
};

/** The permission mode of a session. */
export type Mode = "default" | "plan" | "accept_edits" | "yolo";

/** A rule of a configuration file. */
export interface Rule {
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  pattern: string;
  /** The decision of the permission engine. */
  action: "allow" | "ask" | "deny";
  tools?: string[];
  cwd?: string;
  /** Only commands with this effect. */
  effect?: "privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read";
  /** Only for this agent. */
  agent?: string;
  /** File and place. */
  source: string;
}

/** A remembered permission. */
export interface Grant {
  id: string;
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  pattern: string;
  /** The action of a reply to an ask, of a rule or of a grant. */
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
  /**
   * Only in the answer of `permissions.grant` to a grant without a chain: the chains of plugins that were refused
   * something which it matches. It does not hold for them.
   */
  without_chains?: string[][];
  /** Only in the answer of `permissions.grant`: what the pattern probably means and does not do, in words. */
  warnings?: string[];
  /** The ask that it answered; absent for a grant that a person gave without being asked. */
  asked?: {
    agent?: string;
    tool: string;
    cwd: string;
    /** What the person wrote with the answer. */
    words?: string;
  };
  /** How many calls it has decided about, as far as the audit log has their rows. */
  uses: number;
  /** When it decided last; RFC 3339, UTC. */
  used_at?: string;
}

/** An error of a plugin: why it did not load, or why one of its functions failed. */
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
  /** The only project whose sessions see it; absent when all sessions do. */
  project?: string;
  /** It ships with the daemon and is disabled until you enable it. */
  bundled?: boolean;
  status: "loaded" | "disabled" | "failed" | "untrusted" | "shadowed";
  version?: string;
  description?: string;
  /** The tools that it serves now; for a failed plugin, those of its last good version. */
  tools: string[];
  /** An error of a plugin: why it did not load, or why one of its functions failed. */
  error?: PluginError;
  /**
   * Problems that do not keep it from serving, as sentences for its author: a command that is not used because another
   * plugin has one of the same name.
   */
  warnings?: string[];
  /** RFC 3339, UTC: when the version in service was loaded. */
  loaded_at?: string;
}

/** Answer of `plugins.list` and `plugins.reload`. */
export interface PluginList {
  /** Sorted by folder order, then by name. */
  plugins: Plugin[];
}

/** A mounted server; all clients share its tools. */
export interface McpServer {
  name: string;
  /** The project whose sessions see it; all sessions when absent. */
  project?: string;
  state: "starting" | "running" | "disabled" | "stopped" | "failed";
  /** Which sessions share a process of a mounted server. The tools are the same for all. */
  scope: "shared" | "project" | "session";
  /**
   * The processes that are starting, running or have failed. Those of scopes other than `shared` count only here: `pid`,
   * `since` and `uptime_s` of the server are those of the shared process.
   */
  instances: Array<{
    /** The session that it serves, with the scope `session`. */
    session?: string;
    /** The root of the project whose sessions it serves, with the scope `project`. */
    project?: string;
    state: "starting" | "running" | "disabled" | "stopped" | "failed";
    pid?: number;
    /** RFC 3339, UTC: since when it runs. */
    since?: string;
    uptime_s?: number;
    /** Resident memory of the process and of those that it started; absent where the system does not report it. */
    memory_bytes?: number;
    /** The number of these processes. */
    processes?: number;
    /** Calls that it is running now. */
    running: number;
    /** Why it is not running. */
    error?: string;
  }>;
  /** So many run at most. */
  max_instances: number;
  /** `stdio`, `socket`, `http`, or `none` when its configuration names no transport. */
  transport: string;
  pid?: number;
  /** RFC 3339, UTC: since when it runs. */
  since?: string;
  uptime_s?: number;
  /** The revision of MCP that it speaks. */
  protocol?: string;
  /** Its tools under their names here. A server that does not run keeps its last known tools. */
  tools: string[];
  /** Tools that were left out of its list, and why. */
  problems: string[];
  /** Why it is not running. */
  error?: string;
  /** For how long calls are refused immediately; 0 when the next call tries to start it. */
  retry_ms?: number;
  /** The secrets that its configuration names. */
  secrets?: string[];
  /** The login, for a remote server that has asked for one; shown to people only. */
  login?: {
    state: "logged_in" | "required" | "locked";
    /** The authorization server. */
    issuer?: string;
    /** The daemon's identity there. */
    client_id?: string;
    /** The scopes that the login has. */
    scopes?: string[];
    /** RFC 3339, UTC: when the access token expires. It is refreshed then, if the server allows that. */
    expires?: string;
  };
  /** Where a login's page sends the browser back to, if its configuration says so: `HOST`, `HOST:PORT` or `HOST:PORT/PATH`. */
  login_redirect?: string;
  /** Calls that have ended, and how many of them failed. */
  calls: number;
  bad_calls: number;
  /** Calls that it is running now. */
  running: number;
  starts: number;
  /** The last lines that it wrote to stderr or sent as log messages. */
  stderr: string[];
}

/** Answer of `mcp.servers`, `mcp.restart` and `mcp.test`. */
export interface McpServerList {
  /** Sorted by name. */
  servers: McpServer[];
}

export interface CallInfo {
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  tool: string;
  /** The agent, when it uses a tool of its own. `tool` is then the built-in tool that does the same. */
  agent?: string;
  /** The frontend that opened the session, as it named itself. */
  client?: string;
  /** The folder that the call works in. */
  cwd?: string;
  /** The arguments on one line, as in `call.started`. */
  arguments?: string;
  state: "running" | "finished";
  /** What a running call waits for; absent while it does not wait. */
  waits_for?: "lane" | "turn" | "permission" | "answer";
  /** RFC 3339, UTC. */
  started_at: string;
  /** Its output so far; the middle is cut out when it is long. */
  output?: string;
  /** The result of a call. */
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
  /** How much runs without an approval in it. */
  level: "read" | "edit" | "develop" | "operate";
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
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
  /** Who owns the tool: kind and name, such as `plugin:git`. */
  source: string;
  /** The agent, when it used a tool of its own; `source` is then `agent:` and its name. */
  agent?: string;
  /** The sub-agent of it that used the tool: its kind, and its id in brackets. */
  subagent?: string;
  /** The frontend that opened the session. */
  client?: string;
  /** The number of the connection, new at each start of the daemon. */
  connection: number;
  /** The decision about each permission that the call needed, in order. */
  decisions: Array<{
    category: string;
    target: string;
    /** `allow`, `deny`, or `ask` for a question that was left to an agent's own prompt. */
    verdict: string;
    /** The rule or the grant that decided, in words that name where it stands. */
    rule: string;
    /** The words that choose what a command does, such as `git push`. */
    operation?: string;
    /** The effects of a command, as far as they are known, the worst first. */
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
    /** What a command whose sandbox has the network by host exchanged with the host. */
    traffic?: {
      connections: number;
      sent_bytes: number;
      received_bytes: number;
    };
  }>;
  /** How a call ended. */
  outcome: Outcome;
  duration_ms: number;
  /** Whether the result came from the cache; the tool did not run then. */
  cached?: boolean;
  /** With `cached`: how long the call took that produced the result. */
  original_ms?: number;
  /** Size of the arguments. */
  input_bytes: number;
  /** Size of the result's text. */
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
  /** Grows by one with every event of the daemon, including those that a filter leaves out. */
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
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
  /** The agent, when it uses a tool of its own. `tool` is then the built-in tool that does the same. */
  agent?: string;
  /** The frontend that opened the session, as it named itself. */
  client?: string;
  /** The folder that the call works in. */
  cwd?: string;
  /**
   * The arguments on one line of at most 256 bytes, such as `path=src/a.rs limit=20`. Long values are shortened,
   * and secrets are replaced by `[redacted]`. Absent without arguments.
   */
  arguments?: string;
} | {
  kind: "call.progress";
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** Progress of a running call. */
  progress: Progress;
} | {
  kind: "call.finished";
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool: string;
  agent?: string;
  /** How a call ended. */
  outcome: Outcome;
  duration_ms: number;
} | {
  kind: "permission.asked";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A request for permission that a person answers. */
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
    /** How it ended, in words: `allowed by toolctl (once)`, `the call ended`. */
    how: string;
  };
} | {
  kind: "question.asked";
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** A question that waits for an answer. */
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
    /** How it ended, in words: `answered by nvim`, `the call ended`. */
    how: string;
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
  /** An error of a plugin: why it did not load, or why one of its functions failed. */
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
  kind: "plugin.error";
  plugin: string;
  /**
   * The function: `tool greet`, `hook NAME`, `command hi`, `resource NAME`, `prompt NAME`, `completion NAME`,
   * `permission of NAME`, or `script` for a script that loaded before and fails now.
   */
  handler: string;
  /** An error of a plugin: why it did not load, or why one of its functions failed. */
  error: PluginError;
  /** Absent outside of calls. */
  call_id?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** How many failures of the plugin before this one were not reported. */
  left_out?: number;
} | {
  kind: "plugin.refused";
  plugin: string;
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  target: string;
  message: string;
} | {
  kind: "fleet.changed";
} | {
  kind: "config.changed";
  file: string;
  /** The project that it belongs to; absent for the user's own. */
  project?: string;
  /** Problems with it, as sentences for the user. While there are any, the previous configuration stays active. */
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
  /** The whole list, in its author's order. */
  items: Array<{
    /** The task, such as `Run the tests`. */
    content: string;
    status: "pending" | "in_progress" | "completed" | "cancelled";
    priority?: "low" | "medium" | "high" | null;
    /** The task while it is in progress, such as `Running the tests`. */
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
  /** How it ended, as text. */
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
  /** How many; absent when that is unknown. */
  missed?: number;
});

/** Whether its tools may work in the folder. */
export type Workspace = "open" | "pending" | "none";

/** Answer of `session.open`. */
export interface Session {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** With links resolved. */
  cwd: string;
  /** Whether the session was there before. */
  resumed: boolean;
  /** Whether its tools may work in the folder. */
  workspace: Workspace;
  /** Names in `env` that this client may not set; they have no effect. */
  env_ignored?: string[];
  /** Why the session, or its new state, ends with the daemon; absent when it is stored. */
  not_kept?: string;
  server: {
    name: string;
    version: string;
    protocol: number;
  };
}

/** Answer of `session.share`. */
export interface SharedSession {
  /** The code: `session.open` takes it once as `session_id`. It does not open a session in the mode `yolo`. */
  code: string;
  /** For how many seconds the code is valid. */
  expires_in: number;
}

export interface WorkspaceInfo {
  /** With links resolved. */
  path: string;
  /** How a person chose a workspace. */
  source: "config" | "allowed" | "opened" | "client";
  /** The client that may use it; absent when all may. */
  client?: string;
  /** When a person chose it: RFC 3339, UTC. */
  at?: string;
}

/** Answer of `workspaces.list`, `workspaces.allow` and `workspaces.forget`. */
export interface WorkspaceList {
  /** By their paths. */
  workspaces: WorkspaceInfo[];
}

/** Answer of `daemon.status`. */
export interface DaemonStatus {
  pid: number;
  version: string;
  protocol: number;
  /** New at each start. */
  epoch: string;
  /** The same at each start: the name by which daemons that mount each other know it. */
  instance?: string;
  uptime_s: number;
  /** Absent when the daemon serves its parent on stdio alone. */
  socket?: string;
  /** The database. Daemons that serve sockets have one each; a daemon on stdio shares that of the others. */
  database?: string;
  /** Where MCP clients are served on HTTP; absent when they are not. */
  mcp_url?: string;
  /** Where native clients are served on a WebSocket; absent when they are not. */
  rpc_url?: string;
  /** Where the page is served; absent when it is not yet. */
  page_url?: string;
  /** The configuration file that was read, if there was one. */
  config?: string;
  plugin_dirs: string[];
  /** How the programs that tools run are confined, such as `read-only, no network`; absent when they are not. */
  sandbox?: string;
  /** Why the configured sandbox is not available: then no command runs. Absent when it is, or when none is configured. */
  sandbox_refused?: string;
  /** How commands that run without a person's word are confined here. */
  floors?: {
    /** Those that are known only to read. Otherwise they run as `[sandbox]` says. */
    reading: boolean;
    /** Those that a level frees. Otherwise a person is asked about them. */
    freed: boolean;
    /** Why not all are, as a sentence for people. */
    problem?: string;
    /** Why builds that are confined make no Unix sockets, as a sentence for people. */
    sockets?: string;
  };
  /** The result of a trial of the sandbox mode `guard`; absent when programs are confined already or no trial was made. */
  guard?: {
    works: boolean;
    /** Why it does not work, as a sentence for the user. */
    problem?: string;
  };
  /** How much runs without an approval, by the configuration. */
  level: {
    /** How much runs without an approval, from little to much. Each level frees what those before it free. */
    level: "read" | "edit" | "develop" | "operate";
    /** See [`SessionLevel::unconfined`]. */
    unconfined?: string;
  };
  /** Absent when agents are not observed. */
  observing?: {
    /** The client of the person who began it. */
    by: string;
    /** RFC 3339, UTC. */
    since: string;
    /** RFC 3339, UTC. */
    until: string;
    /** The only agent that it is about; absent for all. */
    agent?: string;
  };
  /** Who paused everything, and when; absent when nothing is paused. */
  paused?: string;
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
  /** Waiting calls and messages, by what they wait for. */
  queues: {
    /** Calls whose tool is running. */
    running: number;
    /** Calls that wait for the lane of their session. */
    waiting_for_lane: number;
    /** Calls that wait for their turn in a plugin or for an identical call that is running. */
    waiting_for_place: number;
    /** Calls that wait for permission or for the answer to a question. */
    waiting_for_person: number;
    /** Notifications that clients have not read yet. */
    outboxes: {
      /** Notifications of all connections. */
      messages: number;
      /** Notifications of the connection that has the most. */
      most: number;
      /** The limit of each connection; beyond it progress is dropped and subscriptions wait. */
      capacity: number;
      /** Connections that are at `capacity`. */
      full: number;
      /** Bytes of all connections in notifications of 4 KiB and more. A connection has at most 1 MiB, or one notification that is longer. */
      long_bytes: number;
    };
    /** Events and their subscribers. */
    events: {
      /** Since the start. */
      emitted: number;
      /** Subscribers inside and outside of the daemon. */
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
    /** Calls with another outcome than `ok`. */
    errors: number;
    /** Calls that ran; the others were refused or answered from the cache. */
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
  /** The Lua states that plugins run in. */
  lua: {
    machines: number;
    /** Memory that scripts have allocated in them, measured at the end of the last call in each. */
    memory_bytes: number;
  };
  /** Resident memory of the process; absent where the system does not report it. */
  memory_bytes?: number;
  /** The memory that is reserved for parsed messages. */
  message_memory: {
    taken_bytes: number;
    limit_bytes: number;
    /**
     * Bytes of answers over 64 KiB that clients have not read yet. Beyond 256 MiB, only clients that read get answers to
     * requests in flight.
     */
    unread_bytes: number;
  };
  /** Open file descriptors; absent where the system does not report it. */
  open_files?: number;
  /** The limit on open files; absent where the system sets none. */
  open_files_limit?: number;
  /** Problems with the daemon and its environment, as sentences for the user. */
  problems?: string[];
  /** The state of the database. */
  store?: {
    /** Whether the database accepts writes. It does while it is only temporarily out of space. */
    takes_writes: boolean;
    /** The database is damaged: reads may not return everything that was written. */
    damaged: boolean;
    /** Refusals of the user may be lost, so the daemon asks about everything. */
    refusals_lost: boolean;
    /** Rows of the audit log that could not be written since the start. */
    audit_rows_lost: number;
    /** Problems and how to fix them, as sentences for the user; also in the `problems` of the status. */
    problems?: string[];
  };
}

/** What a frontend can do for the daemon besides providing tools. */
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
  /**
   * Hints for frontends, as in MCP's tool annotations. They are claims, not facts: a decision depends only on those of a server that
   * a person trusts. A hint that a tool does not declare is absent, which claims nothing.
   */
  annotations?: Annotations;
}

/** The result of a provided tool: a text, or more. */
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
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
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
  /** Calls that began at this time or later: RFC 3339, or how long ago, such as `15m` or `2h 30m`. */
  since?: string;
  /** The first entries after this `id`; when absent, the last entries. */
  after?: number;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool?: string;
  /** Calls of this agent, its sub-agents included, or of this client. */
  agent?: string;
  /** How a call ended. */
  outcome?: Outcome;
  /** The maximum number of entries; 100 when absent, at most 1,000. */
  limit?: number;
}

/** Answer of `audit.query`. */
export interface AuditQueryResult {
  /** Sorted by `id`, which is the order in which the calls ended. */
  entries: AuditEntry[];
  /** Whether more entries match: earlier ones, or later ones with `after`. */
  more: boolean;
  /** How many calls of that time are missing, because they could not be written in time. */
  lost: number;
}

/**
 * Answer of `audit.verify`: whether rows of the audit log were removed or changed. It shows loss, not a forger with the
 * rights of the person, who could write a whole log that is right in itself.
 */
export interface AuditVerifyResult {
  /** Rows that were checked. */
  rows: number;
  /** Rows that an earlier version wrote, which gave them no hash. */
  without_chain: number;
  /** The last row that was removed because of its age or the number of rows; those after it are checked. */
  checkpoint?: number;
  /** Calls that could not be recorded; the daemon counted them. */
  lost: number;
  /** How many breaks there are; 0 when nothing was removed or changed. */
  broken: number;
  /** The first of them. */
  breaks: {
    /** The row at which it shows, if it is one. */
    id?: number;
    /** When it was found, if it is none: RFC 3339, UTC. */
    at?: string;
    what: string;
  }[];
}

/** Params of `buffers.clear`. */
export interface BuffersClearParams {
  /** The absolute path of the file. */
  path: string;
}

/** Answer of `buffers.clear`. */
export interface BuffersClearResult {
  /** False when this connection had set no text for the file. */
  cleared: boolean;
}

/** Params of `buffers.set`. */
export interface BuffersSetParams {
  /** The absolute path of the file. */
  path: string;
  /** Grows with each change of the text. */
  version: number;
  /** The whole text. */
  text: string;
}

/** Answer of `cache.clear`. */
export interface CacheClearResult {
  /** How many results were removed. */
  cleared: number;
}

/** Answer of `cache.stats`. Counts are since the daemon's start. */
export interface CacheStatsResult {
  /** Calls that were answered from the cache. */
  hits: number;
  /** Calls of cacheable tools that ran. */
  misses: number;
  /** Calls that shared the result of an identical call in flight. */
  shared: number;
  /** Results that were evicted to make room. */
  evictions: number;
  /** Results in the cache. */
  entries: number;
  /** Their approximate size in bytes. */
  size: number;
  /** The limit on their size in bytes. */
  capacity: number;
  /** Hits divided by hits and misses; 0 before the first call. */
  hit_rate: number;
  /** How long the calls took whose results were served from the cache, added up for each time that one was served. */
  saved_ms: number;
}

/** Params of `calls.begun`. */
export interface CallsBegunParams {
  /** At most 4,096. */
  call_ids: string[];
}

/** Answer of `calls.begun`. */
export interface CallsBegunResult {
  /** Those of the calls that have begun, in this daemon or one before. */
  begun: string[];
  /** Whether all others have not: the beginning of every call that may change something is recorded before it begins. */
  complete: boolean;
}

/** Params of `calls.get`. */
export interface CallsGetParams {
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Params of `calls.list`. */
export interface CallsListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `calls.list`: the session's calls in flight, and detached calls that ended recently. */
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
  /** The name of the command, with or without a slash. */
  name: string;
  /** The text after the command. */
  input?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Send `tools.progress` before the answer. */
  progress?: boolean;
}

/** Answer of `daemon.config`: the active configuration, and where it comes from. */
export interface DaemonConfigResult {
  /** The user's configuration file, whether or not it exists. */
  file: string;
  /** Every key, in the order of the schema; keys with secret-sounding names are left out. */
  entries: {
    /** Such as `limits.calls` or `permission.rules[0]`. */
    key: string;
    value: unknown;
    /** `default`, a file with the line, an environment variable, or a flag. */
    origin: string;
  }[];
  /** The project of the caller's session, when it has a configuration. */
  project?: {
    file: string;
    /** Whether a person trusts the file as it is now. Its rules that deny or ask count in any case. */
    trusted: boolean;
    entries: {
      /** Such as `limits.calls` or `permission.rules[0]`. */
      key: string;
      value: unknown;
      /** `default`, a file with the line, an environment variable, or a flag. */
      origin: string;
    }[];
    problems?: string[];
  };
  /**
   * Problems with the user's file, as sentences for the user. While there are any, the previous configuration stays
   * active.
   */
  problems?: string[];
}

/** Answer of `daemon.metrics`. */
export interface DaemonMetricsResult {
  /** The media type of `text`, for an HTTP header. */
  content_type: string;
  text: string;
}

/** Params of `daemon.pause`. */
export interface DaemonPauseParams {
  /** End what can be ended instead of stopping it. */
  kill?: boolean;
}

/** Answer of `daemon.pause` and `daemon.resume`. */
export interface DaemonPauseResult {
  /** How many processes were stopped, ended, or go on. */
  processes: number;
  /** Tools of agents that still run: toold cannot stop them. */
  still_running?: string[];
  /** Who paused everything, and when; absent when nothing is paused. */
  paused?: string;
  /** In the answer of `daemon.resume`, who had paused everything, and when; absent when nothing was paused. */
  resumed?: string;
}

/** Answer of `daemon.reload`. */
export interface DaemonReloadResult {
  /** Whether the current file is active. */
  applied: boolean;
  problems?: string[];
  /** Keys that changed and take effect only after a restart of the daemon. */
  needs_restart?: string[];
}

/** Params of `daemon.restart`. */
export interface DaemonRestartParams {
  /** The absolute path of the program of the new daemon; by default the daemon's own program as it is on disk now. */
  program?: string;
  /** Wait until no call and no background command runs. */
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
  /** Only events of this session, and events of no session. */
  session_id?: string;
  /** Replay the buffered events after this `seq`. */
  since?: number;
  /** The epoch that `since` belongs to; if it is another one, all buffered events are replayed. */
  epoch?: string;
}

/** Params of `events.unsubscribe`. */
export interface EventsUnsubscribeParams {
  /** The id that the subscription was answered with. */
  subscription: string;
}

/** Params of `files.forget`. */
export interface FilesForgetParams {
  /** A path; the changes of all below it are forgotten too. */
  path?: string;
  /** Forget all changes. */
  all?: boolean;
}

/** Answer of `files.forget`. */
export interface FilesForgetResult {
  /** How many changes were removed. */
  forgotten: number;
}

/** Params of `files.history`. */
export interface FilesHistoryParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The changes of every session, including ended ones; for people only. */
  all?: boolean;
  /** Only changes since this time (RFC 3339), or for so long, such as `10min`. */
  since?: string;
  /** Only changes of calls of this agent or client. */
  agent?: string;
  /** Only changes below this folder. */
  below?: string;
  /** Also give the changes as one diff, with who made them; for people only. */
  diff?: boolean;
  /** The folder to which names in the diff and in notes are relative, if they are below it. */
  folder?: string;
  /**
   * Whether the diff is a patch that `git apply` takes in `folder`: what it cannot hold, such as changes elsewhere, is
   * named in lines that begin with `#`.
   */
  patch?: boolean;
}

/** Answer of `files.history`. */
export interface FilesHistoryResult {
  /** The oldest first. */
  changes: {
    /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
    session_id: string;
    /**
     * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
     * session's calls in flight.
     */
    call_id: string;
    tool: string;
    path: string;
    /** RFC 3339, UTC. */
    at: string;
    /** The change made the file. */
    created: boolean;
    /** The change removed the file. */
    removed?: boolean;
    /** The change was undone. */
    undone: boolean;
    /** The agent or client that called. */
    agent?: string;
    /** The command line that changed it, without secrets. */
    command?: string;
    /** Other calls that ran meanwhile and may have made the change, as `SESSION/CALL`. */
    shared_with?: string[];
  }[];
  /** How many older changes are left out, because an answer has no room for them. */
  older?: number;
  /** Calls that also changed something which is not recorded, as far as that is known; the oldest first. */
  unrecorded?: {
    /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
    session_id: string;
    /**
     * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
     * session's calls in flight.
     */
    call_id: string;
    tool: string;
    /** RFC 3339, UTC. */
    at: string;
    /** The command line, without secrets. */
    command?: string;
    /** Files and folders that were removed, and of which nothing is kept. */
    not_kept?: string[];
    /** The `.git` of repositories whose branches or index may have been changed. */
    repositories?: string[];
    /** Files and folders outside of the session's folders that were written. */
    outside?: string[];
    /** Files and folders that Git ignored until the call, and in which something was changed. */
    ignored?: string[];
    /** The same as sentences for people. */
    notes?: string[];
  }[];
  /**
   * From what was before the first of the changes to what was after the last, as a unified diff. Lines that begin with
   * `#` say who changed the file.
   */
  diff?: string;
}

/** Params of `files.undo`. */
export interface FilesUndoParams {
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id?: string;
  /** Undo the call that changed this file last. */
  path?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Include changes of every session, including ended ones. */
  all?: boolean;
  /** All changes since this time (RFC 3339), or for so long, such as `10min`. */
  since?: string;
  /** All changes of calls of this agent or client. */
  agent?: string;
  /** All changes of the session. */
  every?: boolean;
  /** Only report what would be done. */
  dry_run?: boolean;
  /** A folder: names in the diff and in notes are relative to it, and `since`, `agent` and `every` select only calls below it. */
  folder?: string;
}

/** Answer of `files.undo`. */
export interface FilesUndoResult {
  paths: string[];
  /** How many paths are not named, because an answer has no room for them. */
  more?: number;
  /** Only for a dry run: the unified diff from each file as it is to what it would be. */
  diff?: string;
  /** Files and folders that were removed, and of which nothing is kept. */
  not_kept?: string[];
  /** The `.git` of repositories whose branches or index may have been changed. */
  repositories?: string[];
  /** Files and folders outside of the session's folders that were written. */
  outside?: string[];
  /** Files and folders that Git ignored until the call, and in which something was changed. */
  ignored?: string[];
  /** The same as sentences for people. */
  notes?: string[];
}

/** Params of `fleet.audit`. */
export interface FleetAuditParams {
  /** Only calls on this daemon. */
  daemon?: string;
  /** Calls that began at this time or later: RFC 3339, or how long ago, such as `15m` or `2h 30m`. */
  since?: string;
  /** The first entries after this `sequence`; when absent, the last entries. */
  after?: number;
  /** Only entries before this `sequence`. */
  before?: number;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters. */
  tool?: string;
  /** Calls of this agent, its sub-agents included, or of this client. */
  agent?: string;
  /** How a call ended. */
  outcome?: Outcome;
  /** The maximum number of entries; 100 when absent, at most 1,000. */
  limit?: number;
}

/** Answer of `fleet.audit`. */
export interface FleetAuditResult {
  /** Sorted by `sequence`. */
  entries: {
    /** Its number in the stream of the broker, which grows with every row of any daemon. */
    sequence: number;
    /** The daemon that ran the call. */
    daemon: string;
    /** As in that daemon's own log; `decisions` may be left out of one that is too large for the broker. */
    row: AuditEntry;
  }[];
  /** Whether more entries match: earlier ones, or later ones with `after`. */
  more: boolean;
  /** The `sequence` of the newest row that was looked at, for the next query with `after`; 0 if there was none. */
  last: number;
  /**
   * Rows that were not signed by the daemon that they claim to be from, or whose daemon is not in `[fleet]`: they are left
   * out.
   */
  unverified: number;
  /** Rows that the broker should have and has not, by daemon, among those that were looked at: each daemon numbers its rows. */
  missing: Record<string, number>;
}

/** Params of `fleet.grant`. */
export interface FleetGrantParams {
  /** The action of a reply to an ask, of a rule or of a grant. */
  action: Action;
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  /** What it is about, as in a rule of the category. */
  pattern: string;
  /** Only for these tools, by their names on the daemon; absent for all. */
  tools?: string[];
  /** Only on these daemons; absent for all. */
  daemons?: string[];
  /**
   * For how long it is valid, in seconds. When absent: 12 hours if it allows, without an end if it denies. At most 30 days
   * if it allows.
   */
  expires_in?: number;
}

/** Answer of `fleet.grants`, `fleet.grant` and `fleet.revoke`. */
export interface FleetGrantResult {
  /** The newest last. */
  grants: {
    id: string;
    person: string;
    /** The action of a reply to an ask, of a rule or of a grant. */
    action: Action;
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    pattern: string;
    tools?: string[];
    daemons?: string[];
    /** The daemon at which it was made. */
    made_on: string;
    /** RFC 3339, UTC. */
    made_at: string;
    expires_at?: string;
    /** Whether it is valid here now. */
    valid: boolean;
    /** Why it is not, such as a lease that is over. */
    why_not?: string;
  }[];
}

/** Params of `fleet.revoke`. */
export interface FleetRevokeParams {
  /** The id of the grant. */
  id: string;
}

/** Answer of `fleet.status`. Persons, keys, addresses and errors are for callers that may decide; others see none. */
export interface FleetStatusResult {
  /** Whether `[fleet]` is configured. If not, nothing else is present. */
  configured: boolean;
  /** The name of this daemon in the fleet. */
  name?: string;
  /** The public key of this daemon. */
  key?: string;
  /** The person who uses this machine. */
  person?: string;
  /** The public key of that person. */
  person_key?: string;
  /** Whether the broker is connected. */
  connected: boolean;
  /** RFC 3339, UTC: since when. */
  since?: string;
  /** The addresses of the broker. */
  servers: string[];
  /** Why this daemon is not in the fleet, or what does not work. */
  error?: string;
  /** The labels of this daemon. */
  labels: string[];
  /** Calls from the fleet that are running here, that have ended here, and how many run at the same time. */
  running: number;
  served: number;
  max_calls: number;
  /** How many of its tools this daemon offers. */
  offered: number;
  /** The other daemons that `[fleet]` names, sorted by name. */
  daemons: Array<{
    name: string;
    state: "online" | "away" | "unknown" | "disabled";
    /** Its public key. */
    key: string;
    version?: string;
    labels: string[];
    /** Its tools under their names here, also while it is away. */
    tools: string[];
    /** Calls from the fleet that are running there, and how many it runs at the same time. */
    running: number;
    max_calls: number;
    /** Persons who can be asked there now. */
    people: string[];
    /** RFC 3339, UTC: when it was last heard of. */
    heard_at?: string;
    /** How old its last record is, in milliseconds. It is renewed every ten seconds. */
    heard_ms?: number;
    /**
     * How far its clock was ahead of the clock here when its last record arrived, in milliseconds; less than 0 when it was
     * behind. Calls need clocks that differ by less than a minute.
     */
    clock_ms?: number;
    /** Rows of its audit log that it has not sent yet. */
    audit_waiting: number;
    /** Whether it knows this daemon's name and key: if not, it refuses everything from here. Absent while it is unknown. */
    trusts_this?: boolean;
    /** Whether it may call tools here. */
    may_call: boolean;
    /** Tools that were left out of its list, and why. */
    problems: string[];
    /** Calls from here that have ended, and how many of them failed. */
    calls: number;
    bad_calls: number;
    error?: string;
  }>;
  /** The labels of all daemons, sorted by name. */
  label_groups: {
    name: string;
    /** The daemons that are online, and those that are away. */
    online: string[];
    away: string[];
    /** Calls that run on all daemons that are online. */
    running: number;
    max_calls: number;
    /** The tools of the label under their names here; none when `[fleet.use_labels]` does not name it. */
    tools: string[];
    mounted: boolean;
  }[];
  /** How many messages were refused, by reason. */
  refused: Record<string, number>;
  /** The last refused message, as a sentence. */
  last_refused?: string;
  /** Rows of the audit log that the broker has confirmed since this daemon started, and those that wait. */
  audit_sent: number;
  audit_waiting: number;
  /** Grants of the fleet that are valid here now. */
  grants: number;
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
    /** How a failure of the hook counts: `open` lets the call continue, `closed` ends it. */
    fail: string;
    /** Why its last run failed, for people's frontends; absent when it did not fail. */
    error?: string;
  }[];
}

/** Params of `hooks.run`. */
export interface HooksRunParams {
  /** The hooks that a frontend's own loop can run. */
  event: "pre_message" | "post_message";
  /** The message, in any form that the hooks know. */
  message: unknown;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `hooks.run`: the combined answer of all hooks. */
export interface HooksRunResult {
  decision: "deny" | "modify" | "allow";
  reason?: string;
  /** The message after all hooks; absent when none changed it. */
  modified_message?: unknown;
  /** Text that hooks add to the system prompt, one below another. */
  system_prompt_append?: string;
  /** Hooks that failed and were skipped. */
  failed?: string[];
}

/** Params of `mcp.login.begin`. */
export interface McpLoginBeginParams {
  /** The server; that of all sessions, if a project has one of the same name. */
  name: string;
  /** Where the page sends the person's browser: `http://127.0.0.1:PORT/PATH`. */
  redirect_uri: string;
}

/** Answer of `mcp.login.begin`. The login waits for 15 minutes. */
export interface McpLoginBeginResult {
  /** The page on which a person logs in. */
  url: string;
  /** The scopes that the page asks for. */
  scopes: string[];
  /** The authorization server. */
  issuer?: string;
}

/** Params of `mcp.login.finish`. */
export interface McpLoginFinishParams {
  /** The URL that the page redirected to, with its `code` and `state`; the state tells the login. */
  redirected_to: string;
}

/** Answer of `mcp.login.finish`. The server starts again with the login. */
export interface McpLoginFinishResult {
  name: string;
}

/** Params of `mcp.logout`. */
export interface McpLogoutParams {
  /** The name of the server in the configuration. */
  name: string;
}

/** Answer of `mcp.logout`. */
export interface McpLogoutResult {
  servers: McpServer[];
  /** Why the authorization server has not revoked all tokens: they stay valid there until they expire. Absent when it has. */
  not_revoked?: string;
}

/** Params of `mcp.registry.get`. */
export interface McpRegistryGetParams {
  /** As the registry writes it, such as `io.github.someone/weather`. */
  name: string;
  /** The latest when absent. */
  version?: string;
}

/** A server as its registry describes it. Nobody has checked that the description is true. */
export interface McpRegistryGetResult {
  name: string;
  title?: string;
  description: string;
  version: string;
  /** The publisher advises against its use. */
  deprecated: boolean;
  /** The URL of its source code. */
  repository?: string;
  website?: string;
  /** The ways to run or reach it, in the registry's order. */
  launches: {
    /** `npm`, `pypi`, `oci` and so on: where the package is; `remote` for a server at a URL. */
    kind: string;
    command?: string;
    args?: string[];
    env?: Record<string, string>;
    url?: string;
    headers?: Record<string, string>;
    inputs?: {
      name: string;
      description?: string;
      required: boolean;
      /** Not to be stored or shown in the clear. */
      secret: boolean;
      default?: string;
      /** The only values; any when empty. */
      choices?: string[];
    }[];
    /** Why it cannot be used. */
    problem?: string;
  }[];
}

/** Params of `mcp.registry.search`. */
export interface McpRegistrySearchParams {
  /** Words that a server's name, title or description contains, separated by spaces: at most 8. */
  query: string;
  /** At most 100; 20 when absent. */
  limit?: number;
}

/** Answer of `mcp.registry.search`. */
export interface McpRegistrySearchResult {
  /** The registry's base URL. */
  registry: string;
  /** The best matches first. */
  servers: McpRegistryGetResult[];
  /** There are more matches than these. */
  more: boolean;
}

/** Params of `mcp.restart`. */
export interface McpRestartParams {
  /** The name of the server in the configuration. */
  name: string;
}

/** Params of `mcp.test`. */
export interface McpTestParams {
  /** The name of the server in the configuration. */
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
    /** The id that `forget` takes. */
    memory_id: string;
    /** `session`, `project` or `global`. */
    scope: string;
    content: string;
    /** RFC 3339, UTC. */
    created_at: string;
    path: string;
  }[];
}

/** Answer of `notify.test`. */
export interface NotifyTestResult {
  /** One for each way that `[notify]` of the configuration sets. */
  results: Array<{
    way: "command" | "desktop" | "post";
    /** Why it was not sent; absent when it was. */
    error?: string;
  }>;
}

/** Params of `page.open`. */
export interface PageOpenParams {
  /** The prompt that the page shows first: the `request_id` of an ask or a question. */
  ask?: string;
}

/** Answer of `page.open`. */
export interface PageOpenResult {
  /** The link, with the code in its fragment, which browsers do not send. */
  url: string;
  /** The code alone: it signs one browser in, once. */
  code: string;
  /** Until when the code is valid: RFC 3339, UTC. */
  expires_at: string;
  /** The address that the daemon listens on for the page. */
  address: string;
  /** Only this machine reaches the address. */
  loopback: boolean;
  /** The page is served with TLS. */
  tls: boolean;
}

/** Params of `page.revoke`. */
export interface PageRevokeParams {
  /** Ends only this one; all when absent, and then unused links are void, too. */
  id?: number;
}

/** Answer of `page.revoke`. */
export interface PageRevokeResult {
  /** How many browsers were signed out. */
  revoked: number;
}

/** Answer of `page.sessions`. */
export interface PageSessionsResult {
  /** Those that signed in last come last. */
  sessions: {
    /** Its number, for `page.revoke`. */
    id: number;
    /** The address that it signed in from. */
    from: string;
    /** As the browser names itself. */
    browser: string;
    /** RFC 3339, UTC. */
    signed_in_at: string;
    /** RFC 3339, UTC. */
    last_used_at: string;
    /** Its open connections. */
    connections: number;
  }[];
}

/** Params of `permissions.check`. */
export interface PermissionsCheckParams {
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  /** A command line, a path, `HOST:PORT`, `SERVER/TOOL` or a name, by the category. */
  target: string;
  /** The folder that it happens in; the session's when absent. */
  cwd?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The tool that would ask, for rules that name tools. */
  tool?: string;
  /** The agent that would ask about a tool of its own, for rules that name agents. */
  agent?: string;
  /** For a command line: also explain how it was parsed. */
  explain?: boolean;
}

/** Answer of `permissions.check`: what would happen, and why. */
export interface PermissionsCheckResult {
  /** The decision of the permission engine. */
  verdict: "allow" | "ask" | "deny";
  /** The rule that decided, with its location. */
  rule: string;
  /** The parts that were checked, when the target has several (a command line). */
  parts?: Array<{
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    target: string;
    /** The decision of the permission engine. */
    verdict: "allow" | "ask" | "deny";
    rule: string;
    /** The command line that allows it from now on, if a person is asked and a grant would answer; only with `explain`. */
    allowed_with?: string;
  }>;
  /** How a command line was parsed, in its order; only with `explain`. */
  commands?: Array<{
    /** As it was understood; absent for a redirect. */
    command?: string;
    /** The known program; absent for a program that toold does not know. */
    known?: {
      /** The program, with its subcommand. */
      name: string;
      /** The version of the program that the entry was written for. */
      version: string;
    };
    /** The words that the program interprets, and their meaning. */
    words?: {
      text: string;
      meaning: string;
    }[];
    /** Why the effect of the command is not certain. No pattern with a wildcard matches it then. */
    unsure?: string;
    /** The command changes nothing outside of its own process. */
    reads_only: boolean;
    /** Its effects, as far as they are known, the worst first. */
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
    /** The command's own permission first, then those for the files that it names. */
    parts: Array<{
      /** The category of a permission: which rules and grants apply to it. */
      category: Category;
      target: string;
      /** The decision of the permission engine. */
      verdict: "allow" | "ask" | "deny";
      rule: string;
      /** The command line that allows it from now on, if a person is asked and a grant would answer; only with `explain`. */
      allowed_with?: string;
    }>;
  }>;
}

/** Answer of `permissions.code`. */
export interface PermissionsCodeResult {
  /** It is valid once. */
  code: string;
  /** Until when: RFC 3339, UTC. */
  expires_at: string;
}

/** Params of `permissions.confine`. */
export interface PermissionsConfineParams {
  /** As in `permissions.request`. */
  agent: string;
  /** The agent's own id of its conversation. */
  session: string;
  /** The line, as it was judged. */
  command: string;
  /** The folder that it runs in: an absolute path. */
  cwd: string;
  /** The program that runs the line, such as `/bin/bash`: an absolute path. */
  program: string;
}

/**
 * Answer of `permissions.confine`. A judgement allows one run of its line, within 60 seconds, or until the agent's turn
 * ends if the agent asks its user.
 */
export interface PermissionsConfineResult {
  /**
   * The arguments with which `toold` confines itself and becomes the program, whose own arguments follow. When absent, the
   * line runs as it is.
   */
  arguments?: string[];
}

/** Params of `permissions.confirm`. */
export interface PermissionsConfirmParams {
  /** From `permissions.code`, which a client of a person on this machine may call. */
  code: string;
}

/** Params of `permissions.done`. */
export interface PermissionsDoneParams {
  /** That of the answer; with another scope than `request`, `AGENT/SESSION` of the conversation. */
  request_id: string;
  /** What has ended. A tool that the agent itself refused reports no end of its own. */
  scope?: "request" | "turn" | "conversation";
  /** Whether the tool did its work. */
  ok: boolean;
  /**
   * The tool did not run, because a hook of the agent denied it in place of a question. The call counts as denied. Without
   * effect if `ok` is true.
   */
  denied?: "cannot_ask" | "would_not_ask";
  /** A few words about the result. Only its first 4 KiB are kept. */
  summary?: string;
}

/** Answer of `permissions.done`. */
export interface PermissionsDoneResult {
  /** Sentences for people and models about the work of a confined command: files that it made, and that were set aside. */
  notes?: string[];
}

/** Params of `permissions.grant`. */
export interface PermissionsGrantParams {
  /** The category of a permission: which rules and grants apply to it. */
  category: Category;
  /** What it is about, as in a rule of the category. */
  pattern: string;
  /** `session`, `project` or `always`. */
  scope: Scope;
  /** The action of a reply to an ask, of a rule or of a grant. */
  action?: Action;
  /** Only for these tools; absent for all. */
  tools?: string[];
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** A folder of the project; that of the session when absent. */
  cwd?: string;
  /** The plugins that the call passes through; absent for calls that no plugin makes. */
  chain?: string[];
  /** For how long the grant is valid, in seconds. */
  expires_in?: number;
}

/** Params of `permissions.level`. */
export interface PermissionsLevelParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `permissions.level` and `permissions.set_level`: the level of a session, and what the levels free here. */
export interface PermissionsLevelResult {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id: string;
  /** How much runs without an approval, from little to much. Each level frees what those before it free. */
  level: "read" | "edit" | "develop" | "operate";
  /** What decides it, in words: a key of a configuration file, or a person. */
  from: string;
  /**
   * Why commands cannot be confined here, as a sentence for the user; absent when they can. What needs that is not free
   * then.
   */
  unconfined?: string;
  /** By level, what it frees beyond the levels before it. */
  table: Array<{
    /** The first level that frees it. */
    level: "read" | "edit" | "develop" | "operate";
    /** One kind of effect, the worst first. */
    effect: "privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read";
    /** Who has the effect and within which limits, for people. */
    what: string;
    /** What it needs to be free: the confinement of the command, or something that toold does not have. */
    needs: "nothing" | "confinement" | "unavailable";
    /** Whether the session's level frees it here. */
    free: boolean;
  }>;
}

/** Answer of `permissions.list`. */
export interface PermissionsListResult {
  /** The permission mode of a session. */
  mode: Mode;
  rules: Rule[];
  grants: Grant[];
  /** Rules that are invalid; while there are any, everything that they might deny is denied. */
  broken?: string[];
}

/** Params of `permissions.observe`. */
export interface PermissionsObserveParams {
  /** Begins to observe, or ends it; absent to show the state. */
  on?: boolean;
  /** Only this agent, such as `claude-code`; all when absent. */
  agent?: string;
  /** For how many days, from 1 to 90; 7 when absent. */
  days?: number;
}

/** Answer of `permissions.observe`. */
export interface PermissionsObserveResult {
  /** Absent when agents are not observed. */
  observing?: {
    /** The client of the person who began it. */
    by: string;
    /** RFC 3339, UTC. */
    since: string;
    /** RFC 3339, UTC. */
    until: string;
    /** The only agent that it is about; absent for all. */
    agent?: string;
  };
}

/** Answer of `permissions.pending`. */
export interface PermissionsPendingResult {
  /** The oldest first. */
  asks: Ask[];
}

/** Params of `permissions.replay`. */
export interface PermissionsReplayParams {
  /** Start time: RFC 3339, or how long ago, such as `7d`. */
  since: string;
  /**
   * Rules that are tried in addition to those of the configuration: a text in TOML with `[[permission.rules]]`, or
   * `permission.level`, or both.
   */
  rules?: string;
  /** The level that is tried; that of the configuration when absent. */
  level?: "read" | "edit" | "develop" | "operate";
}

/** Answer of `permissions.replay`: the decisions of the audit log, made again. Nothing is run, read or stored. */
export interface PermissionsReplayResult {
  calls: number;
  decisions: number;
  /** Decisions whose texts were redacted or too long to be kept, or that an earlier version wrote. */
  not_replayable: number;
  /** Hours in which there was a call. */
  active_hours: number;
  /** How many of the decisions that could be made again a person was asked about. */
  asks_before: number;
  /** How many of them a person would be asked about. */
  asks_after: number;
  /** What was asked about or denied and would be free; what a person denied first, then the worst effect first. */
  freed: Array<{
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    target: string;
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
    count: number;
    /** It was denied at least once. */
    was_denied?: boolean;
    /** What would decide it. */
    rule: string;
  }>;
  /** What was allowed and would be denied. */
  denied: Array<{
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    target: string;
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
    count: number;
    /** It was denied at least once. */
    was_denied?: boolean;
    /** What would decide it. */
    rule: string;
  }>;
  /**
   * What was decided without a person and would be asked about: it was free by rules, grants, a mode or a level that hold
   * no longer.
   */
  asked?: Array<{
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    target: string;
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
    count: number;
    /** It was denied at least once. */
    was_denied?: boolean;
    /** What would decide it. */
    rule: string;
  }>;
  /** More lines than the answer has. */
  more: number;
}

/** Params of `permissions.reply`. */
export interface PermissionsReplyParams {
  /** The id of the ask. */
  request_id: string;
  /** The action of a reply to an ask, of a rule or of a grant. */
  action: Action;
  /** `once` when absent. */
  scope?: Scope | null;
  /** One of the suggestions of the ask, or exactly its target, which is the default. */
  pattern?: string;
  /** For the model: why it is denied, or what to do instead. */
  message?: string;
  /** For how long the grant is valid, in seconds. */
  expires_in?: number;
  /** The permission is for all `parts` of the ask, each exactly as shown there; not together with `pattern`. */
  all_parts?: boolean;
}

/** Params of `permissions.request`. */
export interface PermissionsRequestParams {
  /**
   * The agent that is about to use its tool, such as `codex`: small letters, digits, `-` and `_`, at most 32. The
   * daemon knows the tools of `claude-code`, `codex`, `gemini`, `cursor`, `copilot`, `opencode`, `qwen-code` and `vscode`.
   */
  agent: string;
  /** The agent's own name of the tool, such as `Bash`. */
  tool: string;
  /** The arguments of the tool, as the agent has them. */
  input?: unknown;
  /** The agent's current folder: an absolute path. Relative paths in the input are relative to it. */
  cwd: string;
  /** The agent's own id of the call. While the call has not ended, the same request gets the same answer. */
  call_id?: string;
  /**
   * What the tool needs, if the caller knows. They are judged in addition to the needs that the daemon derives from the
   * input; for a tool that the daemon does not know, they are the only ones. One of category `mcp` counts in place of the
   * server that the tool's name tells.
   */
  needs?: {
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    /** A path, a command line, a URL or `host:port`, `server/tool` for MCP, otherwise a name. */
    target: string;
  }[];
  /**
   * How long a person may take to answer in a frontend, in milliseconds: 50000 when absent, at most 600000. It has an
   * effect only with `ask = "toold"` in the configuration of the agent; otherwise nobody is asked here. When a person is
   * asked, `permissions.waiting` says so, and until when.
   */
  wait_ms?: number;
  /**
   * A person was asked about it by a daemon that ended before the answer. If no frontend is connected, the question then
   * waits for one for a while.
   */
  was_asked?: boolean;
  /** The session to judge in. When absent, the daemon opens one for the agent, for `session`. */
  session_id?: string;
  /** The agent's own id of its conversation: the requests of one conversation share a session here. At most 128 bytes. */
  session?: string;
  /**
   * The shell that the agent runs commands in, as a name or a path: `bash` when absent. Lines are read as bash reads them,
   * so nothing is free in a shell that reads them otherwise, such as `zsh`.
   */
  shell?: string;
  /**
   * The agent's own mode, such as `acceptEdits`. People who are asked see it. `plan` always counts, the others
   * if the configuration of the agent has `trust_mode = true`.
   */
  mode?: string;
  /**
   * The agent asks a second time about a tool, such as before its own prompt, and does not name the call: the judgement of
   * the conversation's open request for the same tool and input counts, if there is one.
   */
  again?: boolean;
  /** The agent's own id of its sub-agent that uses the tool. People who are asked see it, and so does the audit log. */
  agent_id?: string;
  /** The kind of the sub-agent, such as `Explore`. */
  agent_type?: string;
  /** The agent runs its command lines through a program that asks `permissions.confine` first, so that they can be confined. */
  confines?: boolean;
  /**
   * The tool is one of the daemon's own, which is judged when its call comes: nothing is judged here, and the daemon only
   * learns which agent the program is that started the client.
   */
  is_own?: boolean;
}

/** Answer of `permissions.request`. */
export interface PermissionsRequestResult {
  /** `ask` leaves the question to the agent's own prompt. */
  decision: "allow" | "ask" | "deny";
  /**
   * Why, for people and models. A denial, and a question for the agent's prompt, name the command that would allow it,
   * if there is one.
   */
  reason: string;
  /** What a decision is based on. */
  by: "grant" | "rule" | "person" | "default";
  /** For `permissions.done`. If the request has `session` and `call_id`, it is `AGENT/SESSION/CALL_ID`. */
  request_id: string;
  /** The id of the call in events and in the audit log. */
  call_id: string;
  /**
   * With `ask`: the question is about a write that makes other programs run code later. An agent that would not ask
   * about it denies it.
   */
  protected?: boolean;
}

/** Answer of `permissions.review`: the grants, and what could be tidied. */
export interface PermissionsReviewResult {
  /** The least recently used first. */
  grants: Grant[];
  proposals: Array<{
    type: "drop";
    id: string;
    days: number;
  } | {
    type: "merge";
    ids: string[];
    pattern: string;
  }>;
}

/** Params of `permissions.revoke`. */
export interface PermissionsRevokeParams {
  /** The id of the grant. */
  id: string;
}

/** Params of `permissions.set_level`. */
export interface PermissionsSetLevelParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Absent for the level of the configuration. */
  level?: "read" | "edit" | "develop" | "operate";
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
  /** Only prompts of this session; absent for all that the subscriber may see. */
  session_id?: string;
}

/** Params of `permissions.suggest`. */
export interface PermissionsSuggestParams {
  /** Only the answers in the project of this folder, for rules that are to hold there; all when absent. */
  cwd?: string;
  /** The answers from when on: RFC 3339, or how long ago; `7d` when absent. */
  since?: string;
}

/** Answer of `permissions.suggest`: the fewest rules that would have answered as a person did. Nothing is stored. */
export interface PermissionsSuggestResult {
  /** How many answers of people there were. */
  answers: number;
  /** The rule for the most answers first. */
  rules: Array<{
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    pattern: string;
    /** How many answers it would have given. */
    count: number;
    /** The effects of the commands that it covers, the worst first. */
    effects?: Array<"privilege" | "secret" | "destroy" | "system" | "publish" | "change" | "send" | "install" | "process" | "build" | "history" | "write" | "fetch" | "read">;
  }>;
}

/** Params of `permissions.unsubscribe`. */
export interface PermissionsUnsubscribeParams {
  /** The id that the subscription was answered with. */
  subscription: string;
}

/** Params of `plugins.disable`. */
export interface PluginsDisableParams {
  /** The name of the plugin. */
  name: string;
}

/** Params of `plugins.enable`. */
export interface PluginsEnableParams {
  /** The name of the plugin. */
  name: string;
}

/** Params of `plugins.evaluate`. */
export interface PluginsEvaluateParams {
  /** The plugin's name. */
  name: string;
  /** Lua: an expression, whose values are the result, or statements. `ctx` is the call's. */
  source: string;
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** The timeout, in milliseconds. */
  timeout_ms?: number;
  /** Send `tools.progress` notifications before the answer. */
  progress?: boolean;
}

/** Answer of `plugins.evaluate`. */
export interface PluginsEvaluateResult {
  /** The source is the beginning of something, such as of a function: nothing ran, and more lines are expected. */
  incomplete?: boolean;
  /** The values as text, one a line, or the error. Absent when the source is incomplete. */
  result?: ToolResult;
}

/** Params of `plugins.list`. */
export interface PluginsListParams {
  /** Include the bundled plugins that are disabled. */
  all?: boolean;
}

/** Params of `plugins.logs`. */
export interface PluginsLogsParams {
  /** Absent for all plugins. */
  name?: string;
}

/** Answer of `plugins.logs`. */
export interface PluginsLogsResult {
  /** Events of the kinds `log`, `notice`, `message` and `plugin.*` that are still buffered; the oldest first. */
  events: Event[];
  /** The newest event of any kind; `events.subscribe {since}` continues after it. */
  seq: number;
  epoch: string;
}

/** Params of `plugins.profile`. */
export interface PluginsProfileParams {
  /** The name of the plugin. */
  name: string;
  /** For how long, 600 at most. */
  seconds?: number;
}

/** Answer of `plugins.profile`. */
export interface PluginsProfileResult {
  /** How long the plugin's Lua ran, in microseconds; waiting does not count. */
  total_us: number;
  /** The longest first. */
  stacks: {
    /** The outermost first: its name, and the file and line where it begins. */
    frames: string[];
    /** How long the innermost one ran, in microseconds. */
    us: number;
  }[];
}

/** Params of `plugins.reload`. */
export interface PluginsReloadParams {
  /** The name of the plugin; all plugins when absent. */
  name?: string;
}

/** Params of `plugins.show`. */
export interface PluginsShowParams {
  /** The name of the plugin. */
  name: string;
}

/** Answer of `plugins.show`. */
export interface PluginsShowResult {
  plugin: Plugin;
  /** The registrations that serve now. */
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
    /** How a failure of the hook counts: `open` lets the call continue, `closed` ends it. */
    fail: string;
    /** Why its last run failed, for people's frontends; absent when it did not fail. */
    error?: string;
  }[];
  commands: Command[];
  /** Names. */
  subagents: string[];
  /** URIs and templates. */
  resources: string[];
  /** Names. */
  prompts: string[];
  timers?: {
    name: string;
    /** After errors it is longer, up to an hour. */
    interval_ms: number;
    /** Runs that have ended. */
    runs: number;
    /** RFC 3339, UTC: when the last of these began. */
    last_run?: string;
    /** Its error; absent when it had none. */
    last_error?: string;
    /** The plugin stopped it. */
    stopped?: boolean;
  }[];
  /** The limits of its manifest; absent when it sets none. */
  capabilities?: string[];
  /** Its files as they are on disk now. */
  files: {
    path: string;
    bytes: number;
  }[];
  /** Who trusted which content of a project's plugin; absent when nobody did, and for plugins outside of projects. */
  trusted?: {
    /** The name of the person's client. */
    client?: string;
    /** RFC 3339, UTC. */
    at: string;
    /** The digest of the content at that time. */
    digest: string;
  };
  /**
   * Permissions that it asked for and was refused since the daemon started, the newest first, 100 at most. People
   * see all of them, others those of their own session and those of its load, without the reasons.
   */
  refused?: {
    /** The category of a permission: which rules and grants apply to it. */
    category: Category;
    /** As in an ask; shortened if it is longer than 2,000 bytes. */
    target: string;
    /** Why the plugin asked for it, in its own words. */
    reason?: string;
    /** The rule that decided. */
    rule: string;
    /**
     * `permissions.grant` with this pattern and `chain` allows exactly this, or the nearest that a pattern can say; absent
     * when no grant allows it: a rule denies it, its manifest does not declare it, or it is a secret.
     */
    pattern?: string;
    /** The plugins that the call passed through, the outermost first; the last is this one. */
    chain: string[];
    /** While it was loading; else in a call. */
    at_load: boolean;
    times: number;
    /** RFC 3339, UTC. */
    first_at: string;
    /** RFC 3339, UTC. */
    last_at: string;
  }[];
}

/** Params of `plugins.trust`. */
export interface PluginsTrustParams {
  /** A folder in a project for all of the project, its `.toold/config.toml`, or a plugin's file or folder. Absolute. */
  path: string;
  /** Only report what is there; nothing is trusted. */
  preview?: boolean;
  /** The digests that were reviewed, by path: if the content of any path has changed, nothing is trusted. */
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
    /** The BLAKE3 digest of all its files and their names, in hexadecimal digits. */
    digest: string;
    /** Whether exactly this content is trusted. */
    trusted: boolean;
    /** Who trusted its content last. */
    last?: {
      /** The name of the person's client. */
      client?: string;
      /** RFC 3339, UTC. */
      at: string;
      /** The digest of the content at that time. */
      digest: string;
    };
    files: {
      path: string;
      bytes: number;
    }[];
    /** For a configuration: its rules that allow something; they count only once they are trusted. */
    allows?: Rule[];
    /** For a configuration: everything else that counts only once it is trusted, such as commands of hooks. */
    settings?: {
      /** Such as `limits.calls` or `permission.rules[0]`. */
      key: string;
      value: unknown;
      /** `default`, a file with the line, an environment variable, or a flag. */
      origin: string;
    }[];
  }>;
}

/** Params of `prompt.parse`. */
export interface PromptParseParams {
  /** A model's answer. */
  text: string;
  /**
   * The names of existing tools; calls of others become errors. When absent, any name is accepted, and the schemas of
   * the daemon's own tools say which arguments are strings.
   */
  tools?: string[];
}

/** Answer of `prompt.parse`. */
export interface PromptParseResult {
  /** In the order of the text. */
  calls: {
    name: string;
    /** An object. */
    arguments: unknown;
  }[];
  /** The text that is neither a call nor thinking. */
  text: string;
  thinking: string;
  /** Parts that could not be parsed with certainty, as sentences that can be sent back to the model. */
  errors: string[];
}

/** Params of `prompt.parse_stream`. */
export interface PromptParseStreamParams {
  /** A step of `prompt.parse_stream`. */
  action: "open" | "push" | "end";
  /** The stream that `open` returned. It belongs to its connection, and ends with it. */
  stream_id?: string;
  /** The next part of the answer, of any length; for `push`, and for `open` and `end` too. */
  text?: string;
  /** For `open`: as in `prompt.parse`. */
  tools?: string[];
  /**
   * For `open`: whether the model's template has opened the thinking, so that the text begins within it. When absent, a
   * close tag without its open tag says so, and until then each call waits for the end of the answer.
   */
  thinking?: boolean;
}

/** Answer of `prompt.parse_stream`. */
export interface PromptParseStreamResult {
  stream_id: string;
  /** The parts that this text completed, in order. A call is there once nothing that follows can change it. */
  pieces: Array<{
    kind: "text";
    text: string;
  } | {
    kind: "thinking";
    text: string;
  } | {
    kind: "call";
    call: {
      name: string;
      /** An object. */
      arguments: unknown;
    };
  } | {
    kind: "error";
    message: string;
  } | {
    kind: "was_thinking";
    text: string;
  }>;
  /** At the end: everything, as `prompt.parse` returns it for the whole text. */
  parsed?: PromptParseResult;
}

/** Params of `prompt.render`. */
export interface PromptRenderParams {
  /** A family of text protocols; `tags` when absent. An unknown one is an error that lists them. */
  format?: string;
  /** How much detail a prompt gives about each tool's arguments. */
  detail?: "names" | "types" | "schema";
  /** Only these tools. */
  names?: string[];
  /** As for `tools.list`. */
  mode?: Listing;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `prompt.render`. */
export interface PromptRenderResult {
  text: string;
}

/** Params of `questions.reply`. */
export interface QuestionsReplyParams {
  /** The id of the question. */
  request_id: string;
  /** The ids of the chosen options. */
  answer_ids?: string[];
  /** Free text, if the question allows it. */
  answer?: string;
  /** The fields of a form. */
  content?: Record<string, unknown>;
  /** The person declines. Tools that ask with a form can tell this from `cancelled`. */
  declined?: boolean;
  /** The person does not answer. */
  cancelled?: boolean;
}

/** Params of `questions.subscribe`. */
export interface QuestionsSubscribeParams {
  /** Only prompts of this session; absent for all that the subscriber may see. */
  session_id?: string;
}

/** Params of `questions.unsubscribe`. */
export interface QuestionsUnsubscribeParams {
  /** The id that the subscription was answered with. */
  subscription: string;
}

/** Answer of `remotes.list` and `remotes.reconnect`. */
export interface RemotesListResult {
  /** Sorted by name. */
  remotes: Array<{
    name: string;
    state: "connecting" | "connected" | "disabled" | "away";
    /** `command`, `websocket`, or `none` when its configuration names no transport. */
    transport: string;
    /** The process of the program that connects to it. */
    pid?: number;
    /** RFC 3339, UTC: since when it is connected. */
    since?: string;
    /** The version of the daemon there. */
    version?: string;
    /** The folder in which calls run there, with links resolved. */
    cwd?: string;
    /** Whether its asks are shown here, which requires that this daemon may decide there. */
    relays_asks: boolean;
    /** The daemons that are reached through it, itself first, each by its `instance`. */
    instances: string[];
    /** Its tools under their names here. While it is disconnected, its last known tools. */
    tools: string[];
    /** Tools that were left out of its list, and why. */
    problems: string[];
    /** Why it is disconnected. */
    error?: string;
    /** When the next attempt is made. */
    retry_ms?: number;
    /** Calls that have ended, and how many of them failed. */
    calls: number;
    bad_calls: number;
    /** Calls that it is running now. */
    running: number;
    /** How many times it has been connected. */
    connects: number;
    /** The last lines that the program wrote on stderr. */
    stderr: string[];
  }>;
}

/** Params of `remotes.reconnect`. */
export interface RemotesReconnectParams {
  /** The name of the daemon in the configuration. */
  name: string;
}

/** Params of `secrets.give_back`. */
export interface SecretsGiveBackParams {
  /** The name of the secret. */
  name: string;
}

/** Answer of `secrets.give_back`. */
export interface SecretsGiveBackResult {
  /** A value that is sent to the daemon, and back only where it came from another program's file. Its debug form does not show it. */
  value: string;
}

/** Answer of `secrets.list`, `secrets.set`, `secrets.remove` and `secrets.unlock`. */
export interface SecretsListResult {
  /** Where secrets are kept. */
  store: "keyring" | "file";
  state: "unlocked" | "locked" | "absent";
  /** The secrets that are set, that `[secrets] names` lists, or that an MCP server uses; sorted by name. */
  secrets: {
    name: string;
    /** Unknown while the secrets are locked. */
    is_set?: boolean;
    /** The MCP servers whose configuration names it, and `[notify]`. */
    used_by: string[];
  }[];
}

/** Params of `secrets.remove`. */
export interface SecretsRemoveParams {
  /** The name of the secret. */
  name: string;
}

/** Params of `secrets.set`. */
export interface SecretsSetParams {
  /** 1 to 64 letters, digits, `_`, `-` or `.`, not beginning with a digit. */
  name: string;
  /** A text of 6 characters or more. */
  value: string;
  /** It stood in a file of another program, and `secrets.give_back` may return it for that file. */
  from_file?: boolean;
}

/** Params of `secrets.unlock`. */
export interface SecretsUnlockParams {
  /** That of the encrypted file; chosen now, with 8 characters or more, if there is no file yet. */
  passphrase: string;
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
  /** Why the session can be resumed after the daemon ends; absent when it cannot. */
  not_kept?: string;
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
  /** The program that opens it, for people, rules and settings by name. */
  client?: {
    name: string;
    version?: string;
  };
  /** The model that the frontend talks to, for tools that ask. */
  model?: string;
  /** The protocol revision that the client speaks: 2. */
  protocol?: number;
  /** `agent` for a frontend that acts for a model: it cannot answer permission asks. */
  role?: "person" | "agent" | null;
  /**
   * Variables for the session's processes. A person's frontend may set any. All other clients may set those that
   * `[agents] env` names, and those whose value equals that of the client's own process; the others are ignored and
   * named in the answer.
   */
  env?: Record<string, string>;
  /** Limits which tools the session sees. */
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
  /** The id of the background command. */
  shell_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /**
   * Begin with at most this many bytes of earlier output; 0 for new output only. When absent, all that is
   * buffered, about 1 MiB.
   */
  tail?: number;
}

/** An item of `shells.attach`: a piece of output, or the end. */
export type ShellsAttachItem = {
  text: string;
  /** Bytes before this text that were lost because this reader was too slow. */
  lost?: number;
} | {
  /** How it ended, as text. */
  status: string;
  exit_code?: number;
};

/** Params of `shells.detach`. */
export interface ShellsDetachParams {
  /** The id that the subscription was answered with. */
  subscription: string;
}

/** Params of `shells.kill`. */
export interface ShellsKillParams {
  /** The id of the background command. */
  shell_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `shells.kill`. */
export interface ShellsKillResult {
  /** How it ended; by itself, if it had ended already. */
  status: string;
}

/** Params of `shells.list`. */
export interface ShellsListParams {
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Include all sessions; for a person's frontend only. */
  all?: boolean;
}

/** Answer of `shells.list`. */
export interface ShellsListResult {
  /** The oldest first. Of the commands that have ended, the last 32 of each session. */
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
    /** `running`, or how it ended. */
    status: string;
    exit_code?: number;
    /** Bytes that it has written, including those that are no longer buffered. */
    output_bytes: number;
    /** The size of its terminal, if it has one. */
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
  /** The id of the background command. */
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
  /** The id of the background command. */
  shell_id: string;
  /** The session of the shell, if it is not that of the connection. A person's frontend needs none. */
  session_id?: string;
  /** At most 65536 bytes. End a line with a line feed. */
  text?: string;
  /** Close its input after the text. At a terminal this is the key Ctrl-D. */
  eof?: boolean;
  /**
   * A person types this, so no permission is asked; for a person's frontend only. Otherwise each line needs
   * permission, as a command of the category `shell` that only `**` and its exact text match.
   */
  typed?: boolean;
}

/** Params of `skills.get`. */
export interface SkillsGetParams {
  /** The name of the skill. */
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
  /** The folder of its further files; absent for a single file. */
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
    /** The folder of its further files; absent for a single file. */
    folder?: string;
  }[];
  /** Files that were meant to be skills. */
  broken: {
    path: string;
    /** From 1. */
    line?: number;
    message: string;
  }[];
  /** Files that are hidden by a skill of the same name that is nearer. */
  shadowed: string[];
}

/** Answer of `subagents.list`. */
export interface SubagentsListResult {
  subagents: {
    name: string;
    description: string;
    system_prompt: string;
    /** The tools that it may use; absent for all. */
    tools?: string[];
    model?: string;
    /** `config`, the path of a Markdown file, or `plugin NAME`. */
    source: string;
    /** The plugin that defines it. */
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
    /** The task, such as `Run the tests`. */
    content: string;
    status: "pending" | "in_progress" | "completed" | "cancelled";
    priority?: "low" | "medium" | "high" | null;
    /** The task while it is in progress, such as `Running the tests`. */
    active_form?: string;
  }>;
}

/** Params of `tools.cancel`. */
export interface ToolsCancelParams {
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `tools.cancel`. */
export interface ToolsCancelResult {
  /** False when no such call is in flight in the caller's session. */
  cancelled: boolean;
}

/** Params of `tools.cost`. */
export interface ToolsCostParams {
  /** The form in which a model gets the tools; `anthropic` when absent. */
  format?: Format | null;
  /** The session whose tools are measured; absent for the caller's own. */
  session_id?: string;
}

/**
 * Answer of `tools.cost`. Tokens are estimated: a token for each four bytes of the JSON that the provider is sent, rounded up
 * for each tool.
 */
export interface ToolsCostResult {
  /** The form of a list of tools: the daemon's own, or that of a provider's API. */
  format: Format;
  /** The whole list. */
  all: {
    tools: number;
    tokens: number;
  };
  /** The short list: pinned tools, `tools_search` and `tools_call`. */
  deferred: {
    tools: number;
    tokens: number;
  };
  /** Parts of the two lists, the largest first. `tools_search` and `tools_call` are not in a source. */
  sources: {
    /** Who owns a tool. */
    source: Source;
    all: {
      tools: number;
      tokens: number;
    };
    /** Its pinned tools. */
    deferred: {
      tools: number;
      tokens: number;
    };
  }[];
  /** Clients that the caller sees a session of in this project, and for people those that the configuration names; by name. */
  clients: {
    client: string;
    /** Which tools a list shows. */
    listing: Listing;
    list: {
      tools: number;
      tokens: number;
    };
  }[];
}

/** Params of `tools.execute`. */
export interface ToolsExecuteParams {
  /** The name of the tool. */
  name: string;
  /** An object; `null` and absent are `{}`. */
  arguments?: unknown;
  /**
   * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
   * session's calls in flight.
   */
  call_id?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Within the session's `cwd` or roots. */
  cwd?: string;
  /** The timeout, in milliseconds: it only shortens the tool's own, or the configured one. */
  timeout_ms?: number;
  /** Send `tools.progress` notifications before the answer. */
  progress?: boolean;
  /** Run the tool even if its result is in the cache. */
  no_cache?: boolean;
  /** Let the call continue when its connection closes. */
  detach?: boolean;
  /** The trace that the call belongs to, in the form of the header `traceparent` (W3C Trace Context). */
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
    /**
     * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
     * session's calls in flight.
     */
    call_id?: string;
  }[];
  /** The form of a list of tools: the daemon's own, or that of a provider's API. */
  format?: Format | null;
  /** The order in which the calls of a batch run. Results always come in the order of the calls. */
  strategy?: Strategy;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Send `tools.progress` before the answer. */
  progress?: boolean;
}

/** Answer of `tools.execute_batch`. */
export interface ToolsExecuteBatchResult {
  results: {
    /**
     * The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
     * session's calls in flight.
     */
    call_id: string;
    /** The result of a call. */
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
  /** Words that the name, the label or the description must contain, ignoring case. */
  query?: string;
  /** The kind or the name of a source. */
  source?: string;
  /** Only these tools. */
  names?: string[];
  /** When absent, the configuration says which list the client gets, unless `query`, `source` or `names` choose tools. */
  mode?: Listing;
  /** The form of a list of tools: the daemon's own, or that of a provider's API. */
  format?: Format | null;
  /** If this is still the revision, the answer is `{revision, epoch, unchanged: true}`. */
  if_revision?: number;
  /** The epoch that `if_revision` belongs to; another one never matches. */
  if_epoch?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
  /** Anthropic, OpenAI: the provider makes arguments fit the schema, for the tools whose schema it can enforce. */
  strict?: boolean;
  /** Anthropic: the `examples` of an input schema that fit it become `input_examples`. */
  input_examples?: boolean;
  /** Anthropic: arguments are streamed as the model writes them, before it is known that they are JSON. */
  eager_input_streaming?: boolean;
  /**
   * Anthropic, OpenAI Responses: who may call the tools, in the provider's words. Anthropic: `direct`,
   * `code_execution_20260120` and other versions of that tool. OpenAI: `direct`, `programmatic`.
   */
  allowed_callers?: string[];
  /**
   * OpenAI: a tool with a grammar is a custom tool, whose input the model writes as plain text. When absent: true for
   * Responses, false for Chat Completions, where few servers and models know such tools.
   */
  custom_tools?: boolean;
  /** OpenAI Responses: the tools of each source but the built-ins are in a namespace of their own. */
  namespaces?: boolean;
}

/** Answer of `tools.list`, in the native form. */
export interface ToolsListResult {
  /** Grows by one with every change of the registry, and when folders of a session are opened. */
  revision: number;
  /** New at each start of the daemon; revisions of two epochs do not compare. */
  epoch: string;
  unchanged?: boolean;
  /** Sorted by name. Absent when `unchanged`. */
  tools?: Tool[];
  /** The tools that the model has to find before it can call them. */
  deferred?: string[];
  /** Limits of the provider's API that the list met, as sentences. */
  warnings?: string[];
}

/** Params of `tools.provide`. */
export interface ToolsProvideParams {
  /** The tools that the frontend runs. */
  tools?: ProvidedTool[];
  /** Built-ins that this frontend offers to run; their invocations carry `role`. */
  roles?: Role[];
}

/** Params of `tools.provide_progress`. */
export type ToolsProvideProgressParams = {
  /** The id of the invocation. */
  invocation_id: string;
} & Progress;

/** Params of `tools.provide_result`. */
export interface ToolsProvideResultParams {
  /** The id of the invocation. */
  invocation_id: string;
  /** The result of a provided tool: a text, or more. */
  result?: ProvidedResult;
  /** Why there is no result; becomes a result with `is_error`. */
  error?: string;
}

/** Params of `tools.schema`. */
export interface ToolsSchemaParams {
  /** The name of the tool. */
  name: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Params of `tools.search`. */
export interface ToolsSearchParams {
  /**
   * What the tool should do, in a few words. They are compared with names, labels, descriptions and names of arguments.
   * Without words all tools are found, in the order of their names.
   */
  query: string;
  /** How many tools to return; 10 when absent. */
  limit?: number;
  /** Return whole descriptions and the schemas of arguments too. */
  schemas?: boolean;
  /** The kind or the name of a source. */
  source?: string;
  /** The id of a session: `[A-Za-z0-9_-]{1,64}`. */
  session_id?: string;
}

/** Answer of `tools.search`. */
export interface ToolsSearchResult {
  /** The best first. */
  tools: FoundTool[];
  /** How many more were found. */
  more: number;
}

/** Params of `tools.unprovide`. */
export interface ToolsUnprovideParams {
  /** The id that the subscription was answered with. */
  subscription: string;
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
  /** Lists past calls. */
  "audit.query": { params: AuditQueryParams; result: AuditQueryResult };
  /** Checks whether rows of the audit log were removed or changed. */
  "audit.verify": { params: Record<string, never>; result: AuditVerifyResult };
  /** Removes an unsaved text. */
  "buffers.clear": { params: BuffersClearParams; result: BuffersClearResult };
  /** Gives tools an editor's unsaved text in place of a file. */
  "buffers.set": { params: BuffersSetParams; result: Record<string, never> };
  /** Clears the result cache. */
  "cache.clear": { params: Record<string, never>; result: CacheClearResult };
  /** Shows statistics of the result cache. */
  "cache.stats": { params: Record<string, never>; result: CacheStatsResult };
  /** Tells which of these calls have begun, also in a daemon that was killed. */
  "calls.begun": { params: CallsBegunParams; result: CallsBegunResult };
  /** Shows a call: its state, its output so far and, for a while, its result. */
  "calls.get": { params: CallsGetParams; result: CallInfo };
  /** Lists the calls of a session. */
  "calls.list": { params: CallsListParams; result: CallsListResult };
  /** Lists the slash commands of plugins. */
  "commands.list": { params: Record<string, never>; result: CommandsListResult };
  /** Runs a slash command. */
  "commands.run": { params: CommandsRunParams; result: ToolResult };
  /** Shows the configuration and where each value comes from. */
  "daemon.config": { params: Record<string, never>; result: DaemonConfigResult };
  /** Returns the daemon's metrics as text for Prometheus. */
  "daemon.metrics": { params: Record<string, never>; result: DaemonMetricsResult };
  /** Pauses everything: commands are stopped, and nothing is allowed until a person resumes. */
  "daemon.pause": { params: DaemonPauseParams; result: DaemonPauseResult };
  /** Answers. */
  "daemon.ping": { params: Record<string, never>; result: Record<string, never> };
  /** Reloads the configuration; an invalid file is rejected as a whole. */
  "daemon.reload": { params: Record<string, never>; result: DaemonReloadResult };
  /** Starts a new daemon on the same socket and exits once it serves. */
  "daemon.restart": { params: DaemonRestartParams; result: DaemonRestartResult };
  /** Ends a pause. */
  "daemon.resume": { params: Record<string, never>; result: DaemonPauseResult };
  /** Drains and stops the daemon. */
  "daemon.shutdown": { params: DaemonShutdownParams; result: Record<string, never> };
  /** Shows daemon status. */
  "daemon.status": { params: Record<string, never>; result: DaemonStatus };
  /** Ends a subscription of events.subscribe. */
  "events.unsubscribe": { params: EventsUnsubscribeParams; result: boolean };
  /** Removes recorded changes, and what is kept to undo them. */
  "files.forget": { params: FilesForgetParams; result: FilesForgetResult };
  /** Lists the file changes of a session. */
  "files.history": { params: FilesHistoryParams; result: FilesHistoryResult };
  /** Undoes changes; refused when a file has changed since. */
  "files.undo": { params: FilesUndoParams; result: FilesUndoResult };
  /** Finds calls in the audit logs of all daemons of the fleet. */
  "fleet.audit": { params: FleetAuditParams; result: FleetAuditResult };
  /** Makes a grant that is valid in the whole fleet. */
  "fleet.grant": { params: FleetGrantParams; result: FleetGrantResult };
  /** Lists the grants of the fleet. */
  "fleet.grants": { params: Record<string, never>; result: FleetGrantResult };
  /** Revokes a grant of the fleet, everywhere. */
  "fleet.revoke": { params: FleetRevokeParams; result: FleetGrantResult };
  /** The daemon's fleet: daemons, labels, load and refused messages. */
  "fleet.status": { params: Record<string, never>; result: FleetStatusResult };
  /** Lists the hooks in the order in which they run. */
  "hooks.list": { params: Record<string, never>; result: HooksListResult };
  /** Runs the message hooks and returns their combined answer. */
  "hooks.run": { params: HooksRunParams; result: HooksRunResult };
  /** Prepares a login at a remote MCP server; a person opens the page. */
  "mcp.login.begin": { params: McpLoginBeginParams; result: McpLoginBeginResult };
  /** Ends a login with the URL that its page redirected to. */
  "mcp.login.finish": { params: McpLoginFinishParams; result: McpLoginFinishResult };
  /** Forgets the login at a remote MCP server, and has its tokens revoked. */
  "mcp.logout": { params: McpLogoutParams; result: McpLogoutResult };
  /** Shows a server of the MCP registry, and how it can be run. */
  "mcp.registry.get": { params: McpRegistryGetParams; result: McpRegistryGetResult };
  /** Searches the MCP registry of the configuration. */
  "mcp.registry.search": { params: McpRegistrySearchParams; result: McpRegistrySearchResult };
  /** Restarts a mounted MCP server. */
  "mcp.restart": { params: McpRestartParams; result: McpServerList };
  /** Lists the mounted MCP servers. */
  "mcp.servers": { params: Record<string, never>; result: McpServerList };
  /** Starts a mounted MCP server if it does not run, and lists its tools again. */
  "mcp.test": { params: McpTestParams; result: McpServerList };
  /** Lists the memories of a session. */
  "memories.list": { params: MemoriesListParams; result: MemoriesListResult };
  /** Sends a test notification in each way that the configuration sets. */
  "notify.test": { params: Record<string, never>; result: NotifyTestResult };
  /** Makes a link that signs one browser in to the daemon's page. */
  "page.open": { params: PageOpenParams; result: PageOpenResult };
  /** Signs browsers out of the page. */
  "page.revoke": { params: PageRevokeParams; result: PageRevokeResult };
  /** Lists the browsers that are signed in to the page. */
  "page.sessions": { params: Record<string, never>; result: PageSessionsResult };
  /** Checks whether something would be allowed, and by which rule. */
  "permissions.check": { params: PermissionsCheckParams; result: PermissionsCheckResult };
  /** Makes a code with which a person confirms a program that an agent may have left behind. */
  "permissions.code": { params: Record<string, never>; result: PermissionsCodeResult };
  /** Says how an agent runs a command line that was judged, once. */
  "permissions.confine": { params: PermissionsConfineParams; result: PermissionsConfineResult };
  /** Confirms, with a code, that a person uses this program. */
  "permissions.confirm": { params: PermissionsConfirmParams; result: Record<string, never> };
  /** Reports that the tool of a judged request has ended. */
  "permissions.done": { params: PermissionsDoneParams; result: PermissionsDoneResult };
  /** Stores a grant. */
  "permissions.grant": { params: PermissionsGrantParams; result: Grant };
  /** Shows how much runs without an approval in a session, and why. */
  "permissions.level": { params: PermissionsLevelParams; result: PermissionsLevelResult };
  /** Lists rules and grants with their sources. */
  "permissions.list": { params: Record<string, never>; result: PermissionsListResult };
  /** Records what would be asked and allowed, and leaves it to the agents, for some days. */
  "permissions.observe": { params: PermissionsObserveParams; result: PermissionsObserveResult };
  /** Lists the asks that wait for an answer. */
  "permissions.pending": { params: Record<string, never>; result: PermissionsPendingResult };
  /** Decides the needs of the audit log again, by other rules or at another level. */
  "permissions.replay": { params: PermissionsReplayParams; result: PermissionsReplayResult };
  /** Answers a permission ask; the first reply wins. */
  "permissions.reply": { params: PermissionsReplyParams; result: Record<string, never> };
  /** Judges what an agent is about to do with a tool of its own. */
  "permissions.request": { params: PermissionsRequestParams; result: PermissionsRequestResult };
  /** Lists the grants with their uses, and proposes which to drop or merge. */
  "permissions.review": { params: Record<string, never>; result: PermissionsReviewResult };
  /** Removes a grant. */
  "permissions.revoke": { params: PermissionsRevokeParams; result: Record<string, never> };
  /** Changes how much runs without an approval in a session. */
  "permissions.set_level": { params: PermissionsSetLevelParams; result: PermissionsLevelResult };
  /** Changes the permission mode of a session. */
  "permissions.set_mode": { params: PermissionsSetModeParams; result: Record<string, never> };
  /** Proposes rules that would have answered as a person did. */
  "permissions.suggest": { params: PermissionsSuggestParams; result: PermissionsSuggestResult };
  /** Ends a subscription of permissions.subscribe. */
  "permissions.unsubscribe": { params: PermissionsUnsubscribeParams; result: boolean };
  /** Disables a plugin permanently. */
  "plugins.disable": { params: PluginsDisableParams; result: PluginList };
  /** Enables a plugin permanently. */
  "plugins.enable": { params: PluginsEnableParams; result: PluginList };
  /** Runs Lua that a person typed in a plugin's main Lua state, as a call. */
  "plugins.evaluate": { params: PluginsEvaluateParams; result: PluginsEvaluateResult };
  /** Lists the plugins, including those that failed. */
  "plugins.list": { params: PluginsListParams; result: PluginList };
  /** Returns the log lines, notices and messages of plugins that are still buffered. */
  "plugins.logs": { params: PluginsLogsParams; result: PluginsLogsResult };
  /** Records for a while where a plugin spends its time. */
  "plugins.profile": { params: PluginsProfileParams; result: PluginsProfileResult };
  /** Reloads one plugin or all of them, changed or not. */
  "plugins.reload": { params: PluginsReloadParams; result: PluginList };
  /** Shows one plugin of the caller's view. */
  "plugins.show": { params: PluginsShowParams; result: PluginsShowResult };
  /** Trusts a project's configuration and plugins as they are now. */
  "plugins.trust": { params: PluginsTrustParams; result: PluginsTrustResult };
  /** Reads the calls in a model's answer. */
  "prompt.parse": { params: PromptParseParams; result: PromptParseResult };
  /** Reads the calls in a model's answer as it comes in. */
  "prompt.parse_stream": { params: PromptParseStreamParams; result: PromptParseStreamResult };
  /** Renders the text that teaches a model the tools. */
  "prompt.render": { params: PromptRenderParams; result: PromptRenderResult };
  /** Answers a tool's question; the first reply wins. */
  "questions.reply": { params: QuestionsReplyParams; result: Record<string, never> };
  /** Ends a subscription of questions.subscribe. */
  "questions.unsubscribe": { params: QuestionsUnsubscribeParams; result: boolean };
  /** Lists the mounted daemons. */
  "remotes.list": { params: Record<string, never>; result: RemotesListResult };
  /** Reconnects to a mounted daemon. */
  "remotes.reconnect": { params: RemotesReconnectParams; result: RemotesListResult };
  /** Returns the OpenRPC document of this daemon. */
  "rpc.discover": { params: Record<string, never>; result: unknown };
  /** Returns a secret that was moved out of another program's file, to a person on this machine who puts it back. */
  "secrets.give_back": { params: SecretsGiveBackParams; result: SecretsGiveBackResult };
  /** Lists the secrets by name, without their values. */
  "secrets.list": { params: Record<string, never>; result: SecretsListResult };
  /** Removes a secret. */
  "secrets.remove": { params: SecretsRemoveParams; result: SecretsListResult };
  /** Stores a secret that the configuration uses. */
  "secrets.set": { params: SecretsSetParams; result: SecretsListResult };
  /** Opens the encrypted file of secrets with its passphrase, or makes it. */
  "secrets.unlock": { params: SecretsUnlockParams; result: SecretsListResult };
  /** Ends a session and cancels its calls. */
  "session.close": { params: SessionCloseParams; result: SessionCloseResult };
  /** Lists the sessions. */
  "session.list": { params: Record<string, never>; result: SessionListResult };
  /** Opens or resumes a session and binds it to this connection. */
  "session.open": { params: SessionOpenParams; result: Session };
  /** Returns a one-time code that lets an agent join a session. */
  "session.share": { params: SessionShareParams; result: SharedSession };
  /** Ends a subscription of shells.attach. */
  "shells.detach": { params: ShellsDetachParams; result: boolean };
  /** Kills a background command and all its processes. */
  "shells.kill": { params: ShellsKillParams; result: ShellsKillResult };
  /** Lists the background commands. */
  "shells.list": { params: ShellsListParams; result: ShellsListResult };
  /** Changes the size of a background command's terminal. */
  "shells.resize": { params: ShellsResizeParams; result: Record<string, never> };
  /** Sends input to a background command. */
  "shells.write": { params: ShellsWriteParams; result: Record<string, never> };
  /** Returns the text of a skill. */
  "skills.get": { params: SkillsGetParams; result: SkillsGetResult };
  /** Lists the skills of a session, including broken ones. */
  "skills.list": { params: SkillsListParams; result: SkillsListResult };
  /** Lists the sub-agents of the configuration, of Markdown files and of plugins. */
  "subagents.list": { params: Record<string, never>; result: SubagentsListResult };
  /** Lists the to-do items of a session. */
  "todo.list": { params: TodoListParams; result: TodoListResult };
  /** Cancels a call of the caller's session. */
  "tools.cancel": { params: ToolsCancelParams; result: ToolsCancelResult };
  /** Estimates the tokens that the lists of tools take. */
  "tools.cost": { params: ToolsCostParams; result: ToolsCostResult };
  /** Calls a tool. */
  "tools.execute": { params: ToolsExecuteParams; result: ToolResult };
  /** Calls several tools; results come in the order of the calls. */
  "tools.execute_batch": { params: ToolsExecuteBatchParams; result: ToolsExecuteBatchResult };
  /** Skips the waiting calls of a session; running calls finish. */
  "tools.interrupt": { params: ToolsInterruptParams; result: ToolsInterruptResult };
  /** Lists the tools of the caller's view, sorted by name. */
  "tools.list": { params: ToolsListParams; result: ToolsListResult };
  /** Reports the progress of an invocation of a provided tool. */
  "tools.provide_progress": { params: ToolsProvideProgressParams; result: Record<string, never> };
  /** Answers an invocation of a provided tool. */
  "tools.provide_result": { params: ToolsProvideResultParams; result: Record<string, never> };
  /** Shows one tool. */
  "tools.schema": { params: ToolsSchemaParams; result: Tool };
  /** Finds tools by words, the best first. */
  "tools.search": { params: ToolsSearchParams; result: ToolsSearchResult };
  /** Ends a subscription of tools.provide. */
  "tools.unprovide": { params: ToolsUnprovideParams; result: boolean };
  /** Allows every agent to work in a folder from now on. */
  "workspaces.allow": { params: WorkspacesAllowParams; result: WorkspaceList };
  /** Removes a folder from the workspaces; running sessions keep it. */
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
  /** Streams the output of a background command. */
  "shells.attach": { params: ShellsAttachParams; item: ShellsAttachItem };
  /** Provides tools to the registry; the items are invocations to run. */
  "tools.provide": { params: ToolsProvideParams; item: InvocationItem };
}

/** The notification of each subscription's items, and the method that ends it. */
export const SUBSCRIPTIONS = {
  "events.subscribe": { items: "events.event", end: "events.unsubscribe" },
  "permissions.subscribe": { items: "permissions.event", end: "permissions.unsubscribe" },
  "questions.subscribe": { items: "questions.event", end: "questions.unsubscribe" },
  "shells.attach": { items: "shells.output", end: "shells.detach" },
  "tools.provide": { items: "tools.invocation", end: "tools.unprovide" },
} as const satisfies Record<keyof Subscriptions, { items: string; end: keyof Methods }>;

/** Codes of errors, by their usual kind. */
export const ERROR_CODES = {
  /** invalid parameters or tool arguments */
  invalid_params: -32602,
  /** unknown tool; data.suggestions has similar names */
  unknown_tool: -32001,
  /** the permission engine failed or is closing */
  permission_denied: -32002,
  /** a crash, a missing dependency, a failed I/O setup */
  execution_failed: -32003,
  /** no such session, plugin, request or subscription */
  unknown_session: -32004,
  /** a limit on calls is reached; the call did not run */
  overloaded: -32005,
  /** the call was cancelled */
  cancelled: -32800,
} as const;
