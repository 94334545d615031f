/** Keys: one list of those in use, which `?` shows. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface KeyBinding {
  /** As in `KeyboardEvent.key`, or two of them with a space between. */
  key: string;
  label: string;
  run: () => void;
}

/** The first of two keys, after it was pressed. */
export const firstKey = signal<string | undefined>(undefined);

const bindings = signal<readonly { current: readonly KeyBinding[] }[]>([]);

/** Keys of a component while it is shown. They don't apply within fields and dialogs. A later component wins. */
export function useKeys(keys: readonly KeyBinding[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  // Before the component is painted, so that a key works as soon as a person sees what it is for.
  useLayoutEffect(() => {
    bindings.value = [...bindings.peek(), latest];
    return () => {
      bindings.value = bindings.peek().filter((each) => each !== latest);
    };
  }, []);
}

/** All keys in use; a pair of keys and one key that begins it exclude each other. */
export function keysInUse(): KeyBinding[] {
  const seen = new Map<string, KeyBinding>();
  for (const binding of bindings.value.flatMap(({ current }) => current)) seen.set(binding.key, binding);
  return [...seen.values()];
}

/** A hint at a key, beside what it does. */
export function Key({ name }: { name: string }) {
  return (
    <kbd class="key" aria-hidden="true">
      {name}
    </kbd>
  );
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target as HTMLElement;
  if (target.closest("input, textarea, select, [contenteditable], dialog")) return;
  // They press what has the focus.
  if ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary")) return;
  // The first key stays while modifiers are pressed.
  if (event.key.length > 1 && event.key !== "Enter" && event.key !== "Escape") return;
  const key = firstKey.value === undefined ? event.key : `${firstKey.value} ${event.key}`;
  const begins = keysInUse().some((binding) => binding.key.startsWith(`${key} `));
  firstKey.value = begins ? key : undefined;
  const binding = keysInUse().find((binding) => binding.key === key);
  if (begins || binding) event.preventDefault();
  if (!binding) return;
  // A key that is held down must not answer the next prompt too.
  if (!event.repeat) binding.run();
});
