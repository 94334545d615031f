/** All sources of tools. The daemon announces changes of plugins and tools only, so the rest is read regularly. */
import { useEffect, useState } from "preact/hooks";
import type { FleetStatusResult, McpServer, Plugin, RemotesListResult, Tool, ToolsListResult } from "toold/browser";

import { link, request, session, subscribe } from "../../daemon.ts";
import { report } from "../../toasts.tsx";

export type Remote = RemotesListResult["remotes"][number];

export interface Inventory {
  plugins: readonly Plugin[];
  servers: readonly McpServer[];
  remotes: readonly Remote[];
  fleet: FleetStatusResult;
  tools: readonly Tool[];
}

/** How often the state of servers and remotes is read while the page is visible, in milliseconds. */
const INTERVAL = 3000;
/** Events within this time are one change, in milliseconds. */
const GATHER = 200;

/** `undefined` until it is loaded. */
export function useInventory(): { inventory: Inventory | undefined; reload: () => void } {
  const [inventory, setInventory] = useState<Inventory>();
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((version) => version + 1);
  // Plugins of a project are seen from its folder only.
  const folder = session.value?.cwd;
  const connected = link.value.state === "connected";
  useEffect(() => {
    if (!connected) return;
    let current = true;
    load().then((loaded) => current && setInventory(loaded), report);
    return () => void (current = false);
  }, [version, folder, connected]);
  useEffect(() => {
    let timer: number | undefined;
    const later = () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        reload();
      }, GATHER);
    };
    const regularly = setInterval(() => !document.hidden && later(), INTERVAL);
    const kinds = [
      "tools.changed",
      "config.changed",
      "fleet.changed",
      "plugin.loaded",
      "plugin.failed",
      "plugin.untrusted",
      "plugin.unloaded",
      "plugin.refused",
    ];
    const end = subscribe("events.subscribe", { kinds }, later);
    return () => {
      end();
      clearInterval(regularly);
      clearTimeout(timer);
    };
  }, []);
  return { inventory, reload };
}

async function load(): Promise<Inventory> {
  const [{ plugins }, { servers }, { remotes }, fleet, tools] = await Promise.all([
    request("plugins.list", { all: true }),
    request("mcp.servers", {}),
    request("remotes.list", {}),
    request("fleet.status", {}),
    listTools(),
  ]);
  return { plugins, servers, remotes, fleet, tools };
}

let lastTools: (ToolsListResult & { session: string | undefined }) | undefined;

/** With their schemas they are long, so the daemon sends them only when they have changed. */
async function listTools(): Promise<readonly Tool[]> {
  const id = session.value?.session_id;
  const known = lastTools?.session === id ? lastTools : undefined;
  const answer = await request("tools.list", { mode: "all", if_revision: known?.revision, if_epoch: known?.epoch });
  if (!answer.unchanged) lastTools = { ...answer, session: id };
  return lastTools?.tools ?? [];
}

export type SourceKind = "builtin" | "plugin" | "mcp" | "remote" | "fleet" | "frontend";

export function sourcePath(kind: SourceKind, name: string): string {
  return `/sources/${kind}/${encodeURIComponent(name)}`;
}
