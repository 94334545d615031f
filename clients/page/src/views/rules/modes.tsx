/** The permission mode and the level of each session. */
import type { Mode, SessionInfo } from "toold/browser";

import { Badge, type Tone } from "../../components.tsx";
import { confirm } from "../../confirm.tsx";
import { session } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report, toast } from "../../toasts.tsx";
import { refresh, sessions, setLevel, setMode, type Level } from "./permissions.ts";

const MODES: readonly { mode: Mode; about: string; tone: Tone }[] = [
  { mode: "default", about: "rules, grants and prompts decide", tone: "neutral" },
  { mode: "plan", about: "read only: everything that changes something is denied", tone: "info" },
  { mode: "accept_edits", about: "edits of files in the session's folders are allowed without a prompt", tone: "warn" },
  { mode: "yolo", about: "everything is allowed, except what rules deny, secrets and control files", tone: "bad" },
];

/** What each level frees beyond those before it. */
const LEVELS: readonly { level: Level; about: string }[] = [
  { level: "read", about: "only reading needs no approval" },
  { level: "edit", about: "changes of files in the session's folders need no approval" },
  { level: "develop", about: "builds and tests need no approval either, where commands can be confined" },
  { level: "operate", about: "downloads, and installations into the session's folders, need no approval either" },
];

const CONFIGURED = "configured";

export function Modes() {
  return (
    <section class="stack" aria-labelledby="modes-title">
      <h2 id="modes-title">Modes and levels of sessions</h2>
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
        <LevelOf info={info} />
      </div>
      <p class="small dim">
        {about}; {connections === 1 ? "1 connection" : `${connections} connections`},{" "}
        <Text class="mono" value={session_id} max={24} />
      </p>
    </li>
  );
}

/** The level, which a person raises or lowers for this session alone. */
function LevelOf({ info }: { info: SessionInfo }) {
  const level = info.level ?? "read";
  return (
    <label class="row">
      <span class="small dim">level</span>
      <span class="hidden"> of {info.session_id}</span>
      <select
        value={level}
        onChange={({ currentTarget }) => {
          const wanted = currentTarget.value;
          // Until the daemon has changed it, the old level is shown.
          currentTarget.value = level;
          void changeLevel(info, level, wanted === CONFIGURED ? undefined : (wanted as Level));
        }}
      >
        {LEVELS.map(({ level }) => (
          <option key={level}>{level}</option>
        ))}
        <option>{CONFIGURED}</option>
      </select>
    </label>
  );
}

async function changeLevel(
  { session_id, cwd, client }: SessionInfo,
  before: Level,
  level: Level | undefined,
): Promise<void> {
  const place = (of: Level | undefined) => LEVELS.findIndex((each) => each.level === of);
  const yes =
    level === undefined ||
    place(level) < place(before) ||
    (await confirm({
      title: `Set the level ${level}?`,
      body: `In the session of ${client?.name ?? "a client without a name"} in ${cwd}, ${LEVELS[place(level)]!.about}.`,
      action: `Set ${level}`,
      danger: true,
    }));
  if (!yes) return;
  try {
    await setLevel(session_id, level);
    toast(level === undefined ? "The level is that of the configuration." : `The level is ${level}.`);
  } catch (error) {
    report(error);
  }
  await refresh().catch(report);
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
