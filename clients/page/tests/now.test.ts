/** The view Now. */
import { expectAccessible } from "./axe.ts";
import { expect, test } from "./fixtures.ts";
import { takePictures } from "./pictures.ts";
import { TRAFFIC } from "./traffic.ts";

test.use({ contents: { plugins: { "traffic.lua": TRAFFIC } } });

test("calls of two agents are shown with their progress and output", async ({ signedIn, agent }) => {
  const claude = await agent("claude-code");
  const codex = await agent("codex");
  void claude.call("index_project", { project: "shop" });
  void codex.call("ticks");
  await codex.call("say", { text: "tea" });
  // A card's other texts, such as its folder, may contain the name of another tool.
  const callOf = (tool: string) =>
    signedIn.getByRole("listitem").filter({ has: signedIn.locator(".tool").getByText(tool, { exact: true }) });
  const card = callOf("index_project");
  await expect(card).toContainText("running");
  await expect(card).toContainText("claude-code");
  await expect(card).toContainText("37 %");
  await expect(card).toContainText("reading src/text.rs");
  await expect(callOf("say").locator("summary")).toContainText(/ok.*codex.*text=tea/);
  void claude.call("bash", { command: "rm -rf build && make" });
  await expect(callOf("bash")).toContainText("asking");
  await expect(signedIn.getByRole("link", { name: /Decide 1/ })).toBeVisible();
  await signedIn.getByRole("button", { name: "30 s" }).click();
  await expectAccessible(signedIn);
  await takePictures(signedIn, "now");
});

test("an agent has one lane, however many sessions it opens, and asks since it was asked", async ({ signedIn, agent }) => {
  const [first, second] = [await agent("claude-code"), await agent("claude-code")];
  await first.call("say", { text: "tea" });
  await second.call("say", { text: "coffee" });
  void second.call("bash", { command: "rm -rf build && make" });
  await expect(signedIn.getByRole("link", { name: /Decide 1/ })).toBeVisible();
  await signedIn.waitForTimeout(1_500);
  // Opened while it asks.
  await signedIn.reload();
  await expect(signedIn.locator(".lane")).toHaveCount(1);
  const asking = signedIn.locator('.lane .bar[data-state="asking"]');
  await expect(asking).toHaveCount(1);
  const seconds = await asking.evaluate((bar) => {
    const strip = bar.closest(".strip")!.getBoundingClientRect();
    return ((strip.right - bar.getBoundingClientRect().left) / strip.width) * 180;
  });
  expect(seconds).toBeGreaterThan(1.2);
});

test("a call is cancelled after a question", async ({ signedIn, agent }) => {
  const claude = await agent("claude-code");
  const answer = claude.call("index_project", { project: "shop" });
  const card = signedIn.getByRole("listitem").filter({ hasText: "index_project" });
  await card.getByRole("button", { name: "Cancel" }).click();
  await signedIn.getByRole("button", { name: "Go back" }).click();
  await expect(card).toContainText("running");
  await card.getByRole("button", { name: "Cancel" }).click();
  await signedIn.getByRole("button", { name: "Cancel the call" }).click();
  await expect(card).toContainText("cancelled");
  await answer.then(
    (result) => expect(result.isError).toBe(true),
    (error: Error) => expect(error.message).toMatch(/cancel/),
  );
});
