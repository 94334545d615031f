import { defineConfig } from "@playwright/test";

/** Tests of the built page against real daemons. `TOOLD` names the daemon; its folder has the other programs. */
export default defineConfig({
  testDir: "tests",
  testMatch: "*.test.ts",
  outputDir: "../../target/page-tests",
  fullyParallel: true,
  workers: 2,
  timeout: 120_000,
  // The page waits up to twenty seconds between two attempts to connect.
  expect: { timeout: 30_000 },
  reporter: "list",
  forbidOnly: process.env["CI"] !== undefined,
  use: {
    browserName: "chromium",
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    colorScheme: "light",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
