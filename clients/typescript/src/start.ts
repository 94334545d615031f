/**
 * Connects to the daemon, and starts one when none is running.
 *
 * Any number of clients may do this at once: a lock decides which daemon serves, and the others exit with status 0.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { Connection, type Log } from "./connection.js";
import { Disconnected, NotRunning, RpcError, StartFailed, Unreachable } from "./errors.js";
import { findProgram } from "./paths.js";
import { openSocket } from "./stream.js";

/** Milliseconds between two attempts to connect to a socket that nobody listens at yet. */
const RETRY_EVERY = 10;
/** The longest pause between two attempts, in milliseconds. */
const RETRY_AT_LEAST_EVERY = 200;
/** Milliseconds until a second daemon is started, when the first one met another that was stopping, and exited. */
const START_AGAIN_AFTER = 300;
/** How much of the daemon's output an error shows, in bytes. */
const MAX_WORDS = 4096;

export interface StartOptions {
  /** The program; by default, see `findProgram`. */
  program: string | undefined;
  /** How long to wait for its first answer, in milliseconds. */
  patience: number;
  /** Called before one is started, unless it throws. */
  beforeStart: () => void;
}

/** How long a running daemon may take to answer first, in milliseconds. */
export const PATIENCE = 8000;

/**
 * Connects to a running daemon that answers, or to the one that replaces it meanwhile. Throws `NotRunning` when nobody
 * listens.
 */
export async function reach(socket: string, log: Log): Promise<Connection> {
  const deadline = performance.now() + PATIENCE;
  let wait = RETRY_EVERY;
  for (let before: Absent | undefined; ; ) {
    const met = await answering(socket, deadline, log, before);
    if (met instanceof Connection) return met;
    if (met === "nobody" && before === undefined) throw new NotRunning(`no daemon is running at ${socket}`);
    if (performance.now() >= deadline) throw new Unreachable(noAnswer(socket, met, PATIENCE));
    before = met;
    await pause(wait);
    wait = Math.min(2 * wait, RETRY_AT_LEAST_EVERY);
  }
}

/**
 * Why there is no connection: `nobody` listens; the daemon is about to `stop` or hands its socket over; it is `busy`
 * with other clients; or it is `silent` until the time is up.
 */
type Absent = "nobody" | "stop" | "busy" | "silent";

function noAnswer(socket: string, met: Absent, patience: number): string {
  const how = {
    nobody: "does not answer",
    silent: "listens and does not answer",
    stop: "closes each connection before it answers; given up",
    busy: "accepts no connections; given up",
  }[met];
  return `the daemon at ${socket} ${how} after ${patience / 1000} s`;
}

/** Connects, and starts a daemon when none is running. */
export async function connectOrStart(socket: string, options: StartOptions, log: Log): Promise<Connection> {
  const deadline = performance.now() + options.patience;
  let started: Started | undefined;
  let wait = RETRY_EVERY;
  for (let before: Absent | undefined; ; ) {
    const met = await answering(socket, deadline, log, before);
    if (met instanceof Connection) return met;
    before = met;
    if (performance.now() >= deadline) {
      throw new StartFailed(`${noAnswer(socket, met, options.patience)}${started?.words() ?? ""}`);
    }
    if (met !== "nobody") {
      // A program listens, or did a moment ago, so no daemon is started.
      wait = Math.min(2 * wait, RETRY_AT_LEAST_EVERY);
    } else if (started === undefined) {
      options.beforeStart();
      started = await Started.spawn(socket, options.program);
    } else if (started.status !== undefined) {
      if (started.status !== "exit status 0") {
        throw new StartFailed(`${started.program} did not start: ${started.status}${started.words()}`);
      }
      if (performance.now() - started.since >= START_AGAIN_AFTER) {
        started = await Started.spawn(socket, options.program);
      }
    }
    await pause(wait);
  }
}

/** A connection whose other end answers, else the obstacle; `before` if the time is up during the attempt. */
async function answering(
  socket: string,
  deadline: number,
  log: Log,
  before: Absent = "silent",
): Promise<Connection | Absent> {
  let connection: Connection;
  try {
    connection = await openSocket(socket, log);
  } catch (error) {
    if (error instanceof NotRunning) return "nobody";
    // The queue of the socket is full.
    const cause = error instanceof Unreachable ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
    if (cause?.code === "EAGAIN") return "busy";
    throw error;
  }
  const signal = AbortSignal.timeout(Math.max(Math.ceil(deadline - performance.now()), 1));
  try {
    await connection.request("daemon.ping", {}, signal);
    return connection;
  } catch (error) {
    // An error is an answer too.
    if (error instanceof RpcError) return connection;
    await connection.close();
    if (connection.foreign !== undefined) {
      throw new Unreachable(
        `${socket} is not the socket of a daemon: the program that listens there did not send a message ` +
          `(${connection.foreign}); stop that program, or set TOOLD_SOCKET to another path`,
      );
    }
    if (error instanceof Disconnected) return "stop";
    if (signal.aborted) return before;
    throw error;
  }
}

/** A daemon that this process has started, and that outlives the process. */
class Started {
  readonly since = performance.now();
  /** How it ended; `undefined` while it runs. */
  status: string | undefined;

  static async spawn(socket: string, program: string = findProgram()): Promise<Started> {
    const path = `${socket}.log`;
    let log: number;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
      log = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    } catch (error) {
      throw new StartFailed(`can't write the daemon's log ${path}: ${(error as Error).message}`, { cause: error });
    }
    try {
      const start = fstatSync(log).size;
      const child = spawn(program, ["serve", "--detached"], {
        cwd: "/",
        env: { ...process.env, TOOLD_SOCKET: socket },
        stdio: ["ignore", log, log],
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", (error) => {
          reject(new StartFailed(`can't start ${program}: ${error.message}`, { cause: error }));
        });
      });
      return new Started(program, child, path, start);
    } finally {
      closeSync(log);
    }
  }

  private constructor(
    readonly program: string,
    child: ChildProcess,
    private readonly log: string,
    private readonly logStart: number,
  ) {
    child.once("exit", (code, signal) => (this.status = signal === null ? `exit status ${code}` : signal));
    // The daemon outlives this process, which need not wait for it.
    child.unref();
  }

  /** The last lines that it wrote to the log, to append to an error. */
  words(): string {
    try {
      const log = openSync(this.log, "r");
      try {
        const start = Math.max(this.logStart, fstatSync(log).size - MAX_WORDS);
        const buffer = Buffer.alloc(MAX_WORDS);
        const words = buffer.toString("utf8", 0, readSync(log, buffer, 0, MAX_WORDS, start)).trim();
        return words === "" ? "" : `; it said:\n${words}`;
      } finally {
        closeSync(log);
      }
    } catch {
      return ""; // The error that gets these words matters more than they do.
    }
  }
}
