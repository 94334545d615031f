/** The last JSON-RPC messages of the page's connection, for the inspector. */
import { signal } from "@preact/signals";

export interface LoggedMessage {
  /** Grows by one with every message. */
  readonly id: number;
  readonly at: Date;
  readonly direction: "sent" | "received";
  /** Cut to `MAX_TEXT` characters. */
  readonly text: string;
  /** Of the whole message, in characters. */
  readonly length: number;
}

const MAX_MESSAGES = 500;
const MAX_TEXT = 20_000;

/** The oldest first. It changes at most once a frame. */
export const messages = signal<readonly LoggedMessage[]>([]);

const kept: LoggedMessage[] = [];
let count = 0;
let planned = false;

export function note(direction: LoggedMessage["direction"], text: string): void {
  kept.push({ id: ++count, at: new Date(), direction, text: text.slice(0, MAX_TEXT), length: text.length });
  if (kept.length > MAX_MESSAGES) kept.shift();
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    messages.value = [...kept];
  });
}
