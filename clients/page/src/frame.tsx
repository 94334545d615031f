/** The frame around the views: navigation, state of the connection, messages and dialogs. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { ConfirmDialog } from "./confirm.tsx";
import { link, retryNow, signOut } from "./daemon.ts";
import { Icon } from "./icons.tsx";
import { firstKey, Key, keysInUse, useKeys } from "./keys.tsx";
import { PauseButton, PausedNote } from "./pause.tsx";
import { followPrompts, openPrompts } from "./prompts.ts";
import { HashRouter, useLocation, useView, ViewLink, Views, VIEWS } from "./router.tsx";
import { SignIn } from "./sign-in.tsx";
import { Text } from "./text.tsx";
import { nextTheme, theme } from "./theme.ts";
import { clock, duration } from "./time.tsx";
import { report, Toasts } from "./toasts.tsx";

export function Frame() {
  useEffect(followPrompts, []);
  const signedOut = link.value.state === "signed out";
  return (
    <HashRouter>
      {signedOut ? <SignIn /> : <SignedIn />}
      <Toasts />
      <ConfirmDialog />
    </HashRouter>
  );
}

function SignedIn() {
  const view = useView();
  const [, navigate] = useLocation();
  const [help, setHelp] = useState(false);
  useSignalEffect(() => {
    document.title = openPrompts.value > 0 ? `(${openPrompts.value}) toold` : "toold";
  });
  useKeys([
    { key: "?", label: "Keys", run: () => setHelp(true) },
    ...VIEWS.map(({ key, title, path }) => ({ key: `g ${key}`, label: title, run: () => navigate(path) })),
  ]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the view
      </a>
      <nav class="navigation" aria-label="Views">
        {VIEWS.map(({ path, title }) => (
          <ViewLink key={path} href={path} aria-current={path === view.path ? "page" : undefined}>
            <Icon name={path} />
            <span>{title}</span>
            {path === "/decide" && openPrompts.value > 0 && (
              <span class="count">
                {openPrompts.value}
                <span class="hidden"> open</span>
              </span>
            )}
          </ViewLink>
        ))}
      </nav>
      <header class="top">
        <h1>{view.title}</h1>
        <LinkState />
        <PauseButton />
        <button type="button" class="plain" onClick={nextTheme}>
          Theme: {theme.value}
        </button>
        <button type="button" class="plain" onClick={() => void signOut().catch(report)}>
          Sign out
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <PausedNote />
        <Views />
      </main>
      <NextKeys />
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Not by the link's own address, which names the view. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** The keys that can follow the first of two. */
function NextKeys() {
  const first = firstKey.value;
  if (first === undefined) return null;
  return (
    <p class="hint" role="status">
      {keysInUse()
        .filter(({ key }) => key.startsWith(`${first} `))
        .map(({ key, label }) => (
          <span key={key}>
            <Key name={key.slice(first.length + 1)} /> <Text value={label} />
          </span>
        ))}
    </p>
  );
}

function KeyHelp({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="keys-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="keys-title">Keys</h2>
        <dl class="keys">
          {keysInUse().map(({ key, label }) => (
            <div key={key}>
              <dt>
                <kbd class="key">{key}</kbd>
              </dt>
              <dd>
                <Text value={label} />
              </dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button type="submit" autofocus>
            Close
          </button>
        </div>
      </form>
    </dialog>
  );
}

function LinkState() {
  const state = link.value;
  if (state.state !== "lost") {
    return (
      <p class={`link-state ${state.state}`} role="status">
        {state.state}
      </p>
    );
  }
  const wait = Math.max(0, state.until - clock.value);
  return (
    <p class="link-state lost" role="status">
      <span title={state.reason}>not connected</span>
      <span aria-hidden="true">{wait >= 1000 ? `, again in ${duration(Math.round(wait / 1000) * 1000)}` : ""}</span>
      <button type="button" onClick={retryNow}>
        Try now
      </button>
    </p>
  );
}
