/** Calls that this page makes: their progress, their end, and their messages on the wire. */
import { effect, signal, type Signal } from "@preact/signals";
import {
  Disconnected,
  InvalidArguments,
  NotRead,
  RpcError,
  TooLarge,
  Unreachable,
  type Block,
  type CallProgress,
  type ToolResult,
} from "toold/browser";

import { onProgress, request, session } from "../../daemon.ts";
import { messages, type LoggedMessage } from "../../messages.ts";
import { readStatus } from "./catalogue.ts";
import { splitPointer, type ArgumentProblem } from "./form/problems.ts";

export interface PageCall {
  readonly id: string;
  readonly tool: string;
  readonly params: Readonly<{ name: string; arguments: unknown; call_id: string; progress: true; session_id?: string }>;
  readonly started: number;
  /** The folder that it works in. */
  readonly folder: string | undefined;
  readonly live: Signal<LiveProgress>;
  readonly end: Signal<CallEnd | undefined>;
  /** The messages of this call, the oldest first. */
  readonly wire: Signal<readonly LoggedMessage[]>;
}

export interface LiveProgress {
  /** The last part of what the tool has written. */
  output: string;
  message?: string;
  progress?: number;
  total?: number;
  content?: Block[];
  /** How many notifications were lost. */
  dropped: number;
}

export type CallEnd = { at: number } & ({ result: ToolResult } | { error: Error });

const MAX_OUTPUT = 200_000;
const MAX_WIRE = 300;

/** The last call of each tool, for as long as the page is open. */
export const calls = signal<ReadonlyMap<string, PageCall>>(new Map());

/** Calls a tool; the outcome is in `end`. */
export function startCall(tool: string, args: unknown): PageCall {
  const id = crypto.randomUUID?.() ?? `page-${Date.now()}-${Math.random().toString(36).slice(2)}`;
  const open = session.peek();
  const call: PageCall = {
    id,
    tool,
    params: {
      name: tool,
      arguments: args,
      call_id: id,
      progress: true,
      ...(open && { session_id: open.session_id }),
    },
    started: Date.now(),
    folder: open?.cwd,
    live: signal({ output: "", dropped: 0 }),
    end: signal(undefined),
    wire: signal([]),
  };
  calls.value = new Map(calls.value).set(tool, call);
  void run(call);
  return call;
}

/** Asks the daemon to cancel; the call ends with its answer. */
export async function cancelCall({ id, params }: PageCall): Promise<void> {
  await request("tools.cancel", { call_id: id, session_id: params.session_id });
}

/** The problems of single arguments that the daemon has refused. */
export function problemsOf(end: CallEnd | undefined): ArgumentProblem[] {
  if (end === undefined || !("error" in end) || !(end.error instanceof InvalidArguments)) return [];
  return end.error.errors.map(({ path, message }) => ({ path: splitPointer(path), message }));
}

async function run(call: PageCall): Promise<void> {
  const endProgress = onProgress(call.id, (item) => (call.live.value = advance(call.live.peek(), item)));
  const endWire = followWire(call);
  try {
    const result = await request("tools.execute", call.params, { timeout: Infinity });
    call.end.value = { at: Date.now(), result };
  } catch (error) {
    call.end.value = { at: Date.now(), error: error instanceof Error ? error : new Error(String(error)) };
  } finally {
    endProgress();
    // The log of messages changes once a frame.
    requestAnimationFrame(() => requestAnimationFrame(endWire));
    void readStatus().catch(() => {});
  }
}

function advance(live: LiveProgress, item: CallProgress): LiveProgress {
  const dropped = live.dropped + (item.dropped ?? 0);
  switch (item.kind) {
    case "output":
      return { ...live, dropped, output: (live.output + item.text).slice(-MAX_OUTPUT) };
    case "message":
      return { ...live, dropped, message: item.text };
    case "update": {
      const { progress = live.progress, total = live.total, message = live.message, content = live.content } = item;
      return { ...live, dropped, progress, total, message, content };
    }
  }
}

/** Collects the messages of a call: long logs forget them, so they are taken as they come. */
function followWire(call: PageCall): () => void {
  const name = JSON.stringify(call.id);
  let last = messages.peek().at(-1)?.id ?? 0;
  let requestId: string | undefined;
  return effect(() => {
    const found = messages.value.filter((message) => {
      if (message.id <= last) return false;
      const head = message.text.slice(0, 400);
      if (message.direction === "sent" && message.text.includes(name) && /"method":"tools\.execute"/.test(head)) {
        requestId = /"id":("[^"]*"|\d+)/.exec(head)?.[1];
        return true;
      }
      if (message.direction === "received" && !/"method":/.test(head)) {
        return requestId !== undefined && /"id":("[^"]*"|\d+)/.exec(head)?.[1] === requestId;
      }
      // Events name the call too.
      return /"method":"tools\./.test(head) && message.text.includes(name);
    });
    last = messages.value.at(-1)?.id ?? last;
    if (found.length > 0) call.wire.value = [...call.wire.peek(), ...found].slice(-MAX_WIRE);
  });
}

/** The kind of an error for programs, and what to do about it. */
export function adviceFor(error: Error): { kind?: string; advice?: string } {
  if (error instanceof RpcError) return { kind: error.kind || undefined, advice: ADVICE[error.kind] };
  if (error instanceof NotRead)
    return { advice: "The call was not carried out. Run it again when the page is connected." };
  if (error instanceof Disconnected) return { advice: "Look at it in the view History before you run it again." };
  if (error instanceof Unreachable)
    return { advice: "The call was not sent. Run it again when the page is connected." };
  if (error instanceof TooLarge) return { advice: "Put long arguments into a file, and name the file." };
  return {};
}

const ADVICE: Readonly<Record<string, string>> = {
  invalid_args: "The problems are shown at their arguments. Correct them and run the tool again.",
  invalid_params: "The request itself is invalid; its messages are below.",
  unknown_tool: "The message says why. The view Sources shows where the tool comes from.",
  permission_denied: "This method is not for this page, or the permission engine is closing.",
  execution_failed: "The tool crashed, or something that it needs is missing. The log has more: toolctl logs.",
  not_kept: "The database accepts no writes. Free some space; toolctl doctor shows more.",
  unknown_session: "The session has ended. Open the folder again.",
  overloaded: "Too many calls are in flight. Wait until some have ended.",
  too_large: "The answer is over the limit. Ask for less, for instance with a limit or a range.",
  cancelled: "The call was cancelled; its processes have ended.",
};
