import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { CallCancelled, text, type Ask, type Question } from "toold";

import { sharedFolders, signal, test } from "./folders.js";

const here = await sharedFolders();

test("an ask is answered, and its diff shown", async () => {
  const asks: Ask[] = [];
  const onPermission = (ask: Ask) => {
    asks.push(ask);
    return { action: "allow" } as const;
  };
  const client = await here.client({ onPermission });
  const result = await client.execute("write", { path: "tea.txt", content: "green\n" });
  assert.equal(result.is_error, false, text(result));
  assert.equal(readFileSync(join(here.work, "tea.txt"), "utf8"), "green\n");
  assert.deepEqual(
    asks.map((ask) => [ask.tool, ask.category]),
    [["write", "file.write"]],
  );
  assert.match(asks[0]!.diff ?? "", /^\+green$/m);
});

test("a denial is a result with its reason", async () => {
  const client = await here.client();
  const end = await client.onPermission(() => ({ action: "deny", message: "not today" }));
  const result = await client.execute("bash", { command: "touch x" });
  assert.equal(result.is_error, true);
  assert.match(text(result), /not today/);
  await end();
  // With nobody to ask, the daemon says how to grant it.
  assert.match(text(await client.execute("bash", { command: "touch x" })), /toolctl permissions grant/);
});

test("an answer that holds for longer is not asked again", async () => {
  let asked = 0;
  const client = await here.client({
    onPermission: (ask) => {
      asked += 1;
      const { scope, pattern } = ask.suggestions.find((each) => each.scope === "session")!;
      return { action: "allow", scope, pattern };
    },
  });
  assert.equal((await client.execute("bash", { command: "touch x" })).is_error, false);
  assert.equal((await client.execute("bash", { command: "touch x" })).is_error, false);
  assert.equal(asked, 1);
});

test("a callback that fails denies", async () => {
  const logged: string[] = [];
  const client = await here.client({
    onPermission: () => {
      throw new Error("broken");
    },
    log: (message) => logged.push(message),
  });
  assert.equal((await client.execute("bash", { command: "touch x" })).is_error, true);
  assert.deepEqual(logged, ["the callback for permissions failed: broken"]);
});

test("an answer that the daemon refuses denies", async () => {
  const logged: string[] = [];
  const client = await here.client({
    onPermission: () => ({ action: "allow", scope: "always", pattern: "*" }),
    log: (message) => logged.push(message),
  });
  assert.equal((await client.execute("bash", { command: "touch x" })).is_error, true);
  assert.match(logged.join(), /^the daemon refused an answer for permissions/);
});

test("the prompt of another ends when the first has answered", async () => {
  const seen = signal();
  const over = signal();
  await here.client({
    onPermission: async (_, ended) => {
      seen.fire();
      await new Promise((resolve) => ended.addEventListener("abort", resolve));
      over.fire();
      return { action: "deny" };
    },
  });
  const quick = await here.client({
    onPermission: async () => {
      await seen.promise;
      return { action: "allow" };
    },
  });
  assert.equal((await quick.execute("bash", { command: "touch x" })).is_error, false);
  await over.promise;
});

test("an ask ends with its call", async () => {
  const seen = signal();
  const over = signal();
  const client = await here.client({
    onPermission: (_, ended) => {
      ended.addEventListener("abort", () => over.fire());
      seen.fire();
      return new Promise(() => {});
    },
  });
  const call = client.call("bash", { command: "touch x" });
  await seen.promise;
  await call.cancel();
  await over.promise;
  await assert.rejects(call.result(), CallCancelled);
});

test("an ask that is open says who waits for it now", async () => {
  const seen = signal();
  const both = signal();
  let open: Ask | undefined;
  const client = await here.client({
    onPermission: async (ask) => {
      open = ask;
      seen.fire();
      await both.promise;
      return { action: "allow" };
    },
    onPermissionChanged: (ask) => {
      assert.deepEqual([ask.request_id, ask.call_ids.length], [open!.request_id, 2]);
      both.fire();
    },
  });
  const first = client.execute("bash", { command: "touch x" });
  await seen.promise;
  const results = await Promise.all([first, client.execute("bash", { command: "touch x" })]);
  assert.deepEqual(
    results.map((result) => result.is_error),
    [false, false],
  );
});

test("an ask that is left to others can be seen and answered by them", async () => {
  const over = signal();
  const onPermission = (_: Ask, ended: AbortSignal) => ended.addEventListener("abort", () => over.fire());
  const client = await here.client({ onPermission: (ask, ended) => void onPermission(ask, ended) });
  const other = await here.client();
  const events = await other.events({ kinds: "permission.asked" });
  const running = client.execute("bash", { command: "touch x" });
  await events.next();
  const { asks } = await other.request("permissions.pending");
  await other.request("permissions.reply", { request_id: asks[0]!.request_id, action: "allow" });
  await over.promise;
  assert.equal((await running).is_error, false);
});

test("questions are answered by an option, in own words, or not at all", async () => {
  const questions: Question[] = [];
  const answers = [
    (question: Question) => ({ answer_ids: [question.options[1]!.id] }),
    () => ({ answer: "mint" }),
    () => ({ cancelled: true as const }),
  ];
  const client = await here.client({
    onQuestion: (question) => {
      questions.push(question);
      return answers[questions.length - 1]!(question);
    },
  });
  const options = [{ label: "green" }, { label: "black" }];
  const ask = () => client.execute("question", { question: "Which tea?", options, allow_other: true });
  assert.match(text(await ask()), /black/);
  assert.match(text(await ask()), /mint/);
  assert.match(text(await ask()), /chose not to answer/);
  assert.equal(questions.length, 3);
});
