/** The permission mode of each session. */
import type { Mode, SessionInfo } from "toold/browser";

import { Badge, type Tone } from "../../components.tsx";
import { confirm } from "../../confirm.tsx";
import { session } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report, toast } from "../../toasts.tsx";
import { refresh, sessions, setMode } from "./permissions.ts";

const MODES: readonly { mode: Mode; about: string; tone: Tone }[] = [
  { mode: "default", about: "rules, grants and prompts decide", tone: "neutral" },
  { mode: "plan", about: "read only: everything that changes something is denied", tone: "info" },
  { mode: "accept_edits", about: "edits of files in the session's folders are allowed without a prompt", tone: "warn" },
  { mode: "yolo", about: "everything is allowed, except what rules deny, secrets and control files", tone: "bad" },
];

export function Modes() {
  return (
    <section class="stack" aria-labelledby="modes-title">
      <h2 id="modes-title">Modes of sessions</h2>
      {sessions.value.length === 0 && <p class="dim">There are no sessions.</p>}
      <ul class="entries" aria-label="Sessions">
        {sessions.value.map((each) => (
          <SessionRow key={each.session_id} info={each} />
        ))}
      </ul>
    </section>
  );
}

function SessionRow({ info }: { info: SessionInfo }) {
  const { session_id, cwd, mode, client, connections } = info;
  const { about, tone } = described(mode);
  const own = session.value?.session_id === session_id;
  return (
    <li>
      <div class="row">
        <Badge tone={tone}>{mode}</Badge>
        <span class="grow">
          <Text value={client?.name ?? "a client without a name"} max={60} />
          {own && <span class="dim"> (this page)</span>} <Text class="mono" value={cwd} />
        </span>
        <label class="row">
          <span class="hidden">Mode of {session_id}</span>
          <select
            value={mode}
            onChange={({ currentTarget }) => {
              const wanted = currentTarget.value as Mode;
              // Until the daemon has changed it, the old mode is shown.
              currentTarget.value = mode;
              void change(info, wanted);
            }}
          >
            {MODES.map(({ mode }) => (
              <option key={mode}>{mode}</option>
            ))}
          </select>
        </label>
      </div>
      <p class="small dim">
        {about}; {connections === 1 ? "1 connection" : `${connections} connections`},{" "}
        <Text class="mono" value={session_id} max={24} />
      </p>
    </li>
  );
}

async function change({ session_id, cwd, client }: SessionInfo, mode: Mode): Promise<void> {
  const { about } = described(mode);
  const dangerous = mode === "yolo" || mode === "accept_edits";
  const yes =
    !dangerous ||
    (await confirm({
      title: `Set the mode ${mode}?`,
      body: `In the session of ${client?.name ?? "a client without a name"} in ${cwd}, ${about}.`,
      action: `Set ${mode}`,
      danger: true,
    }));
  if (!yes) return;
  try {
    await setMode(session_id, mode);
    toast(`The mode is ${mode}.`);
  } catch (error) {
    report(error);
  }
  await refresh().catch(report);
}

function described(mode: Mode): (typeof MODES)[number] {
  return MODES.find((each) => each.mode === mode) ?? MODES[0]!;
}
