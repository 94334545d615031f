/** Functions that a client provides as tools, or that run built-ins in a role. */
import type { Connection, Log } from "./connection.js";
import { Disconnected, UnknownId } from "./errors.js";
import type { Block, InvocationItem, Progress, ProvidedTool, Role, Stream } from "./protocol.js";

/** How much progress of one running function may wait to be sent. More is dropped. */
const MAX_PROGRESS = 1024;

/** The description of a provided tool, as on the wire. */
export type LentTool = ProvidedTool;

/** A full result. A string, a block or any other JSON value is often enough. */
export interface Output {
  content: string | Block[];
  is_error?: boolean;
  metadata?: Record<string, unknown>;
  structured?: unknown;
}

/** The call that a provided function runs for. */
export interface Invocation {
  readonly invocation_id: string;
  readonly name: string;
  readonly call_id: string;
  readonly session_id: string;
  /** The folder that the caller works in, which may differ from this process's. */
  readonly cwd: string;
  /** Set when the function runs a built-in. */
  readonly role: Role | undefined;
  /** Fires when the call is cancelled: nobody waits for the result any more. */
  readonly signal: AbortSignal;
  /** Sends the caller a message; never waits. */
  message(text: string): void;
  /** Sends the caller a piece of output. */
  output(text: string, stream?: Stream): void;
  /** Reports how far the call is. */
  update(update: { progress?: number; total?: number; message?: string }): void;
}

/** A provided function. The caller sees an exception as a result with `is_error`. */
export type Run<A = Record<string, unknown>> = (args: A, call: Invocation) => unknown;

/** One provided function, on one connection after another. */
export class ProvidedFunction {
  readonly #params: { tools?: ProvidedTool[]; roles?: Role[] };
  readonly #run: Run<never>;
  readonly #log: Log;
  readonly #open = new Map<string, AbortController>();
  #connection: Connection | undefined;
  #subscription: string | undefined;

  constructor(params: { tools?: ProvidedTool[]; roles?: Role[] }, run: Run<never>, log: Log) {
    this.#params = params;
    this.#run = run;
    this.#log = log;
  }

  async restore(connection: Connection, signal?: AbortSignal): Promise<void> {
    const onItem = (item: InvocationItem) => this.#item(connection, item);
    this.#subscription = await connection.subscribe("tools.provide", this.#params, onItem, signal);
    this.#connection = connection;
  }

  /** Withdraws it; its running calls fail. */
  async unregister(): Promise<void> {
    this.end();
    const connection = this.#connection;
    const subscription = this.#subscription;
    this.#subscription = undefined;
    if (connection === undefined || connection.lost !== undefined || subscription === undefined) return;
    connection.forget(subscription);
    await connection.request("tools.unprovide", { subscription });
  }

  end(): void {
    for (const controller of this.#open.values()) controller.abort();
    this.#open.clear();
  }

  #item(connection: Connection, item: InvocationItem): void {
    if ("cancelled" in item) {
      this.#open.get(item.invocation_id)?.abort();
      this.#open.delete(item.invocation_id);
      return;
    }
    const controller = new AbortController();
    this.#open.set(item.invocation_id, controller);
    void this.#invoke(connection, item, controller.signal).finally(() => this.#open.delete(item.invocation_id));
  }

  async #invoke(
    connection: Connection,
    item: Exclude<InvocationItem, { cancelled: boolean }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { invocation_id } = item;
    let waiting = 0;
    let sent: Promise<unknown> = Promise.resolve();
    // One after another, or they could overtake each other and the result.
    const send = (progress: Progress) => {
      if (signal.aborted || waiting >= MAX_PROGRESS) return;
      waiting += 1;
      sent = sent
        .then(() => connection.request("tools.provide_progress", { invocation_id, ...progress }))
        .catch(() => {})
        .finally(() => (waiting -= 1));
    };
    const call: Invocation = {
      invocation_id,
      name: item.name,
      call_id: item.call_id,
      session_id: item.session_id,
      cwd: item.cwd,
      role: item.role,
      signal,
      message: (text) => send({ kind: "message", text }),
      output: (text, stream = "stdout") => send({ kind: "output", stream, text }),
      update: (update) => send({ kind: "update", ...update }),
    };
    let answer: { result: string | Output } | { error: string };
    try {
      answer = { result: toWire(await this.#run((item.arguments ?? {}) as never, call)) };
    } catch (error) {
      answer = { error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
    await sent;
    if (signal.aborted) return;
    try {
      await connection.request("tools.provide_result", { invocation_id, ...answer });
    } catch (error) {
      // The call is over.
      if (error instanceof UnknownId || error instanceof Disconnected) return;
      const message = (error as Error).message;
      this.#log(`the daemon refused the result of the provided tool ${item.name}: ${message}`);
      // Otherwise the caller would wait until its timeout.
      await connection.request("tools.provide_result", { invocation_id, error: message }).catch(() => {});
    }
  }
}

/** A result in the form of `tools.provide_result`. Throws a `TypeError` for a value that JSON cannot hold. */
export function toWire(given: unknown): string | Output {
  if (given === undefined || given === null) return "";
  if (typeof given === "string") return given;
  if (isOutput(given)) return given;
  if (isBlock(given)) return { content: [given] };
  const content = JSON.stringify(given);
  if (content === undefined) throw new TypeError(`JSON cannot hold a ${typeof given}`);
  return typeof given === "object" && !Array.isArray(given) ? { content, structured: given } : content;
}

function isOutput(given: unknown): given is Output {
  if (typeof given !== "object" || given === null || !("content" in given)) return false;
  const { content } = given;
  return typeof content === "string" || (Array.isArray(content) && content.every(isBlock));
}

function isBlock(given: unknown): given is Block {
  if (typeof given !== "object" || given === null || !("type" in given)) return false;
  return ["text", "image", "audio", "resource"].includes(given.type as string);
}
