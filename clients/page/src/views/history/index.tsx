/** The view History: past calls with filters and plots, and sessions with the files that they changed. */
import { useMemo } from "preact/hooks";

import "./history.css";
import { Empty } from "../../components.tsx";
import { onDemand } from "../../on-demand.tsx";
import { useLocation, useRoute, ViewLink } from "../../router.tsx";
import { useAuditLog } from "./audit-log.ts";
import { FilterForm, filters, matches, selectionOf, useSeenNames } from "./filters.tsx";
import { LogState } from "./log-state.tsx";

const CallList = onDemand(() => import("./call-list.tsx"));
const Plots = onDemand(() => import("./plots.tsx"));
const Sessions = onDemand(() => import("./sessions.tsx"));
const SessionView = onDemand(() => import("./session.tsx"));

const TABS = [
  { path: "/history", title: "Calls" },
  { path: "/history/plots", title: "Plots" },
  { path: "/history/sessions", title: "Sessions" },
];

export default function HistoryView() {
  const [path] = useLocation();
  const [isSession, params] = useRoute("/history/sessions/:id");
  const current = TABS.findLast((tab) => path.startsWith(tab.path)) ?? TABS[0]!;
  return (
    <div class="stack history">
      <nav class="tabs" aria-label="History">
        {TABS.map(({ path, title }) => (
          <ViewLink key={path} href={path} aria-current={path === current.path ? "page" : undefined}>
            {title}
          </ViewLink>
        ))}
      </nav>
      {isSession ? (
        <SessionView key={params.id} id={params.id} />
      ) : current.title === "Sessions" ? (
        <Sessions />
      ) : (
        <Calls plots={current.title === "Plots"} />
      )}
    </div>
  );
}

function Calls({ plots }: { plots: boolean }) {
  const chosen = filters.value;
  const log = useAuditLog(selectionOf(chosen));
  const { entries } = log;
  const seen = useSeenNames(entries.value);
  const shown = useMemo(
    () => entries.value.filter((entry) => matches(entry, chosen)).reverse(),
    [entries.value, chosen],
  );
  return (
    <>
      <FilterForm seen={seen} />
      <LogState log={log} shown={shown} />
      {shown.length === 0 ? (
        !log.loading.value &&
        log.complete.value && (
          <Empty title={entries.value.length === 0 ? "No calls at that time" : "No call matches the filters"}>
            <p>The audit log has each call of every agent and client. Choose another time, or reset the filters.</p>
          </Empty>
        )
      ) : plots ? (
        <Plots entries={shown} />
      ) : (
        <CallList entries={shown} />
      )}
    </>
  );
}
