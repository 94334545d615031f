/** Daemons for tests: each in folders of its own, stopped and checked for leftovers at the end. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, test as nodeTest, type TestContext } from "node:test";

import { connect, type Client, type ClientOptions } from "toold";

export const REPOSITORY = repository(import.meta.dirname);
/** The folder of the package. */
export const PACKAGE = join(REPOSITORY, "clients/typescript");
export const TOOLD = process.env["TOOLD"] ?? join(REPOSITORY, "target/debug/toold");
const HARNESS = join(dirname(TOOLD), "toold-test-daemon");
/** In milliseconds. No test waits longer for anything. */
export const PATIENCE = 30_000;

const PLUGIN = `
hygge.register_tool{
  name = "greet", description = "Greets somebody", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {name = {type = "string"}, times = {type = "integer", minimum = 1}},
    required = {"name"}, additionalProperties = false,
  },
  execute = function(ctx, input)
    for i = 1, input.times or 1 do
      ctx.progress{message = "greeting", progress = i, total = input.times or 1}
    end
    ctx.output("written\\n")
    return "hello " .. input.name
  end,
}
hygge.register_tool{
  name = "wait_for_ever", description = "Waits until it is stopped", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "wait_in_line", description = "Waits, and nothing runs beside it",
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "fail", description = "Fails", input_schema = {type = "object"},
  execute = function() error("out of luck") end,
}
`;

function repository(folder: string): string {
  return existsSync(join(folder, "Cargo.toml")) ? folder : repository(dirname(folder));
}

type Paths = Pick<DaemonFolders, "root" | "work" | "plugins" | "bin" | "socket" | "environment">;

/** Folders for a daemon, made and removed by `toold-test-daemon`, and this process's environment pointing to them. */
export class DaemonFolders {
  readonly root: string;
  readonly work: string;
  readonly plugins: string;
  /** Holds a link to `toold`. */
  readonly bin: string;
  readonly socket: string;
  readonly environment: Record<string, string>;
  readonly #harness: Harness;
  readonly #outside = { ...process.env };
  readonly #cwd = process.cwd();
  readonly #clients: { close(): Promise<void> }[] = [];

  static async create(): Promise<DaemonFolders> {
    const harness = new Harness();
    return new DaemonFolders(harness, await harness.ask<Paths>({ plugins: { "tools.lua": PLUGIN } }));
  }

  private constructor(harness: Harness, paths: Paths) {
    this.#harness = harness;
    this.root = paths.root;
    this.work = paths.work;
    this.plugins = paths.plugins;
    this.bin = paths.bin;
    this.socket = paths.socket;
    this.environment = paths.environment;
    for (const name of Object.keys(process.env)) {
      if (/^(XDG|TOOLD)_/.test(name)) delete process.env[name];
    }
    Object.assign(process.env, this.environment);
    process.chdir(this.work);
  }

  /** A client that is closed at the end, with a session in the work folder unless `session` is false. */
  async client(options: ClientOptions & { session?: boolean } = {}): Promise<Client> {
    const { session = true, ...others } = options;
    const fail = (message: string) => assert.fail(`logged: ${message}`);
    const client = await connect({ toold: TOOLD, socket: this.socket, log: fail, ...others });
    this.adopt(client);
    if (session) await client.openSession({ cwd: this.work });
    return client;
  }

  /** Closes something before the daemon is stopped. */
  adopt(client: { close(): Promise<void> }): void {
    this.#clients.push(client);
  }

  configure(toml: string): void {
    writeFileSync(join(this.root, "config/toold/config.toml"), toml);
  }

  /** The daemons of these folders, and the processes that they started. */
  async processes(): Promise<number[]> {
    return (await this.#harness.ask<{ processes: number[] }>("processes")).processes;
  }

  /** Stops the daemon that runs here, if there is one, and checks that nothing is left. */
  async stopDaemon(): Promise<void> {
    await this.#harness.ask("stop");
  }

  /** Kills the daemon that runs here. */
  async killDaemon(): Promise<void> {
    await this.#harness.ask("kill");
  }

  async closeClients(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
  }

  async remove(): Promise<void> {
    try {
      await this.closeClients();
      await this.stopDaemon();
    } finally {
      process.chdir(this.#cwd);
      for (const name of Object.keys(process.env)) delete process.env[name];
      Object.assign(process.env, this.#outside);
      await this.#harness.end();
    }
  }
}

/** A running `toold-test-daemon`: one line of JSON in, one line out. */
class Harness {
  readonly #process = spawn(HARNESS, { stdio: ["pipe", "pipe", "inherit"] });
  readonly #ended = once(this.#process, "close");
  readonly #answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();

  constructor() {
    this.#ref(false);
  }

  async ask<T>(request: unknown): Promise<T> {
    this.#ref(true);
    this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    this.#ref(false);
    assert.ok(!done, `${HARNESS} ended`);
    const answer = JSON.parse(value) as T & { error?: string };
    assert.equal(answer.error, undefined);
    return answer;
  }

  async end(): Promise<void> {
    this.#ref(true);
    this.#process.stdin.end();
    const [status] = await this.#ended;
    assert.equal(status, 0, "processes or folders were left, see the output");
  }

  /** Tests are over when nothing keeps the process alive: the harness does so only while it is asked. */
  #ref(wanted: boolean): void {
    for (const handle of [this.#process, this.#process.stdin, this.#process.stdout] as (ChildProcess | Socket)[]) {
      if (wanted) handle.ref();
      else handle.unref();
    }
  }
}

/** A test with a time limit, which is cleaned up after a failure too. */
export function test(name: string, body: (t: TestContext) => Promise<void> | void): void {
  void nodeTest(name, { timeout: PATIENCE }, body);
}

/** Folders for one test, in which no daemon runs yet. */
export async function ownFolders(t: TestContext): Promise<DaemonFolders> {
  const folders = await DaemonFolders.create();
  t.after(() => folders.remove());
  return folders;
}

/** Folders for all tests of a file, since starting a daemon takes time. The tests must not depend on each other. */
export async function sharedFolders(): Promise<DaemonFolders> {
  const folders = await DaemonFolders.create();
  afterEach(() => folders.closeClients());
  after(() => folders.remove());
  return folders;
}

/** A promise and the function that resolves it. */
export function signal<T = void>(): { promise: Promise<T>; fire: (value: T) => void } {
  let fire!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (fire = resolve));
  return { promise, fire };
}
