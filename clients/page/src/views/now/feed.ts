/** The calls of all sessions as they run, from the daemon's events. */
import { batch, signal, type Signal } from "@preact/signals";
import { Unreachable, type CallInfo, type Event, type Outcome, type Progress, type SessionInfo } from "toold/browser";

import { request, subscribe } from "../../daemon.ts";
import { asks, questions } from "../../prompts.ts";
import { report } from "../../toasts.tsx";

/** A state of a call that has not ended. */
export type OpenState = "waiting" | "asking" | "running";

/** A part of a call's time. */
export interface Phase {
  state: OpenState;
  /** A time stamp. */
  from: number;
}

export interface LiveCall {
  readonly key: string;
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly startedAt: number;
  /** The program that called, as it named itself. */
  client?: string;
  cwd?: string;
  arguments?: string;
  /** The last one is the state now. */
  phases: Phase[];
  ended?: { at: number; outcome: Outcome; ms: number };
  /** From 0 to 1. */
  fraction?: number;
  message?: string;
  /** Its output so far; the beginning is cut off when it is long. */
  output: string;
  /** It began before this page listened, and sends no progress; its output is read now and then. */
  silent: boolean;
  /** Its place among the calls of its lane that run at the same time. */
  row: number;
  /** Changes with each change of this call, every `SHOW_EVERY` at most. */
  readonly changed: Signal<number>;
}

/** The calls of one agent in one folder, however many sessions it opens for them. */
export interface Lane {
  readonly key: string;
  readonly calls: readonly LiveCall[];
  readonly rows: number;
}

/** How long an ended call is shown, in milliseconds. */
export const SHOWN = 10 * 60_000;
/** How often the output of silent calls is read, in milliseconds. */
const LIST_EVERY = 2_000;
/** How often changes are shown, in milliseconds. Nobody reads faster, and many calls change many times a second. */
const SHOW_EVERY = 100;
const MAX_ENDED = 500;
const MAX_OUTPUT = 64 * 1024;
/** How the daemon says in a call's progress that the call waits for its turn; a tool's own words differ. */
const WAITING = /^waiting: /;

/** The lane with the oldest call first. It changes when a call begins, changes its state or is not shown any more. */
export const lanes = signal<readonly Lane[]>([]);
export const sessions = signal<ReadonlyMap<string, SessionInfo>>(new Map());
/** Whether the calls that ran before are known. */
export const listed = signal(false);

const calls = new Map<string, LiveCall>();
const dirty = new Set<LiveCall>();
let lanesDirty = false;
let planned = false;
let following = false;
/** The daemon sends no progress of calls that began before it had a listener. */
let listeningSince = 0;

/** Begins to follow; it goes on while other views are shown, so that the time line has no gap. */
export function followCalls(): void {
  if (following) return;
  following = true;
  const kinds = ["call.started", "call.progress", "call.finished", "session.opened", "session.closed"];
  subscribe("events.subscribe", { kinds, since: 0 }, onEvent, () => {
    // Its events are replayed, and its running calls listed.
    for (const call of calls.values()) if (!call.ended) calls.delete(call.key);
    listed.value = false;
    listeningSince = Date.now();
    lanesDirty = true;
    plan();
    void list().catch(reportUnlessLost);
  });
  asks.subscribe(updateAsking);
  questions.subscribe(updateAsking);
  setInterval(dropOld, 5_000);
  setInterval(() => {
    if (!document.hidden && [...calls.values()].some((call) => call.silent && !call.ended)) planList();
  }, LIST_EVERY);
}

/** The state that is shown. */
export function stateOf(call: LiveCall): OpenState | Outcome {
  return call.ended?.outcome ?? call.phases.at(-1)!.state;
}

/** How long it has run, in milliseconds. */
export function elapsed(call: LiveCall, now: number): number {
  return call.ended?.ms ?? Math.max(0, now - call.startedAt);
}

function onEvent(event: Event): void {
  switch (event.kind) {
    case "call.started":
      started(event, Date.parse(event.at));
      break;
    case "call.progress": {
      const call = calls.get(keyOf(event));
      if (call && !call.ended) progressed(call, event.progress, Date.parse(event.at));
      break;
    }
    case "call.finished":
      finished(event, Date.parse(event.at));
      break;
    case "session.opened":
    case "session.closed":
    case "lagged":
      planList();
      break;
    default:
  }
}

/** Members of `call.started` and of a call in a list. */
type Described = Pick<CallInfo, "call_id" | "session_id" | "tool" | "agent" | "client" | "cwd" | "arguments">;

function started(info: Described, at: number): LiveCall {
  const key = keyOf(info);
  const known = calls.get(key);
  if (known && !known.ended) return known;
  const call: LiveCall = {
    key,
    callId: info.call_id,
    sessionId: info.session_id,
    tool: info.tool,
    startedAt: at,
    client: info.agent ?? info.client,
    cwd: info.cwd,
    arguments: info.arguments,
    phases: [{ state: "running", from: at }],
    output: "",
    silent: at < listeningSince,
    row: 0,
    changed: signal(0),
  };
  call.row = freeRow(laneOf(call), at);
  // A later call may have the id of one that has ended.
  calls.delete(key);
  calls.set(key, call);
  if (!sessions.peek().has(call.sessionId)) planList();
  lanesDirty = true;
  updateAsking();
  plan();
  return call;
}

function progressed(call: LiveCall, progress: Progress, at: number): void {
  call.silent = false;
  if (progress.kind === "output") {
    call.output = (call.output + progress.text.slice(-MAX_OUTPUT)).slice(-MAX_OUTPUT);
  } else if (progress.kind === "message") {
    call.message = progress.text;
  } else {
    if (progress.message !== undefined) call.message = progress.message;
    const { progress: done, total } = progress;
    if (done !== undefined && total) call.fraction = Math.min(1, Math.max(0, done / total));
  }
  const { state } = call.phases.at(-1)!;
  const waits = progress.kind === "message" && WAITING.test(progress.text);
  // The prompt decides about "asking": a call that waits for an answer reports progress, too.
  if (state !== "asking") enter(call, waits ? "waiting" : "running", at);
  dirty.add(call);
  plan();
}

function finished(event: Extract<Event, { kind: "call.finished" }>, at: number): void {
  const call = calls.get(keyOf(event)) ?? started(event, at - event.duration_ms);
  call.ended = { at, outcome: event.outcome, ms: event.duration_ms };
  dirty.add(call);
  lanesDirty = true;
  plan();
}

function enter(call: LiveCall, state: OpenState, at: number): void {
  if (call.phases.at(-1)!.state === state) return;
  call.phases = [...call.phases, { state, from: at }];
  dirty.add(call);
  lanesDirty = true;
}

/** The calls with an open prompt are those that ask. */
function updateAsking(): void {
  // Since when: the page may have been opened later.
  const asking = new Map<string, number>();
  for (const ask of asks.peek().values()) {
    const since = Date.parse(ask.asked_at);
    for (const id of ask.call_ids) asking.set(keyOf({ session_id: ask.session_id, call_id: id }), since);
  }
  for (const question of questions.peek().values()) asking.set(keyOf(question), Date.parse(question.asked_at));
  for (const call of calls.values()) {
    if (call.ended) continue;
    const { state } = call.phases.at(-1)!;
    const since = asking.get(call.key);
    if (since !== undefined) enter(call, "asking", Math.max(since, call.phases.at(-1)!.from));
    else if (state === "asking") enter(call, "running", Date.now());
  }
  plan();
}

let listPlanned = false;

/** Several events of one moment lead to one list. */
function planList(): void {
  if (listPlanned) return;
  listPlanned = true;
  setTimeout(() => {
    listPlanned = false;
    void list().catch(reportUnlessLost);
  }, 200);
}

/** Reads the sessions, and the calls that began before the first event that the daemon still has. */
async function list(): Promise<void> {
  const before = new Set(calls.keys());
  const answer = await request("session.list", {});
  sessions.value = new Map(answer.sessions.map((info) => [info.session_id, info]));
  const busy = answer.sessions.filter((info) => info.calls > 0);
  const lists = await Promise.all(busy.map(({ session_id }) => callsOf(session_id)));
  const running = lists.flat().filter((info) => info.state === "running");
  for (const info of running) {
    const call = started(info, Date.parse(info.started_at));
    if ((call.silent || call.output === "") && info.output) call.output = info.output.slice(-MAX_OUTPUT);
    if (info.waits_for === "lane" || info.waits_for === "turn") enter(call, "waiting", Date.now());
    dirty.add(call);
  }
  listed.value = true;
  const open = new Set(running.map(keyOf));
  // The end of these was among the events that were lost.
  for (const call of calls.values()) if (!call.ended && before.has(call.key) && !open.has(call.key)) calls.delete(call.key);
  lanesDirty = true;
  plan();
}

/** A list that ends with its connection is read again on the next one. */
function reportUnlessLost(error: unknown): void {
  if (!(error instanceof Unreachable)) report(error);
}

/** A session may end between the two requests. */
async function callsOf(session: string): Promise<CallInfo[]> {
  try {
    return (await request("calls.list", { session_id: session })).calls;
  } catch {
    return [];
  }
}

function dropOld(): void {
  const ended = [...calls.values()].filter((call) => call.ended);
  const limit = Date.now() - SHOWN;
  const old = ended.filter((call, at) => call.ended!.at < limit || at < ended.length - MAX_ENDED);
  if (old.length === 0) return;
  for (const { key } of old) calls.delete(key);
  lanesDirty = true;
  plan();
}

function plan(): void {
  if (planned) return;
  planned = true;
  setTimeout(() => requestAnimationFrame(show), SHOW_EVERY);
}

function show(): void {
  planned = false;
  batch(() => {
    for (const call of dirty) call.changed.value += 1;
    dirty.clear();
    if (lanesDirty) lanes.value = toLanes();
    lanesDirty = false;
  });
}

function toLanes(): Lane[] {
  return [...Map.groupBy(calls.values(), laneOf)].map(([key, calls]) => ({
    key,
    calls,
    rows: Math.max(...calls.map(({ row }) => row)) + 1,
  }));
}

/** A session of a client that does not name itself has a lane of its own. */
function laneOf({ client, cwd, sessionId }: LiveCall): string {
  return client === undefined ? sessionId : `${client} ${cwd ?? ""}`;
}

/** The first row in which no call of the lane was running at this time. */
function freeRow(lane: string, at: number): number {
  const taken = new Set<number>();
  for (const call of calls.values()) {
    if (laneOf(call) === lane && (!call.ended || call.ended.at > at)) taken.add(call.row);
  }
  let row = 0;
  while (taken.has(row)) row += 1;
  return row;
}

function keyOf({ session_id, call_id }: { session_id: string; call_id: string }): string {
  return `${session_id} ${call_id}`;
}
