/** The settings of `package.json`. */
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

import * as vscode from "vscode";

/** Where the daemon is, for `Link`. */
export function linkSettings(): { socket?: string; toold?: string; start: boolean } {
  return { socket: path("socket"), toold: path("program"), start: flag("start") };
}

export function flag(name: "start" | "unsavedBuffers" | "mcp"): boolean {
  return vscode.workspace.getConfiguration("toold").get(name, true);
}

/** The `toolctl` of the setting, or the one beside `toold`, or in `PATH`; `undefined` if there is none. */
export function toolctl(): string | undefined {
  const set = path("toolctl");
  if (set !== undefined) return set;
  const program = path("program");
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const found = [...(program === undefined ? [] : [dirname(program)]), ...folders];
  return found.map((folder) => join(folder, "toolctl")).find(isProgram);
}

/** The environment that other programs need to find the same daemon. */
export function socketEnvironment(): Record<string, string> {
  const socket = path("socket");
  return socket === undefined ? {} : { TOOLD_SOCKET: socket };
}

function path(name: "socket" | "program" | "toolctl"): string | undefined {
  return vscode.workspace.getConfiguration("toold").get<string>(name) || undefined;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
