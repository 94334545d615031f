/** Signing in, the frame, and losing the daemon. */
import { expect, test } from "./fixtures.ts";
import { TRAFFIC } from "./traffic.ts";

test.use({ contents: { plugins: { "traffic.lua": TRAFFIC } } });

test("the page names its views, and keys go to them", async ({ signedIn }) => {
  const views = signedIn.getByRole("navigation", { name: "Views" }).getByRole("link");
  await expect(views).toHaveText(["Now", "Decide", "Tools", "Sources", "Rules", "History"]);
  await signedIn.keyboard.press("g");
  await signedIn.keyboard.press("r");
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText("Rules");
  expect(new URL(signedIn.url()).hash).toBe("#/rules");
  await signedIn.keyboard.press("g");
  await signedIn.keyboard.press("d");
  await signedIn.keyboard.press("?");
  await expect(signedIn.getByRole("dialog", { name: "Keys" })).toContainText("Previous prompt");
});

test("the theme is kept", async ({ signedIn }) => {
  const scheme = () => signedIn.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  await signedIn.getByRole("button", { name: "Theme: system" }).click();
  await signedIn.getByRole("button", { name: "Theme: light" }).click();
  expect(await scheme()).toBe("dark");
  await signedIn.reload();
  await expect(signedIn.getByRole("button", { name: "Theme: dark" })).toBeVisible();
  expect(await scheme()).toBe("dark");
});

test("the navigation is at the bottom of a narrow screen", async ({ signedIn }) => {
  await signedIn.setViewportSize({ width: 360, height: 640 });
  const links = signedIn.getByRole("navigation", { name: "Views" }).getByRole("link");
  for (const link of await links.all()) {
    const box = (await link.boundingBox())!;
    expect(box.y).toBeGreaterThan(560);
    expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(44);
  }
  expect(await signedIn.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
});

test("the page reconnects when the daemon was killed and started again", async ({ signedIn, agent, daemon }) => {
  await daemon.kill();
  await expect(signedIn.getByText("not connected")).toBeVisible();
  await daemon.start();
  await expect(signedIn.getByText("connected", { exact: true })).toBeVisible();
  // The subscriptions are there again.
  const claude = await agent("claude-code");
  void claude.call("bash", { command: "touch a.txt" });
  await expect(signedIn.getByRole("link", { name: "Decide 1" })).toBeVisible();
  await expect(signedIn.getByRole("listitem").filter({ hasText: "bash" })).toContainText("asking");
});
