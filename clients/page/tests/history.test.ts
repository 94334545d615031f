/** The view History. */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Page } from "@playwright/test";

import { fillAudit, ROWS } from "./audit-rows.ts";
import { expectAccessible } from "./axe.ts";
import { expect, test } from "./fixtures.ts";
import { askDaemon } from "./person.ts";
import { takePictures } from "./pictures.ts";
import { watch } from "./watch.ts";

const WRITES = `
[audit]
max_age_days = 100000
[[permission.rules]]
category = "file.write"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "shell"
pattern = "rm *"
action = "deny"
`;

test.use({ contents: { config: WRITES } });

/** The rows that are on the screen. */
const rows = (page: Page) => page.getByRole("main").getByRole("article");

async function openHistory(page: Page, path = "/history"): Promise<void> {
  await page.goto(`${new URL(page.url()).origin}/page/#${path}`);
}

test.describe("with 10,000 past calls", () => {
  const filled = test.extend<{ recordsCache: boolean }>({
    recordsCache: async ({ daemon }, use) => {
      await daemon.stop();
      const records = await fillAudit(daemon);
      await daemon.start();
      await use(records);
    },
    pageLink: async ({ recordsCache: _, pageLink }, use) => use(pageLink),
  });

  filled("all are loaded, and scroll", async ({ signedIn: page }) => {
    await openHistory(page);
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("any time");
    await expect(page.getByRole("status").filter({ hasText: `${ROWS.toLocaleString("en")} calls` })).toBeVisible();
    await expect(rows(page).first()).toBeVisible();
    // Only those on the screen are in the document.
    expect(await rows(page).count()).toBeLessThan(100);
    const before = await rows(page).first().textContent();
    const frames = await frameTimes(page, async () => {
      for (let turn = 0; turn < 120; turn += 1) await page.mouse.wheel(0, 1200);
    });
    expect(await rows(page).first().textContent()).not.toBe(before);
    frames.sort((left, right) => left - right);
    const at = (share: number) => frames[Math.floor(share * (frames.length - 1))]?.toFixed(1);
    console.log(
      `frames while scrolling ${ROWS} rows: ${frames.length}, median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`,
    );
    expect(frames.length).toBeGreaterThan(10);
    await expect(page.getByText("call-0", { exact: true })).toHaveCount(0);
    const oldest = page.locator('[data-entry="1"]');
    await expect(async () => {
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
      await expect(oldest).toBeVisible({ timeout: 200 });
    }).toPass();
    await oldest.click();
    await expect(page.getByText("call-0", { exact: true })).toBeVisible();
  });

  filled("new calls come in above without moving what is read", async ({ signedIn: page, agent }) => {
    const codex = await agent("codex");
    await openHistory(page);
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("any time");
    await expect(page.getByRole("status").filter({ hasText: `${ROWS.toLocaleString("en")} calls` })).toBeVisible();
    await page.evaluate(() => scrollTo(0, 20_000));
    const middle = () =>
      page.evaluate(() =>
        document
          .elementFromPoint(700, 500)
          ?.closest("article")
          ?.querySelector("[data-entry]")
          ?.getAttribute("data-entry"),
      );
    await expect.poll(middle).toMatch(/^9\d+$/);
    const id = await middle();
    const read = page.locator(`[data-entry="${id}"]`);
    const before = await read.boundingBox();
    await codex.call("list", { path: "." });
    await expect(page.getByRole("region", { name: `${ROWS + 1} calls` })).toBeVisible();
    const after = await read.boundingBox();
    expect(Math.abs(after!.y - before!.y)).toBeLessThan(3);
  });

  filled("filters, keys, details and exports", async ({ signedIn: page, agent }) => {
    await openHistory(page);
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("any time");
    await page.getByRole("combobox", { name: "Tool", exact: true }).selectOption("bash");
    await page.getByRole("combobox", { name: "Outcome", exact: true }).selectOption("denied");
    await page.getByRole("combobox", { name: "Agent or client", exact: true }).selectOption("codex");
    await page.getByRole("combobox", { name: "Decision", exact: true }).selectOption("denied");
    await page.getByRole("searchbox", { name: "Text" }).fill("pytest");
    await expect(rows(page).first()).toContainText("python3 -m pytest");
    await expect(page.getByRole("status").filter({ hasText: /^\d+ of [\d,]+ calls$/ })).toBeVisible();
    for (const row of await rows(page).all())
      await expect(row).toContainText(/bash.*denied.*codex.*python3 -m pytest/s);
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await expect(page.getByText("your answer to the ask")).toBeVisible();

    const json = await exported(page, "Export JSON");
    const entries = JSON.parse(json) as { tool: string; outcome: string; client: string }[];
    expect(new Set(entries.map(({ tool, outcome, client }) => `${tool} ${outcome} ${client}`))).toEqual(
      new Set(["bash denied codex"]),
    );
    const csv = (await exported(page, "Export CSV")).trimEnd().split("\r\n");
    expect(csv[0]).toMatch(/^id,at,tool,source/);
    expect(csv).toHaveLength(entries.length + 1);
    await page.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("last 15 minutes");
    await expect(page.getByText("No calls at that time")).toBeVisible();
    // A new call comes alone: the others are of another time.
    await (await agent("codex")).call("list", { path: "." });
    await expect(rows(page)).toHaveCount(1);
    await expect(rows(page)).toContainText("list");
  });

  filled("plots have tables, in light and dark", async ({ signedIn: page, recordsCache }) => {
    const nothingForbidden = watch(page);
    await openHistory(page, "/history/plots");
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("any time");
    await expect(page.getByRole("status").filter({ hasText: `${ROWS.toLocaleString("en")} calls` })).toBeVisible();
    const saved = recordsCache ? ["Time saved by the cache"] : [];
    for (const title of ["Calls per minute", "Share of denials", "Duration of each tool", ...saved]) {
      const plot = page.getByRole("figure").filter({ has: page.getByRole("heading", { name: title }) });
      await expect(plot.getByRole("img")).toBeVisible();
      await plot.getByText("As a table").click();
      expect(await plot.getByRole("row").count()).toBeGreaterThan(5);
      await plot.getByText("As a table").click();
    }
    await expect(page.getByText("Answered from it", { exact: true })).toBeVisible();
    await page.evaluate(() => scrollTo(0, 0));
    await expectAccessible(page);
    await takePictures(page, "history-plots");
    await nothingForbidden();
  });

  filled("the list is accessible, and has its picture", async ({ signedIn: page }) => {
    const nothingForbidden = watch(page);
    await openHistory(page);
    await page.getByRole("combobox", { name: "Time", exact: true }).selectOption("any time");
    await expect(page.getByRole("status").filter({ hasText: `${ROWS.toLocaleString("en")} calls` })).toBeVisible();
    await rows(page).nth(1).getByRole("button").first().click();
    await expectAccessible(page);
    await takePictures(page, "history");
    await nothingForbidden();
  });
});

test("a call appears when it ends, without moving what is read", async ({ signedIn: page, agent }) => {
  const codex = await agent("codex");
  await openHistory(page);
  await expect(page.getByText("No calls at that time")).toBeVisible();
  await codex.call("bash", { command: "rm -rf build" });
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page)).toContainText(/bash.*denied.*codex/s);
  await rows(page).getByRole("button").first().click();
  await expect(page.getByText("rm -rf build").last()).toBeVisible();
  await codex.call("list", { path: "." });
  await expect(rows(page)).toHaveCount(2);
  await expect(rows(page).nth(1).getByText("Caller")).toBeVisible();
});

test("a session shows its calls and files, and undo restores them", async ({ signedIn: page, daemon, agent }) => {
  const nothingForbidden = watch(page);
  await openHistory(page, "/history/sessions");
  await page.reload();
  await expect(page.getByText("No sessions yet")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  const file = (name: string) => join(daemon.paths.work, name);
  await writeFile(file("notes.txt"), "one\ntwo\n");
  await writeFile(file("other.txt"), "before\n");
  const claude = await agent("claude-code");
  await claude.call("read", { path: "notes.txt" });
  await claude.call("edit", { path: "notes.txt", edits: [{ old: "two", new: "deux" }] });
  await claude.call("edit", { path: "notes.txt", edits: [{ old: "one", new: "un" }] });
  await claude.call("write", { path: "new.txt", content: "new\n" });
  await claude.call("read", { path: "other.txt" });
  await claude.call("edit", { path: "other.txt", edits: [{ old: "before", new: "after" }] });
  expect(await readFile(file("notes.txt"), "utf8")).toBe("un\ndeux\n");

  await openHistory(page, "/history/sessions");
  await page.getByRole("link", { name: /claude-code/ }).click();
  await expect(page.getByRole("heading", { name: "claude-code open" })).toBeVisible();
  await expect(page.getByRole("region", { name: "6 entries" })).toBeVisible();
  const files = page.getByRole("region", { name: "Changed files" }).first();
  await files
    .getByRole("button", { name: /notes\.txt/ })
    .first()
    .click();
  await expect(page.getByRole("region", { name: "Diff" })).toContainText("deux");
  await expectAccessible(page);
  await takePictures(page, "history-session");

  // One change: the last one of the file.
  await page
    .getByRole("button", { name: "Undo the last change of" })
    .and(page.getByRole("button", { name: /notes\.txt/ }))
    .click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("region", { name: "Diff" })).toContainText("un");
  await dialog.getByRole("button", { name: "Go back" }).click();
  expect(await readFile(file("notes.txt"), "utf8")).toBe("un\ndeux\n");
  await page
    .getByRole("button", { name: "Undo the last change of" })
    .and(page.getByRole("button", { name: /notes\.txt/ }))
    .click();
  await dialog.getByRole("button", { name: "Undo 1 change" }).click();
  await expect(dialog).toContainText("1 change undone.");
  await dialog.getByRole("button", { name: "Close" }).click();
  expect(await readFile(file("notes.txt"), "utf8")).toBe("one\ndeux\n");

  await expect(
    page.getByRole("region", { name: "Changed files" }).getByRole("listitem").filter({ hasText: "notes.txt" }).first(),
  ).toContainText("undone");

  // Everything else, but for a file that somebody has changed since.
  await writeFile(file("other.txt"), "by hand\n");
  await page.getByRole("button", { name: "Undo all changes" }).click();
  await expect(dialog).toContainText("has changed since");
  await dialog.getByRole("button", { name: "Undo 2 changes" }).click();
  await expect(dialog).toContainText("2 changes undone.");
  await expect(dialog).toContainText("other.txt");
  await dialog.getByRole("button", { name: "Close" }).click();
  expect(await readFile(file("notes.txt"), "utf8")).toBe("one\ntwo\n");
  await expect(readFile(file("new.txt"))).rejects.toThrow();
  expect(await readFile(file("other.txt"), "utf8")).toBe("by hand\n");
  await nothingForbidden();
});

test("a session shows what it asked, and who answered", async ({ signedIn: page, daemon, agent }) => {
  const claude = await agent("claude-code");
  await claude.call("list", { path: "." });
  await openHistory(page, "/history/sessions");
  await page.getByRole("link", { name: /claude-code/ }).click();
  const answer = claude.call("bash", { command: "touch tea" });
  const line = page.getByRole("region", { name: "2 entries" });
  await expect(line).toContainText("not answered yet");
  const { asks } = await askDaemon(daemon, "permissions.pending", {});
  await askDaemon(daemon, "permissions.reply", { request_id: asks[0]!.request_id, action: "allow" });
  expect((await answer).isError ?? false).toBe(false);
  await expect(page.getByRole("region", { name: "3 entries" })).toContainText(/asked.*shell.*touch tea.*allowed by /);
});

test("the changes of a session that has ended are undone as a whole, and stop at those of another", async ({
  signedIn: page,
  daemon,
  agent,
}) => {
  const file = (name: string) => join(daemon.paths.work, name);
  await writeFile(file("mine.txt"), "one\n");
  await writeFile(file("shared.txt"), "one\n");
  const claude = await agent("claude-code");
  const codex = await agent("codex");
  for (const [who, name, old, next] of [
    [claude, "mine.txt", "one", "two"],
    [claude, "mine.txt", "two", "three"],
    [claude, "shared.txt", "one", "two"],
    [codex, "shared.txt", "two", "three"],
  ] as const) {
    await who.call("read", { path: name });
    await who.call("edit", { path: name, edits: [{ old, new: next }] });
  }
  await claude.stop();
  await openHistory(page, "/history/sessions");
  await page.getByRole("link", { name: /claude-code/ }).click();
  await expect(page.getByRole("heading", { name: "claude-code ended" })).toBeVisible();
  await page.getByRole("button", { name: "Undo all changes" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("2 changes of this file are undone");
  await expect(dialog).toContainText("edit changed it later, in the session");
  await dialog.getByRole("button", { name: "Undo 2 changes" }).click();
  await expect(dialog).toContainText("2 changes undone.");
  expect(await readFile(file("mine.txt"), "utf8")).toBe("one\n");
  expect(await readFile(file("shared.txt"), "utf8")).toBe("three\n");
});

test("a call that changed several files is undone as a whole, and the page says what undo leaves as it is", async ({
  signedIn: page,
  daemon,
  agent,
}) => {
  const file = (name: string) => join(daemon.paths.work, name);
  await mkdir(file("out"));
  await writeFile(file(".gitignore"), "out/\n");
  for (const name of ["black.txt", "green.txt"]) await writeFile(file(name), "tea\n");
  execFileSync("git", ["init", "-q", daemon.paths.work]);
  const claude = await agent("claude-code");
  const code = 'import os; os.rmdir("out"); os.remove("black.txt"); os.remove("green.txt")';
  const answer = claude.call("bash", { command: `python3 -c '${code}'` });
  await expect.poll(async () => (await askDaemon(daemon, "permissions.pending", {})).asks.length).toBe(1);
  const { asks } = await askDaemon(daemon, "permissions.pending", {});
  await askDaemon(daemon, "permissions.reply", { request_id: asks[0]!.request_id, action: "allow" });
  expect((await answer).isError ?? false).toBe(false);
  await openHistory(page, "/history/sessions");
  await page.getByRole("link", { name: /claude-code/ }).click();
  const stays = /out does not come back: nothing of it was kept/;
  await expect(page.getByRole("region", { name: "Also changed, and not undone" })).toContainText(stays);
  await page.getByRole("button", { name: "Undo all changes" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(stays);
  await expect(dialog.locator(".diff-name")).toHaveText(["black.txt", "green.txt"]);
  await dialog.getByRole("button", { name: "Undo 2 changes" }).click();
  await expect(dialog).toContainText("2 changes undone.");
  await expect(dialog).toContainText(stays);
  await expect(dialog.getByText("not undone")).toHaveCount(0);
  for (const name of ["black.txt", "green.txt"]) expect(await readFile(file(name), "utf8")).toBe("tea\n");
});

/** The times between the frames that the browser shows during `action`, in milliseconds. */
async function frameTimes(page: Page, action: () => Promise<void>): Promise<number[]> {
  const handle = await page.evaluateHandle(() => {
    const times: number[] = [];
    const state = { times, running: true };
    const next = (time: number) => {
      times.push(time);
      if (state.running) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    return state;
  });
  await action();
  const times = await handle.evaluate((state) => {
    state.running = false;
    return state.times;
  });
  return times.slice(1).map((time, at) => time - times[at]!);
}

async function exported(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: button }).click(),
  ]);
  return readFile(await download.path(), "utf8");
}
