/** The open asks and questions, which the badge counts and the view Decide shows. */
import { computed, signal } from "@preact/signals";
import type { Ask, PermissionEvent, Question, QuestionEvent } from "toold/browser";

import { subscribe } from "./daemon.ts";

/** By id, the oldest first. */
export const asks = signal<ReadonlyMap<string, Ask>>(new Map());
export const questions = signal<ReadonlyMap<string, Question>>(new Map());
export const openPrompts = computed(() => asks.value.size + questions.value.size);

type Resolved = Extract<PermissionEvent, { type: "resolved" }> | Extract<QuestionEvent, { type: "resolved" }>;

/** Called with each ask or question that has ended, wherever it was answered. */
export const onResolved = new Set<(prompt: Ask | Question, resolved: Resolved) => void>();

/** Follows them for as long as the page is open. Subscribers can answer, so the daemon waits for this page too. */
export function followPrompts(): void {
  follow("permissions.subscribe", asks);
  follow("questions.subscribe", questions);
}

function follow<S extends "permissions.subscribe" | "questions.subscribe", P extends Ask | Question>(
  method: S,
  prompts: { value: ReadonlyMap<string, P> },
): void {
  const onItem = (item: PermissionEvent | QuestionEvent) => {
    const next = new Map(prompts.value);
    if (item.type === "asked") {
      next.set(item.request.request_id, item.request as P);
    } else {
      const prompt = next.get(item.request_id);
      next.delete(item.request_id);
      if (prompt) for (const listener of onResolved) listener(prompt, item);
    }
    prompts.value = next;
  };
  subscribe(method, {}, onItem, () => (prompts.value = new Map()));
}
