/** Tool calls in flight, and the routing of their progress. */
import type { Connection } from "./connection.js";
import type { CallProgress, ToolResult, ToolsExecuteParams } from "./protocol.js";
import { Queue } from "./queue.js";

/** Does some work on a connection, and again on the next one if the daemon is replaced before it reads the request. */
export type Asked = <T>(work: (connection: Connection) => Promise<T>) => Promise<T>;

/** How much progress of one call may wait to be read, in bytes on the wire. More is dropped. */
const MAX_WAITING = 16 * 1024 * 1024;

/** Progress that waits to be read. Bounded: drops what exceeds the limit, and counts it in the next item. */
export class ProgressQueue {
  readonly #queue = new Queue<{ progress: CallProgress; size: number }>();
  #bytes = 0;
  #dropped = 0;

  put(progress: CallProgress, size: number): void {
    const dropped = this.#dropped + (progress.dropped ?? 0);
    if (this.#bytes + size > MAX_WAITING) {
      this.#dropped = dropped + 1;
      return;
    }
    this.#dropped = 0;
    this.#bytes += size;
    this.#queue.put({ progress: dropped > 0 ? { ...progress, dropped } : progress, size });
  }

  end(): void {
    this.#queue.end();
  }

  async take(): Promise<IteratorResult<CallProgress, undefined>> {
    const { done, value } = await this.#queue.take();
    if (done) return { done, value: undefined };
    this.#bytes -= value.size;
    return { done: false, value: value.progress };
  }
}

/** Routes the progress on a connection to the calls that it belongs to. */
export class Routes {
  readonly #byCall = new Map<string, ProgressQueue>();
  /**
   * Batches in a provider's form. Each provider puts the call ids elsewhere, so these batches get all progress that
   * belongs to no other call.
   */
  readonly #others = new Set<ProgressQueue>();

  add(callId: string, queue: ProgressQueue): void {
    if (this.#byCall.has(callId)) throw new RangeError(`a call ${callId} is in flight`);
    this.#byCall.set(callId, queue);
  }

  remove(callId: string): void {
    this.#byCall.delete(callId);
  }

  addOther(queue: ProgressQueue): void {
    this.#others.add(queue);
  }

  removeOther(queue: ProgressQueue): void {
    this.#others.delete(queue);
  }

  route(progress: CallProgress, size: number): void {
    const queue = this.#byCall.get(progress.call_id);
    for (const each of queue ? [queue] : this.#others) each.put(progress, size);
  }
}

/**
 * A call in flight, from `Client.call`.
 *
 * Iterate over it for its progress, which ends with the answer. The call runs whether or not you read its progress.
 * With `await using`, it is cancelled if it is still running when the block ends.
 */
export class Call implements AsyncIterable<CallProgress>, AsyncDisposable {
  readonly id: string;
  readonly #queue = new ProgressQueue();
  readonly #sessionId: string | undefined;
  readonly #asked: Asked;
  readonly #result: Promise<ToolResult>;
  readonly #abandon = new AbortController();
  #done = false;
  #sent = (): void => {};
  /** Resolves when the request is sent. */
  readonly #underWay = new Promise<void>((resolve) => (this.#sent = resolve));

  /** @internal */
  constructor(
    asked: Asked,
    routes: Routes,
    params: ToolsExecuteParams & { call_id: string },
    signal?: AbortSignal,
  ) {
    this.id = params.call_id;
    this.#sessionId = params.session_id;
    this.#asked = asked;
    routes.add(this.id, this.#queue);
    this.#result = this.#run(params, signal).finally(() => {
      this.#done = true;
      this.#sent();
      routes.remove(this.id);
      this.#queue.end();
    });
    // Not an unhandled rejection if nobody asks for the result.
    this.#result.catch(() => {});
  }

  /** Waits for the answer. Rejects with an `RpcError`, an `Unreachable`, or the reason of the call's signal. */
  result(): Promise<ToolResult> {
    return this.#result;
  }

  /** Whether the call has its answer. */
  get done(): boolean {
    return this.#done;
  }

  /** Asks the daemon to cancel the call; its result is then `CallCancelled`. False when it has ended already. */
  async cancel(): Promise<boolean> {
    // A cancel must not overtake its call.
    await this.#underWay;
    if (this.#done) return false;
    const params = { call_id: this.id, session_id: this.#sessionId };
    const answer = (await this.#asked((connection) => connection.request("tools.cancel", params))) as {
      cancelled: boolean;
    };
    return answer.cancelled;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<CallProgress, undefined> {
    for (;;) {
      const { done, value } = await this.#queue.take();
      if (done) return undefined;
      yield value;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abandon.abort();
    await this.#result.catch(() => {});
  }

  async #run(params: ToolsExecuteParams, signal: AbortSignal | undefined): Promise<ToolResult> {
    signal?.throwIfAborted();
    const signals = signal === undefined ? this.#abandon.signal : AbortSignal.any([signal, this.#abandon.signal]);
    const answer = this.#asked((connection) => {
      const answer = connection.request("tools.execute", params, signals);
      this.#sent();
      return answer;
    });
    return (await answer) as ToolResult;
  }
}
