/** The extension's logic beside the real daemon, without an editor. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { text } from "toold";

import { PATIENCE, ownFolders, test, TOOLD, type DaemonFolders } from "../../typescript/tests/folders.js";
import { callForModel } from "../src/chat.js";
import { provideEditor } from "../src/provided.js";
import { Link, type LinkOptions, type Part } from "../src/link.js";
import { pluginNodes, problems, render, toolNodes } from "../src/nodes.js";
import { Overlay } from "../src/overlay.js";

interface Watched {
  link: Link;
  /** Waits until something holds, looking at each change. */
  until(what: string, holds: () => boolean): Promise<void>;
}

async function linked(here: DaemonFolders, options: Partial<LinkOptions> = {}): Promise<Watched> {
  const looks = new Set<() => void>();
  const link = new Link({
    socket: here.socket,
    toold: TOOLD,
    folders: [here.work],
    onChange: (_part: Part) => looks.forEach((look) => look()),
    log: (message) => assert.fail(`logged: ${message}`),
    ...options,
  });
  here.adopt(link);
  const until = (what: string, holds: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`timed out waiting for ${what}`)), PATIENCE);
      const look = () => {
        if (!holds()) return;
        clearTimeout(timer);
        looks.delete(look);
        resolve();
      };
      looks.add(look);
      look();
    });
  await link.open();
  return { link, until };
}

test("tools and plugins are shown as they come, and as they break", async (t) => {
  const here = await ownFolders(t);
  const { link, until } = await linked(here);
  assert.match(
    render(toolNodes(link.tools)),
    /^v Built-in {2}\d+\n(.*\n)*v Plugins {2}4\n {2}- fail {2}tools: Fails\n/,
  );
  assert.equal(
    render(pluginNodes(link.plugins)),
    "v tools\n  - greet\n  - wait_for_ever\n  - wait_in_line\n  - fail\n",
  );
  assert.deepEqual(problems(link.plugins), []);

  const path = join(here.plugins, "late.lua");
  const plugin =
    'hygge.register_tool{name = "late", description = "Came late", execute = function() return "here" end}\n';
  writeFileSync(path, plugin);
  await until("the new tool", () => link.tools.some((tool) => tool.name === "late"));
  await until("the new plugin", () => link.plugins.length === 2);

  writeFileSync(path, `${plugin}local = 2\n`);
  await until("the failure", () => problems(link.plugins).length > 0);
  assert.deepEqual(
    problems(link.plugins).map(({ path, line }) => [path, line]),
    [[path, 2]],
  );
  const [late] = pluginNodes(link.plugins).filter((node) => node.label === "late");
  assert.equal(late!.description, "failed");
  assert.deepEqual(
    late!.children!.map((node) => node.label.replace(/:.*/, "")),
    ["line 2", "late"],
  );
  assert.equal(text(await link.client.execute("late")), "here");

  writeFileSync(path, plugin);
  await until("the repair", () => problems(link.plugins).length === 0);
});

test("running calls of all clients are counted", async (t) => {
  const here = await ownFolders(t);
  const { link, until } = await linked(here);
  const other = await here.client();
  const call = other.call("wait_for_ever");
  await until("a call", () => link.running.size === 1);
  assert.deepEqual(
    [...link.running.values()].map(({ tool, call_id }) => [tool, call_id]),
    [["wait_for_ever", call.id]],
  );
  const [{ call_id, session_id }] = link.running.values() as unknown as [{ call_id: string; session_id: string }];
  assert.equal(await link.client.cancel(call_id, { sessionId: session_id }), true);
  await until("its end", () => link.running.size === 0);
  await assert.rejects(call.result());
});

test("asks that wait are known until they are over", async (t) => {
  const here = await ownFolders(t);
  const watched = await linked(here, {
    onPermission: (ask, over) => {
      link().asked(ask, over);
      return undefined;
    },
  });
  const link = () => watched.link;
  const other = await here.client();
  const running = other.execute("bash", { command: "touch x" });
  await watched.until("an ask", () => link().asks.size === 1);
  const [ask] = [...link().asks.values()];
  assert.equal(ask!.target, "touch x");
  await other.request("permissions.reply", { request_id: ask!.request_id, action: "deny" });
  await watched.until("its end", () => link().asks.size === 0);
  assert.equal((await running).is_error, true);
});

test("a daemon that is gone leaves empty views, and one that comes back fills them", async (t) => {
  const here = await ownFolders(t);
  const { link, until } = await linked(here);
  await here.stopDaemon();
  await until("the loss", () => !link.connected && link.tools.length === 0);
  await here.client();
  await until("the return", () => link.connected && link.tools.length > 0 && link.plugins.length > 0);
});

test("a model reads results and problems, and a cancelled call is an exception", async (t) => {
  const here = await ownFolders(t);
  const { link } = await linked(here);
  const { signal } = new AbortController();
  assert.deepEqual(await callForModel(link.client, "greet", { name: "you" }, signal), ["hello you"]);
  const wrong = await callForModel(link.client, "greet", { name: true, times: 0 }, signal);
  assert.equal(wrong.length, 3);
  assert.match(wrong.slice(1).sort().join("\n"), /^\/name: .*\n\/times: .*/);
  assert.match((await callForModel(link.client, "grete", {}, signal)).join(), /grete/);
  const controller = new AbortController();
  const events = await link.client.events({ kinds: "call.started" });
  const running = callForModel(link.client, "wait_for_ever", {}, controller.signal);
  await events.next();
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
});

test("the editor's problems and selection are tools for others", async (t) => {
  const here = await ownFolders(t);
  const { link } = await linked(here, { onPermission: () => ({ action: "allow" }) });
  const path = join(here.work, "a.ts");
  await provideEditor(link.client, {
    problems: () => [{ path, line: 1, column: 2, severity: "error", message: "no such name" }],
    selection: () => ({ path, firstLine: 1, lastLine: 1, text: "x", cursorLine: "x y", unsaved: false }),
  });
  const other = await here.client();
  assert.equal((await other.schema("vscode_diagnostics")).source.name, "vscode");
  assert.equal(text(await other.execute("vscode_diagnostics", { path: "a.ts" })), "a.ts:1:2: error: no such name");
  assert.equal(text(await other.execute("vscode_diagnostics", { path: "b.ts" })), "no problems");
  assert.equal(text(await other.execute("vscode_selection")), "a.ts, line 1:\nx");
});

test("tools see unsaved text, again after a reconnect, and the file when it is closed", async (t) => {
  const here = await ownFolders(t);
  const path = join(here.work, "notes.txt");
  writeFileSync(path, "on the disk\n");
  const { link, until } = await linked(here);
  const overlay = new Overlay(link.client, (message) => assert.fail(message));
  for (const version of [1, 2, 3]) overlay.changed({ path, version, text: `unsaved ${version}\n`, unsaved: true });
  await overlay.sent();
  const read = async () => text(await (await here.client()).execute("read", { path }));
  assert.match(await read(), /1: unsaved 3\n.*vscode/s);
  await here.stopDaemon();
  await until("the loss", () => !link.connected);
  const back = until("the return", () => link.connected && link.tools.length > 0);
  await here.client();
  await back;
  overlay.reconnected();
  await overlay.sent();
  assert.match(await read(), /unsaved 3/);
  overlay.changed({ path, version: 4, text: "", unsaved: false });
  await overlay.sent();
  assert.equal(await read(), "1: on the disk");
});
