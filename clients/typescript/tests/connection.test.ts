import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";

import {
  type Client,
  connect,
  Disconnected,
  findProgram,
  logFile,
  NotRunning,
  RequestTimeout,
  RpcError,
  socketPath,
  StartFailed,
  text,
  TooLarge,
  Unreachable,
} from "toold";

import { ownFolders, REPOSITORY, signal, test } from "./folders.js";

interface PlaceCase {
  case: string;
  environment: Record<string, string>;
  folders?: string[];
  files?: Record<string, unknown>;
  socket: string | null;
}

test("the socket is found as in the table", () => {
  const cases = JSON.parse(readFileSync(join(REPOSITORY, "proto/tests/socket.json"), "utf8")) as PlaceCase[];
  assert.ok(cases.length > 10);
  for (const one of cases) {
    const system = {
      uid: 7,
      read: (path: string) => {
        const file = one.files?.[path];
        return file === undefined || typeof file === "string" ? file : JSON.stringify(file);
      },
      isFolder: (path: string) => one.folders?.includes(path) ?? false,
    };
    const find = () => socketPath(one.environment, system);
    if (one.socket === null) assert.throws(find, NotRunning, one.case);
    else assert.equal(find(), one.socket, one.case);
  }
});

test("the log is below the state folder", () => {
  assert.equal(logFile({ HOME: "/h" }), "/h/.local/state/toold/log/toold.log");
  assert.equal(logFile({ HOME: "/h", XDG_STATE_HOME: "/t" }), "/t/toold/log/toold.log");
  assert.equal(logFile({}), undefined);
});

test("the program is found in the path, but not in a relative entry of it", async (t) => {
  const { root } = await ownFolders(t);
  writeFileSync(join(root, "work/toold"), "");
  chmodSync(join(root, "work/toold"), 0o755);
  assert.equal(findProgram({ PATH: `nowhere:${join(root, "work")}` }), join(root, "work/toold"));
  assert.throws(() => findProgram({ PATH: "." }), StartFailed);
});

test("the first client starts the daemon, the next ones share it", async (t) => {
  const here = await ownFolders(t);
  assert.ok(!existsSync(here.socket));
  const clients = await Promise.all([1, 2, 3, 4, 5].map(() => here.client()));
  const statuses = await Promise.all(clients.map((client) => client.request("daemon.status")));
  assert.equal(new Set(statuses.map((status) => status.pid)).size, 1);
  assert.equal(statuses[0]!.socket, here.socket);
  assert.equal(statSync(dirname(here.socket)).isDirectory(), true);
  assert.equal(statSync(`${here.socket}.log`).mode & 0o777, 0o600);
  assert.match(readFileSync(logFile({ XDG_STATE_HOME: join(here.root, "state") })!, "utf8"), /serving/);
});

test("a daemon that is not to be started is not", async (t) => {
  const here = await ownFolders(t);
  await assert.rejects(connect({ socket: here.socket, start: false }), NotRunning);
  assert.deepEqual(await here.processes(), []);
});

test("a daemon that cannot start says why", async (t) => {
  const here = await ownFolders(t);
  const program = join(here.root, "toold");
  writeFileSync(program, "#!/bin/sh\necho 'the disk is on fire' >&2\nexit 3\n");
  chmodSync(program, 0o755);
  await assert.rejects(connect({ socket: here.socket, toold: program }), (error: Error) => {
    assert.ok(error instanceof StartFailed);
    assert.match(error.message, /exit status 3; it said:\nthe disk is on fire$/);
    return true;
  });
  await assert.rejects(connect({ socket: here.socket, toold: join(here.root, "absent") }), StartFailed);
});

test("a daemon that does not answer is given up", async (t) => {
  const here = await ownFolders(t);
  const server: Server = createServer((socket) => socket.resume());
  await new Promise<void>((resolve) => server.listen(here.socket, resolve));
  await assert.rejects(connect({ socket: here.socket, startTimeout: 50 }), Unreachable);
  await new Promise((resolve) => server.close(resolve));
});

test("another program at the socket is recognised, and none is started in its place", async (t) => {
  const cases: [string, (socket: Socket) => void, RegExp][] = [
    ["garbage", (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"), /is not the socket of a daemon/],
    ["closes", (socket) => socket.destroy(), /closes each connection/],
  ];
  const here = await ownFolders(t);
  for (const [name, serve, words] of cases) {
    // Clients come and go.
    const server: Server = createServer((socket) => serve(socket.resume().on("error", () => {})));
    await new Promise<void>((resolve) => server.listen(here.socket, resolve));
    const before = statSync(here.socket).ino;
    await assert.rejects(connect({ socket: here.socket, startTimeout: 500 }), words, name);
    assert.equal(statSync(here.socket).ino, before);
    assert.ok(!existsSync(`${here.socket}.log`), "a daemon was started");
    await new Promise((resolve) => server.close(resolve));
  }
});

test("requests have types, and unknown methods an error", async (t) => {
  const client = await (await ownFolders(t)).client();
  const { plugins } = await client.request("plugins.list");
  assert.deepEqual(
    plugins.map(({ name, status }) => [name, status]),
    [["tools", "loaded"]],
  );
  await assert.rejects(client.request("no.such_method", { a: 1 }), (error: Error) => {
    assert.ok(error instanceof RpcError);
    assert.equal(error.code, -32601);
    assert.equal(error.name, "RpcError");
    return true;
  });
});

test("a session is resumed by its id", async (t) => {
  const here = await ownFolders(t);
  const first = await here.client();
  const second = await here.client({ session: false });
  assert.equal(first.session?.cwd, here.work);
  assert.equal(first.session?.resumed, false);
  const resumed = await second.openSession({ sessionId: first.session!.session_id });
  assert.deepEqual({ ...resumed, resumed: false }, first.session);
  await second.closeSession();
  assert.equal(second.session, undefined);
});

test("a request that is too long is refused before it is sent", async (t) => {
  const client = await (await ownFolders(t)).client();
  await assert.rejects(client.execute("greet", { name: "x".repeat(17 << 20) }), TooLarge);
  assert.equal(text(await client.execute("greet", { name: "x" })), "hello x");
});

test("long results and many requests at once arrive whole", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client();
  // Longer results would be cut for the model.
  const name = "ä".repeat(10_000);
  const calls = Array.from({ length: 100 }, (_, i) => client.execute("greet", { name: `${name}${i}` }));
  for (const [i, result] of (await Promise.all(calls)).entries()) assert.equal(text(result), `hello ${name}${i}`);
  const document = await client.request("rpc.discover");
  assert.ok(JSON.stringify(document).length > 64 * 1024, "more than one piece of the socket");
});

test("patience ends a request", async (t) => {
  const client = await (await ownFolders(t)).client();
  const waiting = client.request("tools.execute", { name: "wait_for_ever" }, { timeout: 20 });
  await assert.rejects(waiting, RequestTimeout);
  await client.request("daemon.ping");
});

test("requests in flight fail when the daemon is killed, and the next request starts another", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client();
  const call = client.call("wait_for_ever");
  await call[Symbol.asyncIterator]().next();
  const before = await client.request("daemon.status");
  await here.killDaemon();
  await assert.rejects(call.result(), Disconnected);
  assert.equal(client.connected, false);
  assert.equal(text(await client.execute("greet", { name: "again" })), "hello again");
  const after = await client.request("daemon.status");
  assert.notEqual(before.pid, after.pid);
  assert.equal((await client.request("session.list")).sessions.length, 1);
});

test("without reconnect a lost connection stays lost", async (t) => {
  const here = await ownFolders(t);
  const lost = signal<boolean>();
  const onConnection = (connected: boolean) => !connected && lost.fire(connected);
  const client = await here.client({ reconnect: false, onConnection });
  const events = await client.events();
  await here.stopDaemon();
  await lost.promise;
  await assert.rejects(client.request("daemon.ping"), Disconnected);
  await assert.rejects(async () => {
    for await (const _ of events);
  }, Disconnected);
});

test("a client that is closed makes no more requests", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client();
  const events = await client.events();
  await client.close();
  assert.deepEqual(await events.next(), { done: true, value: undefined });
  await assert.rejects(client.request("daemon.ping"), Disconnected);
});

test("events, prompts and provided tools come back with the daemon", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client({ onPermission: () => ({ action: "allow" }) });
  await client.provide({ name: "provided", description: "Provided" }, () => "still provided");
  const events = await client.events({ kinds: "call.started" });
  await here.stopDaemon();
  const other = await here.client();
  // Nobody has asked the first one for anything: it comes back by itself.
  const provided = await other.events({ kinds: "tools.changed", since: 0, epoch: "another" });
  for await (const event of provided) {
    if (event.kind === "tools.changed" && event.added.includes("provided")) break;
  }
  assert.equal(text(await other.execute("provided")), "still provided");
  const { value } = await events.next();
  assert.equal(value?.kind === "call.started" && value.tool, "provided");
});

/** The error of the first request that fails for another reason than that the connection has just ended. */
async function refusal(client: Client): Promise<unknown> {
  for (;;) {
    try {
      await client.request("daemon.ping");
    } catch (error) {
      if (!(error instanceof Disconnected)) return error;
    }
  }
}

test("a daemon that a person stopped is not started again", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client();
  const person = await here.client();
  await person.request("daemon.shutdown");
  const error = await refusal(client);
  assert.ok(error instanceof NotRunning && error.message.includes("stopped by a person"), String(error));
  await here.stopDaemon();
  assert.deepEqual(await here.processes(), []);
  // Another client may start one, which serves this one too.
  await (await here.client()).request("daemon.ping");
  await client.request("daemon.ping");
});

test("a daemon that is killed again and again is started three times a minute", async (t) => {
  const here = await ownFolders(t);
  const client = await here.client();
  for (let times = 0; times < 3; times++) {
    const { pid } = await client.request("daemon.status");
    await here.killDaemon();
    for (;;) {
      const status = await client.request("daemon.status").catch((error: unknown) => {
        assert.ok(error instanceof Disconnected, String(error));
      });
      if (status !== undefined && status.pid !== pid) break;
    }
  }
  await here.killDaemon();
  const error = await refusal(client);
  assert.ok(error instanceof StartFailed && error.message.includes("three times within a minute"), String(error));
  // Others may: this one follows.
  await (await here.client()).request("daemon.ping");
  await client.request("daemon.ping");
});

test("a daemon that is only stopped is not started by those who wait for it", async (t) => {
  const here = await ownFolders(t);
  const lost = signal();
  const client = await here.client({ onConnection: (connected) => !connected && lost.fire() });
  await client.events();
  await here.stopDaemon();
  await lost.promise;
  assert.deepEqual(await here.processes(), []);
});
