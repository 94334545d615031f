/** The view Decide. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { expectAccessible } from "./axe.ts";
import { expect, test } from "./fixtures.ts";
import { takePictures } from "./pictures.ts";
import { TRAFFIC } from "./traffic.ts";

test.use({ contents: { plugins: { "traffic.lua": TRAFFIC } } });

test("a command line is allowed as a whole, by a key", async ({ signedIn, agent, daemon }) => {
  const claude = await agent("claude-code");
  await signedIn.getByRole("link", { name: "Decide" }).click();
  const answer = claude.call("bash", { command: "echo tea > a.txt && touch b.txt" });
  const prompt = signedIn.getByRole("article");
  await expect(prompt).toContainText("bash asks for permission: file.write");
  await expect(prompt).toContainText("claude-code");
  await expect(prompt.getByRole("region", { name: "Command line" })).toHaveText("echo tea > a.txt && touch b.txt");
  await expect(prompt.getByRole("listitem")).toHaveCount(2);
  await expect(prompt.getByRole("listitem").nth(1)).toContainText("changes files");
  await prompt.getByText("How this command is read").click();
  await expect(prompt).toContainText("touch b.txt");
  await expect(prompt).toContainText("changes files");
  await expect(prompt.getByRole("button", { name: "allow once" })).toBeEnabled();
  await signedIn.keyboard.press("w");
  expect((await answer).isError).toBe(false);
  expect(readFileSync(join(daemon.paths.work, "a.txt"), "utf8")).toBe("tea\n");
  await expect(signedIn.getByText("Nothing to decide")).toBeVisible();
  await expect(signedIn.getByLabel("Recently answered")).toContainText("by you, here");
});

// All clients describe in the same words what an answer covers, and each is tested with these cases.
test("an ask has the answers of all clients", async ({ signedIn, agent }) => {
  const claude = await agent("claude");
  await signedIn.getByRole("link", { name: "Decide" }).click();
  void claude.call("bash", { command: "git push -q origin main" });
  const prompt = signedIn.getByRole("article");
  await expect(prompt.getByRole("button", { name: "allow in this project for 1 hour" })).toBeEnabled();
  const file = join(import.meta.dirname, "../../../proto/tests/answers.json");
  const [command] = JSON.parse(readFileSync(file, "utf8")) as { name: string; answers: string[] }[];
  const expected = command!.answers.map((answer) => answer.replace("codex", "claude").replace(" (all pushes)", ""));
  const shown = await prompt.getByRole("group", { name: "Answers" }).locator("button > span").allInnerTexts();
  expect(shown).toEqual(expected);
  await expect(prompt).toContainText("publishes");
  await takePictures(signedIn, "ask", ["light"]);
});

test("a change is shown as a diff, and denied with a reason", async ({ signedIn, agent }) => {
  const codex = await agent("codex");
  await signedIn.getByRole("link", { name: "Decide" }).click();
  const answer = codex.call("write", { path: "notes.md", content: "green tea\n" });
  const prompt = signedIn.getByRole("article");
  await expect(prompt.getByRole("region", { name: "Diff" })).toContainText("green tea");
  await expect(prompt.getByRole("button", { name: "deny, with a reason" })).toBeEnabled();
  // No letter of the reason is an answer, typed at once or beside the field.
  await signedIn.keyboard.press("d");
  await signedIn.keyboard.type("y: not");
  await prompt.getByRole("heading", { name: "Change" }).click();
  await signedIn.keyboard.press("y");
  await prompt.getByLabel("Reason, for the model").press("End");
  await signedIn.keyboard.type(" here");
  await signedIn.keyboard.press("Enter");
  const { isError, content } = await answer;
  expect(isError).toBe(true);
  expect(content[0]?.text).toContain("y: not here");
});

test("an ask that was answered elsewhere disappears, with a note of who did", async ({
  signedIn,
  agent,
  pageLink,
  browser,
}) => {
  const other = await (await browser.newContext()).newPage();
  await other.goto(await pageLink());
  const claude = await agent("claude-code");
  const answer = claude.call("bash", { command: "touch a.txt" });
  for (const page of [signedIn, other]) {
    await page.getByRole("link", { name: "Decide 1" }).click();
    await expect(page.getByRole("article")).toContainText("touch a.txt");
  }
  await other.getByRole("button", { name: "allow once" }).click();
  expect((await answer).isError).toBe(false);
  await expect(signedIn.getByRole("article")).toBeHidden();
  await expect(signedIn.getByLabel("Recently answered")).toContainText(/touch a.txt allowed by (?!you)/);
  await expect(signedIn.getByRole("link", { name: "Decide" })).toHaveText("Decide");
  await other.context().close();
});

test("an ask says who asks, warns of letters that mislead, and says how it ended", async ({
  signedIn,
  agent,
  daemon,
}) => {
  const codex = await agent("codex");
  await signedIn.getByRole("link", { name: "Decide" }).click();
  const answer = codex.call("bash", { command: "touch g\u0456t.txt", description: "makes a file" });
  const prompt = signedIn.getByRole("article");
  await expect(prompt).toContainText("level read");
  await expect(prompt).toContainText("agent says");
  await expect(prompt).toContainText("makes a file");
  await expect(prompt).toContainText("has characters that look like others");
  await expect(prompt.getByRole("button", { name: "allow in this codex session", exact: true })).toBeAttached();
  await daemon.toolctl("permissions", "grant", "shell", "touch g\u0456t.txt");
  expect((await answer).isError).toBe(false);
  await expect(signedIn.getByLabel("Recently answered")).toContainText("allowed by grant");
});

test("a link opens one of several asks, and keys go through them", async ({ signedIn, agent }) => {
  const claude = await agent("claude-code");
  const codex = await agent("codex");
  void claude.call("bash", { command: "touch first.txt" });
  await expect(signedIn.getByRole("link", { name: "Decide 1" })).toBeVisible();
  const answer = codex.call("bash", { command: "touch second.txt" });
  const card = signedIn.getByRole("listitem").filter({ hasText: "codex" });
  await card.getByRole("link", { name: "Decide" }).click();
  const prompt = signedIn.getByRole("article");
  await expect(prompt).toContainText("touch second.txt");
  const address = signedIn.url();
  await signedIn.keyboard.press("k");
  await expect(prompt).toContainText("touch first.txt");
  await signedIn.keyboard.press("j");
  await expect(prompt).toContainText("touch second.txt");
  expect(signedIn.url()).toBe(address);
  await prompt.getByRole("button", { name: "allow in this codex session", exact: true }).click();
  expect((await answer).isError).toBe(false);
  await expect(prompt).toContainText("touch first.txt");
});

test.describe("agents that wait", () => {
  const config = '[agents.claude-code]\nask = "toold"\n[agents.codex]\nask = "toold"\n';
  test.use({ contents: { config } });

  test("the list of waiting prompts names all agents, the sub-agent, and which of how many", async ({
    signedIn,
    agent,
    daemon,
  }) => {
    // As an agent runs it before it uses a tool of its own. Nothing here may become an agent, so it has no parent.
    const hook = async (name: string, more: object = {}) => {
      const input = {
        ...{ session_id: "s-1", cwd: daemon.paths.work, hook_event_name: "PreToolUse", tool_name: "Bash" },
        ...{ tool_input: { command: "touch same.txt" }, tool_use_id: "t-1", ...more },
      };
      writeFileSync(join(daemon.paths.root, `${name}.json`), JSON.stringify(input));
      await daemon.inShell(`(setsid toolctl hook ${name} <../${name}.json >/dev/null 2>&1 &)`);
    };
    await daemon.toolctl("call", "bash", "command=pwd");
    const claude = await agent("claude");
    void claude.call("bash", { command: "touch first.txt" });
    await signedIn.getByRole("link", { name: "Decide 1" }).click();
    const list = signedIn.getByRole("navigation", { name: "Open prompts" }).getByRole("link");
    await hook("claude-code", { agent_id: "a1", agent_type: "Explore" });
    await expect(list).toHaveText([
      /1 of 2.*shell.*claude.*touch first.txt/,
      /2 of 2.*shell.*claude-code, sub-agent Explore \(a1\).*touch same.txt/,
    ]);
    await list.nth(1).click();
    const prompt = signedIn.getByRole("article");
    await expect(prompt).toContainText("claude-code, sub-agent Explore (a1)");
    // The open prompt names an agent that joins.
    await hook("codex");
    await expect(list.nth(1)).toHaveText(/2 of 2.*claude-code, sub-agent Explore \(a1\), codex/);
    await expect(prompt).toContainText("claude-code, sub-agent Explore (a1), codex");
    await prompt.getByRole("button", { name: "deny", exact: true }).click();
    await expect(prompt).toContainText("touch first.txt");
    await expect(list).toHaveCount(0);
  });
});

test("a link of toolctl opens an ask", async ({ page, agent, daemon, signedIn }) => {
  const claude = await agent("claude-code");
  void claude.call("bash", { command: "touch first.txt" });
  await expect(signedIn.getByRole("link", { name: "Decide 1" })).toBeVisible();
  const codex = await agent("codex");
  void codex.call("bash", { command: "touch second.txt" });
  await signedIn.getByRole("link", { name: "Decide 2" }).click();
  await signedIn.getByRole("navigation", { name: "Open prompts" }).getByText("touch second.txt").click();
  const id = decodeURIComponent(new URL(signedIn.url()).hash.split("/").at(-1)!);

  const tab = await page.context().newPage();
  await tab.goto((await daemon.toolctl("page", "--plain", "--ask", id)).trim());
  await expect(tab.getByRole("article")).toContainText("touch second.txt");
  await tab.goto((await daemon.toolctl("page", "--plain", "--ask", "gone")).trim());
  await expect(tab.getByText("The prompt of this link has ended")).toBeVisible();
});

test("questions are answered by an option, in own words and by a form", async ({ signedIn, agent }) => {
  const claude = await agent("claude-code");
  await signedIn.getByRole("link", { name: "Decide" }).click();
  const prompt = signedIn.getByRole("article");

  const option = claude.call("pick_port");
  await expect(prompt.getByRole("button", { name: "8080" })).toBeEnabled();
  await signedIn.keyboard.press("2");
  expect((await option).content[0]?.text).toBe("8080");

  const words = claude.call("pick_port");
  await expect(prompt.getByRole("button", { name: "8080" })).toBeEnabled();
  await signedIn.keyboard.press("o");
  await prompt.getByLabel("Your answer").fill("none");
  await prompt.getByRole("button", { name: "Send" }).click();
  expect((await words).content[0]?.text).toBe("none");

  const form = claude.call("release");
  await prompt.getByLabel("Version").fill("1.2");
  await prompt.getByLabel("channel").selectOption("stable");
  await prompt.getByLabel("days").fill("3");
  await prompt.getByLabel("notify").check();
  await prompt.getByRole("button", { name: "Send" }).click();
  const [text] = (await form).content;
  expect(text?.text).toMatch(/^accept /);
  expect(JSON.parse(text!.text!.slice(7))).toEqual({ version: "1.2", channel: "stable", days: 3, notify: true });
});

test("the view is accessible with all that an ask can have", async ({ signedIn, agent, daemon }) => {
  const claude = await agent("claude-code");
  const codex = await agent("codex");
  writeFileSync(join(daemon.paths.work, "menu.md"), "# Menu\n\n- black coffee\n- green tea\n- water\n");
  await claude.call("read", { path: "menu.md" });
  void claude.call("edit", { path: "menu.md", old: "- black coffee\n", new: "- espresso\n- white tea\n" });
  await signedIn.getByRole("link", { name: "Decide 1" }).click();
  void codex.call("bash", { command: "cargo build && git push origin main" });
  await expect(signedIn.getByRole("navigation", { name: "Open prompts" }).getByRole("link")).toHaveCount(2);
  await expect(signedIn.getByRole("region", { name: "Diff" })).toContainText("white tea");
  await expect(signedIn.getByRole("button", { name: "allow once" })).toBeEnabled();
  await expectAccessible(signedIn);
  await takePictures(signedIn, "decide-change");
  await signedIn.keyboard.press("j");
  await signedIn.getByText("How this command is read").click();
  await expect(signedIn.getByRole("article")).toContainText("cargo build");
  await expect(signedIn.getByRole("button", { name: "allow once" })).toBeEnabled();
  await expectAccessible(signedIn);
  await takePictures(signedIn, "decide");
});
