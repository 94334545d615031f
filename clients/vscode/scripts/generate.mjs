// Writes the daemon's built-ins into package.json, since chat reads its tools before an extension runs.
//
//   node scripts/generate.mjs [TOOLD]           writes the file
//   node scripts/generate.mjs --check [TOOLD]   fails when the file is not current
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { askPrivately, programOf } from "./daemon.mjs";

/** A client that talks to a model runs these, which this extension does not. */
const RUN_BY_AGENTS = ["compact", "subagent"];

const { tools } = await askPrivately(programOf(process.argv), "tools.list", { source: "builtin" });
const languageModelTools = tools
  .filter((tool) => !RUN_BY_AGENTS.includes(tool.name))
  .map((tool) => ({
    name: `toold_${tool.name}`,
    displayName: tool.label,
    toolReferenceName: `toold_${tool.name}`,
    canBeReferencedInPrompt: true,
    modelDescription: tool.description,
    userDescription: tool.description.split(/(?<=\.)\s/)[0],
    tags: ["toold", ...tool.permissions],
    inputSchema: tool.input_schema,
  }));

const path = fileURLToPath(new URL("../package.json", import.meta.url));
const manifest = JSON.parse(readFileSync(path, "utf8"));
manifest.contributes.languageModelTools = languageModelTools;
const text = `${JSON.stringify(manifest, null, 2)}\n`;
if (!process.argv.includes("--check")) {
  writeFileSync(path, text);
} else if (readFileSync(path, "utf8") !== text) {
  console.error("languageModelTools in package.json are not the daemon's built-ins: run npm run generate");
  process.exitCode = 1;
}
