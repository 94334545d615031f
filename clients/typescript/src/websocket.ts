/** Messages over a WebSocket, one in each text frame. */
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc/browser";

import { Connection, type Log } from "./connection.js";
import { Unreachable } from "./errors.js";
import { CLOSED, serialise, type Transport } from "./transport.js";

/** Gets the text of each message, before it is sent and when it has arrived. */
export type OnMessage = (direction: "sent" | "received", text: string) => void;

/** Connects. Throws `Unreachable`: a browser does not say whether nobody listens or the daemon refused. */
export async function openWebSocket(
  url: string,
  log: Log,
  onMessage: OnMessage = () => {},
  signal?: AbortSignal,
): Promise<Connection> {
  const socket = new WebSocket(url);
  signal?.addEventListener("abort", () => socket.readyState === WebSocket.CONNECTING && socket.close());
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener("close", ({ reason }) => {
      reject(new Unreachable(`can't connect to ${url}${reason ? `: ${reason}` : ""}`));
    });
  });
  return new Connection(overWebSocket(socket, onMessage), log);
}

function overWebSocket(socket: WebSocket, onMessage: OnMessage): Transport {
  let failure: string | undefined;
  socket.addEventListener("close", ({ wasClean, code, reason }) => {
    if (!wasClean || code > 1001) failure = reason || `it was closed with the code ${code}`;
  });
  return {
    reader: new FrameReader(socket, onMessage),
    writer: new FrameWriter(socket, onMessage),
    failure: () => failure,
    async close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      const closed = new Promise<void>((resolve) => {
        socket.addEventListener("close", () => resolve(), { once: true });
      });
      socket.close();
      await closed;
    },
  };
}

class FrameReader extends AbstractMessageReader implements MessageReader {
  readonly #socket: WebSocket;
  readonly #onMessage: OnMessage;

  constructor(socket: WebSocket, onMessage: OnMessage) {
    super();
    this.#socket = socket;
    this.#onMessage = onMessage;
  }

  listen(callback: DataCallback): Disposable {
    const listening = new AbortController();
    const { signal } = listening;
    this.#socket.addEventListener("message", ({ data }) => this.#frame(String(data), callback), { signal });
    this.#socket.addEventListener("close", () => callback({ jsonrpc: "2.0", method: CLOSED } as Message), { signal });
    return { dispose: () => listening.abort() };
  }

  #frame(text: string, callback: DataCallback): void {
    this.#onMessage("received", text);
    let message: Message;
    try {
      message = JSON.parse(text);
    } catch (error) {
      this.fireError(error);
      return;
    }
    callback(message);
  }
}

class FrameWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #socket: WebSocket;
  readonly #onMessage: OnMessage;

  constructor(socket: WebSocket, onMessage: OnMessage) {
    super();
    this.#socket = socket;
    this.#onMessage = onMessage;
  }

  async write(message: Message): Promise<void> {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const text = serialise(message);
    this.#onMessage("sent", text);
    this.#socket.send(text);
  }

  end(): void {
    this.#socket.close();
  }
}
