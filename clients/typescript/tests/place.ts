/** Daemons for tests: each in folders of its own, stopped and looked after at the end. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, test as nodeTest, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { connect, NotRunning, type Client, type ClientOptions } from "toold";

const REPOSITORY = repository(import.meta.dirname);
/** The folder of the package. */
export const PACKAGE = join(REPOSITORY, "clients/typescript");
export const TOOLD = process.env["TOOLD"] ?? join(REPOSITORY, "target/debug/toold");
/** No wait in any test is longer, in milliseconds; what takes this long does not come. */
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

/** Asks again and again until there is an answer. For what no event tells; all else waits for its event. */
export async function until(what: string, ask: () => boolean): Promise<void> {
  const start = performance.now();
  while (!ask()) {
    assert.ok(performance.now() - start < PATIENCE, `waited ${PATIENCE} ms in vain: ${what}`);
    await pause(5);
  }
}

/** Folders for a daemon, and this process's environment pointing to them. */
export class Place {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "toold-ts-")));
  readonly work = join(this.root, "work");
  readonly plugins = join(this.root, "config/toold/plugins");
  readonly socket = join(this.root, "run/toold.sock");
  readonly environment: Record<string, string> = {
    PATH: process.env["PATH"] ?? "",
    HOME: join(this.root, "home"),
    XDG_CONFIG_HOME: join(this.root, "config"),
    XDG_STATE_HOME: join(this.root, "state"),
    TOOLD_SOCKET: this.socket,
    LC_ALL: "C.UTF-8",
  };
  readonly #outside = { ...process.env };
  readonly #cwd = process.cwd();
  readonly #clients: { close(): Promise<void> }[] = [];

  constructor() {
    for (const folder of [this.plugins, this.work, join(this.root, "run"), join(this.root, "home")]) {
      mkdirSync(folder, { recursive: true });
    }
    writeFileSync(join(this.plugins, "tools.lua"), PLUGIN);
    for (const name of Object.keys(process.env)) {
      if (/^(XDG|TOOLD)_/.test(name)) delete process.env[name];
    }
    Object.assign(process.env, this.environment);
    process.chdir(this.work);
  }

  /** A client that is closed at the end, with a session in the work folder unless there shall be none. */
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

  /** The processes whose environment names this place: its daemons, and what they started. */
  processes(): number[] {
    return readdirSync("/proc").flatMap((name) => {
      const pid = Number(name);
      return Number.isInteger(pid) && pid !== process.pid && this.#lives(pid) ? [pid] : [];
    });
  }

  #lives(pid: number): boolean {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`TOOLD_SOCKET=${this.socket}`);
    } catch {
      return false; // It has ended, or is somebody else's.
    }
  }

  /** Stops the daemon that serves here, if there is one, and waits until nothing is left of it. */
  async stopDaemon(): Promise<void> {
    // Looked up once: reading the environment of all processes again and again is what would take long.
    const pids = this.processes();
    if (existsSync(this.socket)) {
      try {
        const client = await connect({ socket: this.socket, start: false });
        await client.request("daemon.shutdown", { drain_ms: 0 });
        await client.close();
      } catch (error) {
        if (!(error instanceof NotRunning)) throw error;
      }
    }
    for (const pid of pids) await until(`process ${pid} ends`, () => !this.#lives(pid));
    assert.deepEqual(this.processes(), [], "processes are left");
    assert.ok(!existsSync(this.socket), "the socket is left");
  }

  async closeClients(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
  }

  async leave(): Promise<void> {
    try {
      await this.closeClients();
      await this.stopDaemon();
    } finally {
      process.chdir(this.#cwd);
      for (const name of Object.keys(process.env)) delete process.env[name];
      Object.assign(process.env, this.#outside);
      rmSync(this.root, { recursive: true, force: true });
    }
  }
}

/** A test that fails in time when something does not come, and is tidied up then too. */
export function test(name: string, body: (t: TestContext) => Promise<void> | void): void {
  void nodeTest(name, { timeout: PATIENCE }, body);
}

/** A place where no daemon runs yet. */
export function place(t: TestContext): Place {
  const place = new Place();
  t.after(() => place.leave());
  return place;
}

/** A place for all tests of a file, which say nothing of what they find there: to start a daemon takes its time. */
export function shared(): Place {
  const place = new Place();
  afterEach(() => place.closeClients());
  after(() => place.leave());
  return place;
}

/** Something to wait for, and its trigger. */
export function signal<T = void>(): { promise: Promise<T>; fire: (value: T) => void } {
  let fire!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (fire = resolve));
  return { promise, fire };
}
