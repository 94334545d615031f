/** Actions on sources: buttons for requests, and a refusal with the command that does the same in a terminal. */
import { useState } from "preact/hooks";
import { ERROR_CODES, RpcError } from "toold/browser";

import { Copy } from "../../components.tsx";
import { confirm, type Confirmation } from "../../confirm.tsx";
import { Text } from "../../text.tsx";

interface ActionProps {
  label: string;
  /** Does the same in a terminal; absent when nothing does. */
  command?: string;
  run: () => Promise<unknown>;
  /** Asked before it runs. */
  question?: Confirmation;
  /** Called when it has succeeded. */
  onDone?: () => void;
  tone?: "primary" | "danger";
  disabled?: boolean;
}

/** A button, and below it why its request failed. */
export function Action({ label, command, run, question, onDone, tone, disabled = false }: ActionProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const start = async () => {
    if (question && !(await confirm(question))) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await run();
      onDone?.();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="action">
      <button type="button" class={tone} disabled={disabled || busy} aria-busy={busy} onClick={() => void start()}>
        {label}
        {busy && "…"}
      </button>
      {problem !== undefined && <Refusal problem={problem} command={command} />}
    </div>
  );
}

/** The question before something that ends the calls that run there; none when no call does. */
export function failing(running: number, title: string, action: string): Confirmation | undefined {
  if (running === 0) return undefined;
  const body = running === 1 ? "1 running call fails." : `${running} running calls fail.`;
  return { title, body, action, danger: true };
}

/** Why a request failed. If the page has no right to it, the command that a person can run instead. */
export function Refusal({ problem, command }: { problem: unknown; command?: string }) {
  const refused = problem instanceof RpcError && problem.code === ERROR_CODES.permission_denied;
  return (
    <div class={`refusal ${refused ? "" : "failed"}`} role="alert">
      <p>
        <Text value={problem instanceof Error ? problem.message : String(problem)} max={1000} />
      </p>
      {refused && command && (
        <>
          <p>Run in a terminal:</p>
          <Command value={command} />
        </>
      )}
    </div>
  );
}

/** A command to copy. */
export function Command({ value }: { value: string }) {
  return (
    <p class="row">
      <code class="command">
        <Text value={value} max={1000} />
      </code>
      <Copy value={value} />
    </p>
  );
}
