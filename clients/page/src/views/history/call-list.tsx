/** The calls, the newest first; only those on the screen are in the document. */
import { useRef } from "preact/hooks";
import type { AuditEntry } from "toold/browser";
import { WindowVirtualizer, type WindowVirtualizerHandle } from "virtua";

import { useKeys } from "../../keys.tsx";
import { EntryRow, useOpened } from "./entry.tsx";

export default function CallList({ entries }: { entries: readonly AuditEntry[] }) {
  const list = useRef<WindowVirtualizerHandle>(null);
  const [open, toggle] = useOpened<number>();
  const before = useRef(entries);
  // New calls come in at the start. The ones that a person reads must not move then.
  const grown = entries.length > before.current.length && entries.at(-1)?.id === before.current.at(-1)?.id;
  before.current = entries;

  const move = (step: number) => {
    const focused = (document.activeElement as HTMLElement | null)?.dataset["entry"];
    const from = entries.findIndex(({ id }) => String(id) === focused);
    const at = Math.min(Math.max(from < 0 ? 0 : from + step, 0), entries.length - 1);
    focusRow(list.current, entries, at);
  };
  useKeys([
    { key: "j", label: "Next call", run: () => move(1) },
    { key: "k", label: "Previous call", run: () => move(-1) },
  ]);
  return (
    <section aria-label={`${entries.length} calls, the newest first`}>
      <WindowVirtualizer ref={list} data={entries} itemSize={44} shift={grown && scrollY > 0}>
        {(entry: AuditEntry) => (
          <EntryRow key={entry.id} entry={entry} open={open.has(entry.id)} onToggle={() => toggle(entry.id)} />
        )}
      </WindowVirtualizer>
    </section>
  );
}

/** A row that is not on the screen appears first a moment after it was scrolled to. */
function focusRow(list: WindowVirtualizerHandle | null, entries: readonly AuditEntry[], at: number): void {
  const entry = entries[at];
  if (entry === undefined) return;
  const find = () => document.querySelector<HTMLElement>(`[data-entry="${entry.id}"]`);
  const row = find();
  if (row) return row.focus();
  list?.scrollToIndex(at, { align: "center" });
  requestAnimationFrame(() => requestAnimationFrame(() => find()?.focus()));
}
