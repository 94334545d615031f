/** A subscription of any kind, as an iterator. */
import type { Connection } from "./connection.js";
import { Disconnected, TooldError } from "./errors.js";
import { SUBSCRIPTIONS, type Subscriptions } from "./protocol.js";
import { Queue } from "./queue.js";

/** How many items may wait to be read. One more ends the subscription. */
const MAX_ITEMS = 65_536;

/**
 * The items of a subscription, from `Client.subscribe`. It ends when you leave its loop or call `close`.
 *
 * It ends with its connection, by `Disconnected`. `Client.events`, `onPermission`, `onQuestion` and `provide` continue
 * after a reconnect.
 */
export class Subscription<S extends keyof Subscriptions>
  implements AsyncIterableIterator<Subscriptions[S]["item"]>, AsyncDisposable
{
  readonly #queue = new Queue<Subscriptions[S]["item"]>();
  readonly #method: S;
  #end: () => Promise<void> = async () => {};

  /** @internal */
  constructor(method: S) {
    this.#method = method;
  }

  /** @internal */
  async restore(connection: Connection, params: Subscriptions[S]["params"], signal?: AbortSignal): Promise<void> {
    const onItem = (item: Subscriptions[S]["item"]) => {
      if (this.#queue.size < MAX_ITEMS) return this.#queue.put(item);
      this.#queue.end(new TooldError(`more than ${MAX_ITEMS} items of ${this.#method} were not read`));
      void this.close();
    };
    const onLost = (reason: string) => this.#queue.end(new Disconnected(reason));
    const subscription = await connection.subscribe(this.#method, params, onItem, signal, onLost);
    this.#end = async () => {
      if (connection.lost !== undefined) return;
      connection.forget(subscription);
      await connection.request(SUBSCRIPTIONS[this.#method].end, { subscription });
    };
  }

  next(): Promise<IteratorResult<Subscriptions[S]["item"], undefined>> {
    return this.#queue.take();
  }

  async return(): Promise<IteratorResult<Subscriptions[S]["item"], undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Unsubscribes. Items that wait can still be read. */
  async close(): Promise<void> {
    const end = this.#end;
    this.#end = async () => {};
    this.#queue.end();
    await end().catch((error: unknown) => {
      // It ends with the connection too.
      if (!(error instanceof TooldError)) throw error;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
