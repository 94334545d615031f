/** The package as a user installs it, and the README's program with it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { PACKAGE, PATIENCE, ownFolders, test } from "./folders.js";

const run = promisify(execFile);
const EXAMPLE = /```ts\n(?<code>.*?)```\n\n```text\n(?<output>.*?)```/gs;
const MARK = "-- end of an example --";

test("the packed package installs, and the README's program has the documented types and output", async (t) => {
  const here = await ownFolders(t);
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const examples = [...readme.matchAll(EXAMPLE)].map((match) => match.groups as { code: string; output: string });
  assert.equal(examples.length, readme.split("```ts\n").length - 1, "each example has its output");
  assert.ok(examples.length > 5);

  const project = join(here.root, "project");
  mkdirSync(project);
  const npm = async (cwd: string, ...args: string[]) => {
    const env = { ...process.env, npm_config_cache: join(here.root, "npm"), npm_config_update_notifier: "false" };
    return run("npm", [...args, "--offline", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd, env });
  };
  // All its dependencies are files, so nothing is downloaded.
  await npm(PACKAGE, "pack", "--pack-destination", project);
  await npm(PACKAGE, "pack", "./node_modules/vscode-jsonrpc", "--pack-destination", project);
  const packed = readdirSync(project).map((name) => `./${name}`);
  assert.deepEqual(packed.map((name) => name.replace(/-\d.*/, "")).sort(), ["./toold", "./vscode-jsonrpc"]);
  writeFileSync(join(project, "package.json"), '{"name": "sample", "private": true, "type": "module"}');
  await npm(project, "install", ...packed);
  const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
  assert.deepEqual(installed.sort(), ["toold", "vscode-jsonrpc"]);
  assert.deepEqual(readdirSync(join(project, "node_modules/toold")).sort(), [
    "LICENSE",
    "README.md",
    "dist",
    "package.json",
  ]);

  const marked = examples.map(({ code }) => `${code}console.log(${JSON.stringify(MARK)});\n`);
  writeFileSync(join(project, "sample.ts"), marked.join(""));
  // What the README says, and stricter.
  const documented = /```json\n(\{\n  "compilerOptions".*?)```/s.exec(readme);
  const config = {
    compilerOptions: {
      ...JSON.parse(documented![1]!).compilerOptions,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      typeRoots: [join(PACKAGE, "node_modules/@types")],
    },
    files: ["sample.ts"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  const { stdout: problems } = await run(process.execPath, [tsc, "-p", project]).catch((error) => error);
  assert.equal(problems, "");

  writeFileSync(join(here.work, "notes.txt"), "green tea\nblack coffee\n");
  const { stdout } = await run(process.execPath, [join(project, "sample.js")], {
    cwd: here.work,
    env: { ...here.environment, PATH: `${here.bin}:${here.environment["PATH"]}`, NO_COLOR: "1" },
    timeout: PATIENCE,
  });
  const printed = stdout.split(`${MARK}\n`);
  for (const [i, { code, output }] of examples.entries()) assert.equal(printed[i], output, code);
});
