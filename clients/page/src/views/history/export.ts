/** The shown calls as files: JSON, and CSV for spreadsheets. */
import type { AuditEntry } from "toold/browser";

const COLUMNS: Record<string, (entry: AuditEntry) => string | number | undefined> = {
  id: ({ id }) => id,
  at: ({ at }) => at,
  tool: ({ tool }) => tool,
  source: ({ source }) => source,
  agent: ({ agent }) => agent,
  client: ({ client }) => client,
  session_id: ({ session_id }) => session_id,
  call_id: ({ call_id }) => call_id,
  outcome: ({ outcome }) => outcome,
  cached: ({ cached }) => (cached === undefined ? undefined : String(cached)),
  original_ms: ({ original_ms }) => original_ms,
  duration_ms: ({ duration_ms }) => duration_ms,
  input_bytes: ({ input_bytes }) => input_bytes,
  output_bytes: ({ output_bytes }) => output_bytes,
  decisions: ({ decisions }) =>
    decisions.map(({ verdict, category, target, rule }) => `${verdict} ${category} ${target} by ${rule}`).join("\n"),
};

export function toCsv(entries: readonly AuditEntry[]): string {
  const rows = entries.map((entry) =>
    Object.values(COLUMNS)
      .map((column) => cell(column(entry)))
      .join(","),
  );
  return [Object.keys(COLUMNS).join(","), ...rows, ""].join("\r\n");
}

function cell(value: string | number | undefined): string {
  if (typeof value !== "string") return String(value ?? "");
  // A spreadsheet would run a text of a tool that looks like a formula.
  const inert = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
