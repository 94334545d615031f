/** The commands of `package.json`. */
import { stat } from "node:fs/promises";
import { join } from "node:path";

import { Disconnected, logFile } from "toold";
import * as vscode from "vscode";

import type { Link } from "../link.js";
import type { Node } from "../nodes.js";
import type { Recent } from "../recent.js";
import type { Asks } from "./asks.js";
import { callTool } from "./call.js";
import { changeLevel } from "./level.js";
import { information, problem, warning } from "./messages.js";
import type { Texts } from "./texts.js";
import { undoChange } from "./undo.js";
import type { Walkthrough } from "./walkthrough.js";

/** The parts of the window that commands use. */
export interface Parts {
  link: Link;
  /** Connects, and starts the daemon if necessary. */
  open: () => Promise<void>;
  asks: Asks;
  texts: Texts;
  recent: Recent;
  walkthrough: Walkthrough;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { link, open, asks, texts, walkthrough } = parts;
  const commands: Record<string, (node?: Node) => Promise<void>> = {
    "toold.connect": open,
    "toold.call": async (node) => {
      await open();
      await callTool(parts, node?.name);
    },
    "toold.runCommand": async () => {
      await open();
      await runCommand(link);
    },
    "toold.cancel": () => cancel(link),
    "toold.answer": () => asks.answerOne(link),
    "toold.level": async () => {
      await open();
      await changeLevel(link);
    },
    "toold.undo": async () => {
      await open();
      await undoChange(link, texts);
    },
    "toold.reloadPlugin": async (node) => {
      await open();
      await reloadPlugin(link, node?.name);
    },
    "toold.trust": async (node) => {
      if (node?.file) await trust(link, node.label, node.file.path);
    },
    "toold.openPlugin": async (node) => {
      if (node?.file) await vscode.window.showTextDocument(vscode.Uri.file(await scriptOf(node.file.path)));
    },
    "toold.showLog": () => showLog(link),
    "toold.getStarted": () => walkthrough.open(),
  };
  return Object.entries(commands).map(([name, run]) => {
    return vscode.commands.registerCommand(name, async (node?: Node) => {
      try {
        await run(node);
      } catch (error) {
        void problem(`toold: ${messageOf(error as Error)}`);
      }
    });
  });
}

function messageOf(error: Error): string {
  if (!(error instanceof Disconnected)) return error.message;
  return "the daemon is gone. This command may or may not have taken effect; the next one reconnects.";
}

async function cancel(link: Link): Promise<void> {
  const items = [...link.running.values()].map((call) => ({ label: call.tool, description: call.call_id, call }));
  if (items.length === 0) {
    void information("No call is running.");
    return;
  }
  const chosen =
    items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: "Cancel which call?" });
  if (!chosen) return;
  const { call_id, session_id } = chosen.call;
  await link.client.cancel(call_id, { sessionId: session_id });
}

/** Asks for a command of a plugin and its input, runs it, and shows its answer. */
async function runCommand(link: Link): Promise<void> {
  const { commands } = await link.client.request("commands.list", {});
  if (commands.length === 0) {
    void information("No plugin has a command.");
    return;
  }
  const items = commands.map(({ name, description, plugin }) => {
    return { label: `/${name}`, description: plugin, detail: description, name };
  });
  const chosen = await vscode.window.showQuickPick(items, { title: "Run which command?" });
  if (!chosen) return;
  const input = await vscode.window.showInputBox({ title: chosen.label, prompt: chosen.detail });
  if (input === undefined) return;
  const result = await link.client.request("commands.run", { name: chosen.name, input });
  const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  if (result.is_error) void problem(`${chosen.label}: ${text}`);
  else void information(text || `${chosen.label} is done`, { modal: text.includes("\n") });
}

async function reloadPlugin(link: Link, name: string | undefined): Promise<void> {
  let plugin = name;
  if (plugin === undefined) {
    const items = link.plugins.map(({ name, status, path }) => ({ label: name, description: status, detail: path }));
    plugin = (await vscode.window.showQuickPick(items, { title: "Reload which plugin?" }))?.label;
  }
  if (plugin === undefined) return;
  const { plugins } = await link.client.request("plugins.reload", { name: plugin });
  const error = plugins.find((each) => each.name === plugin)?.error;
  if (error) void problem(`${plugin}: ${error.message}`);
  else void vscode.window.setStatusBarMessage(`${plugin} loaded`, 3000);
}

/** Shows a project's plugin, and trusts exactly this version once you agree. */
async function trust(link: Link, name: string, path: string): Promise<void> {
  const { items } = await link.client.request("plugins.trust", { path, preview: true });
  if (items.every((item) => item.trusted)) return;
  await vscode.window.showTextDocument(vscode.Uri.file(await scriptOf(path)), { preview: true });
  const files = items.flatMap((item) => item.files.map((file) => file.path));
  const detail = `It runs in the daemon, with the permissions that you give it:\n${files.join("\n")}`;
  const yes = "Trust";
  const chosen = await warning(
    `Trust the plugin ${name} as it is now?`,
    { modal: true, detail },
    yes,
  );
  if (chosen !== yes) return;
  // A version that was saved meanwhile is not trusted.
  const expect = Object.fromEntries(items.map((item) => [item.path, item.digest]));
  await link.client.request("plugins.trust", { path, expect });
}

/** A plugin is a file, or a folder with a script. */
async function scriptOf(path: string): Promise<string> {
  return (await stat(path)).isDirectory() ? join(path, "plugin.lua") : path;
}

async function showLog(link: Link): Promise<void> {
  const uri = vscode.Uri.file(logFile() ?? `${link.socket}.log`);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
}
