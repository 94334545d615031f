/** Items that arrive by themselves and wait to be read in order. */
export class Queue<T> {
  #items: T[] = [];
  #takers: { resolve: (result: IteratorResult<T, undefined>) => void; reject: (error: Error) => void }[] = [];
  #ended = false;
  #failure: Error | undefined;

  /** How many items wait. */
  get size(): number {
    return this.#items.length;
  }

  put(item: T): void {
    if (this.#ended) return;
    const taker = this.#takers.shift();
    if (taker) taker.resolve({ done: false, value: item });
    else this.#items.push(item);
  }

  /** No more items will come. With a `failure`, reading past the last one throws it. */
  end(failure?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    for (const taker of this.#takers.splice(0)) {
      if (failure) taker.reject(failure);
      else taker.resolve({ done: true, value: undefined });
    }
  }

  async take(): Promise<IteratorResult<T, undefined>> {
    if (this.#items.length > 0) return { done: false, value: this.#items.shift() as T };
    if (this.#failure) throw this.#failure;
    if (this.#ended) return { done: true, value: undefined };
    return new Promise((resolve, reject) => this.#takers.push({ resolve, reject }));
  }
}
