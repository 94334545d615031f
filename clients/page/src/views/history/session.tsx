/** One session: its calls and asks in their order, the files that it changed, and undoing that. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { SessionInfo } from "toold/browser";
import { WindowVirtualizer } from "virtua";

import { Badge, Copy, Empty } from "../../components.tsx";
import { request, subscribe } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report } from "../../toasts.tsx";
import { useAuditLog } from "./audit-log.ts";
import { ChangedFiles, UnrecordedChanges } from "./changed-files.tsx";
import { Moment, useOpened } from "./entry.tsx";
import { useFileChanges } from "./file-changes.ts";
import { LogState } from "./log-state.tsx";
import { keyOf, SessionRow, timeLine, useAsks, type SessionItem } from "./time-line.tsx";
import { UndoDialog, type UndoPlan } from "./undo-dialog.tsx";

export default function SessionView({ id }: { id: string }) {
  const log = useAuditLog({ session_id: id });
  const { changes: all, older, unrecorded, reload } = useFileChanges(id);
  const asks = useAsks(id);
  const info = useSessionInfo(id);
  const [plan, setPlan] = useState<UndoPlan>();
  const [open, toggle] = useOpened<string>();
  const { entries } = log;
  const changes = useMemo(() => all.filter(({ session_id }) => session_id === id), [all, id]);
  const items = useMemo(() => timeLine(entries.value, asks, changes), [entries.value, asks, changes]);
  const first = entries.value.find(({ client, agent }) => client ?? agent);
  return (
    <>
      <header class="card">
        <h2>
          <Text value={info?.client?.name ?? first?.agent ?? first?.client ?? id} />{" "}
          {info ? <Badge tone="good">open</Badge> : <Badge>ended</Badge>}
        </h2>
        <dl class="facts">
          <dt>Session</dt>
          <dd class="row">
            <Text value={id} />
            <Copy value={id} />
          </dd>
          {info && (
            <>
              <dt>Folder</dt>
              <dd>
                <Text value={info.cwd} />
              </dd>
              <dt>Mode</dt>
              <dd>{info.mode}</dd>
              <dt>Opened</dt>
              <dd>
                <Moment at={info.opened_at} />
              </dd>
            </>
          )}
        </dl>
      </header>
      <ChangedFiles changes={changes} older={older} folder={info?.cwd} onUndo={setPlan} />
      <UnrecordedChanges calls={unrecorded.filter(({ session_id }) => session_id === id)} />
      <h2>Time line</h2>
      <LogState log={log} shown={entries.value} />
      {items.length === 0 && !log.loading.value && <Empty title="This session has made no calls" />}
      <section class="session-items" aria-label={`${items.length} entries, the oldest first`}>
        <WindowVirtualizer data={items} itemSize={44}>
          {(item: SessionItem) => {
            const key = keyOf(item);
            const common = { folder: info?.cwd, onUndo: setPlan };
            return <SessionRow key={key} item={item} open={open.has(key)} onToggle={() => toggle(key)} {...common} />;
          }}
        </WindowVirtualizer>
      </section>
      {plan && (
        <UndoDialog
          plan={plan}
          folder={info?.cwd}
          onClose={() => {
            setPlan(undefined);
            reload();
          }}
        />
      )}
    </>
  );
}

/** `undefined` for a session that has ended. */
function useSessionInfo(id: string): SessionInfo | undefined {
  const [info, setInfo] = useState<SessionInfo>();
  useEffect(() => {
    const load = () =>
      void request("session.list", {}).then(
        ({ sessions }) => setInfo(sessions.find(({ session_id }) => session_id === id)),
        report,
      );
    const kinds = ["session.opened", "session.closed", "session.mode"];
    return subscribe("events.subscribe", { kinds, session_id: id }, load, load);
  }, [id]);
  return info;
}
