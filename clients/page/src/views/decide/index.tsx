/** The view Decide: asks for permission and questions of tools, one at a time, keyboard first. */
import { useEffect, useState } from "preact/hooks";
import type { Ask, Question } from "toold/browser";

import { Badge, Empty } from "../../components.tsx";
import { link } from "../../daemon.ts";
import { useKeys } from "../../keys.tsx";
import { asks, questions } from "../../prompts.ts";
import { useLocation, useRoute, ViewLink } from "../../router.tsx";
import { Text } from "../../text.tsx";
import { Time } from "../../time.tsx";
import { AskPrompt } from "./ask.tsx";
import { Asking } from "./asking.tsx";
import "./decide.css";
import { outcomes, subjectOf } from "./outcomes.ts";
import { QuestionPrompt } from "./question.tsx";

export default function DecideView() {
  const [, route] = useRoute("/decide/:id");
  const [, navigate] = useLocation();
  const id = route?.id;
  const prompts: (Ask | Question)[] = [...asks.value.values(), ...questions.value.values()];
  prompts.sort((a, b) => a.asked_at.localeCompare(b.asked_at));
  const named = prompts.find((prompt) => prompt.request_id === id);
  const shown = named ?? prompts[0];
  const at = shown ? prompts.indexOf(shown) : -1;

  const turn = (by: number) => {
    const next = prompts[(at + by + prompts.length) % prompts.length];
    if (next) navigate(addressOf(next), { replace: true });
  };
  useKeys([
    { key: "j", label: "Next prompt", run: () => turn(1) },
    { key: "k", label: "Previous prompt", run: () => turn(-1) },
  ]);
  // The address stays with the prompt that is shown, so that an older one that arrives late does not take its place.
  useEffect(() => {
    if (shown && id !== shown.request_id && (id === undefined || outcomes.peek().some((each) => each.id === id))) {
      navigate(addressOf(shown), { replace: true });
    }
  }, [shown?.request_id, id]);

  const settled = useSettled();
  const gone = settled && id !== undefined && !named && !outcomes.value.some((outcome) => outcome.id === id);
  return (
    <div class="decide">
      {gone && (
        <p class="notice" role="status">
          The prompt of this link has ended: it was answered, or its call is over.
        </p>
      )}
      {prompts.length > 1 && (
        <nav class="prompts" aria-label="Open prompts">
          {prompts.map((prompt, number) => (
            <ViewLink
              key={prompt.request_id}
              href={addressOf(prompt)}
              replace
              aria-current={prompt === shown ? "true" : undefined}
            >
              <span class="dim">
                {number + 1} of {prompts.length}
              </span>
              <Badge tone="warn">{"category" in prompt ? prompt.category : "question"}</Badge>
              <span class="dim">
                <Asking prompt={prompt} />
              </span>
              <Text value={subjectOf(prompt)} max={120} />
            </ViewLink>
          ))}
        </nav>
      )}
      {shown === undefined ? (
        <Empty title="Nothing to decide">
          <p>Requests for permission and questions of tools appear here, whichever agent they come from.</p>
        </Empty>
      ) : "category" in shown ? (
        <AskPrompt key={shown.request_id} ask={shown} />
      ) : (
        <QuestionPrompt key={shown.request_id} question={shown} />
      )}
      <Outcomes />
    </div>
  );
}

/** Whether the prompts that were open before this page have had the time to arrive. */
function useSettled(): boolean {
  const [settled, setSettled] = useState(false);
  const connected = link.value.state === "connected";
  useEffect(() => {
    if (!connected) return undefined;
    const timer = setTimeout(() => setSettled(true), 1500);
    return () => clearTimeout(timer);
  }, [connected]);
  return settled && connected;
}

function addressOf(prompt: Ask | Question): string {
  return `/decide/${encodeURIComponent(prompt.request_id)}`;
}

const TONES: Record<string, string> = { allow: "good", deny: "bad" };

function Outcomes() {
  return (
    <section class="outcomes small" aria-label="Recently answered" aria-live="polite">
      {outcomes.value.map((outcome) => (
        <p key={outcome.id}>
          <Text class="mono" value={outcome.subject} max={80} />{" "}
          <Text class={TONES[outcome.action] ?? "dim"} value={outcome.text} />{" "}
          <span class="dim">
            <Time at={outcome.at} />
          </span>
        </p>
      ))}
    </section>
  );
}
