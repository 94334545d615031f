/** The end of a login at a mounted MCP server, when its page redirects the browser to this page. */
import { effect } from "@preact/signals";

import { link, request } from "./daemon.ts";
import { report, toast } from "./toasts.tsx";

/**
 * Where a login page should send the browser. Authorization servers redirect to the loopback address only, so `here` is
 * false for a page that was opened by another address: then a person copies the address that the browser ends at. The
 * port is one that browsers never connect to, so that the address reaches no other program.
 */
export function redirectAddress(): { uri: string; here: boolean } {
  const here = location.protocol === "http:" && location.hostname === "127.0.0.1" && location.port !== "";
  return { uri: here ? `${location.origin}${import.meta.env.BASE_URL}` : "http://127.0.0.1:1/callback", here };
}

/** Finishes the login whose redirect opened this page, if one did; the `state` tells the daemon which login it is. */
export function finishLogin(): void {
  const fields = new URLSearchParams(location.search);
  if (!fields.has("state") || !(fields.has("code") || fields.has("error"))) return;
  const redirected_to = location.href;
  // The code is for one use, and should not stay in the browser's history.
  history.replaceState(null, "", `${location.pathname}#/sources`);
  let sent = false;
  effect(() => {
    if (sent || link.value.state !== "connected") return;
    sent = true;
    request("mcp.login.finish", { redirected_to }, { timeout: Infinity }).then(
      ({ name }) => toast(`Logged in to ${name}. You can close this tab.`),
      report,
    );
  });
}
