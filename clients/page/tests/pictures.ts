/** The pictures of the documents, which the tests take with `PICTURES=1`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "@playwright/test";
import UPNG from "upng-js";

const FOLDER = join(import.meta.dirname, "../../../docs/page");
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };

const SCHEMES = ["light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];

/** Takes `NAME-light-wide.png` and the three others of a view, or those of some colour schemes alone. */
export async function takePictures(page: Page, name: string, schemes: readonly Scheme[] = SCHEMES): Promise<void> {
  if (!process.env["PICTURES"]) return;
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.evaluate(fixTexts);
      const picture = await page.screenshot({ animations: "disabled" });
      writeFileSync(join(FOLDER, `${name}-${colorScheme}-${size}.png`), smaller(picture));
    }
  }
  await page.setViewportSize(SIZES.wide);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: null });
}

/** Replaces texts that differ from run to run: folders, ids, times. */
function fixTexts(): void {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.nodeValue ?? "";
    const parent = node.parentElement!;
    // Past calls that a test wrote into the database are the same in each run.
    if (parent.closest("article")?.querySelector('time[datetime^="2026-01-15"]')) continue;
    let fixed = text
      .replace(/\/tmp\/toold-test-\w+\/work/g, "/home/you/shop")
      .replace(/\/tmp\/toold-test-\w+\/config/g, "/home/you/.config")
      .replace(/\/tmp\/toold-test-\w+\/home/g, "/home/you")
      // The end of a path.
      .replace(/…[\w/-]*test-\w+\/work/g, "…/you/shop")
      .replace(/\bgrant_[0-9a-f]{8}_/g, "grant_4a7ef6a8_")
      .replace(/^work$/, "shop")
      .replace(/\b(m-)?[0-9a-f]{32}\b/g, "4a7ef6a84f2b103d");
    if (parent.closest(".expiry")) fixed = fixed.replace(/^\d.*/, "9 min 52 s");
    if (parent.closest("time")) fixed = /:\d\d:/.test(fixed) ? "15 Jan, 10:04:20" : "8 s ago";
    if (parent.closest(".call, .ended") && /^\d[\d.]* (ms|s)$/.test(fixed)) fixed = "12 s";
    if (parent.closest(".outcome") && /^\d[\d.]* (ms|s)$/.test(fixed)) fixed = "34 ms";
    if (parent.closest(".entry-duration")) fixed = "4 ms";
    if (fixed !== text) node.nodeValue = fixed;
  }
}

/** With a palette of 128 colours. */
function smaller(png: Buffer): Buffer {
  const image = UPNG.decode(png.buffer.slice(png.byteOffset, png.byteOffset + png.byteLength) as ArrayBuffer);
  return Buffer.from(UPNG.encode(UPNG.toRGBA8(image), image.width, image.height, 128));
}
