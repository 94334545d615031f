/** One connection: the requests in flight and the subscriptions of one stream. `client.ts` keeps one at a time. */
import {
  CancellationTokenSource,
  createMessageConnection,
  ParameterStructures,
  ResponseError,
  type MessageConnection,
} from "vscode-jsonrpc";

import { Disconnected, errorOf, NotRead, TooLarge } from "./errors.js";
import { SUBSCRIPTIONS, type CallProgress, type Subscriptions } from "./protocol.js";
import { CLOSED, MAX_MESSAGE, measure, wireSizes, type Transport } from "./transport.js";

/** Gets problems that no caller would see. */
export type Log = (message: string) => void;

/** The envelope of a request fits in the rest. */
const MAX_PARAMS = MAX_MESSAGE - 4096;

export class Connection {
  readonly #rpc: MessageConnection;
  readonly #transport: Transport;
  readonly #subscriptions = new Map<string, { onItem: (item: never) => void; onLost?: (reason: string) => void }>();
  #lost: string | undefined;
  /** Why the daemon ends, which it says after all its answers: "restart", "stop", "signal" or "idle". */
  #closing: string | undefined;
  /** The error of the first thing that the other end sent and that is not a message. */
  #foreign: string | undefined;
  /** Called with each `tools.progress` and its size on the wire in bytes. */
  onProgress: (progress: CallProgress, size: number) => void = () => {};
  /** Called once, when the connection has ended. */
  onClosed: () => void = () => {};

  /** Takes over an open stream; `stream.ts` and `websocket.ts` open one. */
  constructor(transport: Transport, log: Log) {
    this.#transport = transport;
    this.#rpc = createMessageConnection(transport.reader, transport.writer, {
      error: log,
      warn: log,
      info: () => {},
      log: () => {},
    });
    this.#rpc.onError(([error]) => {
      this.#foreign ??= error.message;
      log(`the daemon sent an invalid message: ${error.message}`);
    });
    this.#rpc.onNotification(CLOSED, () => {
      const failure = transport.failure();
      this.#end(failure === undefined ? "the daemon closed the connection" : `the connection is gone: ${failure}`);
    });
    this.#rpc.onNotification("daemon.closing", ({ reason }: { reason: string }) => {
      this.#closing = reason;
    });
    this.#rpc.onNotification("tools.progress", (progress: CallProgress) => {
      this.onProgress(progress, wireSizes.get(progress) ?? 0);
    });
    for (const { items: method } of Object.values(SUBSCRIPTIONS)) {
      this.#rpc.onNotification(method, ({ subscription, result }: { subscription: string; result: never }) => {
        this.#subscriptions.get(subscription)?.onItem(result);
      });
    }
    this.#rpc.listen();
  }

  /** Why the connection has ended; `undefined` while it is open. */
  get lost(): string | undefined {
    return this.#lost;
  }

  /** Why the daemon ended, if it has said so: "restart", "stop", "signal" or "idle". */
  get closing(): string | undefined {
    return this.#closing;
  }

  /** The error in the first received line that is not a message; `undefined` if there was none. */
  get foreign(): string | undefined {
    return this.#foreign;
  }

  /**
   * Sends a request and waits for its answer. A `signal` that fires cancels the request in the daemon, and rejects at
   * once with the signal's reason.
   */
  async request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#lost !== undefined) throw new NotRead(this.#lost);
    const bytes = measure(params);
    if (bytes > MAX_PARAMS) {
      throw new TooLarge(`the request has ${bytes} bytes, and the daemon accepts at most ${MAX_PARAMS}`);
    }
    const cancel = new CancellationTokenSource();
    const answer = this.#rpc.sendRequest<unknown>(method, ParameterStructures.byName, params, cancel.token);
    let abort = () => {};
    try {
      if (signal === undefined) return await answer;
      return await new Promise((resolve, reject) => {
        abort = () => {
          cancel.cancel();
          reject(signal.reason);
        };
        signal.addEventListener("abort", abort, { once: true });
        answer.then(resolve, reject);
      });
    } catch (error) {
      if (signal?.aborted && error === signal.reason) throw error;
      if (this.#lost !== undefined) {
        if (this.#closing !== undefined) throw new NotRead("the daemon has ended before the request was read");
        const unknown = `whether ${method} was carried out is not known, so it is not sent again`;
        throw new Disconnected(`${this.#lost}; ${unknown}`);
      }
      throw error instanceof ResponseError ? errorOf(error) : error;
    } finally {
      // A signal may outlive many requests, and must not keep them in memory.
      signal?.removeEventListener("abort", abort);
      cancel.dispose();
    }
  }

  /** Subscribes. Items go to `onItem`, without a gap after the answer. Returns the subscription's id. */
  async subscribe<S extends keyof Subscriptions>(
    method: S,
    params: Subscriptions[S]["params"],
    onItem: (item: Subscriptions[S]["item"]) => void,
    signal?: AbortSignal,
    onLost?: (reason: string) => void,
  ): Promise<string> {
    const subscription = (await this.request(method, params, signal)) as string;
    // The next message is read in a later turn of the event loop, so no item comes before this.
    this.#subscriptions.set(subscription, { onItem: onItem as (item: never) => void, onLost });
    return subscription;
  }

  /** Ignores items of this subscription from now on. */
  forget(subscription: string): void {
    this.#subscriptions.delete(subscription);
  }

  async close(): Promise<void> {
    this.#end("the connection was closed");
    await this.#transport.close();
  }

  #end(reason: string): void {
    if (this.#lost !== undefined) return;
    this.#lost = reason;
    void this.#transport.close();
    for (const { onLost } of this.#subscriptions.values()) onLost?.(reason);
    this.#subscriptions.clear();
    // Rejects the requests in flight.
    this.#rpc.dispose();
    this.onClosed();
  }
}
