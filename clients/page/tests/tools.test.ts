/** The view Tools: searching, calling with a form or JSON, results, and the messages of a call. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";

import { expectAccessible } from "./axe.ts";
import { expect, test, type TestDaemon } from "./fixtures.ts";
import { takePictures } from "./pictures.ts";
import { watch } from "./watch.ts";
import { HOSTILE_TOOLS, WORKSHOP } from "./workshop.ts";

test.use({
  contents: {
    plugins: { "workshop.lua": WORKSHOP },
    config: '[tools]\ndisable = ["web_*"]\n[tools.rename]\nlist = "list_folder"\n[mcp]\nlisten = "127.0.0.1:0"\n',
  },
});

async function openTools(page: Page): Promise<void> {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Tools" }).click();
}

/** Opens a tool with a folder for its calls. */
async function openTool(page: Page, daemon: TestDaemon, name: string): Promise<void> {
  await openTools(page);
  await page
    .getByRole("region", { name: "List of tools" })
    .getByRole("link", { name: new RegExp(`^${name}\\b`) })
    .click();
  const about = page.getByRole("region", { name: "About the tool" });
  await expect(about.getByRole("heading", { name: new RegExp(`^${name}\\b`) })).toBeVisible();
  await page
    .getByLabel("Folder")
    .or(page.getByRole("button", { name: "Change" }))
    .waitFor();
  if (await page.getByRole("button", { name: "Change" }).isVisible()) return;
  await page.getByLabel("Folder").fill(daemon.paths.work);
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("button", { name: "Change" }).waitFor();
}

const runButton = (page: Page) => page.getByRole("button", { name: "Run" });
const result = (page: Page) => page.getByRole("region", { name: "Result", exact: true });

const WAVE = `hygge.register_command{name = "wave", description = "Waves.", execute = function(_, input)
  return {message = "waving " .. input} end}`;

test("a command of a plugin is run with its input", async ({ signedIn, daemon }) => {
  writeFileSync(join(daemon.paths.plugins, "wave.lua"), WAVE);
  await openTools(signedIn);
  const row = signedIn.getByRole("list", { name: "Commands of plugins" }).getByRole("listitem").filter({ hasText: "/wave" });
  await row.getByLabel("Input of /wave").fill("to you");
  await row.getByRole("button", { name: "Run /wave" }).click();
  await expect(row.getByRole("status")).toContainText("waving to you");
});

test("tools are found by words, the best first", async ({ signedIn }) => {
  await openTools(signedIn);
  const list = signedIn.getByRole("region", { name: "List of tools" });
  await expect(list.getByRole("link", { name: /^grep/ })).toBeVisible();
  await expect(list.getByRole("link", { name: /^web_fetch/ })).toHaveCount(0);
  await signedIn.keyboard.press("/");
  await signedIn.keyboard.type("search text in files");
  const found = signedIn.getByRole("list", { name: "Search result" }).getByRole("link");
  await expect(found.first()).toContainText("grep");
  await signedIn.getByRole("searchbox").fill("zzzzqqqq");
  await expect(list).toContainText("No tool matches");
  await signedIn.getByRole("searchbox").fill("search text in files");
  await expect(found.first()).toContainText("grep");
  await signedIn.getByRole("searchbox").press("Enter");
  await expect(signedIn.getByRole("region", { name: "About the tool" })).toContainText("grep");
  await signedIn.getByRole("searchbox").fill("");
  await list.getByRole("link", { name: /^list_folder/ }).click();
  await expect(signedIn.getByRole("region", { name: "About the tool" })).toContainText("list_folder");
});

test("a tool that is not there says why", async ({ signedIn }) => {
  await openTools(signedIn);
  const go = (name: string) => signedIn.evaluate((name) => (location.hash = `/tools/${name}`), name);
  await go("web_fetch");
  await expect(signedIn.getByText(/web_\*/)).toBeVisible();
  await go("list");
  await expect(signedIn.getByText(/list_folder/).last()).toBeVisible();
  await go("greb");
  await signedIn.getByRole("main").getByRole("link", { name: "grep", exact: true }).click();
  await expect(signedIn.getByRole("region", { name: "About the tool" })).toContainText("grep");
});

test("a tool is called with a form, and its arguments are remembered in this tab", async ({ signedIn, daemon }) => {
  writeFileSync(join(daemon.paths.work, "tea.txt"), "oolong\nsencha\n");
  await openTool(signedIn, daemon, "grep");
  await signedIn.getByLabel("pattern").fill("sen");
  await signedIn.getByLabel("output_mode").selectOption("content");
  await signedIn.getByLabel("ignore_case").selectOption("true");
  await signedIn.getByLabel("max_results").fill("5");
  await runButton(signedIn).click();
  await expect(result(signedIn)).toContainText("tea.txt:2:sencha");
  await expect(signedIn.getByRole("region", { name: "About the tool" })).toContainText("1 call");
  const stored = await signedIn.evaluate(() => sessionStorage.getItem("toold.arguments.grep"));
  expect(JSON.parse(stored!)).toEqual({ pattern: "sen", output_mode: "content", ignore_case: true, max_results: 5 });
  await signedIn.reload();
  await expect(signedIn.getByLabel("pattern")).toHaveValue("sen");
  await expect(signedIn.getByLabel("ignore_case")).toHaveValue("0");
});

test("problems are shown at their fields, and arguments are not sent before they fit", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "todo");
  await signedIn.getByRole("button", { name: "Add an item" }).click();
  await signedIn.getByLabel("content").fill("Run the tests");
  await runButton(signedIn).click();
  const wrong = signedIn.locator(".field.wrong").filter({ has: signedIn.getByLabel("status") });
  await expect(wrong.last()).toContainText("is required");
  await expect(result(signedIn)).toHaveCount(0);
  await signedIn.getByLabel("status").selectOption("0");
  await expect(signedIn.locator(".field.wrong")).toHaveCount(0);
  await runButton(signedIn).click();
  await expect(result(signedIn)).toContainText("Run the tests");
});

test("arguments that do not fit can be sent as JSON, to see how the daemon refuses them", async ({
  signedIn,
  daemon,
}) => {
  await openTool(signedIn, daemon, "order");
  await signedIn.getByRole("button", { name: "JSON", exact: true }).click();
  const editor = signedIn.getByLabel("Arguments as JSON");
  await editor.fill('{"drink": "coffee", "cups": ');
  await expect(runButton(signedIn)).toBeDisabled();
  await editor.fill('{"drink": "cofee", "cups": 0, "sugar": {"lumps": "two"}}');
  await runButton(signedIn).click();
  const error = signedIn.getByRole("alert", { name: "Error" });
  await expect(error).toContainText("invalid_args");
  await expect(error).toContainText("Correct them and run the tool again");
  // The same refusal stands at the fields of the form.
  await signedIn.getByRole("button", { name: "Form", exact: true }).click();
  await expect(
    signedIn
      .locator(".field.wrong")
      .filter({ has: signedIn.getByLabel("cups") })
      .last(),
  ).toContainText(/1/);
});

test("a form expresses lists, nested objects, unions, null and any JSON", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "order");
  await signedIn.getByLabel("drink").selectOption({ label: "tea: from a pot" });
  await signedIn.getByLabel("cups").fill("2");
  await signedIn.getByText("sugar", { exact: true }).click();
  await signedIn.getByLabel("lumps").fill("3");
  await signedIn.getByLabel("Kind of until").selectOption("null");
  await signedIn.getByLabel("Kind of payment").selectOption("card");
  await signedIn.getByLabel("number").fill("4711");
  await signedIn.getByLabel("extra as JSON").fill('{"a": [1, 2]}');
  const guests = signedIn.getByRole("group", { name: /^guests/ });
  await guests.getByRole("button", { name: "Add an item" }).click();
  await guests.getByRole("textbox").first().fill("Ada");
  await guests.getByRole("button", { name: "Add an item" }).click();
  await guests.getByRole("textbox").nth(1).fill("Bo");
  await guests.getByRole("button", { name: "Move item 2 up" }).click();
  await runButton(signedIn).click();
  await expect(result(signedIn)).toContainText("ordered");
  const sent = await signedIn.evaluate(() => sessionStorage.getItem("toold.arguments.order"));
  expect(JSON.parse(sent!)).toEqual({
    drink: "tea",
    cups: 2,
    sugar: { lumps: 3 },
    until: null,
    payment: { by: "card", number: "4711" },
    extra: { a: [1, 2] },
    guests: ["Bo", "Ada"],
  });
});

test("a running call shows its progress and output, and is cancelled", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "brew");
  await runButton(signedIn).click();
  const running = signedIn.getByRole("region", { name: "Running call" });
  await expect(running).toContainText("40 %");
  await expect(running).toContainText("heating");
  await expect(running.getByRole("region", { name: "Output of the tool" })).toContainText("the water is warm");
  await expect(running.getByRole("progressbar", { name: "Progress" })).toHaveAttribute("value", "0.4");
  // Another tool, and back: the call goes on.
  await signedIn.getByRole("region", { name: "List of tools" }).getByRole("link", { name: /^grep/ }).click();
  await signedIn.getByRole("region", { name: "List of tools" }).getByRole("link", { name: /^brew/ }).click();
  await running.getByRole("button", { name: "Cancel" }).click();
  await expect(signedIn.getByRole("alert", { name: "Error" })).toContainText("cancelled");
});

test("results have images, Markdown, links, and tables of structured data", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "menu");
  await runButton(signedIn).click();
  const shown = result(signedIn);
  const image = shown.getByRole("img");
  await expect(image).toBeVisible();
  expect(await image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBe(192);
  await shown.getByRole("button", { name: "Show as Markdown" }).click();
  await expect(shown.getByRole("heading", { name: "Today" })).toBeVisible();
  await expect(shown.getByRole("link", { name: "https://example.org/tea" })).toHaveAttribute("rel", /noopener/);
  const table = shown.getByRole("table");
  await expect(table.getByRole("columnheader")).toHaveText(["name", "price"]);
  await expect(table.getByRole("row")).toHaveCount(4);
  await shown.getByRole("button", { name: "Tree" }).click();
  await expect(shown.getByRole("region", { name: "Structured data" })).toContainText("sencha");
  await shown.getByText("Metadata, which the model does not see").click();
  await expect(shown).toContainText("kitchen");
});

test("a call that needs permission says so, with a link to the prompt", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "bash");
  await signedIn.getByLabel("command").fill("touch made-by-the-page");
  await runButton(signedIn).click();
  const waits = signedIn.getByRole("region", { name: "Running call" }).getByRole("alert").first();
  await expect(waits).toContainText("It needs permission");
  await expect(waits.getByRole("link", { name: "Decide" })).toHaveAttribute("href", /#\/decide\/\w+/);
  const { asks } = JSON.parse(await daemon.toolctl("permissions", "pending", "--json")) as {
    asks: { request_id: string }[];
  };
  for (const { request_id } of asks) await daemon.toolctl("permissions", "allow", request_id);
  await expect(result(signedIn)).toContainText("ok");
  expect(existsSync(join(daemon.paths.work, "made-by-the-page"))).toBe(true);
});

test("the messages of a call are shown, and it can be repeated in a terminal", async ({
  signedIn,
  daemon,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await openTool(signedIn, daemon, "order");
  await signedIn.getByLabel("drink").selectOption({ label: "tea: from a pot" });
  await signedIn.getByLabel("cups").fill("1");
  await signedIn.getByLabel("note").fill('it\'s for $HOME & "me"');
  await runButton(signedIn).click();
  await expect(result(signedIn)).toContainText("ordered");
  await signedIn.getByText(/^Messages \(\d+\)/).click();
  const wire = signedIn.getByRole("list", { name: "Messages of the call" }).locator("> li");
  await expect(wire).toHaveText([/sent\s+tools.execute/, /received\s+tools.progress/, /received\s+result/]);
  await wire.first().getByText("sent").click();
  await expect(wire.first()).toContainText('"method": "tools.execute"');
  const clipboard = () => signedIn.evaluate(() => navigator.clipboard.readText());
  await signedIn.getByRole("button", { name: "Copy as toolctl call" }).click();
  expect(await daemon.inShell(await clipboard())).toContain('ordered it\'s for $HOME & "me"');
  await signedIn.getByRole("button", { name: "Copy as curl" }).click();
  expect(await daemon.inShell(await clipboard())).toContain("ordered it's for $HOME");
  await signedIn.getByRole("button", { name: "Copy as JSON" }).click();
  expect(JSON.parse(await clipboard())).toMatchObject({ method: "tools.execute", params: { name: "order" } });
});

test("a lost connection ends the call with advice", async ({ signedIn, daemon }) => {
  await openTool(signedIn, daemon, "brew");
  await runButton(signedIn).click();
  await expect(signedIn.getByRole("region", { name: "Running call" })).toContainText("40 %");
  await daemon.kill();
  await expect(signedIn.getByRole("alert", { name: "Error" })).toContainText(
    /not known.*Look at it in the view History/,
  );
  await expect(runButton(signedIn)).toBeDisabled();
  // It stops in order, so that nothing of it is left.
  await daemon.start();
});

test("the view is accessible, and has its pictures", async ({ signedIn, daemon }) => {
  test.slow();
  writeFileSync(join(daemon.paths.work, "teas.md"), "# Teas\n\n- oolong\n- sencha\n- matcha\n");
  await openTools(signedIn);
  await openTool(signedIn, daemon, "grep");
  await signedIn.getByLabel("pattern").fill("cha$");
  await signedIn.getByRole("textbox", { name: "include" }).fill("*.md");
  await takePictures(signedIn, "tools");
  await runButton(signedIn).click();
  await expect(result(signedIn)).toContainText("teas.md");
  await signedIn.getByText(/^Messages \(\d+\)/).click();
  await expectAccessible(signedIn);
  await openTool(signedIn, daemon, "menu");
  await runButton(signedIn).click();
  await expect(result(signedIn).getByRole("table")).toBeVisible();
  await expectAccessible(signedIn);
  await result(signedIn).evaluate((element) => element.scrollIntoView());
  await takePictures(signedIn, "tools-result");
  await openTool(signedIn, daemon, "order");
  await signedIn.getByLabel("cups").fill("0");
  await runButton(signedIn).click();
  await expect(signedIn.locator(".field.wrong").first()).toBeVisible();
  await expectAccessible(signedIn);
});

test.describe("hostile tools", () => {
  test.use({ contents: { plugins: { "hostile.lua": HOSTILE_TOOLS } } });

  test("names, descriptions, schemas and results are text", async ({ signedIn, daemon }) => {
    const check = watch(signedIn);
    await openTool(signedIn, daemon, "hostile");
    const about = signedIn.getByRole("region", { name: "About the tool" });
    await expect(about).toContainText("<script>window.pwned = 1</script>");
    await expect(about).toContainText("\\u{202e}txt.nur");
    await about.getByText("Schema", { exact: true }).click();
    const field = signedIn.getByRole("textbox", { name: /^<img src=x onerror/ });
    await field.fill("</textarea><script>window.pwned = 1</script>");
    await runButton(signedIn).click();
    const shown = result(signedIn);
    await expect(shown).toContainText("␛[2J␛]0;title␇");
    await shown.getByRole("button", { name: "Show as Markdown" }).click();
    await expect(shown.locator(".markdown")).toContainText("[image: picture https://example.com/a.png]");
    await expect(shown.getByRole("columnheader").first()).toContainText("<b onmouseover=");
    await shown.getByRole("button", { name: "Tree" }).click();
    // A link that runs something is no link, and a document is no picture.
    await expect(shown.getByText("javascript:window.pwned=1", { exact: true })).toBeVisible();
    for (const link of await shown.getByRole("link").all()) {
      expect(await link.getAttribute("href")).toMatch(/^(https?:|blob:)/);
    }
    await expect(shown.getByRole("img")).toHaveCount(0);
    await expect(shown).toContainText("image/svg+xml");
    await shown.getByText("Metadata, which the model does not see").click();
    await signedIn.getByText(/^Messages \(\d+\)/).click();
    await signedIn.getByRole("list", { name: "Messages of the call" }).getByText("received").last().click();
    await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText(["Tools"]);
    await check();
  });

  test("a schema that takes for ever to check does not hold up the page", async ({ signedIn, daemon }) => {
    await openTool(signedIn, daemon, "explosive");
    await signedIn.getByLabel("text").fill(`${"a".repeat(60)}!`);
    await signedIn.getByRole("button", { name: "JSON", exact: true }).click();
    await signedIn.getByLabel("Arguments as JSON").fill(`{"value": "x", "text": "${"a".repeat(60)}!"}`);
    await signedIn.getByRole("button", { name: "Form", exact: true }).click();
    await expect(signedIn.getByLabel("text")).toHaveValue(/^a+!$/);
  });

  test("a result of 10 MB is cut, and the page still answers", async ({ signedIn, daemon }) => {
    await openTool(signedIn, daemon, "flood");
    await runButton(signedIn).click();
    await expect(result(signedIn)).toContainText("ok");
    await result(signedIn)
      .getByRole("button", { name: /Show more/ })
      .first()
      .click();
    expect(await signedIn.evaluate(() => document.body.innerText.length)).toBeLessThan(300_000);
    await signedIn.keyboard.press("Escape");
    await expect(signedIn.getByText("Choose a tool")).toBeVisible();
  });
});
