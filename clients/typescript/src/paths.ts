/** The paths of the daemon's socket, log and program. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

import { NotRunning, StartFailed } from "./errors.js";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The socket's path: `$TOOLD_SOCKET`, else below `$XDG_RUNTIME_DIR`, `$XDG_STATE_HOME` or `~/.local/state`.
 *
 * Empty and relative values count as unset. Throws `NotRunning` without a home folder.
 */
export function socketPath(environment: Environment = process.env): string {
  const absolute = (name: string) => absoluteIn(environment, name);
  const socket = absolute("TOOLD_SOCKET");
  if (socket !== undefined) return socket;
  let folder = absolute("XDG_RUNTIME_DIR") ?? absolute("XDG_STATE_HOME");
  if (folder === undefined) {
    const home = absolute("HOME");
    if (home === undefined) {
      throw new NotRunning("cannot tell where the socket is: set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME");
    }
    folder = join(home, ".local/state");
  }
  return join(folder, "toold/toold.sock");
}

/**
 * The log of the daemon that serves a socket, below the state folder. A daemon with another socket than the default one
 * has its own file there. Undefined without a home folder.
 */
export function logFile(socket: string, environment: Environment = process.env): string | undefined {
  const absolute = (name: string) => absoluteIn(environment, name);
  const home = absolute("HOME");
  const state = absolute("XDG_STATE_HOME") ?? (home === undefined ? undefined : join(home, ".local/state"));
  if (state === undefined) return undefined;
  const usual = socketPath({ ...environment, TOOLD_SOCKET: undefined });
  const name = socket === usual ? "toold.log" : `toold-${fnv1a(socket).toString(16).padStart(8, "0")}.log`;
  return join(state, "toold/log", name);
}

/** Empty and relative values count as unset. */
function absoluteIn(environment: Environment, name: string): string | undefined {
  const value = environment[name] ?? "";
  return isAbsolute(value) ? value : undefined;
}

/** The hash of Fowler, Noll and Vo, as the daemon computes it from its socket's path. */
function fnv1a(text: string): number {
  return Buffer.from(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}

/** The `toold` that a client starts: the one beside the running executable, else the first in `PATH`. */
export function findProgram(environment: Environment = process.env): string {
  // A relative entry would run a program from the current folder, which anyone may have put there.
  const folders = (environment["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  for (const folder of [dirname(process.execPath), ...folders]) {
    const program = join(folder, "toold");
    if (isProgram(program)) return program;
  }
  throw new StartFailed(`found no toold beside ${process.execPath} or in PATH; set the option toold to its path`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
