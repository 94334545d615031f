/** The command that undoes a change which a tool made to a file, after a look at the diff. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

import type { FilesUndoParams } from "toold";
import * as vscode from "vscode";

import { sides } from "../diff.js";
import type { Link } from "../link.js";
import { lastChanges } from "../prompts.js";
import { information, warning } from "./messages.js";
import { pickStep } from "./steps.js";
import type { Texts } from "./texts.js";

export async function undoChange(link: Link, texts: Texts): Promise<void> {
  const { changes, older = 0 } = await link.client.request("files.history", { all: true });
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const items = lastChanges(changes, folders);
  if (items.length === 0) {
    void information("No tool has changed a file of this window that could be undone.");
    return;
  }
  const left = older > 0 ? ` (${older} older changes are not listed)` : "";
  const chosen = await pickStep(items, { title: `Undo the last change of which file?${left}` });
  const path = typeof chosen === "object" ? chosen[0]?.path : undefined;
  if (path === undefined) return;
  const name = basename(path);
  const call: FilesUndoParams = { path, all: true };
  const folder = folders.find((each) => path.startsWith(`${each}/`));
  if (folder !== undefined) call.folder = folder;
  const { diff = "", paths, notes = [] } = await link.client.request("files.undo", { ...call, dry_run: true });
  try {
    if (paths.length === 1) {
      const { before, after } = sides(diff ?? "", await readFile(path, "utf8").catch(() => ""));
      const left = texts.put(`undo/before/${name}`, before);
      const right = texts.put(`undo/after/${name}`, after);
      await vscode.commands.executeCommand("vscode.diff", left, right, `${name}: undo`, { preview: true });
    } else {
      const all = await vscode.workspace.openTextDocument(texts.put(`undo/${paths.length} files.diff`, diff ?? ""));
      await vscode.window.showTextDocument(all, { preview: true });
    }
    const yes = "Undo";
    const more = paths.length === 1 ? "" : ` and of ${others(paths.length - 1)}, which the same call changed`;
    const question = `Undo the last change of ${name}${more}, as the diff shows?`;
    const stays = notes.map((note) => ` Note: ${note}.`).join("");
    if ((await warning(question + stays, yes, "Keep")) !== yes) return;
    const undone = await link.client.request("files.undo", call);
    const done = `the last change of ${name}${more} is undone`;
    if (undone.notes?.length) void information(`${done}; ${undone.notes.join("; ")}`);
    else void vscode.window.setStatusBarMessage(done, 5000);
  } finally {
    await texts.drop("undo");
  }
}

function others(count: number): string {
  return count === 1 ? "another file" : `${count} other files`;
}
