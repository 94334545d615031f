/** The daemon's events as an iterator that continues after a reconnect. */
import type { Connection } from "./connection.js";
import { TooldError } from "./errors.js";
import type { Event, EventsSubscribeParams } from "./protocol.js";
import { Queue } from "./queue.js";

/** How many events may wait to be read. More are dropped, and an event of kind `lagged` counts them. */
const MAX_EVENTS = 65_536;

export interface EventsOptions {
  /** Names of kinds; all by default. `lagged` is always included. */
  kinds?: Event["kind"] | Event["kind"][];
  /** Only events of this session, and those of no session. */
  sessionId?: string;
  /** Replays the events that the daemon still holds after this `seq` of this `epoch`. */
  since?: number;
  epoch?: string;
}

/**
 * Events, from `Client.events`. It ends when you leave its loop, call `close`, or close the client.
 *
 * After a reconnect it continues where it stopped. An event of kind `lagged` stands for lost events.
 */
export class Events implements AsyncIterableIterator<Event>, AsyncDisposable {
  readonly #queue = new Queue<Event>();
  readonly #params: EventsSubscribeParams;
  readonly #forget: (events: Events) => void;
  #missed = 0;
  #connection: Connection | undefined;
  #subscription: string | undefined;

  /** @internal */
  constructor(options: EventsOptions, forget: (events: Events) => void) {
    const { kinds, sessionId, since, epoch } = options;
    this.#params = { kinds: kinds && [kinds].flat(), session_id: sessionId, since, epoch };
    this.#forget = forget;
  }

  /** @internal */
  async restore(connection: Connection, signal?: AbortSignal): Promise<void> {
    const onItem = (event: Event) => this.#item(event);
    this.#subscription = await connection.subscribe("events.subscribe", this.#params, onItem, signal);
    this.#connection = connection;
  }

  /** @internal */
  end(failure?: Error): void {
    this.#queue.end(failure);
  }

  next(): Promise<IteratorResult<Event, undefined>> {
    return this.#queue.take();
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Unsubscribes. Events that wait can still be read. */
  async close(): Promise<void> {
    this.#forget(this);
    this.#queue.end();
    const connection = this.#connection;
    const subscription = this.#subscription;
    this.#connection = undefined;
    if (connection === undefined || connection.lost !== undefined || subscription === undefined) return;
    connection.forget(subscription);
    await connection.request("events.unsubscribe", { subscription }).catch((error: unknown) => {
      // The subscription ends with the connection too.
      if (!(error instanceof TooldError)) throw error;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #item(event: Event): void {
    if (event.epoch) {
      this.#params.since = event.seq;
      this.#params.epoch = event.epoch;
    }
    if (this.#queue.size >= MAX_EVENTS) {
      this.#missed += 1;
      return;
    }
    if (this.#missed > 0) {
      const { seq, epoch, at } = event;
      this.#queue.put({ seq, epoch, at, kind: "lagged", missed: this.#missed });
      this.#missed = 0;
    }
    this.#queue.put(event);
  }
}
