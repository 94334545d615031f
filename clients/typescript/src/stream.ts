/** One JSON text per line over a socket, in the interface of vscode-jsonrpc. */
import { connect, type Socket } from "node:net";

import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc/node";

import { Connection, type Log } from "./connection.js";
import { NotRunning, Unreachable } from "./errors.js";
import { CLOSED, MAX_MESSAGE, serialise, wireSizes, type Transport } from "./transport.js";

/** A longer line ends the connection: it does not come from a daemon, which keeps its limits. */
const MAX_LINE = 4 * MAX_MESSAGE;

/** How long the rest is read when nothing can be written any more, in milliseconds. */
const LAST_WORDS = 5000;

/** Connects to a socket. Throws `NotRunning` when nobody listens, `Unreachable` for the rest. */
export async function openSocket(path: string, log: Log): Promise<Connection> {
  const socket = connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", (error: NodeJS.ErrnoException) => {
      const nobody = ["ENOENT", "ECONNREFUSED", "ECONNRESET"].includes(error.code ?? "");
      if (nobody) reject(new NotRunning(`no daemon is running at ${path}`));
      else reject(new Unreachable(`can't connect to ${path}: ${error.message}`, { cause: error }));
    });
  });
  return new Connection(overSocket(socket), log);
}

function overSocket(socket: Socket): Transport {
  let failure: string | undefined;
  socket.removeAllListeners("error");
  socket.on("error", (error) => (failure = error.message));
  keepReading(socket);
  return {
    reader: new LineReader(socket),
    writer: new LineWriter(socket),
    failure: () => failure,
    async close() {
      if (socket.closed) return;
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.destroy();
      await closed;
    },
  };
}

/**
 * Lets a socket be read to its end when it cannot be written to. Node would close it at once, and lose answers that
 * have arrived, and the notice that another daemon takes over.
 */
function keepReading(socket: Socket): void {
  type Written = (error?: Error | null) => void;
  const own = socket as unknown as {
    _write(chunk: unknown, encoding: string, written: Written): void;
    _writev?(chunks: unknown, written: Written): void;
  };
  const kept =
    (written: Written): Written =>
    (error) => {
      if (error) setTimeout(() => socket.destroy(error), LAST_WORDS).unref();
      written();
    };
  const write = own._write.bind(socket);
  own._write = (chunk, encoding, written) => write(chunk, encoding, kept(written));
  const writev = own._writev?.bind(socket);
  if (writev) own._writev = (chunks, written) => writev(chunks, kept(written));
}

class LineReader extends AbstractMessageReader implements MessageReader {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
  }

  listen(callback: DataCallback): Disposable {
    let parts: Buffer[] = [];
    let waiting = 0;
    this.#socket.on("data", (data: Buffer) => {
      let start = 0;
      for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
        parts.push(data.subarray(start, end));
        this.#line(parts.length === 1 ? parts[0]! : Buffer.concat(parts), callback);
        parts = [];
        waiting = 0;
        start = end + 1;
      }
      if (start < data.length) {
        parts.push(data.subarray(start));
        waiting += data.length - start;
        if (waiting > MAX_LINE) this.#socket.destroy(new Error(`a message is longer than ${MAX_LINE} bytes`));
      }
    });
    // In the same queue as the messages, so that all of them are read before the end is reported.
    this.#socket.on("close", () => callback({ jsonrpc: "2.0", method: CLOSED } as Message));
    return { dispose: () => this.#socket.removeAllListeners("data") };
  }

  #line(line: Buffer, callback: DataCallback): void {
    if (line.length === 0) return;
    let message: Message & { method?: string; params?: object };
    try {
      message = JSON.parse(line.toString("utf8"));
    } catch (error) {
      this.fireError(error);
      return;
    }
    if (message.method === "tools.progress" && message.params) wireSizes.set(message.params, line.length);
    callback(message);
  }
}

class LineWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
  }

  /** Never fails: a broken socket is reported by its end. */
  write(message: Message): Promise<void> {
    const line = serialise(message);
    return new Promise((resolve) => {
      if (this.#socket.writable) this.#socket.write(`${line}\n`, () => resolve());
      else resolve();
    });
  }

  end(): void {
    this.#socket.end();
  }
}
