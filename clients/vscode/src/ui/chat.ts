/** The tools that `package.json` declares, for chat. */
import * as vscode from "vscode";

import { callForModel, declared, invocationMessage, toolOf } from "../chat.js";
import type { Link } from "../link.js";

export function registerChatTools(link: Link, open: () => Promise<void>, manifest: unknown): vscode.Disposable[] {
  return declared(manifest).map((name) => vscode.lm.registerTool(name, chatTool(link, open, toolOf(name))));
}

function chatTool(link: Link, open: () => Promise<void>, tool: string): vscode.LanguageModelTool<object> {
  return {
    // No confirmation here: the daemon asks for permission itself, in all its clients.
    prepareInvocation: ({ input }) => ({ invocationMessage: invocationMessage(tool, input) }),
    async invoke({ input }, token) {
      const controller = new AbortController();
      const cancelled = token.onCancellationRequested(() => controller.abort(new vscode.CancellationError()));
      try {
        await open();
        const texts = await callForModel(link.client, tool, input, controller.signal);
        return new vscode.LanguageModelToolResult(texts.map((text) => new vscode.LanguageModelTextPart(text)));
      } finally {
        cancelled.dispose();
      }
    },
  };
}
