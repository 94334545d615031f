/** The last prompts that have ended, and who answered them. */
import { signal } from "@preact/signals";
import type { Ask, PermissionEvent, Question, QuestionEvent } from "toold/browser";

import { onResolved } from "../../prompts.ts";

type Resolved = Extract<PermissionEvent | QuestionEvent, { type: "resolved" }>;

export interface PromptOutcome {
  readonly id: string;
  /** The subject, such as a command; of a tool or model. */
  readonly subject: string;
  readonly at: Date;
  readonly action: Resolved["action"];
  readonly text: string;
}

const MAX_OUTCOMES = 6;

/** The latest first. */
export const outcomes = signal<readonly PromptOutcome[]>([]);

/** Prompts that were answered in this page. */
export const answeredHere = new Set<string>();

onResolved.add((prompt, resolved) => {
  const outcome: PromptOutcome = {
    id: prompt.request_id,
    subject: subjectOf(prompt),
    at: new Date(),
    action: resolved.action,
    text: textOf(resolved),
  };
  outcomes.value = [outcome, ...outcomes.value].slice(0, MAX_OUTCOMES);
});

export function subjectOf(prompt: Ask | Question): string {
  return "target" in prompt ? prompt.target : prompt.question;
}

const WORDS: Record<Resolved["action"], string> = {
  allow: "allowed",
  deny: "denied",
  answered: "answered",
  cancelled: "closed",
  expired: "expired: nobody answered in time",
};

function textOf(resolved: Resolved): string {
  const scope = "scope" in resolved && resolved.scope && resolved.scope !== "once" ? resolved.scope : "";
  const held = { "": "", session: " in this session", project: " in this project", always: " always" }[scope];
  let by = "";
  if (answeredHere.delete(resolved.request_id)) by = " by you, here";
  else if (resolved.by) by = ` by ${resolved.by.client ?? `connection ${resolved.by.connection}`}`;
  return `${WORDS[resolved.action]}${held}${by}`;
}
