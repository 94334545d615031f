/** A request for permission: who asks for what, and the answers. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isForWorkspace, type Ask } from "toold/browser";

import { Badge } from "../../components.tsx";
import { Diff } from "../../formatted.tsx";
import { Key, useKeys } from "../../keys.tsx";
import { Block, Text } from "../../text.tsx";
import { useAnswer } from "./answer.ts";
import { Asking } from "./asking.tsx";
import { choicesOf, replyOf } from "./choices.ts";
import { Effects, inWords } from "./effects.tsx";
import { Explained } from "./explained.tsx";
import { Expiry } from "./expiry.tsx";

/** A pattern is shown whole: it is what the answer allows. */
const MAX_PATTERN = 10_000;

export function AskPrompt({ ask }: { ask: Ask }) {
  const { ready, answer } = useAnswer(ask.request_id);
  const [explaining, setExplaining] = useState(false);
  const [all, setAll] = useState(false);
  const choices = choicesOf(ask);
  const answers = choices.map((choice) => ({
    ...choice,
    run: () => void answer("permissions.reply", replyOf(ask, choice)),
  }));
  const deny = (message: string) =>
    void answer("permissions.reply", {
      request_id: ask.request_id,
      action: "deny",
      message: message.trim() || undefined,
    });
  // A letter of the reason is no answer, wherever the focus is.
  useKeys(explaining ? [] : [...answers, { key: "d", label: "deny, with a reason", run: () => setExplaining(true) }]);
  return (
    <article class="prompt card" aria-labelledby="ask-title">
      <header class="row">
        <h2 id="ask-title">
          <Text class="mono" value={ask.tool} />{" "}
          asks for permission: {isForWorkspace(ask) ? "use this workspace" : ask.category}
        </h2>
        {ask.part !== undefined && (
          <Badge>
            part {ask.part} of {ask.parts?.length}
          </Badge>
        )}
        <Expiry at={ask.expires_at} />
      </header>
      <Block value={ask.target} class="target" label="Asked for" />
      <Who ask={ask} />
      {ask.command !== undefined && ask.command !== ask.target && (
        <section>
          <h3>Command line</h3>
          <Block value={ask.command} label="Command line" />
        </section>
      )}
      {ask.parts && ask.parts.length > 0 && <Parts ask={ask} />}
      {(ask.category === "shell" || ask.command !== undefined) && <Explained ask={ask} />}
      {ask.diff !== undefined && (
        <section>
          <h3>Change</h3>
          <Diff value={ask.diff} />
        </section>
      )}
      {explaining ? (
        <Refusal ready={ready} onDeny={deny} onBack={() => setExplaining(false)} />
      ) : (
        <div class={`choices${all ? " all" : ""}`} role="group" aria-label="Answers">
          {answers.map(({ key, label, pattern, covers, action, run }) => (
            <button
              key={key}
              type="button"
              disabled={!ready}
              class={action === "deny" ? "danger" : key === "y" ? "primary" : "further"}
              aria-keyshortcuts={key}
              onClick={run}
            >
              <Key name={key} />
              <span>
                <Text value={label} max={200} />
                {pattern !== undefined && (
                  <>
                    {": "}
                    <Text class="mono" value={pattern} max={MAX_PATTERN} />
                  </>
                )}
                {covers !== undefined && (
                  <span class="dim">
                    {" "}
                    (<Text value={covers} max={200} />)
                  </span>
                )}
              </span>
            </button>
          ))}
          <button
            type="button"
            class="further"
            disabled={!ready}
            aria-keyshortcuts="d"
            onClick={() => setExplaining(true)}
          >
            <Key name="d" /> deny, with a reason
          </button>
          <button type="button" class="plain unfold" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Fewer answers" : "More answers"}
          </button>
        </div>
      )}
    </article>
  );
}

function Who({ ask }: { ask: Ask }) {
  return (
    <dl class="facts">
      <dt>agent</dt>
      <dd>
        <strong>
          <Asking prompt={ask} />
        </strong>{" "}
        <span class="dim small">
          session <Text value={ask.session_id} />, level {ask.level}
        </span>
      </dd>
      {ask.description !== undefined && (
        <>
          <dt>agent says</dt>
          <dd>
            <Text value={ask.description} max={1000} />
          </dd>
        </>
      )}
      {ask.misleading?.map((warning) => (
        <>
          <dt>careful</dt>
          <dd class="warn">
            <Text value={warning} max={1000} />
          </dd>
        </>
      ))}
      {ask.chain && ask.chain.length > 0 && (
        <>
          <dt>through</dt>
          <dd>
            <Text value={ask.chain.join(", ")} />
          </dd>
        </>
      )}
      {ask.cwd !== ask.target && (
        <>
          <dt>folder</dt>
          <dd class="mono">
            <Text value={ask.cwd} max={MAX_PATTERN} />
          </dd>
        </>
      )}
      {ask.effects && ask.effects.length > 0 && (
        <>
          <dt>does</dt>
          <dd>
            <Effects effects={ask.effects} />
          </dd>
        </>
      )}
      {ask.reason !== undefined && ask.reason !== inWords(ask.effects ?? []) && (
        <>
          <dt>reason</dt>
          <dd>
            <Text value={ask.reason} max={1000} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** Everything that the call asks for, with the mark of this ask. */
function Parts({ ask }: { ask: Ask }) {
  return (
    <section>
      <h3>All parts</h3>
      <ol class="parts">
        {ask.parts?.map(({ category, target, does }, at) => (
          <li key={at} aria-current={at + 1 === ask.part ? "step" : undefined}>
            <Badge>{category}</Badge>{" "}
            <Text class="mono" value={target} max={MAX_PATTERN} />
            {at + 1 === ask.part && <span class="dim small"> this one</span>}
            {does !== undefined && <div class="dim small">{does}</div>}
          </li>
        ))}
      </ol>
    </section>
  );
}

interface RefusalProps {
  ready: boolean;
  onDeny: (message: string) => void;
  onBack: () => void;
}

function Refusal({ ready, onDeny, onBack }: RefusalProps) {
  const field = useRef<HTMLInputElement>(null);
  const [message, setMessage] = useState("");
  // Before the next key, which belongs to the reason.
  useLayoutEffect(() => field.current?.focus(), []);
  return (
    <form
      class="refusal"
      onSubmit={(event) => {
        event.preventDefault();
        onDeny(message);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onBack();
      }}
    >
      <label>
        Reason, for the model
        <input ref={field} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
      </label>
      <div class="buttons">
        <button type="submit" class="danger" disabled={!ready}>
          Deny
        </button>
        <button type="button" onClick={onBack}>
          Go back
        </button>
      </div>
    </form>
  );
}
