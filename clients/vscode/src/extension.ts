/**
 * Activates and deactivates the extension.
 *
 * The files beside this one do not use `vscode`, and are tested with the daemon alone. Those in `ui` show their results
 * in the window.
 */
import * as vscode from "vscode";

import { provideEditor } from "./provided.js";
import { Link, type Part } from "./link.js";
import { Recent } from "./recent.js";
import { Asks } from "./ui/asks.js";
import { watchBuffers } from "./ui/buffers.js";
import { registerChatTools } from "./ui/chat.js";
import { registerCommands } from "./ui/commands.js";
import { editor } from "./ui/editor.js";
import { registerMcp } from "./ui/mcp.js";
import { answerQuestion } from "./ui/questions.js";
import { linkSettings } from "./ui/settings.js";
import { showStatus } from "./ui/status.js";
import { Texts } from "./ui/texts.js";
import { showTrees } from "./ui/trees.js";
import { Walkthrough } from "./ui/walkthrough.js";

/** The API for other extensions and for tests. */
export interface Api {
  link: Link;
  /** Connects if necessary. Rejects when it cannot reach a daemon. */
  open(): Promise<void>;
}

/** Milliseconds between two looks for a daemon, if none could be started. */
const RETRY_EVERY = 2000;

let current: Link | undefined;
let retry: NodeJS.Timeout | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const output = vscode.window.createOutputChannel("toold", { log: true });
  const changed = new vscode.EventEmitter<Part>();
  const texts = new Texts();
  const log = (message: string) => output.warn(message);
  const walkthrough = new Walkthrough();
  const asks = new Asks(texts, walkthrough, log);
  const link: Link = new Link({
    ...linkSettings(),
    folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
    onPermission: (ask, over) => asks.answer(link, ask, over),
    onPermissionChanged: (ask) => asks.renewed(link, ask),
    onQuestion: answerQuestion,
    onChange: (part) => changed.fire(part),
    log,
  });
  current = link;

  let provided: Promise<void> | undefined;
  const open = async () => {
    await link.open();
    provided ??= provideEditor(link.client, editor).catch((error: unknown) => {
      provided = undefined;
      throw error;
    });
    await provided;
  };

  context.subscriptions.push(
    output,
    changed,
    texts,
    showStatus(link, changed.event),
    ...showTrees(link, changed.event),
    ...registerCommands({ link, open, asks, texts, recent: new Recent(context.workspaceState), walkthrough }),
    ...registerChatTools(link, open, context.extension.packageJSON),
    ...watchBuffers(link, changed.event, log),
    registerMcp(context.extension.packageJSON.version),
    changed.event((part) => {
      if (part === "connection") void walkthrough.set("connected", link.connected);
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (!event.affectsConfiguration("toold")) return;
      const reload = "Reload Window";
      const chosen = await vscode.window.showInformationMessage("Reload the window to apply the settings of toold.", reload);
      if (chosen === reload) await vscode.commands.executeCommand("workbench.action.reloadWindow");
    }),
  );
  // Without a daemon, the status bar says so. A message would only be in the way.
  open().catch((error: Error) => {
    log(error.message);
    // Not after `deactivate`.
    if (current === link) retry = setInterval(() => void openIfRunning(), RETRY_EVERY);
  });
  const openIfRunning = async () => {
    if (!link.connected && !(await link.daemonRuns())) return;
    clearInterval(retry);
    open().catch((error: Error) => log(error.message));
  };
  return { link, open };
}

export async function deactivate(): Promise<void> {
  clearInterval(retry);
  await current?.close();
  current = undefined;
}
