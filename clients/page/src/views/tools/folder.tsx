/** The folder of the page's session, in which tools work. */
import { useEffect, useState } from "preact/hooks";

import { openSession, request, session } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report } from "../../toasts.tsx";

export function Folder() {
  const [editing, setEditing] = useState(false);
  const open = session.value;
  if (open && !editing) {
    return (
      <p class="row tool-folder">
        <span class="dim">Folder</span> <Text class="mono" value={open.cwd} />
        <button type="button" class="plain" onClick={() => setEditing(true)}>
          Change
        </button>
      </p>
    );
  }
  return <FolderForm onDone={() => setEditing(false)} />;
}

function FolderForm({ onDone }: { onDone: () => void }) {
  const [cwd, setCwd] = useState(session.peek()?.cwd ?? "");
  const [problem, setProblem] = useState<string>();
  const [known, setKnown] = useState<readonly string[]>([]);
  useEffect(() => void knownFolders().then(setKnown, report), []);
  const open = async (event: Event) => {
    event.preventDefault();
    try {
      await openSession(cwd.trim());
      onDone();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="tool-folder stack" onSubmit={(event) => void open(event)}>
      <label>
        Folder
        <span class="small dim">An absolute path, in which tools work and which relative paths begin at.</span>
        <span class="row">
          <input
            class="mono"
            name="cwd"
            required
            list="known-folders"
            placeholder="/home/you/project"
            autocapitalize="off"
            spellcheck={false}
            aria-invalid={problem !== undefined}
            value={cwd}
            onInput={({ currentTarget }) => setCwd(currentTarget.value)}
          />
          <button type="submit" class="primary">
            Open
          </button>
          {session.value && (
            <button type="button" onClick={onDone}>
              Keep
            </button>
          )}
        </span>
      </label>
      <datalist id="known-folders">
        {known.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {problem !== undefined && (
        <p class="problem" role="alert">
          <Text value={problem} />
        </p>
      )}
    </form>
  );
}

/** Folders of other sessions, to choose from. */
async function knownFolders(): Promise<string[]> {
  const { sessions } = await request("session.list", {});
  return [...new Set(sessions.map(({ cwd }) => cwd))].sort();
}
