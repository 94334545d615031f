/** Short messages above the page: errors of requests, and outcomes. */
import { signal } from "@preact/signals";

import { Text } from "./text.tsx";

interface Toast {
  id: number;
  kind: "error" | "note";
  text: string;
}

const MAX_TOASTS = 4;
/** How long a note stays, in milliseconds. An error stays until it is closed. */
const NOTE_STAYS = 8000;

const toasts = signal<readonly Toast[]>([]);
let count = 0;

export function toast(text: string, kind: Toast["kind"] = "note"): void {
  const id = ++count;
  const others = toasts.value.filter((other) => other.text !== text);
  toasts.value = [...others, { id, kind, text }].slice(-MAX_TOASTS);
  if (kind === "note") setTimeout(() => close(id), NOTE_STAYS);
}

/** Shows an error of a request. */
export function report(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), "error");
}

export function Toasts() {
  return (
    <div class="toasts" role="log" aria-label="Messages" aria-live="polite">
      {toasts.value.map(({ id, kind, text }) => (
        <div key={id} class={`toast ${kind}`} role={kind === "error" ? "alert" : undefined}>
          <Text value={text} />
          <button type="button" class="plain" aria-label="Close the message" onClick={() => close(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
