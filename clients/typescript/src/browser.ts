/**
 * The part of the client that a browser can load: one connection over a WebSocket. Reconnecting is up to the program.
 *
 * `./protocol.ts` has the types of the protocol, generated from the daemon's OpenRPC document.
 */
export { Connection, type Log } from "./connection.js";
export {
  CallCancelled,
  Disconnected,
  ExecutionFailed,
  InvalidArguments,
  NotRead,
  Overloaded,
  PermissionsUnavailable,
  RequestTimeout,
  RpcError,
  TooLarge,
  TooldError,
  UnknownId,
  UnknownTool,
  Unreachable,
} from "./errors.js";
export { isForWorkspace, type Answer, type Reply } from "./responder.js";
export { openWebSocket, type OnMessage } from "./websocket.js";
export { within } from "./within.js";
export * from "./protocol.js";
