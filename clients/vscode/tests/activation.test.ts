/**
 * The bundled extension with the real daemon, in a stand-in for VS Code.
 *
 * Compares what the user sees with the blocks between marks in the README. UPDATE=1 writes the README instead.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { text } from "toold";
import type * as vscode from "vscode";

import { PACKAGE, ownFolders, signal, test, TOOLD, type DaemonFolders } from "../../typescript/tests/folders.js";
import type { Api } from "../src/extension.js";
import { BACK, CancellationTokenSource, Range, StandIn, Uri } from "./stand-in.js";

const SOURCE = join(PACKAGE, "../vscode");
/** The extension under test: the one in this folder, or a packed one. */
const EXTENSION = process.env["EXTENSION"] ?? SOURCE;
const MANIFEST = JSON.parse(readFileSync(join(EXTENSION, "package.json"), "utf8")) as {
  main: string;
  version: string;
  contributes: {
    commands: { command: string }[];
    languageModelTools: { name: string; inputSchema: object }[];
    views: { toold: { id: string }[] };
    menus: Record<string, { command: string }[]>;
    mcpServerDefinitionProviders: { id: string }[];
  };
};
const BUNDLE = join(EXTENSION, MANIFEST.main);

/** Activates the bundle in a window of the place's work folder. */
async function activate(
  here: DaemonFolders,
  settings: Record<string, unknown> = {},
): Promise<{ window: StandIn; api: Api }> {
  const window = new StandIn(here.work);
  Object.assign(window.settings, { "toold.socket": here.socket, "toold.program": TOOLD }, settings);
  const require = createRequire(import.meta.url);
  const loader = Module as unknown as { _load: (request: string, ...others: unknown[]) => unknown };
  const load = loader._load;
  loader._load = (request, ...others) => (request === "vscode" ? window.api : load.call(loader, request, ...others));
  delete require.cache[BUNDLE];
  const extension = require(BUNDLE) as {
    activate(context: vscode.ExtensionContext): Api;
    deactivate(): Promise<void>;
  };
  loader._load = load;
  const memory = new Map<string, unknown>();
  const workspaceState = {
    get: (key: string) => memory.get(key),
    update: async (key: string, value: unknown) => void memory.set(key, value),
  };
  const context = { subscriptions: [] as vscode.Disposable[], extension: { packageJSON: MANIFEST }, workspaceState };
  const api = extension.activate(context as unknown as vscode.ExtensionContext);
  here.adopt({
    async close() {
      context.subscriptions.forEach((each) => void each.dispose());
      await extension.deactivate();
      // Nothing stays registered without the extension.
      assert.deepEqual([window.commands.size, window.chatTools.size, window.trees.size], [0, 0, 0]);
    },
  });
  return { window, api };
}

/** Compares with the block in the README after `<!-- NAME -->`. */
function shows(name: string, seen: string, here: DaemonFolders): void {
  const readme = join(SOURCE, "README.md");
  const written = readFileSync(readme, "utf8");
  const block = new RegExp(`(<!-- ${name} -->\\n\`\`\`[a-z]*\\n)(.*?)(\`\`\`)`, "s");
  const plain = seen
    .replaceAll(here.work, "/home/you/project")
    .replaceAll(here.plugins, "/home/you/.config/toold/plugins");
  assert.match(written, block, `the README has a place for ${name}`);
  if (process.env["UPDATE"])
    writeFileSync(
      readme,
      written.replace(block, (_, begin, __, end) => begin + plain + end),
    );
  else assert.equal(block.exec(written)![2], plain);
}

test("the manifest declares what the extension registers", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const { commands, languageModelTools, menus, mcpServerDefinitionProviders, views } = MANIFEST.contributes;
  assert.deepEqual([...window.commands.keys()].sort(), commands.map(({ command }) => command).sort());
  assert.deepEqual([...window.chatTools.keys()].sort(), languageModelTools.map(({ name }) => name).sort());
  assert.deepEqual([...window.trees.keys()].sort(), views.toold.map(({ id }) => id).sort());
  assert.deepEqual(
    mcpServerDefinitionProviders.map(({ id }) => id),
    ["toold.mcp"],
  );
  for (const { command } of Object.values(menus).flat()) assert.ok(window.commands.has(command), command);
  assert.equal(window.contexts["toold.connected"], true);
  assert.deepEqual(window.log, []);
});

test("the views show tools and plugins, and a plugin's error is a problem at its line", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const broken = join(here.plugins, "weather.lua");
  writeFileSync(
    broken,
    'local city = hygge.config.city or "Bergen"\nhygge.register_tool{\n  name = "weather"\n  description = "?",\n}\n',
  );
  await window.until("the problem", () => window.problems.size > 0);
  await window.until(
    "the provided tools",
    () => api.link.tools.filter(({ source }) => source.kind === "frontend").length === 2,
  );
  // The list of built-ins changes, and is not the subject of this test.
  const tools = (await window.view("toold.tools")).replace(/(v Built-in) {2}\d+\n(?: {4}.*\n)+/, "$1\n    ...\n");
  shows("tools", tools, here);
  shows("plugins", await window.view("toold.plugins"), here);
  const [[path, [problem]]] = [...window.problems] as [[string, vscode.Diagnostic[]]];
  assert.equal(path, broken);
  assert.equal(problem!.range.start.line, 3);
  shows("problem", `${path}:${problem!.range.start.line + 1}: ${problem!.message} [${problem!.source}]\n`, here);

  const [node] = (await window.trees.get("toold.plugins")!.getChildren())!.filter((each) => {
    return (each as { label: string }).label === "weather";
  });
  window.shown.length = 0;
  await window.commands.get("toold.reloadPlugin")!(node as never);
  assert.match(window.shown.join(), /^error: weather: /);
  writeFileSync(
    broken,
    'hygge.register_tool{name = "weather", description = "Rain", execute = function() return "rain" end}\n',
  );
  await window.until("the repair", () => window.problems.size === 0);
  await window.commands.get("toold.reloadPlugin")!(node as never);
  assert.equal(window.shown.at(-1), "status bar: weather loaded");
});

test("a project's plugin loads once the user trusts it", async (t) => {
  const here = await ownFolders(t);
  const folder = join(here.work, ".toold/plugins");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "local.lua");
  writeFileSync(
    path,
    'hygge.register_tool{name = "near", description = "Is near", execute = function() return "here" end}\n',
  );
  const { window, api } = await activate(here);
  await api.open();
  await window.until("it is shown", () => api.link.plugins.some(({ status }) => status === "untrusted"));
  const nodes = (await window.trees.get("toold.plugins")!.getChildren())! as { label: string; context: string }[];
  const node = nodes.find(({ label }) => label === "local")!;
  assert.equal(node.context, "untrusted-plugin");
  const run = () => window.commands.get("toold.trust")!(node as never);
  await run();
  assert.match(window.shown[0]!, /^editor: file:.*local\.lua\n.*"near"/);
  assert.match(window.shown[1]!, /^warning: Trust the plugin local as it is now\?\n {2}\[Trust\]$/);
  assert.equal(
    api.link.tools.some(({ name }) => name === "near"),
    false,
  );
  window.person.notice = () => "Trust";
  await run();
  await window.until("it counts", () => api.link.tools.some(({ name }) => name === "near"));

  mkdirSync(join(folder, "house"));
  writeFileSync(
    join(folder, "house/plugin.lua"),
    'hygge.register_tool{name = "far", description = "Is far", execute = print}\n',
  );
  await window.until("it is shown", () => api.link.plugins.some(({ name }) => name === "house"));
  const house = (await window.trees.get("toold.plugins")!.getChildren())!.find((each) => {
    return (each as { label: string }).label === "house";
  });
  window.shown.length = 0;
  await window.commands.get("toold.trust")!(house as never);
  assert.match(window.shown[0]!, /^editor: file:.*house\/plugin\.lua\n.*"far"/);
  await window.until("it counts", () => api.link.tools.some(({ name }) => name === "far"));
  await window.commands.get("toold.openPlugin")!(house as never);
  assert.match(window.shown.at(-1)!, /^editor: file:.*house\/plugin\.lua\n/);
});

test("an ask is a notification, and its diff an editor that closes with it", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  writeFileSync(join(here.work, "tea.txt"), "green\nblack\n");
  const seen = signal();
  const go = signal();
  window.person.notice = (_message, buttons) => {
    return buttons.find((button) => button === (window.tabs.length === 0 ? "Show the Diff" : "More..."));
  };
  window.person.pick = async (_title, labels) => {
    seen.fire();
    await go.promise;
    return labels.find((label) => label.startsWith("Allow in this"));
  };
  const agent = await here.client();
  // A file must be read before it is overwritten.
  await agent.execute("read", { path: "tea.txt" });
  const written = agent.execute("write", { path: "tea.txt", content: "green\nmint\nblack\n" });
  await seen.promise;
  // The ask may come before the event of its call.
  await window.until("the call is counted", () => window.statusItem.text === "$(bell-dot) toold 1 $(sync~spin) 1");
  shows("status", `${window.statusItem.text}\n`, here);
  shows("ask", `${window.shown[0]}\n`, here);
  shows("diff", `${window.shown[1]}\n`, here);
  shows("answers", `${window.shown.at(-1)!}\n`, here);
  assert.equal(window.tabs.length, 1);
  go.fire();
  const result = await written;
  assert.equal(result.is_error, false, text(result));
  await window.until("the diff is closed", () => window.tabs.length === 0);
  await window.until("no ask is left", () => api.link.asks.size === 0);
  await window.until("all is quiet", () => window.statusItem.text === "$(tools) toold");
});

test("an ask that is open says who waits for it now", async (t) => {
  const here = await ownFolders(t);
  here.configure('[agents.codex]\nask = "toold"\n[agents.claude-code]\nask = "toold"\n');
  const { window, api } = await activate(here);
  await api.open();
  // As an agent runs it before it uses a tool of its own. Nothing here may become an agent, so it has no parent.
  const hook = (agent: string) => {
    const input = {
      ...{ session_id: "s-1", cwd: here.work, hook_event_name: "PreToolUse", tool_name: "Bash" },
      ...{ tool_input: { command: "touch x" }, tool_use_id: "t-1" },
    };
    writeFileSync(join(here.work, `${agent}.json`), JSON.stringify(input));
    const line = `exec setsid --fork ${join(dirname(TOOLD), "toolctl")} hook ${agent} <${agent}.json >/dev/null 2>&1`;
    spawn("sh", ["-c", line], { cwd: here.work });
  };
  hook("codex");
  await window.until("an ask", () => window.shown.length > 0);
  assert.match(window.shown[0]!, /^warning: bash .*for codex wants to run: touch x/);
  hook("claude-code");
  await window.until("the news", () => window.shown.length > 1);
  assert.match(window.shown[1]!, /^information: Now bash .*for codex and claude-code wants to run: touch x/);
  window.person.notice = (message, buttons) => {
    assert.match(message, /for codex and claude-code/);
    return buttons.at(-1);
  };
  await window.commands.get("toold.answer")!();
  await window.until("no ask is left", () => api.link.asks.size === 0);
});

test("an ask that was put away is answered by the command", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const agent = await here.client();
  const running = agent.execute("bash", { command: "touch x && touch y" });
  await window.until("an ask", () => window.shown.length > 0);
  assert.equal(window.statusItem.command, "toold.answer");
  window.person.notice = (_message, buttons) => buttons[0];
  await window.commands.get("toold.answer")!();
  assert.equal((await running).is_error, false);
  assert.match(window.shown[0]!, /^warning: bash for node wants to run \(1 of 2\): touch x, of: touch x && touch y \(changes files\)\n {2}\[Allow once\]/);
  await window.until("no ask is left", () => api.link.asks.size === 0);
  await window.commands.get("toold.answer")!();
  assert.equal(window.shown.at(-1), "information: No permission request is waiting.");
});

test("the level of a session is shown and raised", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  window.person.pick = async (_title, labels) => labels.find((label) => label.startsWith("edit")) ?? labels[0];
  window.person.notice = (_message, buttons) => buttons.find((button) => button === "Set edit");
  await window.commands.get("toold.level")!();
  assert.equal(window.shown.at(-1), "information: The level is edit (set by a person for this session).");
});

test("questions are quick picks, and close when another client has answered", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const agent = await here.client();
  const options = [{ label: "green", description: "from Uji" }, { label: "black" }];
  window.person.pick = () => "black";
  assert.match(text(await agent.execute("question", { question: "Which tea?", options })), /black/);
  shows("question", `${window.shown[0]}\n`, here);
  window.person.pick = () => "Something else...";
  window.person.type = () => "mint";
  const other = { question: "Which tea?", options, allow_other: true };
  assert.match(text(await agent.execute("question", other)), /mint/);

  // The user does nothing, and another client answers.
  const asked = signal();
  window.person.pick = () => {
    asked.fire();
    return new Promise(() => {});
  };
  const events = await agent.events({ kinds: "question.asked" });
  const running = agent.execute("question", { question: "And now?", options });
  await asked.promise;
  const { value } = await events.next();
  assert.ok(value?.kind === "question.asked");
  const { request_id } = value.request;
  await agent.request("questions.reply", { request_id, answer_ids: [value.request.options[0]!.id] });
  assert.match(text(await running), /green/);
  await window.until("it says who did", () => /^information: answered by .*: And now\?/.test(window.shown.at(-1)!));
});

test("a call that changed several files is undone as a whole, and what undo leaves as it is is said before", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  mkdirSync(join(here.work, "out"));
  writeFileSync(join(here.work, ".gitignore"), "out/\n");
  for (const name of ["black.txt", "green.txt"]) writeFileSync(join(here.work, name), "tea\n");
  execFileSync("git", ["init", "-q", here.work]);
  window.person.notice = (_message, buttons) => buttons.find((button) => ["Allow once", "Undo"].includes(button));
  window.person.pick = (_title, labels) => labels.find((label) => label.startsWith("green.txt"));
  const agent = await here.client();
  const ran = await agent.execute("bash", { command: "rm -r out black.txt green.txt" });
  assert.equal(ran.is_error, false, text(ran));
  window.shown.length = 0;
  await window.commands.get("toold.undo")!();
  const [, diff, question, done] = window.shown;
  assert.match(diff!, /^editor: .*2 files\.diff\n[^]*\+\+\+ b\/black\.txt[^]*\+\+\+ b\/green\.txt/);
  const stays = "out does not come back: nothing of it was kept";
  const whole = "of green.txt and of another file, which the same call changed";
  assert.match(question!, new RegExp(`^warning: Undo the last change ${whole}, as the diff shows\\? Note: ${stays}\\.`));
  assert.equal(done, `information: the last change ${whole} is undone; ${stays}`);
  assert.deepEqual(readdirSync(here.work).sort(), [".git", ".gitignore", "black.txt", "green.txt"]);
});

test("a tool's form is a row of boxes, and leaving it cancels it", async (t) => {
  const here = await ownFolders(t);
  writeFileSync(
    join(here.plugins, "tea.lua"),
    `hygge.register_tool{name = "order", description = "Orders tea", execute = function(ctx)
  local answer = ctx.elicit{message = "Your tea", schema = {
    properties = {cups = {type = "integer", minimum = 1}, kind = {enum = {"green", "black"}}},
    required = {"cups", "kind"},
  }}
  return answer.action .. (answer.content and (" " .. answer.content.cups .. " " .. answer.content.kind) or "")
end}
`,
  );
  const { window, api } = await activate(here);
  await api.open();
  const agent = await here.client();
  window.person.type = (_title, validate) => (validate("0") === "expected at least 1" ? "2" : undefined);
  window.person.pick = () => "black";
  assert.equal(text(await agent.execute("order")), "accept 2 black");
  assert.deepEqual(
    window.shown.map((line) => line.split("\n")[0]),
    ["input: Your tea: cups (1/2)", "pick: Your tea: kind (2/2)"],
  );
  window.person.pick = () => undefined;
  assert.equal(text(await agent.execute("order")), "cancel");
});

test("chat calls the built-ins, and its cancelling is the daemon's", async (t) => {
  const here = await ownFolders(t);
  const { window } = await activate(here);
  writeFileSync(join(here.work, "notes.txt"), "green tea\n");
  const invoke = async (name: string, input: object, source = new CancellationTokenSource()) => {
    const tool = window.chatTools.get(name)!;
    const prepared = await tool.prepareInvocation!({ input }, source.token);
    assert.equal(prepared!.confirmationMessages, undefined);
    const result = await tool.invoke({ input, toolInvocationToken: undefined }, source.token);
    return result!.content.map((part) => (part as vscode.LanguageModelTextPart).value).join("\n");
  };
  // Before the link is open, too.
  assert.equal(await invoke("toold_read", { path: "notes.txt" }), "1: green tea");
  assert.match(await invoke("toold_read", {}), /path/);
  window.person.notice = (_message, buttons) => buttons[0];
  const source = new CancellationTokenSource();
  const agent = await here.client();
  const events = await agent.events({ kinds: ["call.progress", "call.finished"] });
  const running = invoke("toold_bash", { command: "echo begun; sleep 60" }, source);
  await events.next();
  source.cancel();
  await assert.rejects(running);
  for await (const event of events) {
    if (event.kind !== "call.finished") continue;
    assert.equal(event.outcome, "cancelled");
    break;
  }
});

test("a tool is called by a form, shows its progress and can be cancelled", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const problems: unknown[] = [];
  const offered: string[][] = [];
  const picks = ["greet", "times", "$(play) Call greet"];
  window.person.pick = (_title, labels) => {
    offered.push(labels);
    return picks.shift();
  };
  window.person.type = (title, validate) => {
    if (title.includes("name")) return "you";
    problems.push(validate(""), validate("x"), validate("0"), validate("2"));
    return "2";
  };
  await window.commands.get("toold.call")!();
  assert.deepEqual(problems, [undefined, "expected a whole number, at least 1", "expected at least 1", undefined]);
  const greeting = window.shown.filter((line) => !line.startsWith("pick: Call which"));
  shows("call", `${greeting.join("\n").replace(/toold:\/results\/[^/]*\//, "toold:/results/CALL/")}\n`, here);

  // The second time, the tool is the first of the list, and the boxes have the values of the first.
  const values: string[] = [];
  picks.push("greet", "$(play) Call greet");
  window.person.type = (_title, _validate, value) => {
    values.push(value);
    return value;
  };
  await window.commands.get("toold.call")!();
  assert.equal(offered.at(-2)![0], "greet");
  assert.deepEqual(values, ["you"]);

  // Back from the optional values to the name, and from there to the list, where you give up.
  picks.push("greet", BACK);
  const asked: string[] = [];
  window.person.type = (title) => {
    asked.push(title);
    return asked.length === 1 ? "you" : BACK;
  };
  const before = window.shown.length;
  await window.commands.get("toold.call")!();
  assert.deepEqual(
    window.shown.slice(before).map((line) => line.split("\n")[0]),
    [
      "pick: Call which tool?",
      "input: greet: name (1/2)",
      "pick: greet (2/2)",
      "input: greet: name (1/2)",
      "pick: Call which tool?",
    ],
  );

  const node = { name: "wait_for_ever" };
  const calling = window.commands.get("toold.call")!(node as never) as Promise<void>;
  await window.until("it waits", () => window.shown.includes("progress: wait_for_ever: waiting"));
  window.cancelProgress();
  await calling;
  await window.until("it has ended", () => api.link.running.size === 0);
});

test("a running call of another is cancelled by the command", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here);
  await api.open();
  const agent = await here.client();
  const call = agent.call("wait_for_ever");
  await window.until("it runs", () => window.statusItem.text === "$(tools) toold $(sync~spin) 1");
  await window.commands.get("toold.cancel")!();
  await assert.rejects(call.result(), { name: "CallCancelled" });
});

test("the editor provides its problems, its selection and its unsaved text", async (t) => {
  const here = await ownFolders(t);
  const path = join(here.work, "a.ts");
  writeFileSync(path, "old\n");
  const { window, api } = await activate(here);
  window.person.notice = (_message, buttons) => buttons[0];
  await api.open();
  const uri = Uri.file(path);
  const at = new Range(0, 4, 0, 5) as Partial<vscode.Range> as vscode.Range;
  const problem: Partial<vscode.Diagnostic> = { range: at, message: "no such name", severity: 0, source: "ts" };
  window.languageProblems.push([uri, [problem as vscode.Diagnostic]]);
  const document = {
    uri,
    version: 2,
    isDirty: true,
    getText: (range?: vscode.Range) => (range ? "unsaved" : "unsaved\n"),
    lineAt: () => ({ text: "unsaved" }) as Partial<vscode.TextLine> as vscode.TextLine,
  } as Partial<vscode.TextDocument> as vscode.TextDocument;
  const selection = { start: { line: 0, character: 0 }, end: { line: 1, character: 0 }, active: { line: 0 } };
  window.activeTextEditor = { document, selection } as Partial<vscode.TextEditor> as vscode.TextEditor;
  const agent = await here.client();
  assert.equal(text(await agent.execute("vscode_diagnostics")), "a.ts:1:5: error: no such name [ts]");
  assert.equal(text(await agent.execute("vscode_selection")), "a.ts (unsaved), line 1:\nunsaved");

  window.changed.fire({ document, contentChanges: [], reason: undefined });
  // The overlay is sent in the background; requests of one connection are in order, so that one behind it tells.
  await new Promise(setImmediate);
  await api.link.client.request("daemon.ping");
  assert.match(text(await agent.execute("read", { path: "a.ts" })), /1: unsaved/);
  window.closed.fire(document);
  await new Promise(setImmediate);
  await api.link.client.request("daemon.ping");
  assert.equal(text(await agent.execute("read", { path: "a.ts" })), "1: old");
});

test("chat is offered the tools of plugins by toolctl", async (t) => {
  const here = await ownFolders(t);
  const { window } = await activate(here, { "toold.toolctl": "/opt/toolctl" });
  const token = new CancellationTokenSource().token;
  const servers = async () =>
    (await window.mcp!.provideMcpServerDefinitions(token))! as vscode.McpStdioServerDefinition[];
  const [server] = await servers();
  assert.deepEqual(
    [server!.label, server!.command, server!.args, server!.env, server!.version],
    ["toold", "/opt/toolctl", ["mcp", "--without-source", "builtin", "--cwd", here.work], { TOOLD_SOCKET: here.socket }, MANIFEST.version],
  );
  delete window.settings["toold.toolctl"];
  window.settings["toold.program"] = join(here.bin, "toold");
  assert.equal((await servers())[0]!.command, join(here.bin, "toolctl"));
  window.settings["toold.mcp"] = false;
  assert.deepEqual(await servers(), []);
});

test("the server that chat is offered has the plugins' tools", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here, { "toold.toolctl": join(dirname(TOOLD), "toolctl") });
  await api.open();
  const token = new CancellationTokenSource().token;
  const [server] = (await window.mcp!.provideMcpServerDefinitions(token)) as vscode.McpStdioServerDefinition[];
  const env = { ...process.env, ...(server!.env as Record<string, string>) };
  const child = spawn(server!.command, server!.args, {
    env,
    cwd: server!.cwd!.fsPath,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (id: number, method: string, params: object) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    for (;;) {
      const { value } = await answers.next();
      const answer = JSON.parse(value as string) as { id?: number; result: { tools: { name: string }[] } };
      if (answer.id === id) return answer.result;
    }
  };
  const clientInfo = { name: "test", version: "1" };
  await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const { tools } = await ask(2, "tools/list", {});
  assert.ok(
    tools.some(({ name }) => name === "greet"),
    tools.map(({ name }) => name).join(),
  );
  child.stdin.end();
  await ended;
});

test("without a daemon the window is quiet, and the command starts one", async (t) => {
  const here = await ownFolders(t);
  const { window, api } = await activate(here, { "toold.start": false });
  assert.equal(window.statusItem.text, "$(debug-disconnect) toold");
  assert.equal(window.statusItem.command, "toold.connect");
  await assert.rejects(api.open(), { name: "NotRunning" });
  assert.deepEqual(window.shown, []);
  await window.commands.get("toold.connect")!();
  assert.match(window.shown.join(), /^error: toold: no daemon is running at /);
  await here.client();
  await window.commands.get("toold.connect")!();
  assert.equal(window.statusItem.text, "$(tools) toold");
  window.shown.length = 0;
  await window.commands.get("toold.showLog")!();
  assert.match(window.shown.join(), /^editor: file:.*\/toold\/log\/toold\.log\n.*serving/s);
});
