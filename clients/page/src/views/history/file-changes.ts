/** The files that tools changed, and undoing that: one change after another, the last one of each file first. */
import { useEffect, useState } from "preact/hooks";
import { UnknownId, type FilesHistoryResult, type FilesUndoResult } from "toold/browser";

import { request, subscribe } from "../../daemon.ts";
import { report } from "../../toasts.tsx";

/** Calls that end within this time are one reason to read the changes again, in milliseconds. */
const GATHER = 1000;

export type FileChange = FilesHistoryResult["changes"][number];
/** A call that also changed something which is not recorded. */
export type UnrecordedCall = NonNullable<FilesHistoryResult["unrecorded"]>[number];

interface FileChanges {
  /** The oldest first. */
  changes: readonly FileChange[];
  /** How many older ones are left out, because an answer has no room for them. */
  older: number;
  unrecorded: readonly UnrecordedCall[];
  reload: () => void;
}

/** The changes of a session, or of all. Read again when calls have ended. */
export function useFileChanges(session_id?: string): FileChanges {
  const [{ changes, older = 0, unrecorded = [] }, setAnswer] = useState<FilesHistoryResult>({ changes: [] });
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((version) => version + 1);
  useEffect(() => {
    // The subscription below begins once the page is connected, and reads them first.
    if (version === 0) return;
    let current = true;
    request("files.history", { all: true, session_id }).then((answer) => current && setAnswer(answer), report);
    return () => void (current = false);
  }, [version, session_id]);
  useEffect(() => {
    let timer: number | undefined;
    const later = () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        reload();
      }, GATHER);
    };
    const end = subscribe("events.subscribe", { kinds: ["call.finished"] }, later, reload);
    return () => {
      clearTimeout(timer);
      end();
    };
  }, []);
  return { changes, older, unrecorded, reload };
}

/** Names the changes that are undone together: those of one call, but for those that others may have made too. */
export function recordOf({ session_id, call_id, shared_with }: FileChange): string {
  return JSON.stringify([session_id, call_id, shared_with]);
}

/** The items with the same key, in their order. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Why a change cannot be undone. */
export class UndoConflict extends Error {}

/** Previews the undo of a change with all others of its record, as a unified diff with names below the folder. */
export function previewUndo(change: FileChange, folder?: string): Promise<FilesUndoResult> {
  return undo(change, folder, true);
}

export async function undo(change: FileChange, folder?: string, dry_run = false): Promise<FilesUndoResult> {
  // The daemon undoes the last change of a file, so this must be the one that the person has chosen.
  // Only a path that is text can be asked for.
  const below = change.path.includes("\uFFFD") ? undefined : change.path;
  const { changes } = await request("files.history", { all: true, below });
  const last = changes.findLast(({ path, undone }) => path === change.path && !undone);
  if (last === undefined) throw new UndoConflict("it is undone already");
  if (last.call_id !== change.call_id || last.session_id !== change.session_id) {
    throw new UndoConflict(`${last.tool} changed it later, in ${inSession(last, change)}: undo that first`);
  }
  const { path, session_id } = change;
  try {
    return await request("files.undo", { path, session_id, folder, dry_run });
  } catch (error) {
    // The session has ended; then only a search among the changes of all sessions finds the change.
    if (!(error instanceof UnknownId)) throw error;
    return await request("files.undo", { path, all: true, folder, dry_run });
  }
}

function inSession(other: FileChange, change: FileChange): string {
  return other.session_id === change.session_id ? "this session" : `the session ${other.session_id}`;
}

/** The diff of one file in the other direction. */
export function invertDiff(diff: string): string {
  const result: string[] = [];
  const removed: string[] = [];
  const added: string[] = [];
  let last = added;
  const flush = () => {
    result.push(...removed.splice(0), ...added.splice(0));
  };
  let inHunk = false;
  for (const line of diff.split("\n")) {
    const hunk = /^@@ -(\S+) \+(\S+) @@(.*)$/.exec(line);
    if (hunk) {
      flush();
      inHunk = true;
      result.push(`@@ -${hunk[2]} +${hunk[1]} @@${hunk[3]}`);
    } else if (!inHunk && line.startsWith("--- ")) {
      added.push(`+++ ${line.slice(4).replace(/^a\//, "b/")}`);
    } else if (!inHunk && line.startsWith("+++ ")) {
      removed.push(`--- ${line.slice(4).replace(/^b\//, "a/")}`);
    } else if (inHunk && /^[+-]/.test(line)) {
      last = line.startsWith("+") ? removed : added;
      last.push(`${last === removed ? "-" : "+"}${line.slice(1)}`);
    } else if (line.startsWith("\\") && removed.length + added.length > 0) {
      // It says that the line before it has no line feed.
      last.push(line);
    } else {
      flush();
      result.push(line);
    }
  }
  flush();
  return result.join("\n");
}
