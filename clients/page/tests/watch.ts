/** Notices everything that a text must not be able to do in a page. */
import { expect, type Page } from "@playwright/test";

/** Returns a check that nothing has run, opened a dialog, or gone to another place than the daemon. */
export function watch(page: Page): () => Promise<void> {
  const noticed: string[] = [];
  page.on("dialog", (dialog) => {
    noticed.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => noticed.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) noticed.push(message.text());
  });
  page.on("popup", () => noticed.push("a window was opened"));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.host !== new URL(page.url()).host) noticed.push(request.url());
  });
  return async () => {
    expect(await page.evaluate(() => "pwned" in window)).toBe(false);
    expect(noticed).toEqual([]);
  };
}
