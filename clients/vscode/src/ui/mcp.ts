/** The daemon as an MCP server for chat, for the tools of plugins: `package.json` cannot declare tools that change. */
import * as vscode from "vscode";

import { flag, socketEnvironment, toolctl } from "./settings.js";

export function registerMcp(version: string): vscode.Disposable {
  return vscode.lm.registerMcpServerDefinitionProvider("toold.mcp", {
    provideMcpServerDefinitions() {
      const program = toolctl();
      if (program === undefined || !flag("mcp")) return [];
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      // The built-ins are chat tools already.
      const args = ["mcp", "--without-source", "builtin", ...(folder ? ["--cwd", folder.fsPath] : [])];
      const server = new vscode.McpStdioServerDefinition("toold", program, args, socketEnvironment(), version);
      server.cwd = folder;
      return [server];
    },
  });
}
