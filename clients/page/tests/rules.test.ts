/** The view Rules: rules and their places, grants, proposals, modes, and what would happen. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";

import { expectAccessible } from "./axe.ts";
import { expect, test, type TestDaemon } from "./fixtures.ts";
import { takePictures } from "./pictures.ts";
import { HOSTILE } from "./traffic.ts";
import { watch } from "./watch.ts";

const RULES = `[[permission.rules]]
category = "shell"
pattern = "git *"
action = "allow"

[[permission.rules]]
category = "shell"
pattern = "git push *"
action = "ask"

[[permission.rules]]
category = "file.write"
pattern = "~/secret/**"
action = "deny"
tools = ["write"]
`;

const LOOK = `
hygge.register_tool{
  name = "look_up", description = "Looks something up", permission = false, input_schema = {type = "object"},
  execute = function() return hygge.http.get("https://example.org/").body end,
}
`;

test.use({ contents: { config: RULES, plugins: { "look.lua": LOOK } } });

async function openRules(page: Page): Promise<void> {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Rules" }).click();
  await expect(page.getByRole("list", { name: "Rules" }).getByRole("listitem").first()).toBeVisible();
}

async function grant(daemon: TestDaemon, ...args: string[]): Promise<void> {
  await daemon.toolctl("permissions", "grant", ...args);
}

const grants = (page: Page) => page.getByRole("list", { name: "Grants" }).getByRole("listitem");

test("rules are shown with their places, those of the project too", async ({ signedIn, daemon, agent }) => {
  mkdirSync(join(daemon.paths.work, ".toold"));
  const project = '[[permission.rules]]\ncategory = "shell"\npattern = "make deploy"\naction = "deny"\n';
  writeFileSync(join(daemon.paths.work, ".toold/config.toml"), project);
  const claude = await agent("claude-code");
  await claude.call("list");
  await openRules(signedIn);
  const rules = signedIn.getByRole("list", { name: "Rules" }).getByRole("listitem");
  await expect(rules.filter({ hasText: "git push *" })).toContainText(/ask.*shell.*config\.toml:6/);
  await expect(rules.filter({ hasText: "secret/**" })).toContainText(/deny.*tools write.*config\.toml:11/);
  await expect(rules.filter({ hasText: "make deploy" })).toContainText(/\.toold\/config\.toml:1/);
  await expect(signedIn.getByRole("list", { name: "Defaults" })).toContainText("network is denied");
});

test("a test shows the parsed command, and marks the rules that decide", async ({ signedIn, daemon }) => {
  await grant(daemon, "shell", "make *");
  await openRules(signedIn);
  await signedIn
    .getByLabel("Command line")
    .fill("git push origin main && make all > log.txt; frobnicate --all | cat secret.txt");
  await signedIn.getByLabel("Folder").fill(daemon.paths.work);
  await signedIn.getByRole("button", { name: "Test", exact: true }).click();
  const tree = signedIn.getByRole("list", { name: "How the command line was parsed" }).locator("> li");
  await expect(tree.filter({ hasText: "git push origin main" })).toContainText("known: git push");
  await expect(tree.filter({ hasText: "git push origin main" })).toContainText("push subcommand");
  await expect(tree.filter({ hasText: "frobnicate --all" })).toContainText("unknown program");
  await expect(tree.filter({ hasText: "redirect" })).toContainText(/file\.write.*log\.txt/);
  await expect(tree.filter({ hasText: "cat secret.txt" })).toContainText("only reads");
  const decides = signedIn.locator(".decides");
  await expect(decides.filter({ hasText: "git push *" })).toHaveCount(1);
  await expect(decides.filter({ hasText: "make *" })).toHaveCount(1);
  await expect(decides.filter({ hasText: "default shell" })).toHaveCount(1);
  await expect(decides.filter({ hasText: "secret/**" })).toHaveCount(0);
  await tree
    .filter({ hasText: "git push origin main" })
    .getByRole("button", { name: /^rule ask shell/ })
    .click();
  await expect(decides.filter({ hasText: "git push *" })).toBeFocused();
  // The other categories have a target instead.
  await signedIn.getByLabel("Category").selectOption("network");
  await signedIn.getByLabel("Target").fill("example.org:443");
  await signedIn.getByRole("button", { name: "Test", exact: true }).click();
  await expect(signedIn.getByRole("status").filter({ hasText: "default of network" })).toContainText("deny");
  await signedIn.getByLabel("Folder").fill("no/such/folder");
  await signedIn.getByRole("button", { name: "Test", exact: true }).click();
  await expect(signedIn.getByRole("alert").filter({ hasText: "cwd" })).toBeVisible();
});

test("grants say who asked and how often they were used, and are revoked after a question", async ({
  signedIn,
  daemon,
  agent,
}) => {
  const codex = await agent("codex");
  const first = codex.call("bash", { command: "touch a.txt" });
  const pending = async () => {
    const { asks } = JSON.parse(await daemon.toolctl("permissions", "pending", "--json")) as {
      asks: { request_id: string }[];
    };
    return asks;
  };
  await expect.poll(async () => (await pending()).length).toBe(1);
  await daemon.toolctl("permissions", "allow", (await pending())[0]!.request_id, "--scope", "always");
  await first;
  await openRules(signedIn);
  const row = grants(signedIn).filter({ hasText: "touch a.txt" });
  await expect(row).toContainText("asked by codex for bash");
  await expect(row).toContainText("always");
  await codex.call("bash", { command: "touch a.txt" });
  // Uses are counted when the audit log has the call.
  const uses = async () => {
    await signedIn.reload();
    await openRules(signedIn);
    return row.textContent();
  };
  await expect.poll(uses).toMatch(/[1-9] uses?, last/);
  await row.getByRole("button", { name: /^Revoke/ }).click();
  const question = signedIn.getByRole("dialog", { name: "Revoke this grant?" });
  await expect(question).toContainText("You are asked again");
  await question.getByRole("button", { name: "Go back" }).click();
  await expect(row).toHaveCount(1);
  await row.getByRole("button", { name: /^Revoke/ }).click();
  await question.getByRole("button", { name: "Revoke the permission" }).click();
  await expect(row).toHaveCount(0);
  expect(await daemon.toolctl("permissions", "list")).not.toContain("touch a.txt");
});

test("a proposal to merge is accepted, and another is kept as it is", async ({ signedIn, daemon }) => {
  for (const target of ["unit", "wire", "page"]) await grant(daemon, "shell", `cargo test ${target}`);
  for (const target of ["a", "b", "c"]) await grant(daemon, "shell", `git add ${target}`);
  await openRules(signedIn);
  const proposals = signedIn.getByRole("list", { name: "Proposals" }).locator("> li");
  await proposals.filter({ hasText: "git add" }).getByRole("button", { name: "Keep as it is" }).click();
  await expect(proposals.filter({ hasText: "git add" })).toHaveCount(0);
  await proposals.filter({ hasText: "cargo test *" }).getByRole("button", { name: "Replace them" }).click();
  const question = signedIn.getByRole("dialog", { name: "Replace these grants by a wider one?" });
  await expect(question).toContainText("cargo test wire");
  await question.getByRole("button", { name: "Replace them" }).click();
  await expect(grants(signedIn).filter({ hasText: "cargo test *" })).toHaveCount(1);
  await expect(grants(signedIn).filter({ hasText: "cargo test unit" })).toHaveCount(0);
  await expect(grants(signedIn).filter({ hasText: "git add" })).toHaveCount(3);
});

test("a rule that the answers suggest is accepted for one project, and another is left", async ({
  signedIn,
  daemon,
  agent,
}) => {
  const codex = await agent("codex");
  for (const command of ["touch a.txt", "touch b.txt", "touch c.md", "touch d.md"]) {
    const call = codex.call("bash", { command });
    const pending = async () => {
      const { asks } = JSON.parse(await daemon.toolctl("permissions", "pending", "--json")) as {
        asks: { request_id: string }[];
      };
      return asks[0]?.request_id;
    };
    await expect.poll(pending).toBeDefined();
    await daemon.toolctl("permissions", "allow", (await pending())!, "--all-parts");
    await call;
  }
  const suggested = signedIn.getByRole("list", { name: "Suggested by your answers" }).locator("> li");
  // The audit log has the answers soon after the calls.
  const count = async () => {
    await signedIn.reload();
    await openRules(signedIn);
    return suggested.count();
  };
  await expect.poll(count).toBeGreaterThan(1);
  await suggested.filter({ hasText: "touch *.md" }).getByRole("button", { name: "Go on asking" }).click();
  await expect(suggested.filter({ hasText: "touch *.md" })).toHaveCount(0);
  const touch = suggested.filter({ hasText: "touch *.txt" });
  await expect(touch).toContainText("would have given 2 of your answers");
  await touch.getByRole("combobox").selectOption({ label: `in ${daemon.paths.work}` });
  await touch.getByRole("button", { name: /^Allow touch/ }).click();
  await signedIn
    .getByRole("dialog", { name: "Allow this from now on?" })
    .getByRole("button", { name: "Allow it" })
    .click();
  await expect(grants(signedIn).filter({ hasText: "touch *.txt" })).toContainText("project");
  await expect(suggested.filter({ hasText: "touch *.txt" })).toHaveCount(0);
});

test("a dangerous mode needs a confirmation", async ({ signedIn, daemon, agent }) => {
  const codex = await agent("codex");
  await codex.call("list");
  await openRules(signedIn);
  const row = signedIn.getByRole("list", { name: "Sessions" }).getByRole("listitem").filter({ hasText: "codex" });
  await row.getByLabel(/^Mode of/).selectOption("plan");
  await expect(row).toContainText("read only");
  await row.getByLabel(/^Mode of/).selectOption("yolo");
  await signedIn.getByRole("dialog", { name: "Set the mode yolo?" }).getByRole("button", { name: "Go back" }).click();
  await expect(row.getByLabel(/^Mode of/)).toHaveValue("plan");
  await row.getByLabel(/^Mode of/).selectOption("yolo");
  await signedIn.getByRole("button", { name: "Set yolo" }).click();
  await expect(row.getByLabel(/^Mode of/)).toHaveValue("yolo");
  expect(await daemon.toolctl("sessions", "list", "--json")).toContain('"yolo"');
});

test("a code for a program of one's own is made", async ({ signedIn, daemon }) => {
  await openRules(signedIn);
  await signedIn.getByRole("button", { name: "Make a code" }).click();
  const made = signedIn.getByRole("status").filter({ hasText: "counts once" });
  const code = (await made.locator("code").textContent())!;
  expect(await daemon.toolctl("agents", "confirm", code)).toContain("confirmed");
});

test("what a plugin was refused is shown, with the command that allows it", async ({ signedIn, daemon, agent }) => {
  const codex = await agent("codex");
  await codex.call("look_up");
  await openRules(signedIn);
  const refused = signedIn.getByRole("list", { name: "Refused to plugins" }).getByRole("listitem");
  await expect(refused).toContainText(/deny.*network.*example\.org/);
  await expect(refused).toContainText("look, once");
  const command = (await refused.getByText("toolctl permissions grant").textContent())!;
  await daemon.inShell(command);
  await signedIn.reload();
  await openRules(signedIn);
  await expect(grants(signedIn).filter({ hasText: "example.org" })).toContainText("through the plugins look");
});

test("rules, grants and targets are text", async ({ signedIn, daemon, agent }) => {
  const check = watch(signedIn);
  const hostile = await agent(`codex ${HOSTILE[1]}`);
  await hostile.call("list");
  await grant(daemon, "shell", `echo '${HOSTILE[0]}'`);
  await openRules(signedIn);
  await expect(grants(signedIn)).toContainText(["echo '<script>window.pwned = 1</script>'"]);
  await expect(signedIn.getByRole("list", { name: "Sessions" })).toContainText("<img src=x");
  await signedIn.getByLabel("Command line").fill(`echo '${HOSTILE[8]}' > "${HOSTILE[1]}"`);
  await signedIn.getByRole("button", { name: "Test", exact: true }).click();
  await expect(signedIn.getByRole("list", { name: "How the command line was parsed" })).toContainText(
    "\\u{202e}txt.nur",
  );
  await check();
});

test("the view is accessible, and has its pictures", async ({ signedIn, daemon, agent }) => {
  test.slow();
  const claude = await agent("claude-code");
  await claude.call("list");
  await grant(daemon, "shell", "make *");
  await grant(daemon, "network", "example.org:443", "--scope", "project");
  for (const target of ["unit", "wire", "page"]) await grant(daemon, "shell", `cargo test ${target}`);
  await openRules(signedIn);
  await signedIn.getByLabel("Command line").fill("git push origin main && make all");
  await signedIn.getByRole("button", { name: "Test", exact: true }).click();
  await expect(signedIn.getByRole("list", { name: "How the command line was parsed" })).toBeVisible();
  await expectAccessible(signedIn);
  await takePictures(signedIn, "rules");
});

test("the level of a session is shown, and a person raises and resets it", async ({ signedIn, agent }) => {
  const claude = await agent("claude-code");
  await claude.call("list");
  await openRules(signedIn);
  const sessions = signedIn.getByRole("list", { name: "Sessions" }).getByRole("listitem");
  const level = sessions.filter({ hasText: "claude-code" }).getByLabel(/^level/);
  await expect(level).toHaveValue("read");
  await level.selectOption("edit");
  await signedIn.getByRole("button", { name: "Set edit" }).click();
  await expect(level).toHaveValue("edit");
  await level.selectOption("configured");
  await expect(level).toHaveValue("read");
});
