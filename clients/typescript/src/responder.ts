/** Callbacks that answer permission requests and questions. */
import type { Connection, Log } from "./connection.js";
import { Disconnected, RpcError, UnknownId } from "./errors.js";
import type { Action, Ask, PermissionEvent, Question, QuestionEvent, Scope } from "./protocol.js";

/** An answer to a permission request. */
export interface Reply {
  action: Action;
  /** How long it holds; `once` by default. */
  scope?: Scope;
  /** One of the suggestions, or exactly the target, which is the default. */
  pattern?: string;
  /** For the model: the reason, or what to do instead. */
  message?: string;
  /** How long the grant is valid, in seconds. */
  expires_in?: number;
  /** The permission is for all `parts` of the ask, each exactly as shown; not together with `pattern`. */
  all_parts?: boolean;
}

/** An answer to a question: ids of options, free text, the fields of its form, a refusal, or no answer. */
export type Answer =
  | { answer_ids: string[]; answer?: string }
  | { answer: string }
  | { content: Record<string, unknown> }
  | { declined: true }
  | { cancelled: true };

/**
 * Called with each permission request, several at once. The first answer from any client counts; `over` fires when no
 * answer is needed any more. Return `undefined` to let another client answer. A callback that fails denies.
 */
export type OnPermission = (ask: Ask, over: AbortSignal) => Promise<Reply | undefined> | Reply | undefined;

/**
 * Called when an ask that is open has changed: its `agent`, `agents` and `call_ids` name those that wait for the answer now.
 * The callback that it was given to goes on.
 */
export type OnPermissionChanged = (ask: Ask) => void;

/** Called with each question. A callback that fails cancels the question. See `OnPermission`. */
export type OnQuestion = (question: Question, over: AbortSignal) => Promise<Answer | undefined> | Answer | undefined;

/**
 * Whether a client asks for a folder to work in, and not for one file; `reason` names the client and the folder. Every
 * other request to read suggests patterns. All answers but those for the session are remembered for this client and
 * folder.
 */
export function isForWorkspace(ask: Ask): boolean {
  return ask.category === "file.read" && ask.suggestions.length === 0;
}

export interface Responder {
  restore(connection: Connection, signal?: AbortSignal): Promise<void>;
  /** Fires `over` of all open prompts. */
  end(): void;
  /** Ends, and unsubscribes. */
  close(): Promise<void>;
}

export function permissionResponder(answer: OnPermission, log: Log, changed?: OnPermissionChanged): Responder {
  return responder<"permissions", Ask, Reply>("permissions", answer, () => ({ action: "deny" }), log, changed);
}

export function questionResponder(answer: OnQuestion, log: Log): Responder {
  return responder<"questions", Question, Answer>("questions", answer, () => ({ cancelled: true }), log);
}

function responder<S extends "permissions" | "questions", P extends { request_id: string }, A extends object>(
  subject: S,
  answer: (prompt: P, over: AbortSignal) => Promise<A | undefined> | A | undefined,
  onFailure: () => A,
  log: Log,
  changed?: (prompt: P) => void,
): Responder {
  const open = new Map<string, AbortController>();
  let active: { connection: Connection; subscription: string } | undefined;

  const end = () => {
    for (const over of open.values()) over.abort();
    open.clear();
  };

  const ask = async (connection: Connection, prompt: P) => {
    if (open.has(prompt.request_id)) {
      changed?.(prompt);
      return;
    }
    const over = new AbortController();
    open.set(prompt.request_id, over);
    let reply: A | undefined;
    try {
      reply = await answer(prompt, over.signal);
    } catch (error) {
      // A prompt that fails must not leave a call waiting, and must never allow.
      if (!over.signal.aborted) log(`the callback for ${subject} failed: ${(error as Error).message ?? error}`);
      reply = onFailure();
    }
    // A prompt that other clients answer stays open here, so that its `over` fires.
    if (over.signal.aborted || reply === undefined) return;
    open.delete(prompt.request_id);
    try {
      await connection.request(`${subject}.reply`, { ...reply, request_id: prompt.request_id });
    } catch (error) {
      // Another client answered first, or the call is over.
      if (error instanceof UnknownId || error instanceof Disconnected) return;
      log(`the daemon refused an answer for ${subject}: ${(error as Error).message}`);
      // A refused answer would keep the call waiting, so send the answer that is never refused.
      if (error instanceof RpcError) {
        await connection.request(`${subject}.reply`, { ...onFailure(), request_id: prompt.request_id }).catch(() => {});
      }
    }
  };

  return {
    async restore(connection, signal) {
      end();
      const onItem = (item: PermissionEvent | QuestionEvent) => {
        if (item.type === "asked") {
          void ask(connection, item.request as unknown as P);
          return;
        }
        // How it ended, in words, is the reason of the signal.
        open.get(item.request_id)?.abort("how" in item && item.how ? item.how : undefined);
        open.delete(item.request_id);
      };
      const subscription = await connection.subscribe(`${subject}.subscribe`, {}, onItem, signal);
      active = { connection, subscription };
    },
    end,
    async close() {
      end();
      const { connection, subscription } = active ?? {};
      active = undefined;
      if (!connection || !subscription || connection.lost !== undefined) return;
      connection.forget(subscription);
      await connection.request(`${subject}.unsubscribe`, { subscription }).catch(() => {});
    },
  };
}
