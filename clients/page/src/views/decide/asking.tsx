/** Who waits for an answer. */
import type { Ask, Question } from "toold/browser";

import { Text } from "../../text.tsx";

/** All agents that wait for the answer, and the sub-agent that asks; nothing where the client has no name. */
export function Asking({ prompt }: { prompt: Ask | Question }) {
  const { agents, subagent } = { agents: undefined, subagent: undefined, ...prompt };
  const names = agents ?? (prompt.agent === undefined ? [] : [prompt.agent]);
  return (
    <>
      {names.length > 0 && <Text value={names.join(", ")} max={200} />}
      {subagent !== undefined && (
        <>
          {names.length > 0 ? ", " : ""}
          sub-agent <Text value={subagent} max={200} />
        </>
      )}
    </>
  );
}
