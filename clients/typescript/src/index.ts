/**
 * A client of toold, a daemon with one tool registry for all your agents and editors.
 *
 * `connect` returns a `Client`. `./protocol.ts` has the types of the protocol, generated from the daemon's OpenRPC
 * document.
 */
export { Call } from "./calls.js";
export {
  Client,
  connect,
  text,
  type BatchCall,
  type BatchItem,
  type BatchOptions,
  type CallOptions,
  type ClientOptions,
  type ExecuteOptions,
  type ListOptions,
  type RequestOptions,
  type SearchOptions,
  type SessionOptions,
} from "./client.js";
export { TOOLCHAIN } from "./environment.js";
export {
  CallCancelled,
  Disconnected,
  ExecutionFailed,
  InvalidArguments,
  NotRead,
  NotRunning,
  Overloaded,
  PermissionsUnavailable,
  RequestTimeout,
  RpcError,
  StartFailed,
  TooLarge,
  TooldError,
  UnknownId,
  UnknownTool,
  Unreachable,
} from "./errors.js";
export { Events, type EventsOptions } from "./events.js";
export type { Invocation, LentTool, Output, Run } from "./provide.js";
export { findProgram, logFile, socketPath } from "./paths.js";
export {
  isForWorkspace,
  type Answer,
  type OnPermission,
  type OnPermissionChanged,
  type OnQuestion,
  type Reply,
} from "./responder.js";
export { Subscription } from "./subscription.js";
export * from "./protocol.js";
