/** The files that a session changed, with the diff of the last change of each. */
import { useEffect, useMemo, useState } from "preact/hooks";

import { Badge } from "../../components.tsx";
import { Diff } from "../../formatted.tsx";
import { Text } from "../../text.tsx";
import { groupBy, invertDiff, previewUndo, type FileChange, type UnrecordedCall } from "./file-changes.ts";
import type { UndoPlan } from "./undo-dialog.tsx";

interface ChangesProps {
  changes: readonly FileChange[];
  /** Of the session, if it is known. */
  folder: string | undefined;
  onUndo: (plan: UndoPlan) => void;
}

export function ChangedFiles({ changes, older, folder, onUndo }: ChangesProps & { older: number }) {
  const files = useMemo(() => [...groupBy(changes, ({ path }) => path)], [changes]);
  const undoable = changes.filter(({ undone }) => !undone).reverse();
  if (files.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="files-title">
      <div class="row">
        <h2 id="files-title">Changed files</h2>
        <span class="grow" />
        <button
          type="button"
          class="danger"
          disabled={undoable.length === 0}
          onClick={() => onUndo({ title: "Undo all changes of this session", changes: undoable })}
        >
          Undo all changes
        </button>
      </div>
      {older > 0 && <p class="dim">{older} older changes are not listed, and not undone with these.</p>}
      <ul class="changed-files">
        {files.map(([path, changes]) => (
          <ChangedFile key={path} name={within(folder, path)} folder={folder} changes={changes} onUndo={onUndo} />
        ))}
      </ul>
    </section>
  );
}

interface ChangedFileProps extends ChangesProps {
  name: string;
}

/** A file that a session changed. Its name opens the diff of its last change. */
function ChangedFile({ name, folder, changes, onUndo }: ChangedFileProps) {
  const last = changes.findLast(({ undone }) => !undone);
  const [shown, setShown] = useState(false);
  return (
    <li>
      <div class="row">
        {last ? (
          <button type="button" class="plain link" aria-expanded={shown} onClick={() => setShown(!shown)}>
            <Text class="mono" value={name} />
          </button>
        ) : (
          <Text class="mono" value={name} />
        )}
        <ChangeState change={changes.at(-1)!} />
        {changes.length > 1 && <span class="dim small">{changes.length} changes</span>}
        <span class="grow" />
        {last && (
          <button
            type="button"
            aria-label={`Undo the last change of ${name}`}
            onClick={() => onUndo({ title: "Undo the last change of a file", changes: [last] })}
          >
            Undo
          </button>
        )}
      </div>
      {shown && last && <ChangeDiff key={`${last.call_id} ${changes.length}`} change={last} folder={folder} />}
    </li>
  );
}

function ChangeDiff({ change, folder }: { change: FileChange; folder: string | undefined }) {
  const [diff, setDiff] = useState<{ text?: string; problem?: string }>({});
  useEffect(() => {
    let current = true;
    previewUndo(change, folder).then(
      ({ diff }) => current && setDiff({ text: invertDiff(diff ?? "") }),
      (error: unknown) => current && setDiff({ problem: error instanceof Error ? error.message : String(error) }),
    );
    return () => void (current = false);
  }, []);
  if (diff.problem !== undefined) {
    return (
      <p class="dim">
        No diff to show: <Text value={diff.problem} />
      </p>
    );
  }
  if (diff.text === undefined) return <p class="loading">Loading…</p>;
  return <Diff value={diff.text} />;
}

/** Changes of the session that are not recorded, and that undo leaves as they are. */
export function UnrecordedChanges({ calls }: { calls: readonly UnrecordedCall[] }) {
  if (calls.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="unrecorded-title">
      <h2 id="unrecorded-title">Also changed, and not undone</h2>
      <ul>
        {calls.flatMap(({ call_id, tool, command, notes = [] }) =>
          notes.map((note) => (
            <li key={`${call_id} ${note}`}>
              <Text class="mono" value={command ?? tool} max={60} />: <Text value={note} />
            </li>
          )),
        )}
      </ul>
    </section>
  );
}

export function ChangeState({ change: { undone, created, removed } }: { change: FileChange }) {
  if (undone) return <Badge>undone</Badge>;
  if (created) return <Badge tone="good">created</Badge>;
  if (removed) return <Badge tone="bad">removed</Badge>;
  return <Badge tone="info">changed</Badge>;
}

/** The files that one call changed. */
export function CallChanges({ changes, folder, onUndo }: ChangesProps) {
  const undoable = changes.filter(({ undone }) => !undone).reverse();
  return (
    <div class="entry-changes">
      <ul>
        {changes.map((change, at) => (
          <li key={at}>
            <ChangeState change={change} /> <Text class="mono" value={within(folder, change.path)} />
          </li>
        ))}
      </ul>
      {undoable.length > 0 && (
        <button type="button" onClick={() => onUndo({ title: "Undo the changes of this call", changes: undoable })}>
          Undo this call
        </button>
      )}
    </div>
  );
}

/** A path as seen from the session's folder. */
export function within(folder: string | undefined, path: string): string {
  return folder !== undefined && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}
