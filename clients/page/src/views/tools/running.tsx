/** A call while it runs: progress, output, what it waits for, and the button that cancels it. */
import { asks, questions } from "../../prompts.ts";
import { ViewLink } from "../../router.tsx";
import { Block, Text } from "../../text.tsx";
import { clock, duration } from "../../time.tsx";
import { report } from "../../toasts.tsx";
import { cancelCall, type PageCall } from "./calls.ts";
import { Content } from "./result.tsx";

export function Running({ call }: { call: PageCall }) {
  const { output, message, progress, total, content, dropped } = call.live.value;
  const ended = call.end.value !== undefined;
  const percent =
    total !== undefined && total > 0 && progress !== undefined ? Math.min(1, progress / total) : undefined;
  if (ended && output === "" && content === undefined) return null;
  return (
    <section class="card" aria-label={ended ? "Output" : "Running call"}>
      {!ended && (
        <>
          <p class="row">
            <span role="status">Running</span>
            <span class="dim">{duration(Math.max(0, clock.value - call.started))}</span>
            {percent !== undefined && <span>{Math.round(percent * 100)} %</span>}
            <button type="button" class="danger" onClick={() => void cancelCall(call).catch(report)}>
              Cancel
            </button>
          </p>
          <progress aria-label="Progress" max={1} value={percent} />
          {message !== undefined && <Text value={message} max={600} />}
          <WaitsFor call={call} />
        </>
      )}
      {dropped > 0 && (
        <p class="small dim">
          {dropped === 1 ? "1 progress update was lost." : `${dropped} progress updates were lost.`}
        </p>
      )}
      {output !== "" && <Block value={output} from="end" label="Output of the tool" />}
      {!ended && content?.map((block, at) => <Content key={at} block={block} />)}
    </section>
  );
}

/** Prompts that this call causes. They are answered in Decide. */
function WaitsFor({ call }: { call: PageCall }) {
  const asked = [...asks.value.values()].filter((ask) => ask.call_ids.includes(call.id));
  const questioned = [...questions.value.values()].filter((question) => question.call_id === call.id);
  return (
    <>
      {asked.map(({ request_id, category, target }) => (
        <p key={request_id} class="waits" role="alert">
          It needs permission: <code>{category}</code> <Text class="mono" value={target} />{" "}
          <ViewLink href={`/decide/${encodeURIComponent(request_id)}`}>Decide</ViewLink>
        </p>
      ))}
      {questioned.map(({ request_id, question }) => (
        <p key={request_id} class="waits" role="alert">
          It asks: <Text value={question} />{" "}
          <ViewLink href={`/decide/${encodeURIComponent(request_id)}`}>Answer</ViewLink>
        </p>
      ))}
    </>
  );
}
