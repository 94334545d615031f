/** Structured data: a tree that opens by parts, and tables for lists of flat objects. */
import { useState } from "preact/hooks";

import { Table, type Column } from "../../components.tsx";
import { Block, Text, visible } from "../../text.tsx";

const FIRST = 100;
const MAX_COLUMNS = 8;
/** Small parts are open from the start, down to this depth. */
const OPEN_DEPTH = 4;
const SMALL = 20;

export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const [open, setOpen] = useState(depth === 0 || (depth < OPEN_DEPTH && sizeOf(value) <= SMALL));
  const [shown, setShown] = useState(FIRST);
  const label = name !== undefined && (
    <>
      <Text class="json-name" value={name} />
      <span class="dim">: </span>
    </>
  );
  if (typeof value !== "object" || value === null) return <JsonLeaf label={label} value={value} />;
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <p class="json-leaf">
        {label}
        {Array.isArray(value) ? "[]" : "{}"}
      </p>
    );
  }
  return (
    <details class="json-node" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {label}
        <span class="dim">{size}</span>
      </summary>
      {open && (
        <div class="json-members">
          {entries.slice(0, shown).map(([member, each]) => (
            <JsonTree key={member} name={member} value={each} depth={depth + 1} />
          ))}
          {shown < entries.length && (
            <button type="button" class="small" onClick={() => setShown(shown * 5)}>
              Show more ({shown} of {entries.length})
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function sizeOf(value: unknown): number {
  return typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}

function JsonLeaf({ label, value }: { label: unknown; value: unknown }) {
  if (typeof value === "string" && (value.length > 300 || value.includes("\n"))) {
    return (
      <div class="json-leaf">
        {label as never}
        <Block value={value} />
      </div>
    );
  }
  return (
    <p class="json-leaf">
      {label as never}
      <Text class={`json-${typeof value}`} value={JSON.stringify(value) ?? "undefined"} max={400} />
    </p>
  );
}

/** A table for a list of flat objects with the same members, a tree for everything else. */
export function Structured({ value }: { value: unknown }) {
  const list = listOf(value);
  const [asTable, setAsTable] = useState(true);
  if (list === undefined) return <JsonTree value={value} />;
  return (
    <div class="stack">
      <div class="buttons">
        <button type="button" aria-pressed={asTable} onClick={() => setAsTable(true)}>
          Table
        </button>
        <button type="button" aria-pressed={!asTable} onClick={() => setAsTable(false)}>
          Tree
        </button>
      </div>
      {asTable ? <FlatTable {...list} /> : <JsonTree value={value} />}
    </div>
  );
}

interface FlatList {
  rows: readonly Record<string, unknown>[];
  columns: readonly string[];
}

interface NumberedRow {
  row: Record<string, unknown>;
  at: number;
}

function FlatTable({ rows, columns }: FlatList) {
  const [shown, setShown] = useState(FIRST);
  const numbered = rows.slice(0, shown).map((row, at) => ({ row, at }));
  return (
    <>
      <Table
        caption="Structured result"
        rows={numbered}
        keyOf={({ at }) => at}
        columns={columns.map((name): Column<NumberedRow> => ({
          title: visible(name).slice(0, 60),
          numeric: rows.every((row) => ["number", "undefined"].includes(typeof row[name])),
          cell: ({ row }) => <Text value={cell(row[name])} max={200} />,
        }))}
      />
      {shown < rows.length && (
        <button type="button" onClick={() => setShown(shown * 5)}>
          Show more ({shown} of {rows.length})
        </button>
      )}
    </>
  );
}

function cell(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** The list itself, or the only list of an object: many tools wrap it. */
function listOf(value: unknown): FlatList | undefined {
  if (!Array.isArray(value) && typeof value === "object" && value !== null) {
    const lists = Object.values(value);
    return lists.length === 1 && Array.isArray(lists[0]) ? listOf(lists[0]) : undefined;
  }
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const columns = new Set<string>();
  for (const row of value as unknown[]) {
    if (typeof row !== "object" || row === null || Array.isArray(row)) return undefined;
    for (const [name, member] of Object.entries(row)) {
      if (typeof member === "object" && member !== null) return undefined;
      columns.add(name);
    }
    if (columns.size > MAX_COLUMNS) return undefined;
  }
  return columns.size === 0 ? undefined : { rows: value as Record<string, unknown>[], columns: [...columns] };
}
