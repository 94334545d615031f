/** One call: its state, progress, output and who called. */
import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";

import { Badge, type Tone } from "../../components.tsx";
import { confirm } from "../../confirm.tsx";
import { request } from "../../daemon.ts";
import { asks, questions } from "../../prompts.ts";
import { ViewLink } from "../../router.tsx";
import { Block, cutText, Text, visible } from "../../text.tsx";
import { clock, duration, Time } from "../../time.tsx";
import { report, toast } from "../../toasts.tsx";
import { elapsed, sessions, stateOf, type LiveCall } from "./feed.ts";

const TONES: Partial<Record<ReturnType<typeof stateOf>, Tone>> = {
  running: "info",
  asking: "warn",
  waiting: "neutral",
  ok: "good",
  cancelled: "neutral",
  skipped: "neutral",
};

/** How many lines of the output a closed card shows. */
const TAIL_LINES = 3;

export function StateBadge({ call }: { call: LiveCall }) {
  const state = stateOf(call);
  return <Badge tone={TONES[state] ?? "bad"}>{state.replace(/_/g, " ")}</Badge>;
}

/** The program that called; the session, if it did not name itself. */
export function callerOf(call: LiveCall): string {
  return call.client ?? sessions.value.get(call.sessionId)?.client?.name ?? `session ${call.sessionId.slice(0, 8)}`;
}

export function CallCard({ call }: { call: LiveCall }) {
  void call.changed.value;
  return (
    <li class="card call" data-state={stateOf(call)}>
      <div class="row">
        <Text class="tool mono" value={call.tool} />
        <StateBadge call={call} />
        <Elapsed call={call} />
        <span class="spacer" />
        <Prompt call={call} />
        <button type="button" onClick={() => void cancel(call)}>
          Cancel<span class="hidden"> {call.tool}</span>
        </button>
      </div>
      <Facts call={call} />
      {call.fraction !== undefined && (
        <div class="row progress">
          <progress value={call.fraction} max={1} aria-label={`Progress of ${call.tool}`} />
          <span class="numeric">{Math.floor(call.fraction * 100)} %</span>
        </div>
      )}
      {call.message && (
        <p class="small">
          <Text value={call.message} />
        </p>
      )}
      <Output call={call} />
    </li>
  );
}

export function EndedCall({ call }: { call: LiveCall }) {
  void call.changed.value;
  return (
    <li>
      <details class="ended">
        <summary class="row">
          <Text class="tool mono" value={call.tool} />
          <StateBadge call={call} />
          <span class="numeric small">{duration(elapsed(call, 0))}</span>
          <Text class="dim small" value={callerOf(call)} />
          <span class="row gist">
            <Text class="mono small" value={call.arguments ?? ""} />
            <span class="dim small">
              <Time at={new Date(call.ended!.at)} />
            </span>
          </span>
        </summary>
        <Facts call={call} />
        {call.message && <Text value={call.message} />}
        {call.output ? <Block value={call.output} from="end" label="Output" /> : <p class="dim small">No output.</p>}
      </details>
    </li>
  );
}

/** Changes each second by itself, without the card. */
function Elapsed({ call }: { call: LiveCall }) {
  const text = useMemo(() => computed(() => seconds(elapsed(call, clock.value))), [call]);
  return <span class="numeric small">{text}</span>;
}

function seconds(ms: number): string {
  return ms < 1000 ? "0 s" : duration(Math.floor(ms / 1000) * 1000);
}

function Facts({ call }: { call: LiveCall }) {
  const cwd = call.cwd ?? sessions.value.get(call.sessionId)?.cwd;
  return (
    <dl class="facts small">
      <dt>by</dt>
      <dd>
        <Text value={callerOf(call)} />
      </dd>
      {cwd !== undefined && (
        <>
          <dt>in</dt>
          <dd class="mono">
            <Text value={cwd} />
          </dd>
        </>
      )}
      {call.arguments !== undefined && (
        <>
          <dt>with</dt>
          <dd class="mono">
            <Text value={call.arguments} />
          </dd>
        </>
      )}
    </dl>
  );
}

function Output({ call }: { call: LiveCall }) {
  if (call.output === "") return null;
  return (
    <details>
      <summary>
        <pre class="tail">
          <code>{visible(cutText(call.output.replace(/\n+$/, ""), "end", 600, TAIL_LINES))}</code>
        </pre>
      </summary>
      <Block value={call.output} from="end" label="Output" />
    </details>
  );
}

/** A link to the ask or question for which the call waits. */
function Prompt({ call }: { call: LiveCall }) {
  const waits = (prompt: { session_id: string; call_id: string; call_ids?: string[] }) =>
    prompt.session_id === call.sessionId && (prompt.call_ids ?? [prompt.call_id]).includes(call.callId);
  const prompt = [...asks.value.values(), ...questions.value.values()].find(waits);
  if (!prompt) return null;
  return <ViewLink href={`/decide/${encodeURIComponent(prompt.request_id)}`}>Decide</ViewLink>;
}

async function cancel(call: LiveCall): Promise<void> {
  const yes = await confirm({
    title: `Cancel ${call.tool}?`,
    body: [`Called by ${callerOf(call)}.`, call.arguments].filter(Boolean).join("\n"),
    action: "Cancel the call",
    danger: true,
  });
  if (!yes) return;
  try {
    const { cancelled } = await request("tools.cancel", { call_id: call.callId, session_id: call.sessionId });
    if (!cancelled) toast(`${call.tool} had ended already`);
  } catch (error) {
    report(error);
  }
}
