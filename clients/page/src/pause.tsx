/** Pausing everything: commands stand still, and nothing is allowed until a person resumes. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { confirm } from "./confirm.tsx";
import { link, request } from "./daemon.ts";
import { useKeys } from "./keys.tsx";
import { Text } from "./text.tsx";
import { report, toast } from "./toasts.tsx";

/** How often the page looks whether somebody else has paused or resumed, in milliseconds. */
const INTERVAL = 5_000;

/** Who paused everything, and when; `undefined` while nothing is paused. */
const paused = signal<string | undefined>(undefined);

/** The button, and what it does by a key. */
export function PauseButton() {
  const connected = link.value.state === "connected";
  useEffect(() => {
    if (!connected) return;
    void look();
    const regularly = setInterval(() => !document.hidden && void look(), INTERVAL);
    return () => clearInterval(regularly);
  }, [connected]);
  const ask = () => void (paused.peek() === undefined ? pause() : resume()).catch(report);
  useKeys([{ key: "P", label: "Pause everything, or resume it", run: ask }]);
  return (
    <button type="button" class="plain" disabled={!connected} onClick={ask}>
      {paused.value === undefined ? "Pause" : "Resume"}
    </button>
  );
}

/** Says that everything is paused, above each view. */
export function PausedNote() {
  if (paused.value === undefined) return null;
  return (
    <p class="paused" role="status">
      Everything is <Text value={paused.value} />
    </p>
  );
}

async function look(): Promise<void> {
  try {
    paused.value = (await request("daemon.status", {})).paused ?? undefined;
  } catch {
    // The state of the connection says why; the last known answer stays.
  }
}

async function pause(): Promise<void> {
  const yes = await confirm({
    title: "Pause everything?",
    body: "Running commands stand still, nothing is allowed, and a restart does not resume.",
    action: "Pause",
    danger: true,
  });
  if (!yes) return;
  const { still_running } = await request("daemon.pause", {});
  if (still_running?.length) toast(`toold cannot stop what agents run themselves: ${still_running.join(", ")}`);
  await look();
}

async function resume(): Promise<void> {
  const yes = await confirm({ title: "Resume everything?", body: paused.peek() ?? "", action: "Resume" });
  if (!yes) return;
  await request("daemon.resume", {});
  await look();
}
