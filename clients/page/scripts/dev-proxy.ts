/**
 * The proxy of `npm run dev` in front of a running daemon: it signs in with the daemon's own token, so that the page
 * needs no code. See "Develop" in the README.
 */
import type { ProxyOptions } from "vite";

/** From `TOOLD_RPC`, as `toolctl status` shows it, and `TOOLD_TOKEN`, of `toolctl mcp token --admin`. */
export function devProxy(environment = process.env): Record<string, ProxyOptions> {
  const { TOOLD_RPC: rpc, TOOLD_TOKEN: token } = environment;
  if (rpc === undefined || token === undefined) return {};
  const { host } = new URL(rpc);
  const headers = { authorization: `Bearer ${token}`, host, origin: `http://${host}` };
  return {
    "/page/rpc": { target: `ws://${host}`, ws: true, headers, rewrite: () => "/rpc" },
    "/page/session": { target: `http://${host}`, bypass: noContent },
    "/page/login": { target: `http://${host}`, bypass: noContent },
    "/page/logout": { target: `http://${host}`, bypass: noContent },
  };
}

const noContent: ProxyOptions["bypass"] = (_, response) => {
  response?.writeHead(204).end();
};
