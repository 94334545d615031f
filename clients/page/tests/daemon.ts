/** A daemon in folders of its own, made, stopped and removed by `toold-test-daemon`. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);

const TOOLD = process.env["TOOLD"] ?? join(import.meta.dirname, "../../../target/debug/toold");
const HARNESS = join(dirname(TOOLD), "toold-test-daemon");

interface Paths {
  root: string;
  /** Where clients work. */
  work: string;
  plugins: string;
  bin: string;
  socket: string;
  environment: Record<string, string>;
}

export interface Contents {
  /** The text of `config.toml`. */
  config?: string;
  /** Source by file name. */
  plugins?: Record<string, string>;
}

export class TestDaemon {
  readonly #harness = spawn(HARNESS, { stdio: ["pipe", "pipe", "inherit"] });
  readonly #answers = createInterface({ input: this.#harness.stdout })[Symbol.asyncIterator]();
  paths!: Paths;

  static async start(contents: Contents): Promise<TestDaemon> {
    const daemon = new TestDaemon();
    daemon.paths = await daemon.#ask<Paths>(contents);
    await daemon.start();
    return daemon;
  }

  async start(): Promise<void> {
    await this.#ask("start");
  }

  async stop(): Promise<void> {
    await this.#ask("stop");
  }

  /** Kills the daemon as a crash would. */
  async kill(): Promise<void> {
    await this.#ask("kill");
  }

  /** Runs toolctl as a person would, and returns what it prints. */
  async toolctl(...args: string[]): Promise<string> {
    const { stdout } = await run(join(this.paths.bin, "toolctl"), args, {
      env: this.environment,
      cwd: this.paths.work,
      timeout: 30_000,
    });
    return stdout;
  }

  /** Runs a command line as a person would in a terminal, and returns what it prints. */
  async inShell(command: string): Promise<string> {
    const path = `${this.paths.bin}:${process.env["PATH"] ?? ""}`;
    const { stdout } = await run("sh", ["-c", command], {
      env: { ...this.environment, PATH: path },
      cwd: this.paths.work,
      timeout: 30_000,
    });
    return stdout;
  }

  get environment(): Record<string, string> {
    return { PATH: process.env["PATH"] ?? "", ...this.paths.environment, NO_COLOR: "1" };
  }

  /** Stops everything, and fails if a process or folder is left. */
  async remove(): Promise<void> {
    const ended = once(this.#harness, "close");
    this.#harness.stdin.end();
    const [status] = await ended;
    assert.equal(status, 0, "processes or folders were left, see the output");
  }

  async #ask<T>(request: unknown): Promise<T> {
    this.#harness.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    assert.ok(!done, `${HARNESS} ended`);
    const answer = JSON.parse(value) as T & { error?: string };
    assert.equal(answer.error, undefined);
    return answer;
  }
}
