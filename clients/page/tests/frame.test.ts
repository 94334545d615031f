/** Signing in, the frame, and losing the daemon. */
import { expectAccessible } from "./axe.ts";
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

test("everything is paused and resumed, by a button or a key, after a question", async ({ signedIn, daemon }) => {
  await signedIn.getByRole("button", { name: "Pause" }).click();
  const dialog = signedIn.getByRole("dialog", { name: "Pause everything?" });
  await dialog.getByRole("button", { name: "Go back" }).click();
  expect(await daemon.toolctl("status")).not.toContain("paused by");
  await signedIn.keyboard.press("P");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await expect(signedIn.getByText(/Everything is paused by page at/)).toBeVisible();
  await expectAccessible(signedIn);
  expect(await daemon.toolctl("status")).toContain("paused by page");
  // Somebody else resumes.
  await daemon.toolctl("resume");
  await expect(signedIn.getByRole("button", { name: "Pause" })).toBeVisible({ timeout: 15_000 });
});

test("a link signs one browser in, once, and its code leaves the address", async ({ page, pageLink, browser }) => {
  const link = await pageLink();
  await page.goto(link);
  await expect(page.getByText("connected", { exact: true })).toBeVisible();
  expect(page.url()).not.toContain("code");
  await page.reload();
  await expect(page.getByText("connected", { exact: true })).toBeVisible();

  const other = await (await browser.newContext()).newPage();
  await other.goto(link);
  await expect(other.getByRole("alert")).toContainText("the code is not valid");
  await expect(other.getByText("Run toolctl page in a terminal")).toBeVisible();
  await expectAccessible(other);
  await other.getByLabel("Code").fill("wrong");
  await other.getByRole("button", { name: "Sign in" }).click();
  await expect(other.getByRole("alert")).toContainText("the code is not valid");
  // The whole link is a code, too.
  await other.getByLabel("Code").fill(await pageLink());
  await other.getByRole("button", { name: "Sign in" }).click();
  await expect(other.getByText("connected", { exact: true })).toBeVisible();
  await other.context().close();
});

test("every view of a small phone shows how to sign out", async ({ signedIn }) => {
  await signedIn.setViewportSize({ width: 320, height: 640 });
  for (const view of ["Now", "Decide", "Tools", "Sources", "Rules", "History"]) {
    await signedIn.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view }).click();
    const place = await signedIn.getByRole("button", { name: "Sign out" }).boundingBox();
    expect(place!.x, view).toBeGreaterThanOrEqual(0);
    expect(place!.x + place!.width, view).toBeLessThanOrEqual(320);
  }
});

test("signing out ends the connection, here and in other tabs", async ({ signedIn }) => {
  const tab = await signedIn.context().newPage();
  await tab.goto(signedIn.url());
  await expect(tab.getByText("connected", { exact: true })).toBeVisible();
  await signedIn.getByRole("button", { name: "Sign out" }).click();
  await expect(signedIn.getByLabel("Code")).toBeVisible();
  await expect(tab.getByLabel("Code")).toBeVisible();
});

test("the browser can install the page, and nothing of a session is stored", async ({ signedIn }) => {
  await signedIn.evaluate(async () => void (await navigator.serviceWorker.ready));
  await signedIn.reload();
  await expect(signedIn.getByText("connected", { exact: true })).toBeVisible();
  const stored = await signedIn.evaluate(async () => {
    const requests = await (await caches.open("page")).keys();
    return requests.map(({ url }) => new URL(url).pathname);
  });
  expect(stored).toContain("/page/");
  expect(stored.filter((path) => /rpc|login|logout|session/.test(path))).toEqual([]);
  const manifest = await signedIn.request.get(new URL("/page/manifest.webmanifest", signedIn.url()).href);
  expect(((await manifest.json()) as { start_url: string }).start_url).toBe("/page/");
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

test("the page reconnects when the daemon is replaced", async ({ signedIn, agent, daemon }) => {
  const first = await agent("claude-code");
  void first.call("bash", { command: "touch before.txt" });
  await expect(signedIn.getByRole("link", { name: "Decide 1" })).toBeVisible();
  const lost = signedIn.waitForEvent("websocket");
  await daemon.toolctl("restart");
  await lost;
  await expect(signedIn.getByText("connected", { exact: true })).toBeVisible();
  // The ask went with its call; the subscriptions are there again. Its card may still be there, with a link of its own.
  const views = signedIn.getByRole("navigation", { name: "Views" });
  await expect(views.getByRole("link", { name: "Decide" })).toHaveText("Decide");
  const second = await agent("codex");
  void second.call("bash", { command: "touch after.txt" });
  await expect(signedIn.getByRole("link", { name: "Decide 1" })).toBeVisible();
  await expect(signedIn.getByRole("listitem").filter({ hasText: "codex" })).toContainText("asking");
});

test.describe("without its service worker", () => {
  // Requests of a service worker pass by the test.
  test.use({ serviceWorkers: "block" });

  test("a part of the page that could not be loaded is loaded later", async ({ signedIn, daemon }) => {
    const heading = signedIn.getByRole("heading", { name: "Grants" });
    await signedIn.route("**/assets/**", (route) => route.abort());
    await signedIn.getByRole("link", { name: "Rules" }).click();
    await expect(signedIn.getByText("This part of the page could not be loaded")).toBeVisible();
    await signedIn.unroute("**/assets/**");
    await daemon.toolctl("restart");
    await expect(heading).toBeVisible();
    // A style sheet that could not be loaded is listed too, but its rules cannot be read.
    const rules = await signedIn.evaluate(
      () => [...document.styleSheets].find(({ href }) => href?.includes("/rules-"))?.cssRules.length,
    );
    expect(rules).toBeGreaterThan(0);

    await signedIn.route("**/assets/**", (route) => route.abort());
    await signedIn.getByRole("link", { name: "Tools" }).click();
    await expect(signedIn.getByText("This part of the page could not be loaded")).toBeVisible();
    await signedIn.unroute("**/assets/**");
    await signedIn.getByRole("button", { name: "Load the page again" }).click();
    await expect(signedIn.getByRole("searchbox")).toBeVisible();
  });
});

test("a page whose daemon was killed waits for it, and signs in again where it was", async ({
  signedIn,
  daemon,
  pageLink,
}) => {
  await signedIn.getByRole("link", { name: "Rules" }).click();
  await daemon.kill();
  await expect(signedIn.getByText("not connected")).toBeVisible();
  await daemon.start();
  await expect(signedIn.getByText("This browser is signed out")).toBeVisible();
  await signedIn.getByLabel("Code").fill(await pageLink());
  await signedIn.getByRole("button", { name: "Sign in" }).click();
  await expect(signedIn.getByText("connected", { exact: true })).toBeVisible();
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText("Rules");
});
