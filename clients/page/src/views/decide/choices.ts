/** The answers to an ask, with the keys of toolctl's prompts. */
import { isForWorkspace, type Action, type Ask, type PermissionsReplyParams, type Scope } from "toold/browser";

export interface Choice {
  key: string;
  label: string;
  action: Action;
  scope: Scope;
  /** Absent for exactly the ask's target. */
  pattern?: string;
  /** What the pattern covers, in words. */
  covers?: string;
  /** In seconds. */
  expires_in?: number;
  /** For all parts of the ask. */
  all_parts?: boolean;
}

const LABELS: Record<Scope, string> = {
  once: "allow once",
  session: "allow in this session",
  project: "allow in this project",
  always: "allow always",
};

/** Its exact target, for each scope, all parts together, the wider patterns that it suggests, and the refusal. */
export function choicesOf(ask: Ask): Choice[] {
  const exact = (key: string, scope: Scope): Choice => ({ key, scope, action: "allow", label: labelOf(scope, ask) });
  let choices: Choice[];
  if (isForWorkspace(ask)) {
    choices = [{ ...exact("y", "always"), label: "allow, and remember it for this client" }, exact("s", "session")];
  } else if (ask.suggestions.length === 0) {
    // Nothing of it can be remembered.
    choices = [exact("y", "once")];
  } else {
    const hour = { ...exact("h", "project"), expires_in: 3600, label: "allow in this project for 1 hour" };
    choices = [exact("y", "once"), exact("s", "session"), hour, exact("p", "project"), exact("a", "always")];
  }
  if (ask.parts?.length) {
    choices.splice(1, 0, { ...exact("w", "once"), all_parts: true, label: "allow all parts once" });
  }
  const wider = ask.suggestions.filter((suggestion) => suggestion.pattern !== ask.target).slice(0, 9);
  choices.push(...wider.map(({ scope, pattern, covers }, at) => ({ ...exact(String(at + 1), scope), pattern, covers })));
  choices.push({ key: "n", action: "deny", scope: "once", label: "deny" });
  return choices;
}

/** An answer for the session names it: `allow in this terminal`. */
function labelOf(scope: Scope, { session_name }: Ask): string {
  return scope === "session" && session_name !== undefined ? `allow in ${session_name}` : LABELS[scope];
}

export function replyOf(ask: Ask, choice: Choice): PermissionsReplyParams {
  const { action, scope, pattern, expires_in, all_parts } = choice;
  return { request_id: ask.request_id, action, scope, pattern, expires_in, all_parts };
}
