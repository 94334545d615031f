/** The JSON-RPC messages of a call, and the same call for other clients. */
import { useState } from "preact/hooks";

import { Copy } from "../../components.tsx";
import type { LoggedMessage } from "../../messages.ts";
import { Block, Text } from "../../text.tsx";
import { bytes, formats } from "../../time.tsx";
import type { PageCall } from "./calls.ts";
import { mcpUrl } from "./catalogue.ts";
import { curlCommand, toolctlCommand } from "./commands.ts";

/** The call that the arguments would make, to copy. */
export function CopyCall({ tool, args, folder }: { tool: string; args: unknown; folder: string | undefined }) {
  const url = mcpUrl.value;
  return (
    <div class="buttons">
      <Copy value={toolctlCommand(tool, args, folder)} label="Copy as toolctl call" />
      <Copy
        value={JSON.stringify(
          { jsonrpc: "2.0", id: 1, method: "tools.execute", params: { name: tool, arguments: args } },
          null,
          2,
        )}
        label="Copy as JSON"
      />
      {url !== undefined && <Copy value={curlCommand(url, tool, args)} label="Copy as curl" />}
    </div>
  );
}

export function Inspector({ call }: { call: PageCall }) {
  const wire = call.wire.value;
  return (
    <details class="inspector">
      <summary>Messages ({wire.length})</summary>
      <ol class="wire" aria-label="Messages of the call">
        {wire.map((message) => (
          <WireMessage key={message.id} message={message} started={call.started} />
        ))}
      </ol>
    </details>
  );
}

function WireMessage({ message, started }: { message: LoggedMessage; started: number }) {
  const { direction, text, length, at } = message;
  const [open, setOpen] = useState(false);
  const pretty = open ? prettyJson(text) : "";
  return (
    <li>
      <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class={`wire-${direction}`}>{direction === "sent" ? "→ sent" : "← received"}</span> {titleOf(text)}{" "}
          <span class="dim small">
            <time dateTime={at.toISOString()}>{formats.millisecond.format(at)}</time>, +
            {Math.max(0, at.getTime() - started)} ms, {bytes(length)}
          </span>
        </summary>
        {open && (
          <>
            <Block value={pretty} label={`Message ${direction}`} />
            {length > text.length && (
              <p class="small dim">
                The message is cut: {text.length} of {length} characters.
              </p>
            )}
            <Copy value={text} label="Copy the message" />
          </>
        )}
      </details>
    </li>
  );
}

function titleOf(text: string) {
  const head = text.slice(0, 400);
  const method = /"method":"([^"]*)"/.exec(head)?.[1];
  if (method !== undefined) return <Text class="mono" value={method} max={60} />;
  return <span class="mono">{/"error":\{/.test(head) ? "error" : "result"}</span>;
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
