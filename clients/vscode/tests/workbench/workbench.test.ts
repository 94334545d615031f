/** The packed extension in a real workbench, with the real daemon. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test as nodeTest } from "node:test";

import { text, type Client } from "toold";

import { DaemonFolders } from "../../../typescript/tests/folders.js";
import { PATIENCE, Workbench } from "./workbench.js";

let here: DaemonFolders;
let window: Workbench;
let agent: Client;

before(async () => {
  here = await DaemonFolders.create();
  window = await Workbench.open(here);
  agent = await here.client();
});

afterEach(async (t) => {
  await window.picture(`after ${(t as { name: string }).name}`.replaceAll(/[^a-z]+/gi, "-"));
  assert.deepEqual(window.errors, []);
});

after(async () => {
  await window?.close();
  await here?.remove();
});

function test(name: string, body: () => Promise<void>): void {
  void nodeTest(name, { timeout: 2 * PATIENCE }, body);
}

test("the extension activates, and its view lists the tools by source", async () => {
  await window.command("View: Show toold");
  const view = window.page.locator(".pane").filter({ hasText: "Built-in" });
  const row = (label: string) => view.locator(".monaco-list-row").filter({ hasText: label });
  await row("Plugins").first().click();
  await row("greet").first().waitFor();
  await window.picture("tools", window.page.locator(".part.sidebar"));
  await row("Plugins").first().click();
});

test("a tool is called through the picker, and its arguments are checked while you type", async () => {
  await window.command("toold: Call a Tool...");
  await window.titled("Call which tool?");
  await window.type("greet");
  await window.row("plugin tools").first().waitFor();
  assert.match(await window.row("plugin tools").first().innerText(), /greet[^]*plugin tools[^]*Greets somebody/);
  await window.type("file");
  await window.row("may need: file.write").first().waitFor();
  await window.picture("call", window.input);
  await window.type("greet");
  await window.press("Enter");

  await window.titled("greet: name (1/2)");
  await window.type("you");
  await window.press("Enter");
  await window.titled("greet (2/2)");
  await window.row("times").click();
  await window.titled("greet: times (optional)");
  for (const [typed, problem] of [["x", "expected a whole number, at least 1"], ["0", "expected at least 1"]] as const) {
    await window.type(typed);
    await window.input.getByText(problem, { exact: true }).waitFor();
  }
  await window.picture("validation");
  await window.press("Enter");
  await window.type("2");
  await window.press("Enter");
  await window.row("times").filter({ hasText: "= 2" }).waitFor();
  // Back to the name, which is still there, and forward again.
  await window.input.locator(".quick-input-titlebar .codicon-quick-input-back").click();
  await window.titled("greet: name (1/2)");
  assert.equal(await window.input.locator("input").first().inputValue(), "you");
  await window.press("Enter");
  await window.row("Call greet").click();
  await window.page.locator(".tab.active").filter({ hasText: "greet" }).waitFor();
  assert.equal((await window.editorText()).trim(), "hello you");

  await window.command("toold: Call a Tool...");
  await window.titled("Call which tool?");
  assert.match(await window.row("").first().innerText(), /^greet/, "the tool that was called last is the first");
  await window.press("Escape");
  await window.input.waitFor({ state: "hidden" });
});

test("a permission request is a notification, and is answered in the workbench", async () => {
  const running = agent.execute("bash", { command: "touch tea.txt" });
  const ask = window.notification("bash for node wants to run: touch tea.txt");
  await ask.waitFor();
  await window.status.filter({ hasText: "1" }).first().waitFor();
  await window.picture("ask", ask);
  await ask.getByRole("button", { name: "Allow once" }).click();
  assert.equal((await running).is_error, false);
  await ask.waitFor({ state: "hidden" });
});

test("a change is shown in a diff editor, allowed, and undone", async () => {
  const path = join(here.work, "teas.txt");
  writeFileSync(path, "green\nblack\n");
  await agent.execute("read", { path });
  const running = agent.execute("write", { path, content: "green\nmint\nblack\n" });
  const ask = window.notification("write for node wants to write: teas.txt");
  await ask.getByRole("button", { name: "Show the Diff" }).click();
  const diff = window.page.locator(".monaco-diff-editor");
  await diff.getByText("mint").first().waitFor();
  await window.picture("diff");
  await ask.getByRole("button", { name: "Allow once" }).click();
  assert.equal((await running).is_error, false);
  await diff.waitFor({ state: "hidden" });
  assert.equal(readFileSync(path, "utf8"), "green\nmint\nblack\n");

  await window.command("toold: Undo a Change...");
  await window.titled("Undo the last change of which file?");
  await window.row("teas.txt").click();
  const question = window.notification("Undo the last change of teas.txt");
  await question.waitFor();
  await diff.getByText("mint").first().waitFor();
  await window.picture("undo");
  await question.getByRole("button", { name: "Undo" }).click();
  await diff.waitFor({ state: "hidden" });
  await question.waitFor({ state: "hidden" });
  await window.page.locator(".statusbar").getByText("is undone").waitFor();
  assert.equal(readFileSync(path, "utf8"), "green\nblack\n");
});

test("a question is a quick pick, which closes when another client has answered", async () => {
  const options = [{ label: "green", description: "from Uji" }, { label: "black" }];
  const running = agent.execute("question", { question: "Which tea?", options });
  await window.titled("Which tea?");
  await window.row("from Uji").waitFor();
  await window.picture("question");
  await window.row("black").click();
  assert.match(text(await running), /black/);

  const events = await agent.events({ kinds: "question.asked" });
  const again = agent.execute("question", { question: "And now?", options });
  await window.titled("And now?");
  const { value } = await events.next();
  assert.ok(value?.kind === "question.asked");
  const { request_id, options: offered } = value.request;
  await agent.request("questions.reply", { request_id, answer_ids: [offered[0]!.id] });
  await window.input.waitFor({ state: "hidden" });
  assert.match(text(await again), /green/);
});

test("a running call shows its progress, and is cancelled by its notification", async () => {
  await callWaiting();
  const progress = window.notification("wait_for_ever");
  await progress.getByText("waiting").waitFor();
  await window.picture("progress");
  await progress.getByRole("button", { name: "Cancel" }).click();
  await progress.waitFor({ state: "hidden" });
  await window.status.filter({ hasNotText: "1" }).first().waitFor();
});

test("a killed daemon is reported once, and the next call starts another", async () => {
  // Idle.
  await killDaemon();
  await disconnected();
  assert.equal(await window.notification("").count(), 0, "an idle window stays quiet");
  await callGreet();

  // During a call.
  await callWaiting();
  await window.notification("wait_for_ever").getByText("waiting").waitFor();
  await killDaemon();
  const lost = window.notification("toold: the daemon is gone");
  await lost.waitFor();
  await window.notification("wait_for_ever").waitFor({ state: "hidden" });
  await window.picture("killed");
  assert.equal(await window.notification("").count(), 1);
  await lost.hover();
  await lost.locator(".codicon-notifications-clear").click();
  await callGreet();

  // With an open permission request, whose notification goes with it.
  agent = await here.client();
  const running = agent.execute("bash", { command: "touch x" }).catch((error: Error) => error);
  const ask = window.notification("wants to run: touch x");
  await ask.waitFor();
  await killDaemon();
  assert.ok((await running) instanceof Error);
  await disconnected();
  await ask.getByRole("button", { name: "Allow once" }).click();
  await window.notification("answered elsewhere, or its call has ended").waitFor();
  await callGreet();
});

test("the walkthrough opens, and the steps that were taken are checked off", async () => {
  await window.command("toold: Get Started");
  const page = window.page.locator(".gettingStartedContainer");
  await page.getByText("Get started with toold").first().waitFor();
  await page.locator(".getting-started-step").filter({ hasText: "Answer a permission request" }).click();
  await page.locator("img[alt='A permission request with its buttons']").waitFor();
  for (const step of ["Connect to the daemon", "Call a tool", "Answer a permission request"]) {
    await page.locator(".getting-started-step").filter({ hasText: step }).locator(".codicon.complete").waitFor();
  }
  await window.picture("walkthrough");
});

async function callWaiting(): Promise<void> {
  await window.command("toold: Call a Tool...");
  await window.titled("Call which tool?");
  await window.type("wait_for_ever");
  await window.row("wait_for_ever").first().click();
}

let guests = 1;

/** Calls a tool by the palette, whether or not a daemon is running. */
async function callGreet(): Promise<void> {
  await window.command("toold: Call a Tool...");
  await window.titled("Call which tool?");
  await window.type("greet");
  await window.row("Greets somebody").first().click();
  await window.titled("greet: name (1/2)");
  await window.type(`guest ${guests++}`);
  const name = await window.input.locator("input").first().inputValue();
  await window.press("Enter");
  await window.row("Call greet").click();
  await window.page.locator(".view-lines").getByText(`hello ${name}`).waitFor();
}

async function killDaemon(): Promise<void> {
  const { pid } = await (await here.client({ session: false })).request("daemon.status");
  process.kill(pid, "SIGKILL");
}

async function disconnected(): Promise<void> {
  await window.page.locator(".statusbar-item .codicon-debug-disconnect").waitFor();
}
