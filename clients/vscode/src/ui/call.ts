/** The command that calls a tool: a list of tools, a form, progress, and the result in an editor. */
import { InvalidArguments, text, type Tool, type ToolResult } from "toold";
import * as vscode from "vscode";

import { argumentsOf, fieldsOf } from "../form.js";
import type { Link } from "../link.js";
import type { Recent } from "../recent.js";
import { toolItems } from "../tool-items.js";
import type { Parts } from "./commands.js";
import { fillIn } from "./form.js";
import { warning } from "./messages.js";
import { BACK, pickStep } from "./steps.js";
import type { Texts } from "./texts.js";

/** Calls the tool of this name, or the one that you pick. */
export async function callTool({ link, texts, recent, walkthrough }: Parts, name: string | undefined): Promise<void> {
  const named = link.tools.find((each) => each.name === name);
  for (;;) {
    const tool = named ?? (await pickTool(link, recent));
    if (!tool) return;
    const fields = fieldsOf(tool.input_schema);
    const last = recent.typed(tool.name);
    const typed = await fillIn(fields, { title: tool.name, submit: `Call ${tool.name}`, last, back: named === undefined });
    if (typed === undefined) return;
    if (typed === BACK) continue;
    // Before the call, so that you can correct arguments with which it fails.
    await recent.called(tool.name, fields, typed);
    const result = await run(link, tool.name, argumentsOf(fields, typed));
    if (!result) return;
    await walkthrough.set("called", true);
    return show(texts, tool.name, result);
  }
}

async function pickTool(link: Link, recent: Recent): Promise<Tool | undefined> {
  const items = toolItems(link.tools, recent.tools()).map((item) => {
    return item.tool ? item : { ...item, kind: vscode.QuickPickItemKind.Separator };
  });
  const placeholder = "Type a part of a name, a source or a description";
  const chosen = await pickStep(items, { title: "Call which tool?", placeholder });
  return chosen === BACK ? undefined : chosen?.[0]?.tool;
}

/** The result; `undefined` if you cancel the call. */
async function run(link: Link, name: string, args: Record<string, unknown>): Promise<ToolResult | undefined> {
  const options = { location: vscode.ProgressLocation.Notification, title: name, cancellable: true };
  return vscode.window.withProgress(options, async (progress, token) => {
    const controller = new AbortController();
    const cancelled = token.onCancellationRequested(() => controller.abort());
    // The notification adds up what it gets, and tools report sums.
    let shown = 0;
    try {
      return await link.client.execute(name, args, {
        signal: controller.signal,
        onProgress(step) {
          if (step.kind !== "update") return progress.report({ message: step.text.trimEnd().split("\n").at(-1) });
          const { message, total } = step;
          const done = total && step.progress !== undefined ? Math.min(100, (100 * step.progress) / total) : 0;
          progress.report({ message, increment: Math.max(0, done - shown) });
          shown = Math.max(shown, done);
        },
      });
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      if (!(error instanceof InvalidArguments)) throw error;
      const problems = error.errors.map(({ path, message }) => `${path.slice(1) || "arguments"}: ${message}`);
      throw new Error([error.message, ...problems].join("; "));
    } finally {
      cancelled.dispose();
    }
  });
}

async function show(texts: Texts, tool: string, result: ToolResult): Promise<void> {
  const written = text(result);
  if (result.is_error) void warning(`${tool}: ${written.split("\n")[0]}`);
  const uri = texts.put(`results/${result.call_id}/${tool}`, written);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
}
