/** A call of the audit log: as a row, and its details. */
import { useState } from "preact/hooks";
import type { AuditEntry, Outcome } from "toold/browser";

import { Badge, Copy, type Tone } from "../../components.tsx";
import { ViewLink } from "../../router.tsx";
import { Block, Text } from "../../text.tsx";
import { bytes, duration, formats } from "../../time.tsx";
import { savedBy } from "./audit-log.ts";

/** The agent or client that called. */
export function whoOf({ agent, client }: AuditEntry): string {
  return agent ?? client ?? "";
}

/** The permissions that a call needed, on one line; a file that is judged again before it is written is named once. */
export function needsOf({ decisions }: AuditEntry, shown = (target: string) => target): string {
  const names = decisions.map(({ category, target }) => {
    return `${category} ${category.startsWith("file.") ? shown(target) : target}`;
  });
  return [...new Set(names)].join("; ");
}

/** The end of a path, which has the file's name. */
function ending(path: string): string {
  return path.length > 27 ? `…${path.slice(-26)}` : path;
}

function outcomeTone(outcome: Outcome): Tone {
  switch (outcome) {
    case "ok":
      return "good";
    case "denied":
    case "error":
    case "failed":
      return "bad";
    case "timed_out":
    case "invalid_args":
    case "overloaded":
    case "interrupted":
      return "warn";
    case "cancelled":
    case "skipped":
      return "neutral";
  }
}

function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  return <Badge tone={outcomeTone(outcome)}>{outcome.replace("_", " ")}</Badge>;
}

/** A time to the second, in the viewer's time zone. */
export function Moment({ at }: { at: string }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return <span>unknown</span>;
  return (
    <time dateTime={time.toISOString()} title={formats.whole.format(time)}>
      {formats.daySecond.format(time)}
    </time>
  );
}

/** The rows whose details are open, and the function that opens or closes one. */
export function useOpened<Key>(): [ReadonlySet<Key>, (key: Key) => void] {
  const [open, setOpen] = useState<ReadonlySet<Key>>(new Set());
  const toggle = (key: Key) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return [open, toggle];
}

/** A row that opens and closes the call's details. */
export function EntryRow({ entry, open, onToggle }: { entry: AuditEntry; open: boolean; onToggle: () => void }) {
  return (
    <article class={`entry ${open ? "open" : ""}`}>
      <button type="button" class="entry-row" data-entry={entry.id} aria-expanded={open} onClick={onToggle}>
        <span class="entry-time">
          <Moment at={entry.at} />
        </span>
        <span class="entry-tool mono">
          <Text value={entry.tool} />
        </span>
        <span class="entry-outcome">
          <OutcomeBadge outcome={entry.outcome} />
          {entry.cached && <Badge tone="info">cached</Badge>}
        </span>
        <span class="entry-duration numeric">{duration(entry.duration_ms)}</span>
        <Text class="entry-who dim" value={whoOf(entry)} max={60} />
        <Text class="entry-needs dim" value={needsOf(entry, ending)} max={160} />
      </button>
      {open && <EntryDetails entry={entry} />}
    </article>
  );
}

function EntryDetails({ entry }: { entry: AuditEntry }) {
  const ended = new Date(Date.parse(entry.at) + entry.duration_ms);
  return (
    <div class="entry-details">
      <dl class="facts">
        <dt>Began</dt>
        <dd>{formats.whole.format(new Date(entry.at))}</dd>
        <dt>Ended</dt>
        <dd>
          {formats.whole.format(ended)}, after {duration(entry.duration_ms)}
        </dd>
        <dt>Source</dt>
        <dd>
          <Text value={entry.source} />
        </dd>
        <dt>Caller</dt>
        <dd>
          <Text value={[entry.agent, entry.client].filter(Boolean).join(", in ") || "unknown"} />, connection{" "}
          {entry.connection}
        </dd>
        <dt>Session</dt>
        <dd>
          <ViewLink href={sessionPath(entry.session_id)}>
            <Text value={entry.session_id} />
          </ViewLink>
        </dd>
        <dt>Call</dt>
        <dd>
          <Text value={entry.call_id} max={100} />
        </dd>
        <dt>Arguments</dt>
        <dd>{bytes(entry.input_bytes)}</dd>
        <dt>Result</dt>
        <dd>
          {bytes(entry.output_bytes)} of text{entry.cached && ", from the cache"}
          {entry.original_ms !== undefined && `, which saved ${duration(savedBy(entry))}`}
        </dd>
      </dl>
      <section class="stack" aria-label="Decisions">
        <h3>{entry.decisions.length === 0 ? "No permission was needed" : "Decisions"}</h3>
        {entry.decisions.map((decision, at) => (
          <div key={at} class="decision">
            <p class="row">
              <Badge tone={decision.verdict === "allow" ? "good" : decision.verdict === "deny" ? "bad" : "warn"}>
                {decision.verdict}
              </Badge>
              <span class="mono">{decision.category}</span>
              <span>
                by <Text value={decision.rule} />
              </span>
            </p>
            <Block value={decision.target} label={`Target of ${decision.category}`} />
          </div>
        ))}
      </section>
      <p class="buttons">
        <Copy value={JSON.stringify(entry, undefined, 2)} label="Copy as JSON" />
      </p>
    </div>
  );
}

export function sessionPath(id: string): string {
  return `/history/sessions/${encodeURIComponent(id)}`;
}
