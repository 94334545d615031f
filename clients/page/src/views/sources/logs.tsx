/** The log of a plugin, as it is written. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Event } from "toold/browser";

import { request, subscribe } from "../../daemon.ts";
import { Badge, type Tone } from "../../components.tsx";
import { Block } from "../../text.tsx";
import { Time } from "../../time.tsx";
import { report } from "../../toasts.tsx";
import { PluginErrorView } from "./parts.tsx";

type PluginEvent = Extract<Event, { plugin?: string }>;

const KINDS = [
  "log",
  "notice",
  "message",
  "plugin.loaded",
  "plugin.failed",
  "plugin.untrusted",
  "plugin.unloaded",
  "plugin.error",
  "plugin.refused",
];
const LEVELS = ["debug", "info", "warn", "error"] as const;
const MAX_EVENTS = 1000;
const MAX_SHOWN = 200;

export function PluginLogs({ name }: { name: string }) {
  const events = usePluginEvents(name);
  const [level, setLevel] = useState(0);
  const [text, setText] = useState("");
  const [shown, setShown] = useState(MAX_SHOWN);
  const chosen = useMemo(
    () => events.filter((event) => LEVELS.indexOf(levelOf(event)) >= level && contains(event, text)),
    [events, level, text],
  );
  return (
    <>
      <form class="row" aria-label="Filter of the log" onSubmit={(event) => event.preventDefault()}>
        <label>
          Level
          <select value={level} onChange={(event) => setLevel(Number(event.currentTarget.value))}>
            {LEVELS.map((name, at) => (
              <option key={name} value={at}>
                {at === 0 ? "all" : at === LEVELS.length - 1 ? "errors" : `${name} and above`}
              </option>
            ))}
          </select>
        </label>
        <label>
          Text
          <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </form>
      {chosen.length === 0 && (
        <p class="dim">{events.length === 0 ? "It has logged nothing lately." : "No entry matches the filter."}</p>
      )}
      {chosen.length > shown && (
        <button type="button" onClick={() => setShown(shown + MAX_SHOWN)}>
          Show earlier entries ({chosen.length - shown})
        </button>
      )}
      <div class="log" role="log" aria-label={`Log of ${name}`} tabIndex={0}>
        {chosen.slice(-shown).map((event) => (
          <div key={keyOf(event)}>
            <p class="row">
              <span class="dim small">
                <Time at={event.at} />
              </span>
              <LevelBadge event={event} />
            </p>
            <EventBody event={event} />
          </div>
        ))}
      </div>
    </>
  );
}

function EventBody({ event }: { event: PluginEvent }) {
  if (event.kind !== "plugin.error" && event.kind !== "plugin.failed") return <Block value={wordsOf(event)} />;
  return (
    <>
      {event.kind === "plugin.error" && (
        <p>
          in <bdi>{event.handler}</bdi>
          {event.left_out !== undefined && `, after ${event.left_out} that were not reported`}
        </p>
      )}
      <PluginErrorView error={event.error} />
    </>
  );
}

/** The events that the daemon still has, and new ones; the oldest first. */
function usePluginEvents(name: string): readonly PluginEvent[] {
  const [events, setEvents] = useState<readonly PluginEvent[]>([]);
  useEffect(() => {
    let end = () => {};
    let current = true;
    const known = new Map<string, PluginEvent>();
    let planned = false;
    const add = (event: Event) => {
      if (!("plugin" in event) || event.plugin !== name) return;
      // After a reconnect, the daemon repeats what it has.
      known.set(keyOf(event), event);
      if (known.size > MAX_EVENTS) known.delete(known.keys().next().value!);
      if (planned) return;
      planned = true;
      requestAnimationFrame(() => {
        planned = false;
        if (current) setEvents([...known.values()]);
      });
    };
    request("plugins.logs", { name }).then(({ events, seq, epoch }) => {
      events.forEach(add);
      if (current) end = subscribe("events.subscribe", { kinds: KINDS, since: seq, epoch }, add);
    }, report);
    return () => {
      current = false;
      end();
    };
  }, [name]);
  return events;
}

function keyOf({ epoch, seq }: Event): string {
  return `${epoch} ${seq}`;
}

function LevelBadge({ event }: { event: PluginEvent }) {
  const tones: Record<(typeof LEVELS)[number], Tone> = { debug: "neutral", info: "info", warn: "warn", error: "bad" };
  const level = levelOf(event);
  return <Badge tone={tones[level]}>{event.kind === "log" ? level : event.kind}</Badge>;
}

function levelOf(event: PluginEvent): (typeof LEVELS)[number] {
  switch (event.kind) {
    case "plugin.failed":
    case "plugin.error":
      return "error";
    case "plugin.untrusted":
    case "plugin.refused":
      return "warn";
    case "log":
    case "notice":
      return LEVELS.find((level) => level === event.level) ?? "info";
    default:
      return "info";
  }
}

function wordsOf(event: PluginEvent): string {
  switch (event.kind) {
    case "log":
      return event.fields === undefined
        ? event.message
        : `${event.message}\n${JSON.stringify(event.fields, undefined, 2)}`;
    case "notice":
      return event.message;
    case "message":
      return `${event.role}: ${event.content}`;
    case "plugin.loaded":
      return event.tools.length === 0 ? "no tools" : event.tools.join(", ");
    case "plugin.refused":
      return `${event.category} ${event.target}: ${event.message}`;
    case "plugin.error":
    case "plugin.failed":
      return event.error.message;
    case "plugin.untrusted":
    case "plugin.unloaded":
      return event.path;
  }
}

function contains(event: PluginEvent, text: string): boolean {
  return text === "" || `${event.kind} ${wordsOf(event)}`.toLowerCase().includes(text.toLowerCase());
}
