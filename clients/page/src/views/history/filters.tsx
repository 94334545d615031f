/** Which calls the history shows, and the form that chooses them. */
import { signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { AuditEntry, Outcome } from "toold/browser";

import { useMedia } from "../../media.ts";
import { needsOf, whoOf } from "./entry.tsx";
import type { AuditSelection } from "./audit-log.ts";

export interface Filters {
  range: RangeName;
  /** Of the range `between`: local times, as an `input` of the type `datetime-local` has them. */
  from: string;
  to: string;
  tool: string;
  /** The name of an agent or client. */
  who: string;
  session: string;
  outcome: string;
  /** `allow`, `deny`, `ask`, or `none` for calls that needed no permission. */
  decision: string;
  text: string;
}

const RANGES = {
  "15m": "last 15 minutes",
  "1h": "last hour",
  "24h": "last 24 hours",
  "168h": "last 7 days",
  all: "any time",
  between: "between two times",
} as const;
type RangeName = keyof typeof RANGES;

const OUTCOMES: readonly Outcome[] = [
  "ok",
  "denied",
  "error",
  "failed",
  "timed_out",
  "cancelled",
  "invalid_args",
  "overloaded",
  "skipped",
  "interrupted",
];

const EVERYTHING: Filters = {
  range: "24h",
  from: "",
  to: "",
  tool: "",
  who: "",
  session: "",
  outcome: "",
  decision: "",
  text: "",
};

/** They stay while the page is open, also when another view is shown. */
export const filters = signal<Filters>(EVERYTHING);

/** The part that the daemon selects. */
export function selectionOf({ range, from, tool, session, outcome }: Filters): AuditSelection {
  const since = range === "between" ? isoTime(from) : range === "all" ? undefined : range;
  return {
    ...(since && { since }),
    ...(tool && { tool }),
    ...(session && { session_id: session }),
    ...(outcome && { outcome: outcome as Outcome }),
  };
}

/** The part that the page selects among the loaded calls. */
export function matches(entry: AuditEntry, { range, to, who, decision, text }: Filters): boolean {
  const until = range === "between" ? isoTime(to) : undefined;
  if (until !== undefined && Date.parse(entry.at) > Date.parse(until)) return false;
  if (who && entry.agent !== who && entry.client !== who) return false;
  if (
    decision === "none"
      ? entry.decisions.length > 0
      : decision && !entry.decisions.some((each) => each.verdict === decision)
  ) {
    return false;
  }
  if (!text) return true;
  const rules = entry.decisions.map(({ rule }) => rule);
  const all = [
    entry.tool,
    entry.source,
    whoOf(entry),
    entry.call_id,
    entry.session_id,
    entry.outcome,
    needsOf(entry),
    ...rules,
  ];
  return all.join("\n").toLowerCase().includes(text.toLowerCase());
}

function isoTime(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

interface SeenNames {
  tool: readonly string[];
  who: readonly string[];
  session: readonly string[];
}

/** Names to choose from. They grow only: a filter would otherwise remove its own alternatives. */
export function useSeenNames(entries: readonly AuditEntry[]): SeenNames {
  const seen = useRef<SeenNames>({ tool: [], who: [], session: [] });
  return useMemo(() => {
    const { tool, who, session } = seen.current;
    const grown = (known: readonly string[], names: (entry: AuditEntry) => (string | undefined)[]) =>
      [...new Set([...known, ...entries.flatMap((entry) => names(entry).filter((name) => name !== undefined))])].sort();
    seen.current = {
      tool: grown(tool, (entry) => [entry.tool]),
      who: grown(who, ({ agent, client }) => [agent, client]),
      session: grown(session, ({ session_id }) => [session_id]),
    };
    return seen.current;
  }, [entries]);
}

export function FilterForm({ seen }: { seen: SeenNames }) {
  const value = filters.value;
  const set = (change: Partial<Filters>) => (filters.value = { ...filters.peek(), ...change });
  const choices = (name: keyof SeenNames, label: string) => (
    <label>
      {label}
      <select value={value[name]} onChange={(event) => set({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {[...new Set([...seen[name], ...(value[name] ? [value[name]] : [])])].map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  );
  const wide = useMedia("(min-width: 60rem)");
  const active = Object.entries(value).filter(([name, chosen]) => chosen !== EVERYTHING[name as keyof Filters]).length;
  return (
    <details class={`filter-box ${wide ? "wide" : ""}`} open={wide}>
      <summary>Filters{active > 0 && ` (${active} set)`}</summary>
      <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Time
          <select value={value.range} onChange={(event) => set({ range: event.currentTarget.value as RangeName })}>
            {Object.entries(RANGES).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {value.range === "between" && (
          <>
            <label>
              From
              <input
                type="datetime-local"
                value={value.from}
                onChange={(event) => set({ from: event.currentTarget.value })}
              />
            </label>
            <label>
              To
              <input
                type="datetime-local"
                value={value.to}
                onChange={(event) => set({ to: event.currentTarget.value })}
              />
            </label>
          </>
        )}
        {choices("tool", "Tool")}
        {choices("who", "Agent or client")}
        {choices("session", "Session")}
        <label>
          Outcome
          <select value={value.outcome} onChange={(event) => set({ outcome: event.currentTarget.value })}>
            <option value="">all</option>
            {OUTCOMES.map((outcome) => (
              <option key={outcome} value={outcome}>
                {outcome.replace("_", " ")}
              </option>
            ))}
          </select>
        </label>
        <label>
          Decision
          <select value={value.decision} onChange={(event) => set({ decision: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="allow">allowed</option>
            <option value="deny">denied</option>
            <option value="ask">left to the agent's prompt</option>
            <option value="none">none needed</option>
          </select>
        </label>
        <label>
          Text
          <input
            type="search"
            placeholder="command, file, rule, …"
            value={value.text}
            onInput={(event) => set({ text: event.currentTarget.value })}
          />
        </label>
        <button type="button" onClick={() => (filters.value = EVERYTHING)}>
          Reset
        </button>
      </form>
    </details>
  );
}
