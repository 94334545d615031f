// Builds the package when it is installed from its folder or from git, and when it is packed.
//
// npm only links a folder of another project, without installing the folder's dependencies, so this does both.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);

function has(name) {
  try {
    return require.resolve(name) !== undefined;
  } catch {
    return false;
  }
}

function npm(...args) {
  const { npm_execpath: program } = process.env;
  const command = program?.endsWith("npm-cli.js") ? [process.execPath, program] : ["npm"];
  // Standard output is that of the npm that runs this, such as the name of the packed file.
  execFileSync(command[0], [...command.slice(1), ...args], { cwd, stdio: ["ignore", 2, 2] });
}

if (!has("typescript") || !has("vscode-jsonrpc/node")) {
  // The settings of the npm that runs this are for the other project: it may omit development dependencies.
  npm("ci", "--prefix", cwd, "--global=false", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund");
}
npm("run", "--prefix", cwd, "--silent", "build");
