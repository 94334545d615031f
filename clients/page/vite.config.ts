import { fileURLToPath } from "node:url";

import preact from "@preact/preset-vite";
import { defineConfig, type ProxyOptions } from "vite";

const form = (name: string) => fileURLToPath(new URL(`src/views/tools/form/${name}`, import.meta.url));
const client = (name: string) => fileURLToPath(new URL(`../typescript/src/${name}`, import.meta.url));

/** With `npm run dev`, the address of a running daemon's page, such as `http://127.0.0.1:7346`. */
const daemon = process.env["TOOLD_PAGE"];

export default defineConfig({
  base: "/page/",
  plugins: [preact({ reactAliasesEnabled: true, prefreshEnabled: false })],
  resolve: {
    alias: [
      { find: "toold/browser", replacement: client("browser.ts") },
      // The form library brings widgets and a Markdown parser that the page has no use for.
      { find: "../getDefaultRegistry.js", replacement: form("registry.ts") },
      { find: "markdown-to-jsx/react", replacement: form("no-markdown.tsx") },
    ],
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
    // The notices that the licences of the bundled packages require.
    license: { fileName: "licenses.txt" },
  },
  // Prebundled, it would miss the aliases above.
  optimizeDeps: { exclude: ["@rjsf/core"] },
  server: { fs: { allow: [client(".."), "."] }, proxy: daemon === undefined ? {} : toDaemon(daemon) },
});

/** Passes on what is no file. The daemon accepts requests from its own address only. */
function toDaemon(target: string): Record<string, ProxyOptions> {
  const paths = ["rpc", "session", "login", "logout"].map((name) => `/page/${name}`);
  return Object.fromEntries(
    paths.map((path) => [path, { target, ws: path === "/page/rpc", changeOrigin: true, headers: { origin: target } }]),
  );
}
