/** The stream of messages below a connection, and the measures that all kinds of streams share. */
import type { Message, MessageReader, MessageWriter } from "vscode-jsonrpc";

export interface Transport {
  /** Ends its messages with one of the method `CLOSED`. */
  readonly reader: MessageReader;
  /** Never fails: a broken stream is reported by its end. */
  readonly writer: MessageWriter;
  /** Why the stream broke; `undefined` while it is open, and when the daemon closed it. */
  failure(): string | undefined;
  /** Resolves when the stream is closed. */
  close(): Promise<void>;
}

/** The longest message that the daemon reads and sends, in bytes. */
export const MAX_MESSAGE = 16 * 1024 * 1024;

/** Follows the last message, when the stream is closed. */
export const CLOSED = "$/closed";

/** The size of params on the wire in bytes, of progress only. */
export const wireSizes = new WeakMap<object, number>();

/** Params that were serialised already, to measure them. */
const serialised = new WeakMap<object, string>();

const encoder = new TextEncoder();

/** The size of these params in bytes. The text is kept until the message is written. */
export function measure(params: object): number {
  const text = JSON.stringify(params);
  serialised.set(params, text);
  return encoder.encode(text).length;
}

/** A message as text, with the params as they were measured. */
export function serialise(message: Message): string {
  const { params, ...rest } = message as Message & { params?: object };
  const text = params && serialised.get(params);
  return text === undefined ? JSON.stringify(message) : `${JSON.stringify(rest).slice(0, -1)},"params":${text}}`;
}
