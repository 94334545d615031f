/** The commands of `package.json`. */
import { stat } from "node:fs/promises";
import { join } from "node:path";

import { logFile, text, type ToolResult } from "toold";
import * as vscode from "vscode";

import { argumentsOf, fieldsOf } from "../form.js";
import type { Link } from "../link.js";
import type { Node } from "../nodes.js";
import type { Asks } from "./asks.js";
import { fillIn } from "./form.js";
import type { Texts } from "./texts.js";

export function registerCommands(link: Link, open: () => Promise<void>, asks: Asks, texts: Texts): vscode.Disposable[] {
  const commands: Record<string, (node?: Node) => Promise<void>> = {
    "toold.connect": open,
    "toold.call": async (node) => {
      await open();
      await call(link, texts, node?.name);
    },
    "toold.cancel": () => cancel(link),
    "toold.answer": () => asks.answerOne(link),
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
  };
  return Object.entries(commands).map(([name, run]) => {
    return vscode.commands.registerCommand(name, async (node?: Node) => {
      try {
        await run(node);
      } catch (error) {
        void vscode.window.showErrorMessage(`toold: ${(error as Error).message}`);
      }
    });
  });
}

/** Calls a tool with a form from its schema, and shows the result. */
async function call(link: Link, texts: Texts, name: string | undefined): Promise<void> {
  const tool = link.tools.find((each) => each.name === name) ?? (await pickTool(link));
  if (!tool) return;
  const fields = fieldsOf(tool.input_schema);
  const typed = await fillIn(tool.name, fields);
  if (!typed) return;
  const result = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: tool.name, cancellable: true },
    async (progress, token) => {
      const controller = new AbortController();
      const cancelled = token.onCancellationRequested(() => controller.abort());
      try {
        return await link.client.execute(tool.name, argumentsOf(fields, typed), {
          signal: controller.signal,
          onProgress(step) {
            const message = step.kind === "update" ? step.message : step.text.trimEnd().split("\n").at(-1);
            const increment = step.kind === "update" && step.total ? 100 / step.total : undefined;
            progress.report({ message, increment });
          },
        });
      } catch (error) {
        if (controller.signal.aborted) return undefined;
        throw error;
      } finally {
        cancelled.dispose();
      }
    },
  );
  if (result) await showResult(texts, tool.name, result);
}

async function pickTool(link: Link) {
  const items = link.tools.map((tool) => ({
    label: tool.name,
    description: tool.source.name,
    detail: tool.label,
    tool,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Call which tool?", matchOnDescription: true });
  return chosen?.tool;
}

async function showResult(texts: Texts, tool: string, result: ToolResult): Promise<void> {
  const written = text(result);
  if (result.is_error) void vscode.window.showWarningMessage(`${tool}: ${written.split("\n")[0]}`);
  const uri = texts.put(`results/${result.call_id}/${tool}`, written);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
}

async function cancel(link: Link): Promise<void> {
  const items = [...link.running.values()].map((call) => ({ label: call.tool, description: call.call_id, call }));
  if (items.length === 0) {
    void vscode.window.showInformationMessage("No call is running.");
    return;
  }
  const chosen =
    items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: "Cancel which call?" });
  if (!chosen) return;
  const { call_id, session_id } = chosen.call;
  await link.client.cancel(call_id, { sessionId: session_id });
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
  if (error) void vscode.window.showErrorMessage(`${plugin}: ${error.message}`);
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
  const chosen = await vscode.window.showWarningMessage(
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
