// A private daemon, for scripts that generate files from its own description.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The daemon's program: an argument, else $TOOLD, else target/debug/toold. */
export function programOf(argv) {
  const given = argv.slice(2).find((argument) => !argument.startsWith("--")) ?? process.env.TOOLD;
  return given ? resolve(given) : fileURLToPath(new URL("../../../target/debug/toold", import.meta.url));
}

/** Starts a private daemon in its own folders, makes one request and stops the daemon. Returns the result. */
export async function askPrivately(toold, method, params = {}) {
  const home = mkdtempSync(join(tmpdir(), "toold-ask-"));
  const env = { PATH: process.env.PATH, HOME: home, LC_ALL: "C.UTF-8" };
  const daemon = spawn(toold, ["--stdio"], { env, cwd: home, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve, reject) => daemon.on("error", reject).on("close", resolve));
  try {
    daemon.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
    const lines = createInterface({ input: daemon.stdout });
    const line = await Promise.race([
      new Promise((resolve) => lines.once("line", resolve)),
      ended.then(() => Promise.reject(new Error(`${toold} ended without an answer`))),
    ]);
    daemon.stdin.end();
    await ended;
    const answer = JSON.parse(line);
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  } finally {
    daemon.kill();
    rmSync(home, { recursive: true, force: true });
  }
}
