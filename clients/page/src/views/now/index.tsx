/** The view Now: the calls of all agents on a time line, and those that run in detail. */
import { useEffect } from "preact/hooks";

import { Empty } from "../../components.tsx";
import { CallCard, EndedCall } from "./call.tsx";
import { followCalls, lanes, listed } from "./feed.ts";
import "./now.css";
import { TimeLine } from "./time-line.tsx";

/** How many calls that have ended are listed. */
const MAX_ENDED = 30;

export default function NowView() {
  useEffect(followCalls, []);
  const calls = lanes.value.flatMap((lane) => lane.calls);
  if (calls.length === 0 && !listed.value) return <p class="loading">Loading…</p>;
  if (calls.length === 0) {
    return (
      <Empty title="No calls in the last minutes">
        <p>Calls of all agents and editors that use this daemon appear here as they run.</p>
      </Empty>
    );
  }
  const open = calls.filter((call) => !call.ended).sort((a, b) => a.startedAt - b.startedAt);
  const ended = calls.filter((call) => call.ended).sort((a, b) => b.ended!.at - a.ended!.at);
  return (
    <div class="stack">
      <TimeLine lanes={lanes.value} />
      <section aria-labelledby="running-title">
        <h2 id="running-title">
          Running <span class="dim">{open.length}</span>
        </h2>
        <ul class="calls">
          {open.map((call) => (
            <CallCard key={call.key} call={call} />
          ))}
        </ul>
        {open.length === 0 && <p class="dim">Nothing runs now.</p>}
      </section>
      {ended.length > 0 && (
        <section aria-labelledby="ended-title">
          <h2 id="ended-title">Ended</h2>
          <ul class="calls ended-calls">
            {ended.slice(0, MAX_ENDED).map((call) => (
              <EndedCall key={call.key} call={call} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
