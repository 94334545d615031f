/** The tools, and what is known about them: how long they take, and what they cost. */
import { computed, signal } from "@preact/signals";
import type { DaemonStatus, Tool, ToolsCostResult } from "toold/browser";

import { request, session, subscribe } from "../../daemon.ts";
import { report } from "../../toasts.tsx";

/** Sorted by name; `undefined` until the first list is there. */
export const tools = signal<readonly Tool[] | undefined>(undefined);
export const latencies = signal<ReadonlyMap<string, DaemonStatus["latency"][number]>>(new Map());
/** In seconds: the time that `latencies` covers. */
export const latencyWindow = signal(0);
export const mcpUrl = signal<string | undefined>(undefined);
export const cost = signal<ToolsCostResult | undefined>(undefined);
export interface ToolGroup {
  source: Tool["source"];
  tools: readonly Tool[];
}

/** By source: built-ins first, then by name. */
export const groups = computed<readonly ToolGroup[]>(() => {
  const bySource = new Map<string, { source: Tool["source"]; tools: Tool[] }>();
  for (const tool of tools.value ?? []) {
    const key = `${tool.source.kind} ${tool.source.name}`;
    const group = bySource.get(key) ?? { source: tool.source, tools: [] };
    group.tools.push(tool);
    bySource.set(key, group);
  }
  const rank = ({ source }: ToolGroup) => `${source.kind === "builtin" ? 0 : 1} ${source.kind} ${source.name}`;
  return [...bySource.values()].sort((first, second) => rank(first).localeCompare(rank(second)));
});

/** Reads everything again whenever the tools or the session change. Returns the function that ends it. */
export function followTools(): () => void {
  const read = () => void readAll().catch(report);
  const endEvents = subscribe("events.subscribe", { kinds: ["tools.changed"] }, read, read);
  // The first call is for the session that is open already.
  let first = true;
  const endSession = session.subscribe(() => {
    if (!first) read();
    first = false;
  });
  return () => {
    endEvents();
    endSession();
  };
}

async function readAll(): Promise<void> {
  const [list, costs] = await Promise.all([
    request("tools.list", { mode: "all" }),
    request("tools.cost", {}),
    readStatus(),
  ]);
  tools.value = list.tools ?? [];
  cost.value = costs;
}

/** Reads how long the tools took lately. */
export async function readStatus(): Promise<void> {
  const status = await request("daemon.status", {});
  latencies.value = new Map(status.latency.map((each) => [each.tool, each]));
  latencyWindow.value = status.latency_window_s;
  mcpUrl.value = status.mcp_url;
}

/** The tokens that a tool takes in a provider's list: one for each four bytes of its JSON. */
export async function tokensOf(name: string): Promise<number | undefined> {
  const answer = await request("tools.list", { names: [name], format: "anthropic" });
  const [tool] = (answer.tools ?? []) as unknown[];
  if (tool === undefined) return undefined;
  return Math.ceil(new TextEncoder().encode(JSON.stringify(tool)).length / 4);
}
