/** Undoing changes of files: first what would happen, then a confirmation, then how it went. */
import { useEffect, useRef, useState } from "preact/hooks";

import { Badge } from "../../components.tsx";
import { Diff } from "../../formatted.tsx";
import { Text } from "../../text.tsx";
import { groupBy, previewUndo, undo, type FileChange } from "./file-changes.ts";

export interface UndoPlan {
  title: string;
  /** The last one first. */
  changes: readonly FileChange[];
}

interface FilePreview {
  path: string;
  /** How many changes of the file are undone. */
  count: number;
  /** Of the last change; absent while it is loaded. */
  diff?: string;
  conflict?: string;
}

type Progress =
  | { step: "preview" }
  | { step: "running"; done: number }
  | { step: "done"; restored: number; conflicts: readonly { path: string; reason: string }[]; stopped: boolean };

export function UndoDialog({ plan, onClose }: { plan: UndoPlan; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [files, setFiles] = useState<readonly FilePreview[]>(() => filesOf(plan.changes));
  const [progress, setProgress] = useState<Progress>({ step: "preview" });
  const stopped = useRef(false);
  useEffect(() => {
    dialog.current?.showModal();
    // Closing the dialog by Escape stops what is not done yet, too.
    return () => void (stopped.current = true);
  }, []);
  useEffect(() => {
    void (async () => {
      for (const { path } of filesOf(plan.changes)) {
        if (stopped.current) return;
        const shown = await previewUndo(plan.changes.find((change) => change.path === path)!).then(
          (diff) => ({ diff }),
          (error: unknown) => ({ conflict: words(error) }),
        );
        setFiles((files) => files.map((file) => (file.path === path ? { ...file, ...shown } : file)));
      }
    })();
  }, []);

  const run = async () => {
    const conflicts = new Map(
      files.flatMap(({ path, conflict }) => (conflict === undefined ? [] : [[path, conflict]])),
    );
    let restored = 0;
    for (const [at, change] of plan.changes.entries()) {
      if (stopped.current) break;
      setProgress({ step: "running", done: at });
      // Earlier changes of a file cannot be undone when a later one was not.
      if (conflicts.has(change.path)) continue;
      try {
        await undo(change);
        restored += 1;
      } catch (error) {
        conflicts.set(change.path, words(error));
      }
    }
    const list = [...conflicts].map(([path, reason]) => ({ path: path!, reason: reason! }));
    setProgress({ step: "done", restored, conflicts: list, stopped: stopped.current });
  };

  const loading = files.some(({ diff, conflict }) => diff === undefined && conflict === undefined);
  const possible = files.filter(({ conflict }) => conflict === undefined).reduce((sum, { count }) => sum + count, 0);
  return (
    <dialog ref={dialog} class="dialog undo" aria-labelledby="undo-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="undo-title">{plan.title}</h2>
        {progress.step === "preview" && (
          <>
            <Previews files={files} />
            <div class="buttons">
              <button type="submit" autofocus>
                Go back
              </button>
              <button type="button" class="danger" disabled={loading || possible === 0} onClick={() => void run()}>
                {loading ? "Loading…" : `Undo ${changesWord(possible)}`}
              </button>
            </div>
          </>
        )}
        {progress.step === "running" && (
          <>
            <p role="status">
              {progress.done} of {changesWord(plan.changes.length)}
            </p>
            <progress aria-label="Changes undone" max={plan.changes.length} value={progress.done} />
            <div class="buttons">
              <button type="button" onClick={() => (stopped.current = true)}>
                Stop
              </button>
            </div>
          </>
        )}
        {progress.step === "done" && (
          <>
            <p role="status">
              {changesWord(progress.restored)} undone{progress.stopped && ", then stopped"}.
            </p>
            {progress.conflicts.length > 0 && (
              <ul class="conflicts">
                {progress.conflicts.map(({ path, reason }) => (
                  <li key={path}>
                    <Badge tone="bad">not undone</Badge> <Text value={path} />: <Text value={reason} />
                  </li>
                ))}
              </ul>
            )}
            <div class="buttons">
              <button type="submit" autofocus>
                Close
              </button>
            </div>
          </>
        )}
      </form>
    </dialog>
  );
}

function Previews({ files }: { files: readonly FilePreview[] }) {
  return (
    <div class="stack">
      <p class="dim">This is what would change now.</p>
      {files.map(({ path, count, diff, conflict }) => (
        <section key={path} class="stack" aria-label={path}>
          {conflict !== undefined && (
            <p class="problem">
              <Badge tone="bad">conflict</Badge> <Text value={path} />: <Text value={conflict} />
            </p>
          )}
          {conflict === undefined && count > 1 && (
            <p class="dim">{count} changes of this file are undone, one after another. This is the last one:</p>
          )}
          {diff === "" && <p class="dim">The text does not change.</p>}
          {diff && <Diff value={diff} />}
        </section>
      ))}
    </div>
  );
}

function filesOf(changes: readonly FileChange[]): FilePreview[] {
  return [...groupBy(changes, ({ path }) => path)].map(([path, changes]) => ({ path, count: changes.length }));
}

function changesWord(count: number): string {
  return `${count} ${count === 1 ? "change" : "changes"}`;
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
