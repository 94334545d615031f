// Draws media/toold.png, the icon of 128 x 128 pixels that marketplaces show, from media/toold.svg.
//
//   node scripts/icon.mjs [CHROMIUM]
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const media = new URL("../media/", import.meta.url);
const svg = readFileSync(new URL("toold.svg", media), "utf8");
const browser = await chromium.launch({ executablePath: process.argv[2] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 128, height: 128 } });
  const tile = "width: 128px; height: 128px; box-sizing: border-box; padding: 16px; border-radius: 24px";
  await page.setContent(`<body style="margin: 0"><div style="${tile}; background: #1f3a5f; color: #ffffff">${svg}</div>`);
  await page.screenshot({ path: fileURLToPath(new URL("toold.png", media)), omitBackground: true });
} finally {
  await browser.close();
}
