/** Permission requests as notifications, with a button for each suggestion, and a diff editor for the change. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

import { UnknownId, type Ask, type Reply } from "toold";
import * as vscode from "vscode";

import { sides } from "../diff.js";
import type { Link } from "../link.js";
import { askView, MORE, shortTitles } from "../prompts.js";
import { information, warning } from "./messages.js";
import type { Texts } from "./texts.js";
import type { Walkthrough } from "./walkthrough.js";

const SHOW_DIFF = "Show the Diff";

export class Asks {
  readonly #texts: Texts;
  readonly #walkthrough: Walkthrough;
  readonly #log: (message: string) => void;
  /** The ids of requests that are being answered here, by `answerOne`. */
  readonly #own = new Set<string>();

  constructor(texts: Texts, walkthrough: Walkthrough, log: (message: string) => void) {
    this.#texts = texts;
    this.#walkthrough = walkthrough;
    this.#log = log;
  }

  /** For `Link`: shows a permission request. If the notification is dismissed, other clients or `answerOne` can answer. */
  async answer(link: Link, ask: Ask, over: AbortSignal): Promise<Reply | undefined> {
    link.asked(ask, over);
    const ended = () => {
      void this.#close(ask);
      this.#sayEnd(ask, over.reason);
    };
    over.addEventListener("abort", ended, { once: true });
    const reply = await this.#prompt(link, ask);
    if (reply !== undefined && !over.aborted) {
      await this.#answered(link, ask);
      await this.#close(ask);
    } else if (reply !== undefined) {
      void information(endOf(over.reason));
    }
    return reply;
  }

  /** For `Link`: says who waits for the answer of an open request now. A notification that is shown cannot be changed. */
  renewed(link: Link, ask: Ask): void {
    const before = link.renewed(ask);
    const { message } = askView(ask, windowFolders());
    if (before && askView(before, windowFolders()).message !== message) {
      void information(`Now ${message}`);
    }
  }

  /** The command: shows an open permission request again. */
  async answerOne(link: Link): Promise<void> {
    const waiting = [...link.asks.values()].map((ask) => ({ label: askView(ask, [ask.cwd]).message, detail: ask.cwd, ask }));
    if (waiting.length === 0) {
      void information("No permission request is waiting.");
      return;
    }
    const title = "Answer which request?";
    const chosen = waiting.length === 1 ? waiting[0] : await vscode.window.showQuickPick(waiting, { title });
    const reply = chosen && (await this.#prompt(link, chosen.ask));
    if (!chosen || !reply) return;
    this.#own.add(chosen.ask.request_id);
    try {
      await link.client.request("permissions.reply", { ...reply, request_id: chosen.ask.request_id });
      await this.#answered(link, chosen.ask);
    } catch (error) {
      if (!(error instanceof UnknownId)) throw error;
      void information(`Nothing was changed: ${error.message}`);
    }
    await this.#close(chosen.ask);
  }

  /** Says how a request ended elsewhere, if the daemon said so: its notification cannot be closed. */
  #sayEnd(ask: Ask, how: unknown): void {
    if (this.#own.delete(ask.request_id) || typeof how !== "string") return;
    void information(`${how}: ${ask.target}`);
  }

  async #answered(link: Link, ask: Ask): Promise<void> {
    link.answered(ask);
    await this.#walkthrough.set("answered", true);
  }

  async #prompt(link: Link, ask: Ask): Promise<Reply | undefined> {
    for (;;) {
      const { message, buttons } = askView(link.asks.get(ask.request_id) ?? ask, windowFolders());
      const titles = shortTitles(buttons, ask.diff === undefined ? [] : [SHOW_DIFF]);
      const chosen = await warning(message, ...titles);
      if (chosen === SHOW_DIFF) {
        await this.#showDiff(ask);
        continue;
      }
      if (chosen === MORE) {
        const answers = buttons.map(({ title, reply }) => ({ label: title, reply }));
        const answer = await vscode.window.showQuickPick(answers, { title: message, ignoreFocusOut: true });
        if (answer) return answer.reply;
        // Back to the notification.
        continue;
      }
      return buttons.find(({ title }) => title === chosen)?.reply;
    }
  }

  async #showDiff(ask: Ask): Promise<void> {
    // A file that does not exist yet is empty.
    const current = await readFile(ask.target, "utf8").catch(() => "");
    const { before, after } = sides(ask.diff ?? "", current);
    const name = basename(ask.target);
    const left = this.#texts.put(`${ask.request_id}/before/${name}`, before);
    const right = this.#texts.put(`${ask.request_id}/after/${name}`, after);
    const title = `${name}: what ${ask.tool} would write`;
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true, preserveFocus: true });
  }

  async #close(ask: Ask): Promise<void> {
    try {
      await this.#texts.drop(ask.request_id);
    } catch (error) {
      this.#log(`can't close the diff of ${ask.target}: ${(error as Error).message}`);
    }
  }
}

function windowFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/** The message for an answer that came too late; `how` the request ended, if the daemon said so. */
function endOf(how: unknown): string {
  const known = typeof how === "string" ? `: ${how}` : "";
  return `This request was answered elsewhere, or its call has ended${known}.`;
}
