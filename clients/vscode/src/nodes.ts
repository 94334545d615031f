/** The contents of the views as plain trees. Does not use `vscode`. */
import { basename } from "node:path";

import type { Plugin, PluginError, Tool } from "toold";

export interface Node {
  id: string;
  label: string;
  /** Shown after the label. */
  description?: string;
  tooltip?: string;
  /** The name of a codicon. */
  icon: string;
  /** Selects the menu items in `package.json`. */
  context?: "tool" | "plugin" | "untrusted-plugin";
  children?: Node[];
  /** The tool or plugin for commands on this node. */
  name?: string;
  /** The file of the node; lines count from 1. */
  file?: { path: string; line: number };
}

export const KINDS: Record<Tool["source"]["kind"], { label: string; icon: string }> = {
  builtin: { label: "Built-in", icon: "tools" },
  plugin: { label: "Plugins", icon: "extensions" },
  mcp: { label: "MCP servers", icon: "server" },
  remote: { label: "Other machines", icon: "remote" },
  fleet: { label: "Fleet", icon: "server-environment" },
  frontend: { label: "Provided by editors", icon: "window" },
};

/** The tools below their sources, in order of precedence: built-ins first. */
export function toolNodes(tools: readonly Tool[]): Node[] {
  return Object.entries(KINDS).flatMap(([kind, { label, icon }]) => {
    const own = tools.filter((tool) => tool.source.kind === kind);
    if (own.length === 0) return [];
    const children = own.map((tool) => toolNode(tool));
    return [{ id: `source/${kind}`, label, description: String(own.length), icon, children }];
  });
}

/** The beginning of the description, up to the first stop. */
export function summary({ description }: Tool): string {
  return /^.*?(?=[.:] |, |\n|\.?$)/.exec(description)![0];
}

function toolNode(tool: Tool): Node {
  const needs = tool.permissions.length > 0 ? `\n\nMay need: ${tool.permissions.join(", ")}` : "";
  return {
    id: `tool/${tool.name}`,
    label: tool.name,
    description: tool.source.kind === "builtin" ? tool.label : `${tool.source.name}: ${summary(tool)}`,
    tooltip: `${tool.description}${needs}`,
    icon: tool.annotations.read_only ? "eye" : "symbol-method",
    context: "tool",
    name: tool.name,
  };
}

const STATUS_ICONS: Record<Plugin["status"], string> = {
  loaded: "pass",
  failed: "error",
  disabled: "circle-slash",
  untrusted: "shield",
  shadowed: "copy",
};

/** The plugins with their tools and errors. */
export function pluginNodes(plugins: readonly Plugin[]): Node[] {
  return plugins.map((plugin) => {
    const { name, path, status, version, error, tools } = plugin;
    const file = { path: error?.file ?? path, line: error?.line ?? 1 };
    const children: Node[] = tools.map((tool) => ({
      id: `plugin/${path}/${tool}`,
      label: tool,
      icon: "symbol-method",
    }));
    if (error) {
      const place = error.line === undefined ? "" : `line ${error.line}: `;
      children.unshift({ id: `plugin/${path}/error`, label: `${place}${messageOf(error)}`, icon: "error", file });
    }
    return {
      id: `plugin/${path}`,
      label: name,
      description: [status === "loaded" ? "" : status, version ?? ""].filter(Boolean).join(" "),
      tooltip: [path, plugin.description ?? "", error?.traceback ?? ""].filter(Boolean).join("\n\n"),
      icon: STATUS_ICONS[status],
      context: status === "untrusted" ? "untrusted-plugin" : "plugin",
      children,
      name,
      file,
    };
  });
}

export interface Problem {
  path: string;
  /** From 1. */
  line: number;
  message: string;
}

/** The errors of plugins, for the problems view. */
export function problems(plugins: readonly Plugin[]): Problem[] {
  return plugins.flatMap(({ path, error }) => {
    return error ? [{ path: error.file ?? path, line: error.line ?? 1, message: messageOf(error) }] : [];
  });
}

/** The message without the position that Lua puts before it, which is shown separately. */
function messageOf({ message, file, line }: PluginError): string {
  const place = file === undefined || line === undefined ? "" : `${basename(file)}:${line}: `;
  return message.startsWith(place) ? message.slice(place.length) : message;
}

/** A tree as text, with all nodes expanded. */
export function render(nodes: readonly Node[], depth = 0): string {
  return nodes
    .map(({ label, description, children }) => {
      const line = `${"  ".repeat(depth)}${children?.length ? "v" : "-"} ${label}${description ? `  ${description}` : ""}\n`;
      return line + render(children ?? [], depth + 1);
    })
    .join("");
}
