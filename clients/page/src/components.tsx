/** Parts that all views share. */
import type { ComponentChildren } from "preact";

/** In place of a list that has no items: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export type Tone = "neutral" | "good" | "warn" | "bad" | "info";

export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers are set to the end. */
  numeric?: boolean;
  /** Left out on narrow screens. */
  wideOnly?: boolean;
}

interface TableProps<Row> {
  /** For screen readers. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  /** Makes rows respond to a click; the first cell should hold a link or button for the keyboard. */
  onOpen?: (row: Row) => void;
}

export function Table<Row>({ caption, columns, rows, keyOf, onOpen }: TableProps<Row>) {
  const cellClass = ({ numeric, wideOnly }: Column<Row>) => `${numeric ? "numeric " : ""}${wideOnly ? "wide-only" : ""}`;
  return (
    <div class="table" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={cellClass(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={onOpen && "opens"} onClick={onOpen && (() => onOpen(row))}>
              {columns.map((column) => (
                <td key={column.title} class={cellClass(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Copies a text, unchanged, to the clipboard. */
export function Copy({ value, label = "Copy" }: { value: string; label?: string }) {
  if (!navigator.clipboard) return null;
  return (
    <button type="button" onClick={() => void navigator.clipboard.writeText(value)}>
      {label}
    </button>
  );
}
