/**
 * A real workbench of VS Code: code-server with the packed extension, and headless Chromium with its page.
 *
 * The environment says where the programs are: CODE_SERVER is the `entry.js` of code-server, CODE_SERVER_NODE the Node that
 * runs it, CHROMIUM the browser, VSIX the packed extension, SCREENSHOTS the folder for pictures.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { chromium, type Browser, type Locator, type Page } from "playwright-core";

import { PACKAGE, type DaemonFolders } from "../../../typescript/tests/folders.js";

const run = promisify(execFile);

/** Nothing in the workbench takes longer, in milliseconds. */
export const PATIENCE = 60_000;

const MEDIA = join(PACKAGE, "../vscode/media");
const CHROMIUM_OPTIONS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Nothing that moves, asks or reaches out by itself. */
const SETTINGS = {
  "chat.commandCenter.enabled": false,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "workbench.colorTheme": "Default Light Modern",
  "workbench.enableExperiments": false,
  "workbench.reduceMotion": "on",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run .ci/vscode_workbench`);
  return value;
}

export class Workbench {
  readonly page: Page;
  /** Uncaught errors of the page. */
  readonly errors: string[] = [];
  readonly #browser: Browser;
  readonly #server: ChildProcess;

  /** Opens the window in the folder in which the clients work. */
  static async open(here: DaemonFolders, settings: Record<string, unknown> = {}): Promise<Workbench> {
    const place = join(here.root, "code");
    mkdirSync(join(place, "data/User"), { recursive: true });
    const folders = ["--user-data-dir", join(place, "data"), "--extensions-dir", join(place, "extensions")];
    const common = [variable("CODE_SERVER"), "--config", join(place, "config.yaml"), ...folders];
    const program = { "toold.program": join(here.bin, "toold") };
    writeFileSync(join(place, "data/User/settings.json"), JSON.stringify({ ...SETTINGS, ...settings }));
    mkdirSync(join(place, "data/Machine"));
    writeFileSync(join(place, "data/Machine/settings.json"), JSON.stringify(program));
    const env = { ...here.environment, PATH: process.env["PATH"] };
    const node = variable("CODE_SERVER_NODE");
    await run(node, [...common, "--install-extension", variable("VSIX")], { env, timeout: PATIENCE });
    const options = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"];
    const server = spawn(node, [...common, ...options, "--disable-workspace-trust", here.work], {
      env,
      // A process group, to stop all that it starts.
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let browser: Browser | undefined;
    try {
      const address = await addressOf(server);
      browser = await chromium.launch({ executablePath: variable("CHROMIUM"), args: CHROMIUM_OPTIONS });
      const page = await browser.newPage({ viewport: { width: 1440, height: 800 } });
      page.setDefaultTimeout(PATIENCE);
      const workbench = new Workbench(page, browser, server);
      await page.goto(`${address}?folder=${encodeURIComponent(here.work)}`);
      await workbench.status.waitFor();
      return workbench;
    } catch (error) {
      await browser?.close();
      await stop(server);
      throw error;
    }
  }

  private constructor(page: Page, browser: Browser, server: ChildProcess) {
    this.page = page;
    this.#browser = browser;
    this.#server = server;
    page.on("pageerror", (error) => this.errors.push(error.message));
  }

  /** The extension's item in the status bar. */
  get status(): Locator {
    return this.page.locator(".statusbar-item").filter({ hasText: "toold" });
  }

  /** The quick pick or input box that is open. */
  get input(): Locator {
    return this.page.locator(".quick-input-widget:visible");
  }

  /** The rows of the quick pick that are in sight. */
  row(text: string | RegExp): Locator {
    return this.input.locator(".monaco-list-row").filter({ hasText: text });
  }

  /** The notifications with this text. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notifications-toasts .notification-list-item").filter({ hasText: text });
  }

  /** Runs a command of the palette by its title. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.input.locator("input").first().fill(`>${title}`);
    await this.row(title).first().click();
  }

  /** Types into the box that is open. */
  async type(text: string): Promise<void> {
    await this.input.locator("input[type=text], input:not([type])").first().fill(text);
  }

  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key);
  }

  /** Waits for the title of the quick pick or input box. */
  async titled(title: string): Promise<void> {
    await this.input.locator(".quick-input-title").filter({ hasText: title }).waitFor();
  }

  /** The lines of the active editor. */
  async editorText(): Promise<string> {
    return (await this.page.locator(".editor-instance .view-lines").last().innerText()).replaceAll("\u00a0", " ");
  }

  /** A picture of the window; with a `part`, of this alone, which is in the package with UPDATE=1. */
  async picture(name: string, part?: Locator): Promise<void> {
    await this.page.screenshot({ path: join(variable("SCREENSHOTS"), `${name}.png`) });
    if (part && process.env["UPDATE"]) await part.screenshot({ path: join(MEDIA, `${name}.png`) });
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await stop(this.#server);
  }
}

async function addressOf(server: ChildProcess): Promise<string> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: server.stdout! })) {
    lines.push(line);
    const [address] = /http:\/\/127\.0\.0\.1:\d+\//.exec(line) ?? [];
    if (address === undefined) continue;
    // It stops when nobody reads its output.
    server.stdout!.resume();
    return address;
  }
  throw new Error(`code-server ended:\n${lines.join("\n")}`);
}

/** Stops it and everything that it started. */
async function stop(server: ChildProcess): Promise<void> {
  const closed = once(server, "close");
  process.kill(-server.pid!, "SIGTERM");
  const timer = setTimeout(() => process.kill(-server.pid!, "SIGKILL"), 10_000);
  await closed;
  clearTimeout(timer);
}
