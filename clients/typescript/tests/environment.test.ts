/** The variables of sessions, and folders that the user has not opened. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { isForWorkspace, text, TOOLCHAIN, type Ask } from "toold";

import { sharedFolders, test } from "./folders.js";

const here = await sharedFolders();

const AGENT = `
import { connect, text } from "toold";
const [cwd, own] = process.argv.slice(1);
const client = await connect({ start: false, name: "agent" });
const session = await client.openSession({ cwd, role: "agent", env: JSON.parse(own) });
const result = await client.execute("bash", { command: "env" });
console.log(JSON.stringify([session.workspace, session.env_ignored, text(result)]));
await client.close();
`;

test("a person's client passes the toolchain and its own variables", async (t) => {
  const set = { VIRTUAL_ENV: "/a/venv", LC_TIME: "C", SOMETHING: "else", GOPATH: "/a/go" };
  Object.assign(process.env, set);
  t.after(() => Object.keys(set).forEach((name) => delete process.env[name]));
  const client = await here.client({ session: false, onPermission: () => ({ action: "allow" }) });
  const session = await client.openSession({ cwd: here.work, env: { GOPATH: "/other/go", MINE: "1" } });
  assert.deepEqual([session.workspace, session.env_ignored], ["open", undefined]);
  const output = text(await client.execute("bash", { command: "env" })).split("\n");
  for (const line of ["VIRTUAL_ENV=/a/venv", "LC_TIME=C", "GOPATH=/other/go", "MINE=1"]) {
    assert.ok(output.includes(line), line);
  }
  assert.ok(!output.some((line) => line.startsWith("SOMETHING=")));
  assert.equal(new Set(TOOLCHAIN).size, TOOLCHAIN.length);
});

test("an agent passes what it was started with, but no secrets, and says which of its own are ignored", async () => {
  const person = await here.client();
  await person.request("permissions.grant", { category: "shell", pattern: "env", scope: "always" });
  const run = (own: object) =>
    spawnSync(process.execPath, ["--input-type=module", "-e", AGENT, here.work, JSON.stringify(own)], {
      cwd: import.meta.dirname,
      env: { ...process.env, VIRTUAL_ENV: "/agents/venv", SOMETHING: "else", GITHUB_TOKEN: `ghp_${"x".repeat(36)}` },
      encoding: "utf8",
    });
  const plain = run({});
  assert.equal(plain.status, 0, plain.stderr);
  const [workspace, ignored, output] = JSON.parse(plain.stdout) as [string, string[], string];
  assert.equal(workspace, "open");
  assert.ok(ignored.includes("GITHUB_TOKEN") && !output.includes("ghp_"), plain.stdout);
  assert.ok(output.includes("VIRTUAL_ENV=/agents/venv") && output.includes("SOMETHING=else"), output);
  // A secret that is not passed on needs no warning.
  assert.equal(plain.stderr, "");
  const evil = run({ NODE_OPTIONS: "--evil" });
  assert.ok(!evil.stdout.includes("--evil"), evil.stdout);
  assert.match(evil.stderr, /NODE_OPTIONS; set \[agents\] env/);
});

test("a folder that the user has not opened waits for approval", async () => {
  const documents = join(here.root, "home/my documents");
  mkdirSync(documents, { recursive: true });
  writeFileSync(join(documents, "letter.txt"), "dear reader\n");
  const asks: Ask[] = [];
  await here.client({
    onPermission: (ask) => {
      asks.push(ask);
      return { action: "allow", scope: "session" };
    },
  });
  const logged: string[] = [];
  const agent = await here.client({ session: false, name: "agent", log: (message) => logged.push(message) });
  assert.equal((await agent.openSession({ cwd: documents, role: "agent" })).workspace, "pending");
  assert.equal(logged.length, 1);
  assert.ok(logged[0]!.includes(`toolctl workspaces allow '${documents}'`), logged[0]);
  assert.match(text(await agent.execute("read", { path: "letter.txt" })), /dear reader/);
  assert.equal(asks.length, 1);
  assert.ok(isForWorkspace(asks[0]!));
  assert.ok(asks[0]!.reason?.includes(`use ${documents} as a workspace of agent`), asks[0]!.reason);
});

test("a session that is shared is joined by its code", async () => {
  const person = await here.client();
  const { code, expires_in } = await person.shareSession();
  assert.ok(expires_in > 0);
  const agent = await here.client({ session: false, name: "agent" });
  const joined = await agent.openSession({ sessionId: code, role: "agent" });
  assert.deepEqual([joined.session_id, joined.resumed], [person.session!.session_id, true]);
  await assert.rejects(agent.openSession({ sessionId: code, role: "agent" }), { kind: "unknown_session" });
});
