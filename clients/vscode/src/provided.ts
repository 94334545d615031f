/** The tools that the editor provides: its diagnostics and its selection. Does not use `vscode`. */
import { resolve } from "node:path";

import type { Client, LentTool, Run } from "toold";

export interface EditorProblem {
  path: string;
  /** From 1. */
  line: number;
  column: number;
  severity: "error" | "warning" | "information" | "hint";
  message: string;
  /** The language server or linter that reports it. */
  source?: string;
}

export interface EditorSelection {
  path: string;
  /** From 1; the last one is selected too. */
  firstLine: number;
  lastLine: number;
  /** Empty when nothing is selected. */
  text: string;
  /** The line of the cursor. */
  cursorLine: string;
  unsaved: boolean;
}

/** The state of the editor; paths are absolute. */
export interface Editor {
  problems(): EditorProblem[];
  selection(): EditorSelection | undefined;
}

const SEVERITIES = ["error", "warning", "information", "hint"] as const;
const READ_ONLY = { read_only: true, idempotent: true };

export const DIAGNOSTICS: LentTool = {
  name: "vscode_diagnostics",
  label: "Problems in VS Code",
  description:
    "Errors and warnings that language servers and linters show in the editor, for one file or a folder, or for the " +
    "whole window.",
  input_schema: {
    type: "object",
    properties: {
      path: {
        type: "string",
        description: "A file or folder, relative to the working folder or absolute; the whole window by default.",
      },
      severity: { enum: SEVERITIES, description: "This severity and above; `warning` by default." },
    },
    additionalProperties: false,
  },
  parallelizable: true,
  annotations: READ_ONLY,
};

export const SELECTION: LentTool = {
  name: "vscode_selection",
  label: "Selection in VS Code",
  description:
    "The text that the user has selected in the editor, or the line of the cursor, with its file and lines.",
  input_schema: { type: "object", properties: {}, additionalProperties: false },
  parallelizable: true,
  annotations: READ_ONLY,
};

/** At most so many problems in one result. */
const MAX_PROBLEMS = 200;

/** Provides both while the client is connected. */
export async function provideEditor(client: Client, editor: Editor): Promise<void> {
  const diagnostics: Run<{ path?: string; severity?: EditorProblem["severity"] }> = (args, { cwd }) => {
    return describeProblems(editor.problems(), { ...args, cwd });
  };
  await client.provide(DIAGNOSTICS, diagnostics);
  await client.provide(SELECTION, (_, { cwd }) => describeSelection(editor.selection(), cwd));
}

export function describeProblems(
  problems: readonly EditorProblem[],
  { path, severity = "warning", cwd }: { path?: string; severity?: EditorProblem["severity"]; cwd: string },
): string {
  const wanted = path === undefined ? undefined : resolve(cwd, path);
  const within = (file: string) => wanted === undefined || file === wanted || file.startsWith(`${wanted}/`);
  const grave = (each: EditorProblem) => SEVERITIES.indexOf(each.severity) <= SEVERITIES.indexOf(severity);
  const found = problems.filter((each) => within(each.path) && grave(each));
  if (found.length === 0) return "no problems";
  const order = (each: EditorProblem) => SEVERITIES.indexOf(each.severity);
  found.sort((a, b) => order(a) - order(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
  const lines = found.slice(0, MAX_PROBLEMS).map(({ path, line, column, severity, message, source }) => {
    return `${relative(path, cwd)}:${line}:${column}: ${severity}: ${message}${source ? ` [${source}]` : ""}`;
  });
  if (found.length > MAX_PROBLEMS) lines.push(`and ${found.length - MAX_PROBLEMS} more: pass a path to narrow the list`);
  return lines.join("\n");
}

export function describeSelection(selection: EditorSelection | undefined, cwd: string): string {
  if (selection === undefined) return "no file is open in the editor";
  const { path, firstLine, lastLine, text, cursorLine, unsaved } = selection;
  const file = `${relative(path, cwd)}${unsaved ? " (unsaved)" : ""}`;
  if (text === "") return `${file}, the cursor is on line ${firstLine}, nothing is selected:\n${cursorLine}`;
  const lines = firstLine === lastLine ? `line ${firstLine}` : `lines ${firstLine} to ${lastLine}`;
  return `${file}, ${lines}:\n${text}`;
}

function relative(path: string, cwd: string): string {
  return path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}
