/** Signing in with the one-time code of `toolctl page`. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { link, start } from "./daemon.ts";
import { Text } from "./text.tsx";

/**
 * Redeems the code of a link such as `#code=CODE&ask=REQUEST_ID`, and removes it from the address and the browser's
 * history. The rest of the fragment stays, as the address of a view.
 */
async function openLink(): Promise<void> {
  const { code, route } = parseFragment(location.hash);
  if (code === undefined) return;
  location.replace(`#${route}`);
  // A refusal is shown if the connection is refused too: this browser may be signed in already.
  refusal.value = await redeem(code);
}

/** Connects, with the code of the link if it has one, and again with the code of a link that is opened in this tab. */
export async function startFromLink(): Promise<void> {
  addEventListener("hashchange", () => {
    if (parseFragment(location.hash).code === undefined) return;
    void openLink().then(() => {
      if (link.peek().state === "signed out") void start();
    });
  });
  await openLink();
  await start();
}

/** Why the last code was refused. */
const refusal = signal<string | undefined>(undefined);

/** Splits a fragment into the code and the address of a view. */
function parseFragment(fragment: string): { code?: string; route: string } {
  const text = fragment.replace(/^#/, "");
  if (!/(^|&)code=/.test(text)) return { route: text };
  const [path = "", ...rest] = text.split("&").filter((part) => !part.includes("="));
  const fields = new URLSearchParams(text);
  const ask = fields.get("ask");
  const route = ask === null ? [path, ...rest].join("&") : `/decide/${encodeURIComponent(ask)}`;
  return { code: fields.get("code") ?? undefined, route: route || "/" };
}

/** Returns why the daemon refused the code. */
async function redeem(code: string): Promise<string | undefined> {
  try {
    const answer = await fetch("/page/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.ok) return undefined;
    return (await answer.text()).trim() || `the daemon refused the code with status ${answer.status}`;
  } catch (error) {
    return `the daemon does not answer: ${error instanceof Error ? error.message : error}`;
  }
}

export function SignIn() {
  const [code, setCode] = useState("");
  const [busy, setBusy] = useState(false);
  const signIn = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    // A whole link may be pasted too.
    const given = parseFragment(code.includes("#") ? code.slice(code.indexOf("#")) : `code=${code.trim()}`);
    refusal.value = await redeem(given.code ?? "");
    setBusy(false);
    if (refusal.value === undefined) void start();
  };
  return (
    <main class="sign-in" id="main">
      <h1>toold</h1>
      {link.value.state === "signed out" && link.value.again && (
        <p class="notice" role="status">
          This browser is signed out: its sign-in has expired or was revoked, or the daemon was stopped.
        </p>
      )}
      <p>
        Run <code>toolctl page</code> in a terminal and open the link that it prints, or enter its code here. A code works
        once.
      </p>
      <form onSubmit={(event) => void signIn(event)}>
        <label>
          Code
          <input
            name="code"
            required
            autocomplete="one-time-code"
            autocapitalize="off"
            spellcheck={false}
            value={code}
            onInput={(event) => setCode(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
      {refusal.value !== undefined && (
        <p class="problem" role="alert">
          <Text value={refusal.value} />
        </p>
      )}
    </main>
  );
}
