/** How much of the audit log is loaded, what else can be loaded, and the export. */
import type { AuditEntry } from "toold/browser";

import { Text } from "../../text.tsx";
import type { AuditLog } from "./audit-log.ts";
import { download, toCsv } from "./export.ts";

export function LogState({ log, shown }: { log: AuditLog; shown: readonly AuditEntry[] }) {
  const count = log.entries.value.length;
  const { loading, complete, lost, problem } = log;
  const save = (type: "json" | "csv") => {
    const name = `toold-calls-${new Date().toISOString().slice(0, 10)}.${type}`;
    if (type === "csv") download(name, "text/csv;charset=utf-8", toCsv(shown));
    else download(name, "application/json", `${JSON.stringify(shown, undefined, 2)}\n`);
  };
  return (
    <div class="row log-state">
      <p role="status">
        {loading.value
          ? `Loading: ${words(count)} so far`
          : shown.length < count
            ? `${shown.length.toLocaleString("en")} of ${words(count)}`
            : words(count)}
        {!loading.value && !complete.value && count > 0 && "; there are earlier ones"}
      </p>
      {loading.value ? (
        <button type="button" onClick={() => log.stop()}>
          Stop
        </button>
      ) : (
        !complete.value && (
          <button type="button" onClick={() => void log.loadEarlier()}>
            Load earlier calls
          </button>
        )
      )}
      <span class="grow" />
      <button type="button" disabled={shown.length === 0} onClick={() => save("json")}>
        Export JSON
      </button>
      <button type="button" disabled={shown.length === 0} onClick={() => save("csv")}>
        Export CSV
      </button>
      {lost.value > 0 && <p class="problem">{lost.value} calls of that time could not be recorded.</p>}
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          <Text value={problem.value instanceof Error ? problem.value.message : String(problem.value)} />
        </p>
      )}
    </div>
  );
}

function words(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "call" : "calls"}`;
}
