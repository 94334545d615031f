/** The same call for a terminal, for developers of clients. */
import { commandLine, quote } from "../../shell.ts";

export function toolctlCommand(tool: string, args: unknown, folder: string | undefined): string {
  const cwd = folder === undefined ? [] : ["--cwd", folder];
  return commandLine("toolctl", "call", tool, "--json", JSON.stringify(args), ...cwd);
}

/** By MCP over HTTP, in the revision that needs no session. */
export function curlCommand(url: string, tool: string, args: unknown): string {
  const protocol = "2026-07-28";
  const params = {
    name: tool,
    arguments: args,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": protocol,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  };
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": protocol,
    "Mcp-Method": "tools/call",
    "Mcp-Name": tool,
  };
  const lines = [
    `curl -sS ${quote(url)}`,
    `-H "Authorization: Bearer $(toolctl mcp token)"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    `-d ${quote(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }))}`,
  ];
  return lines.join(" \\\n  ");
}
