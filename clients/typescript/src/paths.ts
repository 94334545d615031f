/** The paths of the daemon's socket, log and program. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

import { NotRunning, StartFailed } from "./errors.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** The parts of the system that tell where the socket is. */
export interface System {
  readonly uid: number;
  /** The text of a file, if it can be read. */
  read(path: string): string | undefined;
  isFolder(path: string): boolean;
}

const THIS_SYSTEM: System = {
  uid: process.geteuid?.() ?? -1,
  read(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
  isFolder: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false,
};

/**
 * The socket of the user's daemon, whether or not it is running.
 *
 * `$TOOLD_SOCKET`; else where the daemon of the state folder runs, as it has recorded there; else the first of
 * `$XDG_RUNTIME_DIR/toold/toold.sock`, `/run/user/UID/toold/toold.sock` if there is such a folder, and
 * `$XDG_STATE_HOME/toold/toold.sock` that is not the place of a running daemon with another database. An unset
 * `$XDG_STATE_HOME` is `~/.local/state`. Empty and relative values count as unset.
 *
 * Throws `NotRunning` without a home folder, or when daemons with other databases run at all these places.
 */
export function socketPath(environment: Environment = process.env, system: System = THIS_SYSTEM): string {
  const socket = absoluteIn(environment, "TOOLD_SOCKET");
  if (socket !== undefined) return socket;
  const state = stateFolder(environment);
  const recorded = state === undefined ? undefined : running(join(state, "daemon.json"), system);
  if (recorded !== undefined) return recorded.socket;
  const runtime = absoluteIn(environment, "XDG_RUNTIME_DIR");
  const runUser = `/run/user/${system.uid}`;
  const folders = [
    runtime && join(runtime, "toold"),
    system.isFolder(runUser) ? join(runUser, "toold") : undefined,
    state,
  ];
  for (const folder of folders) {
    if (folder === undefined) continue;
    const record = running(join(folder, "toold.sock.json"), system);
    if (state === undefined || record === undefined || record.database === join(state, "toold.db")) {
      return join(folder, "toold.sock");
    }
  }
  throw new NotRunning(
    state === undefined
      ? "cannot tell where the socket is: set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME"
      : `daemons with other databases than ${join(state, "toold.db")} run at all usual places: set TOOLD_SOCKET`,
  );
}

/** The log of the daemon, below the state folder. Undefined without a home folder. */
export function logFile(environment: Environment = process.env): string | undefined {
  const state = stateFolder(environment);
  return state === undefined ? undefined : join(state, "log/toold.log");
}

interface DaemonRecord {
  socket: string;
  database: string;
  pid: number;
  started?: number;
  boot_id?: string;
}

/** The running daemon that a record describes; undefined for a record that a killed daemon left. */
function running(path: string, system: System): DaemonRecord | undefined {
  let record: DaemonRecord;
  try {
    record = JSON.parse(system.read(path) ?? "") as DaemonRecord;
    if (typeof record.socket !== "string" || typeof record.database !== "string") return undefined;
  } catch {
    return undefined;
  }
  if (record.boot_id !== system.read("/proc/sys/kernel/random/boot_id")?.trim()) return undefined;
  if (record.started === undefined) return record;
  // The 22nd field; the second is the name in parentheses, which may hold anything.
  const stat = system.read(`/proc/${record.pid}/stat`) ?? "";
  const fields = stat.slice(stat.lastIndexOf(")") + 1).trim().split(/\s+/);
  return fields[19] === String(record.started) ? record : undefined;
}

function stateFolder(environment: Environment): string | undefined {
  const home = absoluteIn(environment, "HOME");
  const state = absoluteIn(environment, "XDG_STATE_HOME") ?? (home && join(home, ".local/state"));
  return state && join(state, "toold");
}

/** Empty and relative values count as unset. */
function absoluteIn(environment: Environment, name: string): string | undefined {
  const value = environment[name] ?? "";
  return isAbsolute(value) ? value : undefined;
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
