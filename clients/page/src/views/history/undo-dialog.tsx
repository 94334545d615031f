/** Undoing changes of files: first what would happen, then a confirmation, then how it went. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { FilesUndoResult } from "toold/browser";

import { Badge } from "../../components.tsx";
import { Diff } from "../../formatted.tsx";
import { Text } from "../../text.tsx";
import { groupBy, previewUndo, recordOf, undo, type FileChange } from "./file-changes.ts";

export interface UndoPlan {
  title: string;
  /** The last one first. */
  changes: readonly FileChange[];
}

/** The changes of the plan that are undone together. */
interface UndoStep {
  /** One of them. */
  change: FileChange;
  paths: readonly string[];
  /** How many changes of one of its files are undone. */
  count: number;
  /** It can be previewed only when a later change of one of its files is undone. */
  isLater: boolean;
  /** Absent while it is loaded, and if `isLater`. */
  plan?: FilesUndoResult;
  conflict?: string;
}

type Progress =
  | { step: "preview" }
  | { step: "running"; done: number }
  | {
      step: "done";
      restored: number;
      conflicts: readonly { path: string; reason: string }[];
      notes: readonly string[];
      stopped: boolean;
    };

interface UndoDialogProps {
  plan: UndoPlan;
  /** That of the session, if it is known. */
  folder?: string;
  onClose: () => void;
}

export function UndoDialog({ plan, folder, onClose }: UndoDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [steps, setSteps] = useState<readonly UndoStep[]>(() => stepsOf(plan.changes));
  const [progress, setProgress] = useState<Progress>({ step: "preview" });
  const stopped = useRef(false);
  useEffect(() => {
    dialog.current?.showModal();
    // Closing the dialog by Escape stops what is not done yet, too.
    return () => void (stopped.current = true);
  }, []);
  useEffect(() => {
    void (async () => {
      for (const { change, isLater } of stepsOf(plan.changes)) {
        if (stopped.current) return;
        if (isLater) continue;
        const shown = await previewUndo(change, folder).then(
          (plan) => ({ plan }),
          (error: unknown) => ({ conflict: words(error) }),
        );
        setSteps((steps) => steps.map((step) => (step.change === change ? { ...step, ...shown } : step)));
      }
    })();
  }, []);

  const run = async () => {
    const conflicts = conflictsOf(steps);
    const notes: string[] = [];
    let restored = 0;
    for (const [at, { change, paths }] of steps.entries()) {
      if (stopped.current) break;
      setProgress({ step: "running", done: at });
      // Earlier changes of a file cannot be undone when a later one was not.
      if (!paths.some((path) => conflicts.has(path))) {
        try {
          const undone = await undo(change, folder);
          restored += undone.paths.length;
          notes.push(...(undone.notes ?? []));
          continue;
        } catch (error) {
          conflicts.set(paths[0]!, words(error));
        }
      }
      blockAll(paths, conflicts);
    }
    const list = [...conflicts].map(([path, reason]) => ({ path, reason }));
    setProgress({ step: "done", restored, conflicts: list, notes: [...new Set(notes)], stopped: stopped.current });
  };

  const loading = steps.some(({ plan, conflict, isLater }) => !isLater && plan === undefined && conflict === undefined);
  const blocked = conflictsOf(steps);
  const possible = steps
    .filter(({ paths }) => !paths.some((path) => blocked.has(path)))
    .reduce((sum, { plan, paths }) => sum + (plan ?? { paths }).paths.length, 0);
  return (
    <dialog ref={dialog} class="dialog undo" aria-labelledby="undo-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="undo-title">{plan.title}</h2>
        {progress.step === "preview" && (
          <>
            <Previews steps={steps} />
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
              {progress.done} of {steps.length} {steps.length === 1 ? "call" : "calls"}
            </p>
            <progress aria-label="Calls undone" max={steps.length} value={progress.done} />
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
            <Notes notes={progress.notes} />
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

function Previews({ steps }: { steps: readonly UndoStep[] }) {
  return (
    <div class="stack">
      <p class="dim">This is what would change now.</p>
      {steps.map(({ change, paths, count, isLater, plan, conflict }) => {
        if (isLater) return null;
        const more = plan ? plan.paths.length - paths.length : 0;
        return (
          <section key={recordOf(change)} class="stack" aria-label={paths.join(", ")}>
            {conflict !== undefined && (
              <p class="problem">
                <Badge tone="bad">conflict</Badge> <Text value={paths.join(", ")} />: <Text value={conflict} />
              </p>
            )}
            {conflict === undefined && count > 1 && (
              <p class="dim">{count} changes of this file are undone, one after another. This is the last one:</p>
            )}
            {more > 0 && (
              <p>
                The same call changed {more} more {more === 1 ? "file" : "files"}: a call is undone as a whole.
              </p>
            )}
            {plan?.diff === "" && <p class="dim">The text does not change.</p>}
            {plan?.diff && <Diff value={plan.diff} />}
            <Notes notes={plan?.notes ?? []} />
          </section>
        );
      })}
    </div>
  );
}

/** What undo leaves as it is. */
function Notes({ notes }: { notes: readonly string[] }) {
  return (
    <>
      {notes.map((note) => (
        <p key={note}>
          <Badge>stays</Badge> <Text value={note} />
        </p>
      ))}
    </>
  );
}

function stepsOf(changes: readonly FileChange[]): UndoStep[] {
  const counts = groupBy(changes, ({ path }) => path);
  const seen = new Set<string>();
  return [...groupBy(changes, recordOf).values()].map((together) => {
    const paths = together.map(({ path }) => path);
    const isLater = paths.some((path) => seen.has(path));
    paths.forEach((path) => seen.add(path));
    const count = Math.max(...paths.map((path) => counts.get(path)!.length));
    return { change: together[0]!, paths, count, isLater };
  });
}

/** Why files are not undone, by their paths. */
function conflictsOf(steps: readonly UndoStep[]): Map<string, string> {
  const conflicts = new Map<string, string>();
  for (const { paths, conflict } of steps) {
    if (conflict !== undefined) conflicts.set(paths[0]!, conflict);
    blockAll(paths, conflicts);
  }
  return conflicts;
}

/** A call is not undone if one of its files is not. */
function blockAll(paths: readonly string[], conflicts: Map<string, string>): void {
  const blocked = paths.find((path) => conflicts.has(path));
  if (blocked === undefined) return;
  for (const path of paths) if (!conflicts.has(path)) conflicts.set(path, `the same call changed ${blocked}`);
}

function changesWord(count: number): string {
  return `${count} ${count === 1 ? "change" : "changes"}`;
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
