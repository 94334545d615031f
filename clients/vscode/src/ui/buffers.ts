/** Lays the unsaved text of the workspace's open files over the files, for the daemon's tools. */
import * as vscode from "vscode";

import type { Link, Part } from "../link.js";
import { Overlay } from "../overlay.js";
import { flag } from "./settings.js";

export function watchBuffers(
  link: Link,
  changed: vscode.Event<Part>,
  log: (message: string) => void,
): vscode.Disposable[] {
  if (!flag("unsavedBuffers")) return [];
  const overlay = new Overlay(link.client, log);
  const look = (document: vscode.TextDocument) => {
    const { uri, version, isDirty: unsaved } = document;
    if (uri.scheme !== "file" || !vscode.workspace.getWorkspaceFolder(uri)) return;
    overlay.changed({ path: uri.fsPath, version, text: unsaved ? document.getText() : "", unsaved });
  };
  vscode.workspace.textDocuments.forEach(look);
  return [
    vscode.workspace.onDidChangeTextDocument(({ document }) => look(document)),
    vscode.workspace.onDidSaveTextDocument(look),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => overlay.closed(uri.fsPath)),
    changed((part) => {
      if (part === "connection" && link.connected) overlay.reconnected();
    }),
  ];
}
