/**
 * What can go wrong between a client and the daemon.
 *
 * A tool that ran and has bad news is no error: its result has `is_error`. These are for requests that have
 * no answer (`Unreachable`, `RequestTimeout`, `TooLarge`) and for those that the daemon refused (`RpcError`).
 */
import { ERROR_CODES } from "./protocol.js";

/** All that this package throws on its own account. */
export class TooldError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** No daemon could be reached, or the one that was has gone away. */
export class Unreachable extends TooldError {}

/** Nobody listens at the socket, and none was to be started. */
export class NotRunning extends Unreachable {}

/** A daemon could not be started; the message has what it said. */
export class StartFailed extends Unreachable {}

/** The connection ended while a request was in flight: whether it was carried out is not known. */
export class Disconnected extends Unreachable {}

/**
 * The connection ended before the daemon read the request: it was not carried out. `Client` sends it to the daemon that
 * took over, and rejects with this only when there is none, or with `reconnect: false`.
 */
export class NotRead extends Disconnected {}

/** The caller's own patience has ended. A tool's time-out is a result instead. */
export class RequestTimeout extends TooldError {}

/** Refused before it was sent: the daemon would not read so long a message. */
export class TooLarge extends TooldError {}

/** The daemon answered with an error. Its subclasses are what a program may want to tell apart. */
export class RpcError extends TooldError {
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** The word for programs, such as `unknown_tool`; empty when there is none. */
  get kind(): string {
    return String(this.data["kind"] ?? "");
  }
}

/** The arguments do not fit the tool's schema. */
export class InvalidArguments extends RpcError {
  /** Every problem: `path` is a JSON Pointer into the arguments, `message` is for the model. */
  get errors(): { path: string; message: string }[] {
    return (this.data["errors"] ?? []) as { path: string; message: string }[];
  }
}

/** There is no such tool in the session's view. */
export class UnknownTool extends RpcError {
  /** Names that were perhaps meant, the nearest first. */
  get suggestions(): string[] {
    return (this.data["suggestions"] ?? []) as string[];
  }
}

/** The permission engine failed or is closing. A "no" is never this, but a result with `is_error`. */
export class PermissionsUnavailable extends RpcError {}

/** The tool could not be run: a panic, a missing dependency. */
export class ExecutionFailed extends RpcError {}

/** A session, request or subscription that there is not; `kind` says which. */
export class UnknownId extends RpcError {}

/** A limit on calls is reached; the call did not run. */
export class Overloaded extends RpcError {}

/** The call was cancelled. */
export class CallCancelled extends RpcError {}

const BY_CODE = new Map<number, typeof RpcError>([
  [ERROR_CODES.unknown_tool, UnknownTool],
  [ERROR_CODES.permission_denied, PermissionsUnavailable],
  [ERROR_CODES.execution_failed, ExecutionFailed],
  [ERROR_CODES.unknown_session, UnknownId],
  [ERROR_CODES.overloaded, Overloaded],
  [ERROR_CODES.cancelled, CallCancelled],
]);

/** The exception for a JSON-RPC error object. */
export function errorOf(wire: unknown): RpcError {
  const { code, message, data } = (wire ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  const members = typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
  const number = Number(code ?? 0);
  let kind = BY_CODE.get(number) ?? RpcError;
  if (number === ERROR_CODES.invalid_params && members["kind"] === "invalid_args") kind = InvalidArguments;
  return new kind(number, String(message ?? ""), members);
}
