/**
 * Errors between a client and the daemon.
 *
 * A tool that ran and failed is not an error here: its result has `is_error`. These are for requests without an answer
 * (`Unreachable`, `RequestTimeout`, `TooLarge`) and for those that the daemon refused (`RpcError`).
 */
import { ERROR_CODES } from "./protocol.js";

/** The base of all errors of this package. */
export class TooldError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** The client could not reach a daemon, or lost the connection. */
export class Unreachable extends TooldError {}

/** No daemon listens at the socket, and the client may not start one. */
export class NotRunning extends Unreachable {}

/** The daemon could not be started; the message has its output. */
export class StartFailed extends Unreachable {}

/** The connection ended while a request was in flight, which may or may not have been carried out. */
export class Disconnected extends Unreachable {}

/**
 * The connection ended before the daemon read the request, which was not carried out. `Client` sends it to the daemon
 * that took over, and rejects with this only if there is none, or with `reconnect: false`.
 */
export class NotRead extends Disconnected {}

/** The client's own timeout has expired. The timeout of a tool is a result instead. */
export class RequestTimeout extends TooldError {}

/** The request is longer than the daemon accepts, and was not sent. */
export class TooLarge extends TooldError {}

/** The daemon answered with an error. The subclasses are the errors that a program may want to handle. */
export class RpcError extends TooldError {
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** The kind of the error for programs, such as `unknown_tool`; empty if there is none. */
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
  /** Similar names, the closest match first. */
  get suggestions(): string[] {
    return (this.data["suggestions"] ?? []) as string[];
  }
}

/** The permission engine failed or is closing. A denied call is not this error, but a result with `is_error`. */
export class PermissionsUnavailable extends RpcError {}

/** The tool could not run, because of a panic or a missing dependency. */
export class ExecutionFailed extends RpcError {}

/** There is no such session, request or subscription; `kind` says which. */
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
