/** What the tests of all views share: a daemon for each test, a page that is signed in, and agents. */
import { createServer } from "node:net";

import { expect, test as base, type Page } from "@playwright/test";

import { TestAgent } from "./agent.ts";
import { TestDaemon, type Contents } from "./daemon.ts";

export { expect };
export type { TestAgent, TestDaemon };

interface Fixtures {
  /** Set by `test.use`. */
  contents: Contents;
  daemon: TestDaemon;
  /** Starts an agent with this name. */
  agent: (name: string) => Promise<TestAgent>;
  /** The link that `toolctl page` prints, with a code for one browser. */
  pageLink: () => Promise<string>;
  /** A page that is signed in, and connected. */
  signedIn: Page;
}

export const test = base.extend<Fixtures>({
  contents: [{}, { option: true }],

  daemon: async ({ contents }, use, { parallelIndex }) => {
    // A daemon that starts again must be where the page expects it.
    const listen = `[page]\nlisten = "127.0.0.1:${await lastingPort(parallelIndex)}"\n`;
    const daemon = await TestDaemon.start({ ...contents, config: `${contents.config ?? ""}\n${listen}` });
    await use(daemon);
    await daemon.remove();
  },

  agent: async ({ daemon }, use) => {
    const agents: TestAgent[] = [];
    await use(async (name) => {
      const agent = await TestAgent.start(daemon, name);
      agents.push(agent);
      return agent;
    });
    await Promise.all(agents.map((agent) => agent.stop()));
  },

  pageLink: async ({ daemon }, use) => {
    await use(async () => (await daemon.toolctl("page", "--plain")).trim());
  },

  signedIn: async ({ page, pageLink }, use) => {
    const refused: string[] = [];
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) refused.push(message.text());
    });
    await page.goto(await pageLink());
    // From here on, nothing of an agent's call is missed.
    await page.getByText("No calls in the last minutes").waitFor();
    await use(page);
    expect(refused, "the page does nothing that its policy refuses").toEqual([]);
  },
});

let nextPort = 0;

/**
 * A free port that no other program gets while the daemon does not run: the system chooses ports from 32768 on for those
 * that ask for any. Tests that run at the same time have ports of their own.
 */
async function lastingPort(parallelIndex: number): Promise<number> {
  for (;;) {
    const port = 10_000 + parallelIndex * 1_000 + (nextPort++ % 1_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
