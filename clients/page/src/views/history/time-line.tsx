/** The time line of a session: its calls, asks, and changes of files. */
import { useEffect, useState } from "preact/hooks";
import type { Ask, AuditEntry, Event } from "toold/browser";

import { Badge, type Tone } from "../../components.tsx";
import { subscribe } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { textOf } from "../decide/outcomes.ts";
import { CallChanges, ChangeState, within } from "./changed-files.tsx";
import { EntryRow, Moment } from "./entry.tsx";
import { groupBy, type FileChange } from "./file-changes.ts";
import type { UndoPlan } from "./undo-dialog.tsx";

const RESOLUTION_TONES: Record<string, Tone> = { allow: "good", deny: "bad" };

type Resolved = Extract<Event, { kind: "permission.resolved" }>["resolved"];

export type SessionItem =
  | { kind: "call"; at: string; entry: AuditEntry; changes: readonly FileChange[] }
  | { kind: "ask"; at: string; ask: Ask; resolved?: Resolved }
  | { kind: "change"; at: string; change: FileChange };

type AskItem = Extract<SessionItem, { kind: "ask" }>;

export function timeLine(
  entries: readonly AuditEntry[],
  asks: readonly AskItem[],
  changes: readonly FileChange[],
): SessionItem[] {
  const byCall = groupBy(changes, ({ call_id }) => call_id);
  const calls = entries.map((entry): SessionItem => {
    const changes = byCall.get(entry.call_id) ?? [];
    byCall.delete(entry.call_id);
    return { kind: "call", at: entry.at, entry, changes };
  });
  // The audit log forgets calls, and has those in flight only once they end.
  const others = [...byCall.values()].flat().map((change): SessionItem => ({ kind: "change", at: change.at, change }));
  return [...calls, ...asks, ...others].sort((left, right) => left.at.localeCompare(right.at));
}

export function keyOf(item: SessionItem): string {
  switch (item.kind) {
    case "call":
      return `call ${item.entry.id}`;
    case "ask":
      return `ask ${item.ask.request_id}`;
    case "change":
      return `change ${item.at} ${item.change.path}`;
  }
}

/** The asks of a session that the daemon still has among its last events, and new ones. */
export function useAsks(id: string): readonly AskItem[] {
  const [asks, setAsks] = useState<readonly AskItem[]>([]);
  useEffect(() => {
    const kinds = ["permission.asked", "permission.resolved"];
    const onItem = (event: Event) => {
      if (event.kind === "permission.asked" && event.session_id === id) {
        setAsks((asks) => [...asks, { kind: "ask", at: event.at, ask: event.request }]);
      } else if (event.kind === "permission.resolved") {
        const { resolved } = event;
        setAsks((asks) =>
          asks.map((each) => (each.ask.request_id === resolved.request_id ? { ...each, resolved } : each)),
        );
      }
    };
    return subscribe("events.subscribe", { kinds, session_id: id, since: 0 }, onItem, () => setAsks([]));
  }, [id]);
  return asks;
}

interface SessionRowProps {
  item: SessionItem;
  open: boolean;
  onToggle: () => void;
  folder: string | undefined;
  onUndo: (plan: UndoPlan) => void;
}

export function SessionRow({ item, open, onToggle, folder, onUndo }: SessionRowProps) {
  switch (item.kind) {
    case "call":
      return (
        <div class="session-item">
          <EntryRow entry={item.entry} open={open} onToggle={onToggle} />
          {item.changes.length > 0 && <CallChanges changes={item.changes} folder={folder} onUndo={onUndo} />}
        </div>
      );
    case "ask":
      return (
        <div class="session-item event">
          <Moment at={item.at} /> <Badge tone="warn">asked</Badge> <span class="mono">{item.ask.category}</span>{" "}
          <Text value={item.ask.target} max={160} />
          {item.resolved ? (
            <>
              {" "}
              <Badge tone={RESOLUTION_TONES[item.resolved.action] ?? "neutral"}>
                <Text value={textOf(item.resolved)} max={80} />
              </Badge>
            </>
          ) : (
            <span class="dim"> not answered yet</span>
          )}
        </div>
      );
    case "change":
      return (
        <div class="session-item event">
          <Moment at={item.at} /> <ChangeState change={item.change} />{" "}
          <Text class="mono" value={within(folder, item.change.path)} />
        </div>
      );
  }
}
