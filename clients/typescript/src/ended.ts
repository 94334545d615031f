/**
 * Whether a daemon serves a socket again after one has ended there.
 *
 * Nothing connects: a connection would make a service manager start a daemon that a person has stopped.
 */
import { lstatSync, readFileSync, statSync } from "node:fs";

import { NotRunning, StartFailed } from "./errors.js";

/** A daemon that ended is started again at most so often, within so many milliseconds. */
const MAX_STARTS = 3;
const STARTS_WITHIN = 60_000;

/** The daemon whose connection at this socket has just ended. */
export class EndedDaemon {
  /** That of the ended daemon, if it left it or had none of its own. */
  readonly #left: string | undefined;
  /** The process that holds the lock, as long as the ended daemon does. */
  readonly #holder: string | undefined;

  constructor(private readonly socket: string) {
    this.#left = identity(socket);
    this.#holder = lockHolder(socket);
  }

  /** Whether another daemon has followed it. Reads some small files. */
  get isFollowed(): boolean {
    const now = identity(this.socket);
    const holder = lockHolder(this.socket);
    return (now !== undefined && now !== this.#left) || (holder !== undefined && holder !== this.#holder);
  }
}

/** When a client started daemons in place of those that had ended. */
export class Restarts {
  #starts: number[] = [];

  /** Counts one more. Throws `StartFailed` if there were too many. */
  count(): void {
    const now = performance.now();
    this.#starts = this.#starts.filter((start) => now - start <= STARTS_WITHIN);
    if (this.#starts.length >= MAX_STARTS) {
      throw new StartFailed(
        "toold has ended three times within a minute, and is not started again before that is over: " +
          "`toolctl doctor` shows why",
      );
    }
    this.#starts.push(now);
  }
}

export function stopped(): NotRunning {
  return new NotRunning("toold was stopped by a person: `toolctl start`");
}

function identity(socket: string): string | undefined {
  const facts = lstatSync(socket, { bigint: true, throwIfNoEntry: false });
  return facts === undefined ? undefined : `${facts.dev} ${facts.ino} ${facts.ctimeNs}`;
}

/**
 * The process that holds the lock of a daemon, as `/proc/locks` tells it. Lines are such as
 * `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, with the inode after the device. Trying the lock instead would keep it
 * from a daemon that is starting.
 */
function lockHolder(socket: string): string | undefined {
  try {
    const inode = `:${statSync(`${socket}.lock`, { bigint: true }).ino}`;
    for (const line of readFileSync("/proc/locks", "utf8").split("\n")) {
      const words = line.trim().split(/\s+/);
      if (words[1] === "FLOCK" && words[5]?.endsWith(inode)) return words[4];
    }
  } catch {
    // There is no lock, or no such list.
  }
  return undefined;
}
