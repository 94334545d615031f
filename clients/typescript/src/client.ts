/** The client: one connection at a time, and what comes back with the next one. */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { Call, ProgressQueue, Routes } from "./calls.js";
import { Connection, type Log } from "./connection.js";
import { lacks, passedOn } from "./environment.js";
import { Disconnected, errorOf, NotRead, NotRunning, RpcError } from "./errors.js";
import { Events, type EventsOptions } from "./events.js";
import { ProvidedFunction, type LentTool, type Run } from "./provide.js";
import { socketPath } from "./paths.js";
import type {
  CallProgress,
  Format,
  Methods,
  Role,
  Session,
  SessionOpenParams,
  SharedSession,
  Strategy,
  Subscriptions,
  Tool,
  ToolResult,
  ToolsExecuteBatchResult,
} from "./protocol.js";
import {
  permissionResponder,
  questionResponder,
  type OnPermission,
  type OnQuestion,
  type Responder,
} from "./responder.js";
import { connectOrStart, PATIENCE, reach, within } from "./start.js";
import { Subscription } from "./subscription.js";

export interface ClientOptions {
  /** Where the daemon listens; absent: see `socketPath`. */
  socket?: string;
  /** The program that is started; absent: see `findProgram`. */
  toold?: string;
  /** Whether to start a daemon when there is none; true when absent. */
  start?: boolean;
  /** How long the first answer of a daemon that was started may take, in milliseconds; 10,000 when absent. */
  startTimeout?: number;
  /** How long an ordinary request may take, in milliseconds; 30,000 when absent. Calls have the daemon's limits. */
  timeout?: number;
  /** Whether a lost connection is made again; true when absent. */
  reconnect?: boolean;
  /** What other clients see, and the source of lent tools; `node` when absent. */
  name?: string;
  /** Answers permission asks; see also `Client.onPermission`. */
  onPermission?: OnPermission;
  /** Answers questions of tools; see also `Client.onQuestion`. */
  onQuestion?: OnQuestion;
  /** Told whenever the connection is there, and whenever it is lost. */
  onConnection?: (connected: boolean) => void;
  /** What goes wrong where no caller would hear of it; `console.warn` when absent. */
  log?: Log;
}

export interface RequestOptions {
  /** Cancels the request. It then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Instead of the client's own, in milliseconds. */
  timeout?: number;
}

export interface SessionOptions {
  /** A folder. Absent: this process's; on resuming, the session's own. */
  cwd?: string;
  /** Resumes the session of this id, or makes it. */
  sessionId?: string;
  /** Folders beside `cwd` that the session works in. */
  roots?: string[];
  /** The model that this client talks to, for tools that ask. */
  model?: string;
  /** `agent` for a client that acts for a model: it cannot answer asks. */
  role?: "person" | "agent";
  /**
   * Variables for the session's processes, beside those by which programs find their toolchains (`TOOLCHAIN`), which
   * are taken from this process at each connection. The role `agent` offers all variables of the process, and the
   * daemon takes those that it was started with, without secrets. What is set here wins. `Session.env_ignored` names
   * those that have no effect.
   */
  env?: Record<string, string>;
  /** Narrows the session's view, by globs. */
  tools?: { enable?: string[]; disable?: string[] };
}

export interface ListOptions {
  /** Words that must stand in the name, the label or the description. */
  query?: string;
  /** The kind or the name of a source. */
  source?: string;
  names?: string[];
}

export interface CallOptions {
  /** Unique among the session's calls in flight; made when absent. */
  callId?: string;
  sessionId?: string;
  /** Within the session's `cwd` or roots. */
  cwd?: string;
  /** The tool's limit in milliseconds; past it the result is an `is_error` with what there was so far. */
  timeout?: number;
  /** Whether progress is sent; true when absent. */
  progress?: boolean;
  noCache?: boolean;
  /** Lets the call live on when this client goes. */
  detach?: boolean;
  /** Cancels the call. */
  signal?: AbortSignal;
}

export interface ExecuteOptions extends Omit<CallOptions, "progress"> {
  onProgress?: (progress: CallProgress) => void;
}

/** One call of a batch. */
export type BatchCall = readonly [name: string, args: object] | { name: string; arguments?: object; call_id?: string };

/** What one call of a batch gave. Errors are given, not thrown: one call's never hides another's result. */
export type BatchItem = ToolResult | RpcError;

export interface BatchOptions {
  /** `auto` when absent: all parallelizable calls at once, then the others in their order. */
  strategy?: Strategy;
  sessionId?: string;
  onProgress?: (progress: CallProgress) => void;
  /** Cancels all the calls. */
  signal?: AbortSignal;
}

/** Milliseconds before a connection that was lost is looked for again, and at most. */
const RETURN_AFTER = 50;
const RETURN_AFTER_MOST = 2000;

/** Connects to the daemon, and starts it when there is none. Rejects with `Unreachable` when that cannot be done. */
export function connect(options: ClientOptions = {}): Promise<Client> {
  return new Client(options).connect();
}

/** The text blocks of a result, one under another. */
export function text(result: Pick<ToolResult, "content">): string {
  return result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/**
 * A client of the daemon, for any number of requests at once.
 *
 * It connects by `connect` or at its first request, and starts a daemon when there is none. When the connection is
 * lost, requests in flight reject with `Disconnected`, since nobody knows whether they were carried out; the next one
 * connects again. When another daemon takes over, requests that the old one did not read are sent to the new one. The session, events, prompts and lent tools come back with the connection, which is sought in the
 * background as soon as there are any of the last three.
 *
 * It keeps the process alive until it is closed.
 */
export class Client implements AsyncDisposable {
  readonly socket: string;
  readonly #options: ClientOptions;
  readonly #log: Log;
  readonly #routes = new Routes();
  readonly #responders = new Set<Responder>();
  readonly #provided = new Set<ProvidedFunction>();
  readonly #events = new Set<Events>();
  readonly #closing = new AbortController();
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #returning: Promise<void> | undefined;
  #session: Session | undefined;
  #sessionParams: SessionOpenParams | undefined;
  /** Whether a session was found to lack something; said once. */
  #warned = false;

  constructor(options: ClientOptions = {}) {
    this.socket = options.socket ?? socketPath();
    this.#options = options;
    this.#log = options.log ?? ((message) => console.warn(`toold: ${message}`));
    if (options.onPermission) this.#responders.add(permissionResponder(options.onPermission, this.#log));
    if (options.onQuestion) this.#responders.add(questionResponder(options.onQuestion, this.#log));
  }

  // The connection.

  /** Connects now. Rejects with `Unreachable` when that cannot be done. */
  async connect(): Promise<this> {
    await this.#ready();
    return this;
  }

  /** Whether the connection is there. */
  get connected(): boolean {
    return this.#connection !== undefined && this.#connection.lost === undefined;
  }

  /** Ends the connection; the daemon cancels what this client has in flight. The session stays. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#connecting?.catch(() => {});
    await this.#returning;
    await this.#connection?.close();
    this.#lost();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Makes any request of the protocol.
   *
   * Rejects with `RpcError`, `Unreachable`, `RequestTimeout`, or the reason of a signal that fired.
   */
  request<M extends keyof Methods>(
    method: M,
    params?: Methods[M]["params"],
    options?: RequestOptions,
  ): Promise<Methods[M]["result"]>;
  request(method: string, params?: object, options?: RequestOptions): Promise<unknown>;
  async request(method: string, params: object = {}, options: RequestOptions = {}): Promise<unknown> {
    const patience = options.timeout ?? this.#timeout;
    const work = (signal?: AbortSignal) => this.#asked((connection) => connection.request(method, params, signal));
    return within(patience, method, work, options.signal);
  }

  // Sessions.

  /** The session that this client is bound to, once it has opened one. */
  get session(): Session | undefined {
    return this.#session;
  }

  /**
   * Opens a session, or resumes one, and binds this client to it, after a reconnect too.
   *
   * `Session.workspace` says whether its tools may work in the folder: with `pending` the first call that needs it asks
   * a person.
   */
  async openSession(options: SessionOptions = {}): Promise<Session> {
    const { cwd, sessionId, roots, model, role, env, tools } = options;
    const folder = cwd ?? (sessionId === undefined ? process.cwd() : undefined);
    const params: SessionOpenParams = {
      cwd: folder === undefined ? undefined : resolve(folder),
      session_id: sessionId,
      roots: roots?.map((root) => resolve(root)),
      model,
      role,
      env,
      tools,
      client: { name: this.#options.name ?? "node" },
      protocol: 2,
    };
    const work = (signal?: AbortSignal) => this.#asked((connection) => this.#openOn(connection, params, signal));
    const session = await within(this.#timeout, "session.open", work);
    this.#sessionParams = { ...params, cwd: session.cwd, session_id: session.session_id };
    // ProvidedFunction tools belong to the session that they were lent in.
    const connection = await this.#ready();
    for (const provided of this.#provided) {
      await provided.unregister();
      await provided.restore(connection);
    }
    return session;
  }

  /**
   * Makes a code by which an agent may join a session, once; this client's own session when none is named. The agent
   * opens the session with the code as its `sessionId`. Rejects for a client that acts for a model.
   */
  shareSession(options: { sessionId?: string } = {}): Promise<SharedSession> {
    return this.request("session.share", { session_id: options.sessionId });
  }

  /** Ends the session that this client is bound to, and cancels its calls. */
  async closeSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#sessionParams = undefined;
    if (session) await this.request("session.close", { session_id: session.session_id });
  }

  // Tools.

  /** Lists the tools, sorted by name; with a `format`, as that provider's API takes them. */
  tools(options?: ListOptions & { format?: undefined }): Promise<Tool[]>;
  tools(options: ListOptions & { format: Exclude<Format, "native"> }): Promise<object[]>;
  async tools(options: ListOptions & { format?: Format } = {}): Promise<object[]> {
    const { query, source, names, format } = options;
    return (await this.request("tools.list", { query, source, names, format })).tools ?? [];
  }

  /** Shows one tool. Rejects with `UnknownTool`. */
  schema(name: string): Promise<Tool> {
    return this.request("tools.schema", { name });
  }

  /**
   * Calls a tool and gives a handle at once.
   *
   * Throws a `RangeError` for a `callId` that is in flight; the rest is told by `Call.result`.
   */
  call(name: string, args: object = {}, options: CallOptions = {}): Call {
    const params = {
      name,
      arguments: args,
      call_id: options.callId ?? newCallId(),
      session_id: options.sessionId,
      cwd: options.cwd,
      timeout_ms: options.timeout === undefined ? undefined : Math.round(options.timeout),
      progress: options.progress ?? true,
      no_cache: options.noCache,
      detach: options.detach,
    };
    return new Call((work) => this.#asked(work), this.#routes, params, options.signal);
  }

  /**
   * Calls a tool and waits for its result.
   *
   * Rejects with `InvalidArguments`, `UnknownTool`, `CallCancelled` and the other `RpcError`s.
   */
  async execute(name: string, args: object = {}, options: ExecuteOptions = {}): Promise<ToolResult> {
    const { onProgress, ...others } = options;
    const call = this.call(name, args, { ...others, progress: onProgress !== undefined });
    if (onProgress) for await (const progress of call) onProgress(progress);
    return call.result();
  }

  /**
   * Calls several tools; results come in the order of the calls, errors of single calls among them.
   *
   * With a `format`, `calls` are that provider's own call blocks, and so are the results.
   */
  executeBatch(calls: readonly BatchCall[], options?: BatchOptions & { format?: undefined }): Promise<BatchItem[]>;
  executeBatch(
    calls: readonly object[],
    options: BatchOptions & { format: Exclude<Format, "native"> },
  ): Promise<object[]>;
  async executeBatch(
    calls: readonly object[],
    options: BatchOptions & { format?: Format } = {},
  ): Promise<BatchItem[] | object[]> {
    const { strategy, sessionId, onProgress, signal, format } = options;
    const blocks = format === undefined ? calls.map((call) => batchCall(call as BatchCall)) : calls;
    const queue = new ProgressQueue();
    const ids: string[] = [];
    try {
      if (format !== undefined) this.#routes.addOther(queue);
      for (const { call_id } of format === undefined ? (blocks as { call_id: string }[]) : []) {
        this.#routes.add(call_id, queue);
        ids.push(call_id);
      }
      const params = { calls: blocks, strategy, session_id: sessionId, format, progress: onProgress !== undefined };
      const answer = (async () => {
        signal?.throwIfAborted();
        return this.#asked((connection) => connection.request("tools.execute_batch", params, signal));
      })().finally(() => queue.end());
      // It is awaited below, behind its progress.
      answer.catch(() => {});
      if (onProgress) for (let next; !(next = await queue.take()).done;) onProgress(next.value);
      const { results } = (await answer) as ToolsExecuteBatchResult;
      if (format !== undefined) return results;
      return results.map(({ result, error }) => result ?? errorOf(error));
    } finally {
      for (const id of ids) this.#routes.remove(id);
      this.#routes.removeOther(queue);
    }
  }

  /** Cancels a call of the session, whoever made it. False when it is not in flight. */
  async cancel(callId: string, options: { sessionId?: string } = {}): Promise<boolean> {
    return (await this.request("tools.cancel", { call_id: callId, session_id: options.sessionId })).cancelled;
  }

  /** Lets the session's running calls end and skips those that wait. Gives how many were skipped. */
  async interrupt(options: { sessionId?: string } = {}): Promise<number> {
    return (await this.request("tools.interrupt", { session_id: options.sessionId })).skipped;
  }

  // What comes by itself.

  /** Subscribes to events; those from then on will be seen, and with `since` what the daemon still holds. */
  async events(options: EventsOptions = {}): Promise<Events> {
    const events = new Events(options, (ended) => this.#events.delete(ended));
    await this.#put(events, "events.subscribe");
    this.#events.add(events);
    return events;
  }

  /** Makes any subscription of the protocol. It ends with the connection; `events` goes on after a reconnect. */
  async subscribe<S extends keyof Subscriptions>(
    method: S,
    params: Subscriptions[S]["params"],
    options: RequestOptions = {},
  ): Promise<Subscription<S>> {
    const subscription = new Subscription(method);
    const work = (signal?: AbortSignal) => this.#asked((connection) => subscription.restore(connection, params, signal));
    await within(options.timeout ?? this.#timeout, method, work, options.signal);
    return subscription;
  }

  /** Answers permission asks, those that wait already too, until the function that it gives is called. */
  onPermission(answer: OnPermission): Promise<() => Promise<void>> {
    return this.#respond(permissionResponder(answer, this.#log), "permissions.subscribe");
  }

  /** Answers questions of tools; see `onPermission`. */
  onQuestion(answer: OnQuestion): Promise<() => Promise<void>> {
    return this.#respond(questionResponder(answer, this.#log), "questions.subscribe");
  }

  /**
   * Lends a function as a tool, until the function that it gives is called, or the client closed.
   *
   * Rejects with an `RpcError` when the name is taken.
   */
  provide<A = Record<string, unknown>>(tool: LentTool, run: Run<A>): Promise<() => Promise<void>> {
    return this.#provide(new ProvidedFunction({ tools: [tool] }, run, this.#log));
  }

  /** Runs a built-in that needs a frontend: `subagent`, `compact` or `question`, by its role. See `provide`. */
  offer<A = Record<string, unknown>>(role: Role, run: Run<A>): Promise<() => Promise<void>> {
    return this.#provide(new ProvidedFunction({ roles: [role] }, run, this.#log));
  }

  // Below: how the connection is kept.

  get #timeout(): number {
    return this.#options.timeout ?? 30_000;
  }

  get #reconnect(): boolean {
    return this.#options.reconnect ?? true;
  }

  async #put(restorable: Restorable, what: string): Promise<void> {
    await within(this.#timeout, what, (signal) => this.#asked((connection) => restorable.restore(connection, signal)));
  }

  async #respond(responder: Responder, what: string): Promise<() => Promise<void>> {
    await this.#put(responder, what);
    this.#responders.add(responder);
    return async () => {
      this.#responders.delete(responder);
      await responder.close();
    };
  }

  async #provide(provided: ProvidedFunction): Promise<() => Promise<void>> {
    await this.#put(provided, "tools.provide");
    this.#provided.add(provided);
    return async () => {
      this.#provided.delete(provided);
      await provided.unregister();
    };
  }

  /** Sends again what a daemon did not read that gave way to another: it was not carried out. */
  async #asked<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    let deadline: number | undefined;
    for (;;) {
      const connection = await this.#ready();
      try {
        return await work(connection);
      } catch (error) {
        if (!(error instanceof NotRead) || !this.#reconnect || this.#closing.signal.aborted) throw error;
        deadline ??= performance.now() + PATIENCE;
        if (performance.now() >= deadline) throw error;
      }
    }
  }

  /** The connection, made anew when there is none. */
  async #ready(): Promise<Connection> {
    if (this.#closing.signal.aborted) throw new Disconnected("the client is closed");
    const known = this.#connection;
    if (known !== undefined && known.lost === undefined) return known;
    if (known !== undefined && !this.#reconnect) throw new Disconnected(known.lost);
    return this.#once(() => {
      const { start = true, toold, startTimeout = 10_000 } = this.#options;
      if (!start) return reach(this.socket, this.#log);
      return connectOrStart(this.socket, { program: toold, patience: startTimeout }, this.#log);
    });
  }

  /** Makes one connection at a time, for all that wait for one. */
  #once(open: () => Promise<Connection>): Promise<Connection> {
    this.#connecting ??= this.#settled(open).finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  /** What is put up is put up again on the next connection when a daemon gives way to another meanwhile. */
  async #settled(open: () => Promise<Connection>): Promise<Connection> {
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      const connection = await open();
      try {
        return await this.#settle(connection);
      } catch (error) {
        if (!(error instanceof NotRead) || this.#closing.signal.aborted || performance.now() >= deadline) throw error;
      }
    }
  }

  /** Puts up on a new connection what belongs to this client. */
  async #settle(connection: Connection): Promise<Connection> {
    const again = this.#connection !== undefined;
    connection.onProgress = (progress, size) => this.#routes.route(progress, size);
    try {
      if (this.#closing.signal.aborted) throw new Disconnected("the client is closed");
      if (this.#sessionParams) await this.#openOn(connection, this.#sessionParams, this.#closing.signal);
      for (const restorable of this.#restorables()) {
        try {
          await restorable.restore(connection, this.#closing.signal);
        } catch (error) {
          if (!again || !(error instanceof RpcError)) throw error;
          this.#log(`what stood on the last connection could not come back: ${error.message}`);
        }
      }
    } catch (error) {
      await connection.close();
      throw error;
    }
    this.#connection = connection;
    connection.onClosed = () => this.#lost();
    this.#options.onConnection?.(true);
    if (connection.lost !== undefined) this.#lost();
    return connection;
  }

  /** Opens a session with the variables that this process has now. */
  async #openOn(connection: Connection, params: SessionOpenParams, signal?: AbortSignal): Promise<Session> {
    const { role, env: own = {} } = params;
    const env = { ...passedOn(role, process.env), ...own };
    const session = (await connection.request("session.open", { ...params, env }, signal)) as Session;
    this.#session = session;
    if (!this.#warned) {
      const missing = lacks(session, role, own);
      this.#warned = missing.length > 0;
      for (const line of missing) this.#log(line);
    }
    return session;
  }

  /** ProvidedFunction tools last: who sees them there again finds the rest there too. */
  #restorables(): Restorable[] {
    return [...this.#events, ...this.#responders, ...this.#provided];
  }

  #lost(): void {
    for (const restorable of [...this.#responders, ...this.#provided]) restorable.end();
    const closed = this.#closing.signal.aborted;
    if (closed || !this.#reconnect) {
      for (const events of this.#events) events.end(closed ? undefined : new Disconnected("the connection is gone"));
      this.#events.clear();
    }
    if (closed) return;
    this.#options.onConnection?.(false);
    if (this.#reconnect && this.#restorables().length > 0) {
      this.#returning ??= this.#return().finally(() => (this.#returning = undefined));
    }
  }

  /** Waits for a daemon to come back. Does not start one: somebody may have stopped it on purpose. */
  async #return(): Promise<void> {
    const { signal } = this.#closing;
    for (let wait = RETURN_AFTER; !signal.aborted; wait = Math.min(wait * 2, RETURN_AFTER_MOST)) {
      await pause(wait, undefined, { signal }).catch(() => {});
      if (signal.aborted || this.connected) return;
      try {
        await this.#once(() => reach(this.socket, this.#log));
        return;
      } catch (error) {
        if (signal.aborted || error instanceof NotRunning || error instanceof Disconnected) continue;
        this.#log(`could not come back to ${this.socket}: ${(error as Error).message}`);
      }
    }
  }
}

interface Restorable {
  restore(connection: Connection, signal?: AbortSignal): Promise<void>;
}

/** 64 random bits: several clients may work in one session, where the ids of calls are unique. */
function newCallId(): string {
  return `js-${randomBytes(8).toString("hex")}`;
}

function batchCall(call: BatchCall): { name: string; arguments?: object; call_id: string } {
  if ("name" in call) return { call_id: newCallId(), ...call };
  const [name, args] = call;
  return { name, arguments: args, call_id: newCallId() };
}
