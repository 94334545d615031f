import { fileURLToPath } from "node:url";

import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

import { devProxy } from "./scripts/dev-proxy.ts";

const client = (name: string) => fileURLToPath(new URL(`../typescript/src/${name}`, import.meta.url));

export default defineConfig({
  base: "/page/",
  plugins: [preact({ reactAliasesEnabled: true, prefreshEnabled: false })],
  resolve: {
    alias: { "toold/browser": client("browser.ts") },
    // The client's sources take it from here, so that only this folder needs `npm ci`.
    dedupe: ["vscode-jsonrpc"],
  },
  build: {
    outDir: "dist",
    target: "es2022",
    // A data URL in a style sheet would be refused by the page's content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
  server: { fs: { allow: [client(".."), "."] }, proxy: devProxy() },
});
