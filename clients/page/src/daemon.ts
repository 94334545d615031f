/** The connection to the daemon: it reconnects by itself, and restores the session and the subscriptions. */
import { signal } from "@preact/signals";
import {
  openWebSocket,
  SUBSCRIPTIONS,
  Unreachable,
  within,
  type CallProgress,
  type Connection,
  type Methods,
  type Session,
  type SessionOpenParams,
  type Subscriptions,
} from "toold/browser";

import { note } from "./messages.ts";
import { report } from "./toasts.tsx";

export type Link =
  | { state: "connecting" }
  | { state: "connected" }
  /** `until` is when the next attempt begins, as a time stamp. */
  | { state: "lost"; reason: string; until: number }
  /** `again` if this page was signed in before. */
  | { state: "signed out"; again: boolean };

/** The state of the connection. */
export const link = signal<Link>({ state: "connecting" });

/** The page's session; `undefined` until a folder is chosen, see `openSession`. */
export const session = signal<Session | undefined>(undefined);

/** How long an ordinary request may take, in milliseconds. Tool calls have the daemon's limits. */
const PATIENCE = 30_000;
const CONNECT_PATIENCE = 10_000;
/** Between two attempts to connect, in milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 10_000;
/** The folder of the session in this browser, and its id in this tab. */
const FOLDER = "toold.folder";
const SESSION = "toold.session";

let connection: Connection | undefined;
let connectedOnce = false;
let retry: { timer: number; now: () => void } | undefined;
const subscriptions = new Set<KeptSubscription>();
const progress = new Map<string, (progress: CallProgress) => void>();

interface RequestLimits {
  signal?: AbortSignal;
  /** In milliseconds; `Infinity` for none. */
  timeout?: number;
}

/** Connects, and keeps connecting until the page is signed out. */
export async function start(): Promise<void> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    link.value = { state: "connecting" };
    const before = performance.now();
    const reason = await serve();
    if (link.peek().state === "signed out") return;
    // A connection that held for a while begins a new series of attempts.
    if (performance.now() - before > LONGEST_PAUSE) pause = FIRST_PAUSE;
    link.value = { state: "lost", reason, until: Date.now() + pause };
    await new Promise<void>((resolve) => {
      retry = { timer: window.setTimeout(resolve, pause), now: resolve };
    });
  }
}

/** Ends the pause before the next attempt. */
export function retryNow(): void {
  clearTimeout(retry?.timer);
  retry?.now();
}

/** Sends a request. Rejects with the errors of `toold/browser`. */
export async function request<M extends keyof Methods>(
  method: M,
  params: Methods[M]["params"],
  { signal, timeout = PATIENCE }: RequestLimits = {},
): Promise<Methods[M]["result"]> {
  const current = connection;
  if (current === undefined) throw new Unreachable("the page is not connected to the daemon");
  const answer = await within(timeout, method, (limit) => current.request(method, params, limit), signal);
  return answer as Methods[M]["result"];
}

/**
 * Subscribes, and again after each reconnect. `onStart` is called when a subscription has begun, so before its items;
 * state that was built from items of an earlier connection is stale then. Returns the function that ends it.
 */
export function subscribe<S extends keyof Subscriptions>(
  method: S,
  params: Subscriptions[S]["params"],
  onItem: (item: Subscriptions[S]["item"]) => void,
  onStart: () => void = () => {},
): () => void {
  const kept: KeptSubscription = {
    async restore(current) {
      const id = await current.subscribe(method, params, onItem);
      onStart();
      kept.end = () => {
        current.forget(id);
        // It ends with the connection too.
        if (current.lost === undefined) current.request(SUBSCRIPTIONS[method].end, { subscription: id }).catch(() => {});
      };
      if (!subscriptions.has(kept)) kept.end();
    },
    end: () => {},
  };
  subscriptions.add(kept);
  if (connection) restore(kept, connection);
  return () => {
    subscriptions.delete(kept);
    kept.end();
  };
}

/**
 * Opens the page's session in a folder, or resumes it there. The folder is remembered for the next visit. A folder that
 * a person opens becomes a workspace, so the page opens none by itself the first time.
 */
export async function openSession(cwd: string): Promise<Session> {
  const last = sessionStorage.getItem(SESSION);
  const opened = last !== null && cwd === localStorage.getItem(FOLDER) ? await resume(last) : await open({ cwd });
  localStorage.setItem(FOLDER, opened.cwd);
  sessionStorage.setItem(SESSION, opened.session_id);
  session.value = opened;
  return opened;

  function open(params: SessionOpenParams): Promise<Session> {
    return request("session.open", { ...params, client: { name: "page" }, protocol: 2, role: "person" });
  }
  /** Another daemon may not know the session. */
  function resume(id: string): Promise<Session> {
    return open({ cwd, session_id: id }).catch(() => open({ cwd }));
  }
}

/** Passes the progress of a call on this connection on. Returns the function that ends it. */
export function onProgress(callId: string, listener: (progress: CallProgress) => void): () => void {
  progress.set(callId, listener);
  return () => progress.delete(callId);
}

/** Ends the cookie's session with the daemon. */
export async function signOut(): Promise<void> {
  await fetch("/page/logout", { method: "POST" });
  link.value = { state: "signed out", again: false };
  localStorage.removeItem(FOLDER);
  sessionStorage.removeItem(SESSION);
  await connection?.close();
}

interface KeptSubscription {
  restore(connection: Connection): Promise<void>;
  end: () => void;
}

/** Connects, and returns why the connection has ended. */
async function serve(): Promise<string> {
  try {
    const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/page/rpc`;
    const log = (problem: string) => console.warn(problem);
    const current = await openWebSocket(url, log, note, AbortSignal.timeout(CONNECT_PATIENCE));
    const ended = new Promise<string>((resolve) => {
      current.onClosed = () => resolve(current.lost ?? "the connection is gone");
    });
    current.onProgress = (item) => progress.get(item.call_id)?.(item);
    connection = current;
    connectedOnce = true;
    link.value = { state: "connected" };
    for (const kept of subscriptions) restore(kept, current);
    void resumeSession();
    return await ended;
  } catch (error) {
    if (await signedOut()) link.value = { state: "signed out", again: connectedOnce };
    return error instanceof Error ? error.message : String(error);
  } finally {
    connection = undefined;
    session.value = undefined;
  }
}

async function resumeSession(): Promise<void> {
  const cwd = localStorage.getItem(FOLDER);
  if (cwd === null) return;
  try {
    await openSession(cwd);
  } catch {
    // The folder is gone, or not for this daemon: the views that need a session ask for one.
    localStorage.removeItem(FOLDER);
  }
}

function restore(kept: KeptSubscription, current: Connection): void {
  kept.restore(current).catch((error: unknown) => {
    if (current.lost === undefined) report(error);
  });
}

/** A browser does not say why a WebSocket failed, so this asks. */
async function signedOut(): Promise<boolean> {
  try {
    const { status } = await fetch("/page/session", { cache: "no-store" });
    return status === 401 || status === 403;
  } catch {
    return false;
  }
}
