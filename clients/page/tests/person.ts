/** A person's client on the daemon's socket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

import type { Methods } from "toold/browser";

import type { TestDaemon } from "./daemon.ts";

/** Sends one request, on a connection of its own. */
export async function askDaemon<M extends keyof Methods>(
  daemon: TestDaemon,
  method: M,
  params: Methods[M]["params"],
): Promise<Methods[M]["result"]> {
  const socket = connect(daemon.paths.socket);
  socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
  const [line] = (await once(createInterface({ input: socket }), "line")) as [string];
  socket.destroy();
  const answer = JSON.parse(line) as { result: Methods[M]["result"]; error?: { message: string } };
  assert.equal(answer.error, undefined);
  return answer.result;
}
