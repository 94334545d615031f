import assert from "node:assert/strict";

import { RpcError, text, type Invocation } from "toold";

import { sharedFolders, signal, test } from "./folders.js";

const here = await sharedFolders();
const allow = () => ({ action: "allow" }) as const;

test("a provided function is a tool of its client", async () => {
  const editor = await here.client({ name: "my-editor" });
  const other = await here.client({ onPermission: allow });
  const calls: Invocation[] = [];
  const withdraw = await editor.provide(
    {
      name: "selection",
      description: "The selected text",
      input_schema: { type: "object", properties: { lines: { type: "integer" } }, additionalProperties: false },
    },
    async (args: { lines?: number }, call) => {
      calls.push(call);
      call.message("looking");
      call.update({ progress: 1, total: 2 });
      call.output("found\n");
      return ["def f():", "  return 1"].slice(0, args.lines).join("\n");
    },
  );
  const tool = await other.schema("selection");
  assert.deepEqual(tool.source, { kind: "frontend", name: "my-editor" });
  const call = other.call("selection", { lines: 1 });
  const reported: string[] = [];
  for await (const progress of call) reported.push(progress.kind);
  assert.deepEqual(reported, ["message", "update", "output"]);
  assert.equal(text(await call.result()), "def f():");
  assert.equal(calls[0]!.cwd, here.work);
  assert.equal(calls[0]!.call_id, call.id);
  await withdraw();
  await assert.rejects(other.schema("selection"), RpcError);
});

test("what a provided function returns may be text, blocks, or anything that JSON holds", async () => {
  const client = await here.client({ onPermission: allow });
  const give = async (name: string, given: unknown) => {
    await client.provide({ name, description: "Gives" }, () => given);
    return client.execute(name);
  };
  assert.deepEqual((await give("give_nothing", undefined)).content, [{ type: "text", text: "" }]);
  const object = await give("give_object", { a: [1, 2] });
  assert.deepEqual([text(object), object.structured], ['{"a":[1,2]}', { a: [1, 2] }]);
  assert.equal(text(await give("give_list", [1, 2])), "[1,2]");
  const image = { type: "image", data: "AAAA", mime_type: "image/png" };
  assert.deepEqual((await give("give_image", image)).content, [image]);
  const bad = await give("give_error", { content: "no luck", is_error: true, metadata: { code: 7 } });
  assert.deepEqual([text(bad), bad.is_error, bad.metadata["code"]], ["no luck", true, 7]);
});

test("what a provided function throws is a result that says so", async () => {
  const client = await here.client({ onPermission: allow });
  await client.provide({ name: "break_down", description: "Breaks" }, () => {
    throw new TypeError("no such buffer");
  });
  const result = await client.execute("break_down");
  assert.equal(result.is_error, true);
  assert.match(text(result), /TypeError: no such buffer/);
});

test("a provided function learns that its caller has given up", async () => {
  const client = await here.client({ onPermission: allow });
  const begun = signal();
  const gone = signal();
  await client.provide({ name: "hold_on", description: "Holds on" }, async (_, call) => {
    begun.fire();
    await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
    gone.fire();
  });
  const call = client.call("hold_on");
  await begun.promise;
  await call.cancel();
  await gone.promise;
});

test("a name that is taken is refused", async () => {
  const client = await here.client();
  const taken = { name: "Not A Name", description: "No" };
  await assert.rejects(
    client.provide(taken, () => ""),
    RpcError,
  );
});

test("provided tools follow their client into its next session", async () => {
  const client = await here.client({ onPermission: allow });
  await client.provide({ name: "where_am_i", description: "Tells the session" }, (_, call) => call.session_id);
  const { session_id } = await client.openSession({ cwd: here.work });
  assert.equal(text(await client.execute("where_am_i")), session_id);
});

test("a role runs a built-in", async () => {
  const client = await here.client();
  const roles: (string | undefined)[] = [];
  await client.offer("compact", (_, call) => {
    roles.push(call.role);
    return "all in all: tea";
  });
  const { input_schema } = await client.schema("compact");
  const required = (input_schema as { required?: string[] }).required ?? [];
  const result = await client.execute("compact", Object.fromEntries(required.map((name) => [name, "tea"])));
  assert.match(text(result), /all in all: tea/);
  assert.deepEqual(roles, ["compact"]);
});
