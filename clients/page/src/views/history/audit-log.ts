/** The audit log, as far as it is loaded: the last calls first, earlier ones on demand, and new ones as they end. */
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AuditEntry, AuditQueryParams } from "toold/browser";

import { request, subscribe } from "../../daemon.ts";

/** How much time the cache saved, in milliseconds. */
export function savedBy({ original_ms, duration_ms }: AuditEntry): number {
  return original_ms === undefined ? 0 : Math.max(0, original_ms - duration_ms);
}

export type AuditSelection = Pick<AuditQueryParams, "since" | "session_id" | "tool" | "outcome">;

/** The most that the daemon returns at once. */
const PAGE = 1000;
/** How many calls are loaded at first, and with each `loadEarlier`. */
const STEP = 10_000;
/** Calls that end within this time are fetched together, in milliseconds. */
const GATHER = 200;

export class AuditLog {
  /** Sorted by `id`, the oldest first. */
  readonly entries = signal<readonly AuditEntry[]>([]);
  readonly loading = signal(false);
  /** There are no earlier calls. */
  readonly complete = signal(false);
  /** How many calls of that time the daemon could not record. */
  readonly lost = signal(0);
  readonly problem = signal<unknown>(undefined);

  readonly #selection: AuditSelection;
  readonly #unsubscribe: () => void;
  /** The highest id that was seen; absent before the first answer. */
  #last: number | undefined;
  #abort = new AbortController();
  #following: "no" | "planned" | "running" | "again" = "no";
  #closed = false;

  constructor(selection: AuditSelection) {
    this.#selection = selection;
    const kinds = ["call.finished"];
    const { session_id } = selection;
    const changed = () => this.#planFollow();
    // Before the first query, so that no call that ends between the two is missed.
    this.#unsubscribe = subscribe("events.subscribe", { kinds, session_id }, changed, () => {
      if (this.#last === undefined) void this.loadEarlier();
      else changed();
    });
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.stop();
  }

  /** Stops loading earlier calls. */
  stop(): void {
    this.#abort.abort();
  }

  /** Loads the calls before those that are here. */
  async loadEarlier(): Promise<void> {
    if (this.loading.peek() || this.#closed) return;
    this.#abort = new AbortController();
    this.loading.value = true;
    this.problem.value = undefined;
    const target = this.entries.peek().length + STEP;
    try {
      // Ids have no gaps but for what a selection leaves out, so this is how far back the next query begins.
      let span = PAGE;
      while (!this.complete.peek() && this.entries.peek().length < target) {
        const added = await this.#loadPage(span);
        if (added < PAGE / 2) span *= 4;
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) this.problem.value = error;
    } finally {
      this.loading.value = false;
    }
  }

  /** Loads the calls whose ids are at most `span` below the first one here. Returns their number. */
  async #loadPage(span: number): Promise<number> {
    const first = this.entries.peek()[0]?.id;
    if (first === undefined) {
      // New calls are those after the last one of all, also when the selection has none.
      const newest = await request("audit.query", { limit: 1 }, { signal: this.#abort.signal });
      const { entries, more, lost } = await this.#query({});
      this.#last = Math.max(newest.entries[0]?.id ?? 0, entries.at(-1)?.id ?? 0);
      // Calls may have ended since that answer was made.
      this.#planFollow();
      this.entries.value = entries;
      this.complete.value = !more;
      this.lost.value = lost;
      return entries.length;
    }
    const earlier: AuditEntry[] = [];
    const start = Math.max(0, first - 1 - span);
    for (let after = start, more = true; more;) {
      const page = await this.#query({ after });
      const wanted = page.entries.filter(({ id }) => id < first);
      earlier.push(...wanted);
      after = page.entries.at(-1)?.id ?? first;
      more = page.more && wanted.length === page.entries.length;
    }
    this.entries.value = [...earlier, ...this.entries.peek()];
    this.complete.value = start === 0;
    return earlier.length;
  }

  #planFollow(): void {
    if (this.#following === "running") this.#following = "again";
    if (this.#following !== "no" || this.#last === undefined || this.#closed) return;
    this.#following = "planned";
    setTimeout(() => void this.#follow(), GATHER);
  }

  /** Fetches the calls that have ended since. */
  async #follow(): Promise<void> {
    this.#following = "running";
    this.problem.value = undefined;
    try {
      for (let more = true; more && !this.#closed;) {
        // A call is new when it ends, however long ago it began.
        const { since: _, ...selection } = this.#selection;
        const { entries, more: others } = await request("audit.query", {
          ...selection,
          after: this.#last,
          limit: PAGE,
        });
        if (entries.length > 0) this.entries.value = [...this.entries.peek(), ...entries];
        this.#last = entries.at(-1)?.id ?? this.#last;
        more = others;
      }
    } catch (error) {
      this.problem.value = error;
    }
    const again = (this.#following as string) === "again";
    this.#following = "no";
    if (again) this.#planFollow();
  }

  #query(params: AuditQueryParams) {
    return request("audit.query", { ...this.#selection, ...params, limit: PAGE }, { signal: this.#abort.signal });
  }
}

/** The log for a selection; it is closed with the component. */
export function useAuditLog(selection: AuditSelection): AuditLog {
  const log = useMemo(() => new AuditLog(selection), [JSON.stringify(selection)]);
  useEffect(() => () => log.close(), [log]);
  return log;
}
