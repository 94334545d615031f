/** Texts of tools and models change nothing in the page. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "./fixtures.ts";
import { HOSTILE, TRAFFIC } from "./traffic.ts";
import { watch } from "./watch.ts";

test.use({ contents: { plugins: { "traffic.lua": TRAFFIC } } });

const TEXT = HOSTILE.join("\n");
/** What would make a diff say no more than "binary". */
const NULL = "null\u0000";

test("the output of a tool is text", async ({ signedIn, agent }) => {
  const check = watch(signedIn);
  const claude = await agent(`claude ${HOSTILE[0]}`);
  void claude.call("say_and_wait", { text: `${TEXT}\n${NULL}` });
  const card = signedIn.getByRole("listitem").filter({ hasText: "say_and_wait" });
  await card.locator("summary").click();
  const output = card.getByRole("region", { name: "Output" });
  for (const shown of [
    "<script>window.pwned = 1</script>",
    "<h1>Approved</h1>",
    "[click](javascript:window.pwned=1)",
    "␛[2J␛]0;title␇",
    "rm -rf \\u{202e}txt.nur\\u{202c}",
    "\\u{200b}hidden",
    "\\u{e0041}tag",
    "null␀",
    "carriage␍return, back␈␈space, delete␡",
  ]) {
    await expect(output).toContainText(shown);
  }
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText(["Now"]);
  await expect(card).toContainText("claude <script>");
  await check();
});

test("an ask is text, and shows what it would hide", async ({ signedIn, agent }) => {
  const check = watch(signedIn);
  const claude = await agent("claude-code");
  void claude.call("bash", { command: `echo '${HOSTILE[8]}' > a.txt; touch '<img src=x onerror=window.pwned=1>'` });
  await signedIn.getByRole("link", { name: "Decide 1" }).click();
  const prompt = signedIn.getByRole("article");
  await expect(prompt.getByRole("region", { name: "Command line" })).toContainText("\\u{202e}txt.nur");
  await prompt.getByText("How this command is read").click();
  await expect(prompt).toContainText("<img src=x onerror=window.pwned=1>");
  await check();
});

test("a diff is text", async ({ signedIn, agent }) => {
  const check = watch(signedIn);
  const claude = await agent("claude-code");
  void claude.call("write", { path: "a.txt", content: `${TEXT}\n--- a/b\n+++ b/c\n@@ -1 +1 @@\n-x\n+y\n` });
  await signedIn.getByRole("link", { name: "Decide 1" }).click();
  const diff = signedIn.getByRole("article").getByRole("region", { name: "Diff" });
  await expect(diff).toContainText("<script>window.pwned = 1</script>");
  await expect(diff).toContainText("\\u{202e}txt.nur");
  await expect(diff).toContainText("@@ -1 +1 @@");
  await check();
});

test("a change whose lines look like a diff hides nothing", async ({ signedIn, agent, daemon }) => {
  writeFileSync(join(daemon.paths.work, "a.txt"), "one\n-- a/b\n@@ -1,9 +1,9 @@\ntwo\n");
  const claude = await agent("claude-code");
  await claude.call("read", { path: "a.txt" });
  const change = "++ b/c\ndiff --git a/x b/x\nBinary files differ\nrm -rf /\n";
  void claude.call("edit", { path: "a.txt", old: "-- a/b\n@@ -1,9 +1,9 @@\n", new: change });
  await signedIn.getByRole("link", { name: "Decide 1" }).click();
  const diff = signedIn.getByRole("article").getByRole("region", { name: "Diff" });
  for (const line of ["-- a/b", "@@ -1,9 +1,9 @@", "++ b/c", "diff --git a/x b/x", "Binary files differ", "rm -rf /", "two"]) {
    await expect(diff).toContainText(line);
  }
});

test("a line of 10 MB is cut, and the page still answers", async ({ signedIn, agent }) => {
  const check = watch(signedIn);
  const claude = await agent("claude-code");
  void claude.call("long_line");
  const card = signedIn.getByRole("listitem").filter({ hasText: "long_line" });
  await expect(card).toContainText("written");
  await expect(card).toContainText("tea tea");
  await card.locator("summary").click();
  await card.getByRole("button", { name: /Show more/ }).click();
  expect(await signedIn.evaluate(() => document.body.innerText.length)).toBeLessThan(200_000);
  await signedIn.keyboard.press("g");
  await signedIn.keyboard.press("d");
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText("Decide");
  await check();
});
