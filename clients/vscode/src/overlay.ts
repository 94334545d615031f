/** Unsaved text, laid over its file in the daemon. Does not use `vscode`. */
import { TooldError, type Client } from "toold";

export interface Document {
  /** Absolute. */
  path: string;
  /** Grows with each change. */
  version: number;
  text: string;
  /** Whether it differs from the file. */
  unsaved: boolean;
}

/** Longer text is not sent at each keystroke: tools see the file instead. */
const MAX_TEXT = 4 * 1024 * 1024;

/**
 * Keeps the daemon's view of unsaved text current. One request at a time; of several changes meanwhile, only the last is
 * sent.
 */
export class Overlay {
  readonly #client: Client;
  readonly #log: (message: string) => void;
  /** The text that should lie over each file. */
  readonly #held = new Map<string, Document>();
  /** Paths whose text is not sent yet. */
  readonly #stale = new Set<string>();
  #sending: Promise<void> | undefined;

  constructor(client: Client, log: (message: string) => void) {
    this.#client = client;
    this.#log = log;
  }

  /** A document was opened, changed or saved. */
  changed(document: Document): void {
    if (!document.unsaved || document.text.length > MAX_TEXT) {
      this.closed(document.path);
      return;
    }
    this.#held.set(document.path, document);
    this.#send(document.path);
  }

  closed(path: string): void {
    if (this.#held.delete(path)) this.#send(path);
  }

  /** Sends all text again, which the daemon has dropped with the last connection. */
  reconnected(): void {
    for (const path of this.#held.keys()) this.#send(path);
  }

  /** Resolves when every change so far is sent. */
  async sent(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  #send(path: string): void {
    this.#stale.add(path);
    // In a later turn, so that simultaneous changes make one request.
    this.#sending ??= Promise.resolve()
      .then(() => this.#sendAll())
      .finally(() => (this.#sending = undefined));
  }

  async #sendAll(): Promise<void> {
    for (;;) {
      const [path] = this.#stale;
      if (path === undefined || !this.#client.connected) return;
      this.#stale.delete(path);
      const document = this.#held.get(path);
      try {
        if (document === undefined) await this.#client.request("buffers.clear", { path });
        else await this.#client.request("buffers.set", { path, version: document.version, text: document.text });
      } catch (error) {
        if (!(error instanceof TooldError)) throw error;
        this.#log(`tools do not see the unsaved text of ${path}: ${error.message}`);
      }
    }
  }
}
