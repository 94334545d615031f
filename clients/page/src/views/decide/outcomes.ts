/** The last prompts that have ended, and who answered them. */
import { signal } from "@preact/signals";
import type { Answerer, Ask, PermissionEvent, Question, QuestionEvent, Scope } from "toold/browser";

import { onResolved } from "../../prompts.ts";

type Resolved = Extract<PermissionEvent | QuestionEvent, { type: "resolved" }>;

/** How a prompt has ended; only asks have a scope. */
interface Resolution {
  action: Resolved["action"];
  scope?: Scope | null;
  by?: Answerer | null;
  /** In words. */
  how?: string;
}

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
    text: textOf(resolved, answeredHere.delete(prompt.request_id)),
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
  cancelled: "not answered",
  expired: "expired: nobody answered in time",
};

const HELD: Record<Scope, string> = {
  once: "",
  session: " in this session",
  project: " in this project",
  always: " always",
};

/** `here`: it was answered in this page. */
export function textOf({ action, scope, by, how }: Resolution, here = false): string {
  // By a rule, or since the call ended or nobody answered.
  if (!here && !by && how) return action === "deny" && !how.startsWith("denied") ? `denied: ${how}` : how;
  const held = HELD[scope ?? "once"];
  let who = "";
  if (here) who = " by you, here";
  else if (by) who = ` by ${by.client ?? `connection ${by.connection}`}`;
  return `${WORDS[action]}${held}${who}`;
}
