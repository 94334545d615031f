import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  CallCancelled,
  InvalidArguments,
  RpcError,
  text,
  UnknownTool,
  type CallProgress,
  type ToolResult,
} from "toold";

import { sharedFolders, test } from "./folders.js";

const here = await sharedFolders();

test("tools are listed, also as providers want them", async () => {
  const client = await here.client();
  const plugins = await client.tools({ source: "plugin" });
  assert.deepEqual(
    plugins.map((tool) => tool.name),
    ["fail", "greet", "wait_for_ever", "wait_in_line"],
  );
  assert.deepEqual(
    (await client.tools({ query: "greets" })).map((tool) => tool.name),
    ["greet"],
  );
  const [anthropic] = await client.tools({ names: ["greet"], format: "anthropic" });
  assert.ok(anthropic && "input_schema" in anthropic);
  const short = (await client.tools({ mode: "deferred" })).map((tool) => tool.name);
  assert.ok(short.includes("tools_search") && !short.includes("greet"));
  assert.equal((await client.search("greets"))[0]?.name, "greet");
  assert.equal((await client.schema("greet")).source.kind, "plugin");
  await assert.rejects(client.schema("great"), UnknownTool);
});

test("a call gives its result, with all its progress before", async () => {
  const client = await here.client();
  const call = client.call("greet", { name: "you", times: 3 });
  const reported: CallProgress[] = [];
  for await (const progress of call) reported.push(progress);
  assert.equal(call.done, true);
  assert.deepEqual(
    reported.map((progress) => progress.seq),
    [0, 1, 2, 3],
  );
  assert.deepEqual(
    reported.map((progress) => progress.kind),
    ["update", "update", "update", "output"],
  );
  const last = reported.at(-1)!;
  assert.equal(last.kind === "output" && last.text, "written\n");
  const result = await call.result();
  assert.equal(text(result), "hello you");
  assert.equal(result.call_id, call.id);
});

test("progress that nobody takes holds up nothing", async () => {
  const client = await here.client();
  const call = client.call("greet", { name: "you", times: 20_000 });
  assert.equal(text(await call.result()), "hello you");
  let taken = 0;
  for await (const progress of call) taken += 1 + (progress.dropped ?? 0);
  assert.ok(taken <= 20_001);
});

test("errors have the classes of their codes", async () => {
  const client = await here.client();
  await assert.rejects(client.execute("great", { name: "x" }), (error: Error) => {
    assert.ok(error instanceof UnknownTool);
    assert.deepEqual([error.code, error.kind], [-32001, "unknown_tool"]);
    assert.ok(error.suggestions.includes("greet"));
    return true;
  });
  await assert.rejects(client.execute("greet", { name: true, times: 0 }), (error: Error) => {
    assert.ok(error instanceof InvalidArguments);
    assert.deepEqual(error.errors.map(({ path }) => path).sort(), ["/name", "/times"]);
    return true;
  });
  const failed = await client.execute("fail");
  assert.equal(failed.is_error, true);
  assert.match(text(failed), /out of luck/);
});

test("a signal cancels a call, and the daemon stops it", async () => {
  const client = await here.client();
  const events = await client.events({ kinds: ["call.progress", "call.finished"] });
  const controller = new AbortController();
  const running = client.execute("wait_for_ever", {}, { signal: controller.signal });
  await events.next();
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  const { value } = await events.next();
  assert.equal(value?.kind === "call.finished" && value.outcome, "cancelled");
});

test("a signal that fired before lets nothing be sent", async () => {
  const client = await here.client();
  await assert.rejects(client.execute("greet", { name: "x" }, { signal: AbortSignal.abort() }), { name: "AbortError" });
  await assert.rejects(client.request("daemon.ping", {}, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.deepEqual((await client.request("audit.query", { session_id: client.session!.session_id })).entries, []);
});

test("a call is cancelled by its handle, by its id and by the end of its block", async () => {
  const client = await here.client();
  const call = client.call("wait_for_ever");
  await call[Symbol.asyncIterator]().next();
  assert.equal(await call.cancel(), true);
  await assert.rejects(call.result(), CallCancelled);
  assert.equal(await call.cancel(), false);

  const named = client.call("wait_for_ever", {}, { callId: "mine" });
  await named[Symbol.asyncIterator]().next();
  assert.throws(() => client.call("wait_for_ever", {}, { callId: "mine" }), RangeError);
  assert.equal(await client.cancel("mine"), true);
  await assert.rejects(named.result(), CallCancelled);

  const events = await client.events({ kinds: "call.finished" });
  {
    await using left = client.call("wait_for_ever");
    await left[Symbol.asyncIterator]().next();
  }
  const { value } = await events.next();
  assert.equal(value?.kind === "call.finished" && value.outcome, "cancelled");
});

test("a tool's time limit is a result", async () => {
  const client = await here.client();
  const result = await client.execute("wait_for_ever", {}, { timeout: 20 });
  assert.equal(result.is_error, true);
  assert.equal(result.metadata["timed_out"], true);
});

test("a batch answers in the order of its calls", async () => {
  const client = await here.client();
  const reported: CallProgress[] = [];
  const results = await client.executeBatch(
    [["greet", { name: "a" }], { name: "no_such_tool" }, { name: "greet", arguments: { name: "c" }, call_id: "third" }],
    { strategy: { batched: 2 }, onProgress: (progress) => reported.push(progress) },
  );
  assert.equal(results.length, 3);
  assert.equal(text(results[0] as ToolResult), "hello a");
  assert.ok(results[1] instanceof UnknownTool);
  assert.equal((results[2] as ToolResult).call_id, "third");
  assert.equal(reported.length, 4);
});

test("a batch in a provider's form gives the provider's blocks", async () => {
  writeFileSync(join(here.work, "notes.txt"), "green tea\n");
  const client = await here.client();
  const reported: CallProgress[] = [];
  const calls = [{ type: "tool_use", id: "toolu_1", name: "greet", input: { name: "you" } }];
  const results = await client.executeBatch(calls, { format: "anthropic", onProgress: (each) => reported.push(each) });
  assert.match(JSON.stringify(results), /"tool_use_id":"toolu_1"/);
  assert.equal(reported.length, 2);
});

test("cancelling a batch cancels all its calls", async () => {
  const client = await here.client();
  const events = await client.events({ kinds: ["call.progress", "call.finished"] });
  const controller = new AbortController();
  const { signal } = controller;
  const batch = client.executeBatch(
    [
      ["wait_for_ever", {}],
      ["wait_for_ever", {}],
    ],
    { signal },
  );
  await events.next();
  await events.next();
  controller.abort();
  await assert.rejects(batch, { name: "AbortError" });
  for (const _ of [1, 2]) {
    const { value } = await events.next();
    assert.equal(value?.kind === "call.finished" && value.outcome, "cancelled");
  }
});

test("an interrupt skips what waits", async () => {
  const client = await here.client();
  const events = await client.events({ kinds: "call.started" });
  const first = client.call("wait_in_line");
  await first[Symbol.asyncIterator]().next();
  const second = client.call("wait_in_line");
  await events.next();
  await events.next();
  assert.equal(await client.interrupt(), 1);
  assert.equal((await second.result()).is_error, true);
  await first.cancel();
  await assert.rejects(first.result(), RpcError);
});
