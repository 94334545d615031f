/**
 * The time line: a lane for each agent in each folder, a bar for each call.
 *
 * Bars have fixed places on a strip that moves to the left as one piece. A bar that is still open reaches beyond the
 * strip's right edge, which is the present, so that nothing but the strip changes from frame to frame.
 */
import { signal } from "@preact/signals";
import { memo } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";

import { Text } from "../../text.tsx";
import { duration } from "../../time.tsx";
import { callerOf } from "./call.tsx";
import { sessions, SHOWN, stateOf, type Lane, type LiveCall } from "./feed.ts";

/** How long the strip is used before it begins again, since browsers cannot place bars at any distance. */
const LENGTH = 3600_000;
/** How much time the width of the strip stands for, in milliseconds. */
const SPANS = [30_000, 3 * 60_000, SHOWN];

const span = signal(SPANS[1]!);
/** The time at which the strip begins; bars of earlier calls have negative places. */
const origin = signal(Date.now());

/** A place on the strip, whatever its span: the style sheet knows how wide a second is. */
function place(ms: number): string {
  return `calc(var(--second) * ${ms / 1000})`;
}

export function TimeLine({ lanes }: { lanes: readonly Lane[] }) {
  const strips = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    let frame = 0;
    let last = 0;
    const move = () => {
      frame = requestAnimationFrame(move);
      const now = Date.now();
      if (now - last < (still.matches ? 1000 : 33)) return;
      last = now;
      if (now - origin.peek() > LENGTH) origin.value = now;
      strips.current?.style.setProperty("--shift", `${100 - ((now - origin.peek()) / span.peek()) * 100}%`);
    };
    move();
    return () => cancelAnimationFrame(frame);
  }, []);
  useEffect(() => strips.current?.style.setProperty("--second", `${100_000 / span.value}%`), [span.value]);
  return (
    <section class="time-line" aria-label="Time line of the last minutes">
      <div class="row">
        <div class="row small" role="group" aria-label="Span of the time line">
          {SPANS.map((each) => (
            <button
              key={each}
              type="button"
              class="plain"
              aria-pressed={span.value === each}
              onClick={() => (span.value = each)}
            >
              {duration(each)}
            </button>
          ))}
        </div>
        <p class="legend small dim" aria-hidden="true">
          {["running", "asking", "waiting", "ok", "failed", "other"].map((name) => (
            <span key={name}>
              <i class="bar" data-state={name} /> {name === "other" ? "cancelled, skipped" : name}
            </span>
          ))}
        </p>
      </div>
      <div class="scale small dim" aria-hidden="true">
        {[1, 2 / 3, 1 / 3].map((part) => (
          <span key={part}>{duration(part * span.value)} ago</span>
        ))}
        <span class="present">now</span>
      </div>
      <div class="lanes" ref={strips}>
        {lanes.map((lane) => (
          <LaneRow key={lane.key} lane={lane} />
        ))}
      </div>
    </section>
  );
}

function LaneRow({ lane }: { lane: Lane }) {
  const first = lane.calls.at(-1)!;
  const cwd = first.cwd ?? sessions.value.get(first.sessionId)?.cwd;
  return (
    <div class="lane">
      <div class="lane-name">
        <strong>
          <Text value={callerOf(first)} />
        </strong>{" "}
        <span class="dim small">
          <Text value={cwd?.split("/").at(-1) ?? first.sessionId.slice(0, 8)} />
        </span>
      </div>
      <div class={`strip ${lane.rows > 6 ? "dense" : ""}`} ref={(element) => setRows(element, lane.rows)}>
        <div class="moving">
          {lane.calls.map((call) => (
            <Bar key={`${call.key} ${call.startedAt}`} call={call} phases={call.phases.length} ended={call.ended?.at} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The content security policy permits styles that a script sets, as here, and none in the markup. */
function setRows(element: HTMLElement | null, rows: number): void {
  element?.style.setProperty("--rows", String(rows));
}

/** A bar changes with the state of its call only. */
const Bar = memo(function Bar({ call }: { call: LiveCall; phases: number; ended: number | undefined }) {
  return (
    <>
      {call.phases.map(({ state, from }, at) => {
        // An open bar reaches beyond the right edge for as long as the strip is used.
        const to = call.phases[at + 1]?.from ?? call.ended?.at ?? origin.value + 2 * LENGTH;
        const last = at === call.phases.length - 1;
        const shown = last ? shownAs(stateOf(call)) : state;
        return (
          <i
            key={at}
            class="bar"
            data-state={shown}
            title={`${call.tool}: ${stateOf(call).replace(/_/g, " ")}`}
            style={{
              left: place(from - origin.value),
              width: place(Math.max(0, to - from)),
              top: `calc(${call.row} * var(--row))`,
            }}
          />
        );
      })}
    </>
  );
});

function shownAs(state: ReturnType<typeof stateOf>): string {
  if (["running", "asking", "waiting", "ok"].includes(state)) return state;
  return state === "cancelled" || state === "skipped" ? "other" : "failed";
}
