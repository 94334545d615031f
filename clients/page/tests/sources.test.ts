/** The view Sources. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";

import type { Page } from "@playwright/test";

import { expectAccessible } from "./axe.ts";
import { expect, test } from "./fixtures.ts";
import { askDaemon } from "./person.ts";
import { takePictures } from "./pictures.ts";
import { watch } from "./watch.ts";

const MCP = new URL("../../../tests/mcp/", import.meta.url).pathname;

const GOOD = `
hygge.register_tool{
  name = "greet", description = "Greets somebody. It logs whom.", parallelizable = true,
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input)
    hygge.log("info", "greeting", {name = input.name})
    if input.name == "nobody" then error("there is nobody to greet") end
    return "hello " .. input.name
  end,
}
`;

const CLEANER = `
hygge.register_tool{
  name = "clean", description = "Removes the build", parallelizable = true,
  input_schema = {type = "object"},
  execute = function() return hygge.exec("rm", {"-r", "build"}).stdout end,
}
`;

const BROKEN = `-- It adds prices.
local function total(prices)
  return prices.sum + missing.value
end
total({sum = 1})
`;

const CONFIG = `
[[permission.rules]]
category = "mcp"
pattern = "**"
action = "allow"
[mcp.servers.notes]
command = "python3"
args = ["${MCP}stand_in.py"]
[mcp.servers.gone]
command = "/nowhere/server"
[remotes.desk]
command = ["/nowhere/ssh", "desk"]
[[permission.rules]]
category = "shell"
pattern = "rm *"
action = "deny"
`;

test.use({
  contents: { config: CONFIG, plugins: { "greeter.lua": GOOD, "cleaner.lua": CLEANER, "prices.lua": BROKEN } },
});

async function openSources(page: Page, path = ""): Promise<void> {
  await page.goto(`${new URL(page.url()).origin}/page/#/sources${path}`);
}

test("sources are listed, those with problems first", async ({ signedIn: page }) => {
  const nothingForbidden = watch(page);
  await openSources(page);
  const table = page.getByRole("region", { name: "Sources" });
  await expect(table.getByRole("row").nth(1)).toContainText(/failed/);
  await expect(table.getByRole("row").filter({ hasText: "prices" })).toContainText("attempt to index nil");
  await expect(table.getByRole("row", { name: /^notes MCP/ })).toContainText("running");
  await expect(table.getByRole("row").filter({ hasText: "greeter" })).toContainText("loaded");
  await expectAccessible(page);
  await takePictures(page, "sources");
  await page.getByRole("searchbox", { name: "Filter" }).fill("greet");
  await expect(table.getByRole("row")).toHaveCount(2);
  await nothingForbidden();
});

test("a broken plugin shows the line, and recovers when it is fixed", async ({ signedIn: page, daemon }) => {
  await openSources(page, "/plugin/prices");
  await expect(page.getByRole("heading", { name: "prices failed" })).toBeVisible();
  await expect(page.getByText(/prices\.lua:3$/).first()).toBeVisible();
  await expect(page.getByRole("region", { name: "Source line" }).first()).toContainText("3 | ");
  await page.getByText("Traceback").first().click();
  await expect(page.getByRole("region", { name: "Traceback" }).first()).toContainText("total");
  await expect(page.getByText(/^toolctl plugins test .*prices\.lua$/)).toBeVisible();
  await expectAccessible(page);
  await takePictures(page, "sources-plugin");
  await writeFile(join(daemon.paths.plugins, "prices.lua"), GOOD.replaceAll('"greet"', '"price"'));
  await page.getByRole("button", { name: "Reload" }).click();
  await expect(page.getByRole("heading", { name: "prices loaded" })).toBeVisible();
  await expect(page.getByRole("link", { name: "price" })).toBeVisible();
  await page.getByRole("button", { name: "Disable" }).click();
  await expect(page.getByRole("dialog")).toContainText("Its tools disappear: price");
  await page.getByRole("button", { name: "Disable the plugin" }).click();
  await expect(page.getByRole("heading", { name: "prices disabled" })).toBeVisible();
  await page.getByRole("button", { name: "Enable" }).click();
  await expect(page.getByRole("heading", { name: "prices loaded" })).toBeVisible();
});

test("logs come in as they are written, and are filtered", async ({ signedIn: page, agent }) => {
  const codex = await agent("codex");
  await codex.call("greet", { name: "Ada" });
  await openSources(page, "/plugin/greeter");
  const nothingForbidden = watch(page);
  const log = page.getByRole("log", { name: "Log of greeter" });
  await expect(log).toContainText("Ada");
  await codex.call("greet", { name: "<img src=x onerror='window.pwned = 1'>" });
  await expect(log).toContainText("<img src=x");
  await codex.call("greet", { name: "nobody" });
  await expect(log).toContainText("there is nobody to greet");
  await page.getByRole("combobox", { name: "Level" }).selectOption("errors");
  await expect(log).not.toContainText("Ada");
  await expect(log).toContainText("tool greet");
  await nothingForbidden();
});

test("a plugin shows the permissions that it was refused", async ({ signedIn: page, agent }) => {
  const codex = await agent("codex");
  await codex.call("clean");
  await openSources(page, "/plugin/cleaner");
  const refused = page.getByRole("region", { name: "Refused permissions" });
  await expect(refused).toContainText(/refused.*shell.*rm -r build/);
  await expect(refused).toContainText("once");
});

test("a mounted daemon that is away shows why, and is tried again", async ({ signedIn: page }) => {
  await openSources(page, "/remote/desk");
  await expect(page.getByRole("heading", { name: "desk away" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Error" }).first()).toContainText("/nowhere/ssh");
  const reconnect = page.getByRole("button", { name: "Reconnect" });
  await reconnect.click();
  await expect(reconnect).toBeEnabled();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("tools of a client come and go with it", async ({ signedIn: page, daemon }) => {
  await openSources(page);
  const client = connect(daemon.paths.socket);
  const requests = [
    ["session.open", { cwd: daemon.paths.work, client: { name: "editor" }, protocol: 2 }],
    [
      "tools.provide",
      { tools: [{ name: "open_file", description: "Opens a file.", input_schema: { type: "object" } }] },
    ],
  ];
  requests.forEach(([method, params], id) =>
    client.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`),
  );
  const row = page.getByRole("row", { name: /^editor client connected/ });
  await row.getByRole("link").click();
  await expect(page.getByRole("link", { name: "open_file" })).toBeVisible();
  client.destroy();
  await expect(page.getByText("There is no source editor with tools")).toBeVisible();
});

test("an MCP server is restarted, and shows why it fails", async ({ signedIn: page }) => {
  await openSources(page, "/mcp/notes");
  await expect(page.getByRole("heading", { name: "notes running" })).toBeVisible();
  await expect(page.getByRole("link", { name: "notes_echo" })).toBeVisible();
  const starts = page.locator("dt", { hasText: "Starts" }).locator("+ dd");
  const before = Number(await starts.textContent());
  await page.getByRole("button", { name: "Restart" }).click();
  await expect(starts).toHaveText(String(before + 1));
  await openSources(page, "/mcp/gone");
  await page.getByRole("button", { name: /^(Restart|Start)$/ }).click();
  await expect(page.getByRole("region", { name: "Error" }).first()).toContainText("/nowhere/server");
});

test("content of a project is trusted in a terminal, with the command that the page names", async ({
  signedIn: page,
  daemon,
}) => {
  const project = join(daemon.paths.work, ".toold");
  await mkdir(join(project, "plugins"), { recursive: true });
  await writeFile(join(project, "plugins/theirs.lua"), GOOD.replaceAll('"greet"', '"theirs"'));
  await openSources(page);
  await page.getByRole("textbox", { name: "Folder" }).fill(daemon.paths.work);
  await page.getByRole("button", { name: "Open the folder" }).click();
  await page.getByRole("link", { name: "theirs" }).click();
  await expect(page.getByRole("heading", { name: "theirs untrusted" })).toBeVisible();
  const command = await page.getByText(/^toolctl plugins trust /).textContent();
  await expectAccessible(page);
  const [, ...words] = command!.split(" ");
  await daemon.toolctl(...words, "--yes");
  await expect(page.getByRole("heading", { name: "theirs loaded" })).toBeVisible();
  await expect(page.getByRole("link", { name: "theirs" })).toBeVisible();
});

test("content of a project is shown with what it would allow, to a person who may trust it", async ({
  signedIn: page,
  daemon,
}) => {
  await mkdir(join(daemon.paths.work, ".toold"));
  const rule = '[[permission.rules]]\ncategory = "shell"\npattern = "make *"\naction = "allow"\n';
  await writeFile(join(daemon.paths.work, ".toold/config.toml"), rule);
  // The page's own rights are smaller, so its connection goes to the socket instead.
  await page.routeWebSocket(/\/page\/rpc$/, (browser) => {
    const socket = connect(daemon.paths.socket);
    browser.onMessage((message) => void socket.write(`${message}\n`));
    browser.onClose(() => socket.destroy());
    createInterface({ input: socket }).on("line", (line) => browser.send(line));
  });
  await openSources(page);
  await page.reload();
  await page.getByRole("textbox", { name: "Folder" }).fill(daemon.paths.work);
  await page.getByRole("button", { name: "Open the folder" }).click();
  const project = page.getByRole("region", { name: "Project" });
  await expect(project).toContainText("not trusted");
  await expect(project).toContainText(/Would allow without asking:.*shell.*make \*/);
  await expectAccessible(page);
});

test.describe("with a server that wants a login", () => {
  const withLogin = test.extend<{ oauth: string }>({
    oauth: async ({}, use) => {
      const server = spawn("python3", [`${MCP}oauth_stand_in.py`], { stdio: ["ignore", "pipe", "inherit"] });
      const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
      await use(line.trim());
      server.kill();
      await once(server, "close");
    },
  });
  withLogin.use({
    contents: async ({ oauth }, use) => {
      await use({ config: `[mcp.servers.s]\nurl = "${oauth}/mcp"\n` });
    },
  });

  withLogin(
    "a login ends in the tab of its page, or with the pasted address",
    async ({ signedIn: page, daemon, context, pageLink }) => {
      await askDaemon(daemon, "secrets.unlock", { passphrase: "the passphrase of this test" });
      await openSources(page, "/mcp/s");
      await page.getByRole("button", { name: /^(Restart|Start)$/ }).click();
      await expect(page.getByText("login needed")).toBeVisible();
      await page.getByRole("button", { name: "Log in" }).click();
      const link = page.getByRole("link", { name: "Open the login page" });
      await expect(link).toHaveAttribute("rel", "noopener noreferrer");
      const [tab] = await Promise.all([context.waitForEvent("page"), link.click()]);
      await expect(tab.getByText("Logged in to s")).toBeVisible();
      expect(tab.url()).not.toContain("code=");
      await expect(page.getByText("logged in", { exact: true })).toBeVisible();
      await expect(page.getByRole("link", { name: "s_read" })).toBeVisible();
      await tab.close();
      await page.getByRole("region", { name: "Login" }).getByRole("button", { name: "Log out" }).click();
      await expect(page.getByText("login needed")).toBeVisible();

      // No login page redirects to another address than that of the loopback, so a person copies where the tab ends.
      await page.goto((await pageLink()).replace("127.0.0.1", "localhost"));
      await page.getByText("connected", { exact: true }).waitFor();
      await openSources(page, "/mcp/s");
      await page.getByRole("button", { name: "Log in", exact: true }).click();
      const address = new Promise<string>((resolve) =>
        context.on("request", (sent) => {
          if (sent.url().includes("code=")) resolve(sent.url());
        }),
      );
      await link.click();
      await page.getByRole("textbox", { name: /Address/ }).fill(await address);
      await page.getByRole("button", { name: "Finish the login" }).click();
      await expect(page.getByText("logged in", { exact: true })).toBeVisible();
    },
  );
});
