/** The list in which you pick a tool. Does not use `vscode`. */
import type { Tool } from "toold";

import { KINDS, summary } from "./nodes.js";

export interface ToolItem {
  /** Absent for the heading of a group. */
  tool?: Tool;
  label: string;
  description?: string;
  detail?: string;
}

/** The tools that you called last, then all others by source, each group below a heading. */
export function toolItems(tools: readonly Tool[], recent: readonly string[]): ToolItem[] {
  const last = recent.flatMap((name) => tools.find((tool) => tool.name === name) ?? []).slice(0, 5);
  const groups = Object.entries(KINDS).map(([kind, { label }]) => {
    const own = tools.filter((tool) => tool.source.kind === kind && !last.includes(tool));
    return { label, own: own.sort((a, b) => (a.name < b.name ? -1 : 1)) };
  });
  return [{ label: "Called last", own: last }, ...groups].flatMap(({ label, own }) => {
    return own.length === 0 ? [] : [{ label }, ...own.map(toolItem)];
  });
}

function toolItem(tool: Tool): ToolItem {
  const { name, source, permissions, annotations } = tool;
  const needs = permissions.length > 0 ? `may need: ${permissions.join(", ")}` : annotations.read_only ? "only reads" : "";
  return {
    tool,
    label: name,
    description: source.kind === "builtin" ? `built-in: ${tool.label}` : `${source.kind} ${source.name}`,
    detail: [summary(tool), needs].filter(Boolean).join(" \u2014 "),
  };
}
