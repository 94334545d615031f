/** Sessions that made calls or changed files, the most recent first. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEntry, SessionInfo } from "toold/browser";

import { Badge, Empty, Table } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { useLocation, ViewLink } from "../../router.tsx";
import { Text } from "../../text.tsx";
import { Time } from "../../time.tsx";
import { report } from "../../toasts.tsx";
import { useAuditLog } from "./audit-log.ts";
import { sessionPath } from "./entry.tsx";
import { useFileChanges, type FileChange } from "./file-changes.ts";

interface PastSession {
  id: string;
  /** RFC 3339, UTC. */
  last: string;
  calls: number;
  denied: number;
  files: Set<string>;
  who: string;
  open?: SessionInfo;
}

export default function Sessions() {
  const log = useAuditLog({});
  const { changes } = useFileChanges();
  const [open, setOpen] = useState<readonly SessionInfo[]>([]);
  const [, navigate] = useLocation();
  const count = log.entries.value.length;
  useEffect(() => {
    if (count > 0) request("session.list", {}).then(({ sessions }) => setOpen(sessions), report);
  }, [count]);
  const sessions = useMemo(() => gather(log.entries.value, changes, open), [log.entries.value, changes, open]);
  if (sessions.length === 0)
    return log.complete.value ? <Empty title="No sessions yet" /> : <p class="loading">Loading…</p>;
  return (
    <Table
      caption="Sessions"
      rows={sessions}
      keyOf={({ id }) => id}
      onOpen={({ id }) => navigate(sessionPath(id))}
      columns={[
        {
          title: "Session",
          cell: ({ id, who, open }) => (
            <>
              <ViewLink href={sessionPath(id)}>
                <Text value={open?.client?.name ?? (who || id)} max={60} />
              </ViewLink>{" "}
              {open && (
                <Badge tone={open.connections > 0 ? "good" : "neutral"}>{open.connections > 0 ? "open" : "idle"}</Badge>
              )}
              <br />
              <Text class="dim small" value={open?.cwd ?? id} />
            </>
          ),
        },
        { title: "Calls", numeric: true, cell: ({ calls }) => calls },
        { title: "Denied", numeric: true, wideOnly: true, cell: ({ denied }) => denied },
        { title: "Files", numeric: true, cell: ({ files }) => files.size },
        { title: "Last", cell: ({ last }) => <Time at={last} /> },
      ]}
    />
  );
}

function gather(
  entries: readonly AuditEntry[],
  changes: readonly FileChange[],
  open: readonly SessionInfo[],
): PastSession[] {
  const sessions = new Map<string, PastSession>();
  const of = (id: string, at: string) => {
    let session = sessions.get(id);
    if (!session) sessions.set(id, (session = { id, last: at, calls: 0, denied: 0, files: new Set(), who: "" }));
    if (at > session.last) session.last = at;
    return session;
  };
  for (const entry of entries) {
    const session = of(entry.session_id, entry.at);
    session.calls += 1;
    if (entry.outcome === "denied") session.denied += 1;
    session.who = entry.agent ?? entry.client ?? session.who;
  }
  for (const { session_id, at, path } of changes) of(session_id, at).files.add(path);
  for (const info of open) {
    const known = sessions.get(info.session_id);
    if (known) known.open = info;
  }
  return [...sessions.values()].sort((left, right) => right.last.localeCompare(left.last));
}
