/** The slash commands of plugins: run with the text after the command. */
import { useEffect, useState } from "preact/hooks";
import type { Command, ToolResult } from "toold/browser";

import { request, session, subscribe } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report } from "../../toasts.tsx";

/** A command may run as long as a call. */
const WITHOUT_LIMIT = { timeout: Infinity };

export function PluginCommands() {
  const [commands, setCommands] = useState<readonly Command[]>([]);
  useEffect(() => {
    const load = () => void request("commands.list", {}).then(({ commands }) => setCommands(commands), report);
    return subscribe("events.subscribe", { kinds: ["plugin.loaded", "plugin.unloaded"] }, load, load);
  }, []);
  if (commands.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="commands-title">
      <h2 id="commands-title">Commands of plugins</h2>
      <ul class="entries" aria-label="Commands of plugins">
        {commands.map((command) => (
          <CommandRow key={command.name} command={command} />
        ))}
      </ul>
    </section>
  );
}

function CommandRow({ command: { name, description, plugin } }: { command: Command }) {
  const [input, setInput] = useState("");
  const [answer, setAnswer] = useState<{ text: string; failed: boolean }>();
  const [running, setRunning] = useState(false);
  const run = async () => {
    setRunning(true);
    try {
      const session_id = session.peek()?.session_id;
      const result = await request("commands.run", { name, input, session_id }, WITHOUT_LIMIT);
      setAnswer({ text: textOf(result) || "done", failed: result.is_error });
    } catch (error) {
      report(error);
    }
    setRunning(false);
  };
  return (
    <li>
      <p>
        <Text class="mono" value={`/${name}`} /> <Text value={description} max={300} />{" "}
        <span class="small dim">
          of <Text value={plugin} max={60} />
        </span>
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <label class="grow">
          <span class="hidden">Input of /{name}</span>
          <input value={input} placeholder="input" onInput={({ currentTarget }) => setInput(currentTarget.value)} />
        </label>
        <button type="submit" disabled={running}>
          Run /{name}
        </button>
      </form>
      {answer && (
        <p role={answer.failed ? "alert" : "status"} class="mono">
          <Text value={answer.text} max={4000} />
        </p>
      )}
    </li>
  );
}

function textOf({ content }: ToolResult): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
