import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Disconnected, type Event } from "toold";

import { sharedFolders, test } from "./folders.js";

const here = await sharedFolders();

test("events are numbered, and replayed from where you stopped", async () => {
  const client = await here.client();
  const events = await client.events({ kinds: ["call.started", "call.finished"] });
  for (const name of ["a", "b", "c"]) await client.execute("greet", { name });
  const seen: Event[] = [];
  for await (const event of events) {
    seen.push(event);
    if (seen.length === 6) break;
  }
  assert.deepEqual(
    seen.map((event) => event.kind),
    [1, 2, 3].flatMap(() => ["call.started", "call.finished"]),
  );
  assert.ok(seen.every((event, i) => i === 0 || event.seq > seen[i - 1]!.seq));
  // Leaving the loop has ended it.
  assert.deepEqual(await events.next(), { done: true, value: undefined });

  const { seq, epoch } = seen[2]!;
  const again = await client.events({ kinds: ["call.started", "call.finished"], since: seq, epoch });
  assert.deepEqual((await again.next()).value, seen[3]);
  await again.close();
});

test("lost events are counted", async () => {
  const client = await here.client();
  // The ring holds 1,000 events.
  const calls = Array.from({ length: 600 }, (_, i) => ["greet", { name: `${i}` }] as const);
  for (let i = 0; i < calls.length; i += 100) await client.executeBatch(calls.slice(i, i + 100));
  const { epoch } = await client.request("daemon.status");
  const events = await client.events({ since: 1, epoch });
  const { value } = await events.next();
  assert.equal(value?.kind, "lagged");
  assert.ok(value?.kind === "lagged" && (value.missed ?? 1) > 0);
});

test("a plugin's broken save is an event with its line", async () => {
  const client = await here.client();
  const events = await client.events({ kinds: "plugin.failed" });
  writeFileSync(join(here.plugins, "broken.lua"), "local x = 1\nlocal = 2\n");
  const { value } = await events.next();
  assert.ok(value?.kind === "plugin.failed");
  assert.deepEqual([value.plugin, value.error.line], ["broken", 2]);
});

test("a client that is closed ends its events", async () => {
  const client = await here.client();
  const events = await client.events();
  const next = events.next();
  await client.close();
  assert.deepEqual(await next, { done: true, value: undefined });
});

test("any subscription is an iterator, and ends with its connection", async () => {
  const client = await here.client();
  const other = await here.client();
  const asks = await client.subscribe("permissions.subscribe", {});
  const running = other.execute("bash", { command: "touch x" });
  for await (const item of asks) {
    if (item.type === "resolved") break;
    await client.request("permissions.reply", { request_id: item.request.request_id, action: "allow" });
  }
  assert.equal((await running).is_error, false);
  assert.deepEqual(await asks.next(), { done: true, value: undefined });
  const questions = await client.subscribe("questions.subscribe", {});
  const lost = assert.rejects(questions.next(), Disconnected);
  await here.stopDaemon();
  await lost;
});
