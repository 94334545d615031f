/** The fleet in the view Sources: two daemons and a real NATS server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expectAccessible } from "./axe.ts";
import { TestDaemon } from "./daemon.ts";
import { expect, test as base } from "./fixtures.ts";
import { takePictures } from "./pictures.ts";
import { watch } from "./watch.ts";

const NATS = process.env["NATS_SERVER"] ?? join(import.meta.dirname, "../../../target/nats/bin/nats-server");

const test = base.extend<{
  /** The address of a NATS server of the test's own. */
  broker: string;
  /** Another daemon, not in the fleet yet. */
  build: TestDaemon;
}>({
  broker: async ({}, use) => {
    test.skip(!existsSync(NATS) && process.env["CI"] === undefined, "nats-server is not installed");
    const folder = await mkdtemp(join(tmpdir(), "toold-nats-"));
    const options = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder, "--ports_file_dir", folder];
    const server = spawn(NATS, options, { stdio: "ignore" });
    const ports = join(folder, `nats-server_${server.pid}.ports`);
    await expect.poll(() => readFile(ports, "utf8").catch(() => "")).not.toBe("");
    const { nats } = JSON.parse(await readFile(ports, "utf8")) as { nats: [string] };
    await use(nats[0]);
    server.kill();
    await once(server, "close");
    await rm(folder, { recursive: true });
  },
  build: async ({}, use) => {
    const daemon = await TestDaemon.start({});
    await use(daemon);
    await daemon.remove();
  },
});

test("without a fleet, the page says how to start one", async ({ signedIn: page }) => {
  await page.goto(`${new URL(page.url()).origin}/page/#/sources`);
  const fleet = page.getByRole("region", { name: "Fleet", exact: true });
  await expect(fleet.getByText(/^toolctl fleet init /)).toBeVisible();
  await expectAccessible(page);
});

test("the daemons of a fleet are shown as they come and go", async ({ signedIn: page, daemon, build, broker }) => {
  const nothingForbidden = watch(page);
  await page.goto(`${new URL(page.url()).origin}/page/#/sources`);
  const invitation = await daemon.toolctl("fleet", "init", "laptop", "--server", broker, "--person", "anna");
  const joined = await build.toolctl("fleet", "join", invitation.trim(), "build", "--label", "gpu", "--yes");
  const trust = joined.split("\n").find((line) => line.startsWith("toolctl fleet trust"))!;
  await daemon.toolctl(...trust.split(" ").slice(1));

  const table = page.getByRole("region", { name: "Daemons of the fleet" });
  const row = table.getByRole("row", { name: /^build online/ });
  await expect(row).toContainText("gpu");
  await expect(row.getByRole("meter", { name: "Load of build" })).toBeVisible();
  await expect(row).toContainText("0/4");
  await expect(page.getByRole("region", { name: "Sources" }).getByRole("row", { name: /^build of the fleet/ })).toBeVisible();
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: "light" });
  // With fewer sources above it.
  await page.getByLabel("Filter").fill("fleet");
  await takePictures(page, "fleet");
  await page.getByLabel("Filter").fill("");

  await row.getByRole("link", { name: "build" }).click();
  await expect(page.getByRole("heading", { name: /^build online/ })).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("link", { name: "All sources" }).click();
  await build.toolctl("fleet", "forget", "laptop");
  await expect(row).toContainText("does not trust this machine");
  await row.getByRole("link", { name: "build" }).click();
  await expect(page.getByText("no: `toolctl fleet doctor` says what to run there")).toBeVisible();
  await page.getByRole("link", { name: "All sources" }).click();
  await build.stop();
  await expect(table.getByRole("row", { name: /^build away/ })).toBeVisible();
  await nothingForbidden();
});
