/** The command that undoes a change which a tool made to a file, after a look at the diff. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

import * as vscode from "vscode";

import { sides } from "../diff.js";
import type { Link } from "../link.js";
import { lastChanges } from "../prompts.js";
import { pickStep } from "./steps.js";
import type { Texts } from "./texts.js";

export async function undoChange(link: Link, texts: Texts): Promise<void> {
  const { changes } = await link.client.request("files.history", { all: true });
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const items = lastChanges(changes, folders);
  if (items.length === 0) {
    void vscode.window.showInformationMessage("No tool has changed a file of this window that could be undone.");
    return;
  }
  const chosen = await pickStep(items, { title: "Undo the last change of which file?" });
  const path = typeof chosen === "object" ? chosen[0]?.path : undefined;
  if (path === undefined) return;
  const { diff } = await link.client.request("files.undo", { path, all: true, dry_run: true });
  const current = await readFile(path, "utf8").catch(() => "");
  const { before, after } = sides(diff ?? "", current);
  const name = basename(path);
  const left = texts.put(`undo/before/${name}`, before);
  const right = texts.put(`undo/after/${name}`, after);
  try {
    await vscode.commands.executeCommand("vscode.diff", left, right, `${name}: undo`, { preview: true });
    const yes = "Undo";
    const question = `Undo the last change of ${name}, as the diff shows?`;
    if ((await vscode.window.showWarningMessage(question, yes, "Keep")) !== yes) return;
    await link.client.request("files.undo", { path, all: true });
    void vscode.window.setStatusBarMessage(`the last change of ${name} is undone`, 5000);
  } finally {
    await texts.drop("undo");
  }
}
