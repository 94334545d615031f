/** The entry for browsers. The tests of `clients/page` use it in a browser, with a real daemon. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PACKAGE, test } from "./folders.js";

test("the entry for browsers loads nothing of Node", () => {
  const files = loaded(join(PACKAGE, "dist/browser.js"));
  assert.ok(files.size > 5);
  for (const [path, text] of files) {
    assert.doesNotMatch(text, /from "(node:|vscode-jsonrpc\/node)/, path);
    assert.doesNotMatch(text, /\b(Buffer|process)\./, path);
  }
});

/** The text of a module, and of all modules of this package that it imports. */
function loaded(path: string, files = new Map<string, string>()): Map<string, string> {
  if (files.has(path)) return files;
  const text = readFileSync(path, "utf8");
  files.set(path, text);
  for (const [, relative] of text.matchAll(/from "(\.\/[^"]+)"/g)) loaded(join(path, "..", relative!), files);
  return files;
}
