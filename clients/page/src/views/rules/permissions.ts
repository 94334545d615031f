/** Rules, grants and modes as the daemon has them, and which of them decided something. */
import { signal } from "@preact/signals";
import type {
  Category,
  Grant,
  Mode,
  PermissionsCheckResult,
  PermissionsListResult,
  PermissionsReviewResult,
  PermissionsSuggestResult,
  PluginsShowResult,
  Rule,
  SessionInfo,
} from "toold/browser";

import { request, session, subscribe } from "../../daemon.ts";
import { report } from "../../toasts.tsx";

export const CATEGORIES: readonly Category[] = [
  "shell",
  "file.write",
  "file.read",
  "network",
  "mcp",
  "plugin",
  "agent",
];

/** The decision where no rule, grant or mode says otherwise. */
export const DEFAULTS: Readonly<Record<Category, string>> = {
  shell: "asks, except for commands that only read",
  "file.write": "asks",
  "file.read": "is allowed in the session's folders, and asks elsewhere",
  network: "is denied",
  mcp: "asks",
  plugin: "is allowed for built-in tools and your own plugins, and asks for those of projects",
  agent: "is allowed",
};

export const permissions = signal<PermissionsListResult | undefined>(undefined);
export const review = signal<PermissionsReviewResult | undefined>(undefined);
export const sessions = signal<readonly SessionInfo[]>([]);
export const suggested = signal<readonly SuggestedRule[]>([]);
export const refusals = signal<readonly Refusal[]>([]);

export type Refusal = NonNullable<PluginsShowResult["refused"]>[number] & { plugin: string };
export type SuggestedRule = PermissionsSuggestResult["rules"][number];
export type Level = NonNullable<SessionInfo["level"]>;
export type Verdict = PermissionsCheckResult["verdict"];

/** Events after which rules, grants or modes may be others. A grant is stored when an ask is answered. */
const KINDS = ["permission.resolved", "config.changed", "session.mode", "session.opened", "session.closed"];
const PLUGIN_KINDS = ["plugin.refused", "plugin.loaded", "plugin.unloaded"];

/** Reads everything again whenever it may have changed. Returns the function that ends it. */
export function followPermissions(): () => void {
  const soon = batched(refresh);
  const refusalsSoon = batched(readRefusals);
  const onStart = () => {
    soon();
    refusalsSoon();
  };
  return subscribe(
    "events.subscribe",
    { kinds: [...KINDS, ...PLUGIN_KINDS] },
    ({ kind }) => (PLUGIN_KINDS.includes(kind) ? refusalsSoon() : soon()),
    onStart,
  );
}

/** Events come in bursts: all that come within a moment are one call. */
function batched(work: () => Promise<void>): () => void {
  let planned = false;
  return () => {
    if (planned) return;
    planned = true;
    setTimeout(() => {
      planned = false;
      work().catch(report);
    }, 100);
  };
}

export async function refresh(): Promise<void> {
  const [list, reviewed, open, { rules }] = await Promise.all([
    request("permissions.list", {}),
    request("permissions.review", {}),
    request("session.list", {}),
    request("permissions.suggest", {}),
  ]);
  permissions.value = list;
  review.value = reviewed;
  sessions.value = open.sessions;
  suggested.value = rules;
}

async function readRefusals(): Promise<void> {
  const { plugins } = await request("plugins.list", {});
  const loaded = plugins.filter(({ status }) => status !== "disabled" && status !== "shadowed");
  const shown = await Promise.allSettled(loaded.map(({ name }) => request("plugins.show", { name })));
  refusals.value = shown.flatMap((answer, at) =>
    answer.status === "fulfilled"
      ? (answer.value.refused ?? []).map((each) => ({ ...each, plugin: loaded[at]!.name }))
      : [],
  );
}

/** The id of the element that shows what decided: a rule, a grant, or a default. */
export function deciderId(text: string): string | undefined {
  const { rules = [], grants = [] } = permissions.value ?? {};
  const rule = rules.findIndex((rule) => decidedByRule(text, rule));
  if (rule >= 0) return ruleId(rule);
  const grant = grants.find(({ id }) => text.startsWith("grant ") && text.includes(`${id} (`));
  if (grant) return grantId(grant);
  const category = CATEGORIES.find((category) => text === `default of ${category}`);
  return category && defaultId(category);
}

function decidedByRule(text: string, { action, category, source }: Rule): boolean {
  return text.startsWith(`rule ${action} ${category} `) && text.endsWith(` at ${source}`);
}

export const ruleId = (at: number) => `rule-${at}`;
export const grantId = (grant: Grant) => `grant-${grant.id}`;
export const defaultId = (category: Category) => `default-${category}`;

/** The wide grant is stored before the narrow ones are revoked: nothing that was allowed is refused in between. */
export async function mergeGrants(ids: readonly string[], pattern: string): Promise<void> {
  const like = review.value?.grants.find(({ id }) => id === ids[0]);
  if (like === undefined) throw new Error("the grants have changed meanwhile; look at the proposals again");
  const { category, scope, action, tools, session_id, project, chain } = like;
  await request("permissions.grant", { category, pattern, scope, action, tools, session_id, cwd: project, chain });
  for (const id of ids) await request("permissions.revoke", { id });
}

/** Allows what a suggestion covers: in a project, or everywhere. */
export async function accept({ category, pattern }: SuggestedRule, project: string | undefined): Promise<void> {
  const scope = project === undefined ? "always" : "project";
  await request("permissions.grant", { category, pattern, scope, action: "allow", cwd: project });
}

export async function revoke(id: string): Promise<void> {
  await request("permissions.revoke", { id });
}

export async function setMode(sessionId: string, mode: Mode): Promise<void> {
  await request("permissions.set_mode", { session_id: sessionId, mode });
}

/** `undefined` for the level of the configuration. */
export async function setLevel(sessionId: string, level: Level | undefined): Promise<void> {
  await request("permissions.set_level", { session_id: sessionId, level });
}

/** The decision about a call that nobody makes. Nobody is asked. */
export async function check(
  category: Category,
  target: string,
  { tool, cwd }: { tool?: string; cwd?: string },
): Promise<PermissionsCheckResult> {
  const session_id = session.peek()?.session_id;
  return request("permissions.check", { category, target, tool, cwd, session_id, explain: category === "shell" });
}
