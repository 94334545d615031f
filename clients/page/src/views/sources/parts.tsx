/** Parts that the details of several kinds of sources share. */
import type { ComponentChildren } from "preact";
import type { PluginError, Tool } from "toold/browser";

import { Badge, Table, type Tone } from "../../components.tsx";
import { ViewLink } from "../../router.tsx";
import { Block, Text } from "../../text.tsx";

const TONES: Record<string, Tone> = {
  loaded: "good",
  running: "good",
  connected: "good",
  online: "good",
  failed: "bad",
  away: "bad",
  "not connected": "bad",
  untrusted: "warn",
  shadowed: "warn",
  unknown: "warn",
  starting: "info",
  connecting: "info",
};

export function StateBadge({ state }: { state: string }) {
  return <Badge tone={TONES[state] ?? "neutral"}>{state}</Badge>;
}

/** An error of a plugin's code, with its place and the line. */
export function PluginErrorView({ error }: { error: PluginError }) {
  const { message, file, line, source_line, traceback } = error;
  return (
    <div class="plugin-error">
      <Block value={message} class="message" label="Error" />
      {file !== undefined && (
        <p class="mono">
          <Text value={`${file}${line === undefined ? "" : `:${line}`}`} />
        </p>
      )}
      {source_line !== undefined && (
        <Block value={`${line === undefined ? "" : `${line} | `}${source_line}`} label="Source line" />
      )}
      {traceback !== undefined && (
        <details>
          <summary>Traceback</summary>
          <Block value={traceback} label="Traceback" />
        </details>
      )}
    </div>
  );
}

/** Names of tools; with descriptions where the list of tools has them. */
export function ToolTable({ names, tools }: { names: readonly string[]; tools: readonly Tool[] }) {
  if (names.length === 0) return <p class="dim">No tools.</p>;
  const known = new Map(tools.map((tool) => [tool.name, tool]));
  return (
    <Table
      caption={`${names.length} tools`}
      rows={names}
      keyOf={(name) => name}
      columns={[
        {
          title: "Tool",
          cell: (name) => (
            <ViewLink href={`/tools/${encodeURIComponent(name)}`}>
              <Text class="mono" value={name} />
            </ViewLink>
          ),
        },
        {
          title: "Description",
          cell: (name) => <Text value={firstSentence(known.get(name)?.description ?? "")} max={200} />,
        },
      ]}
    />
  );
}

function firstSentence(text: string): string {
  return /^[\s\S]*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text;
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="stack section" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** Lines of a list, or nothing without any. */
export function Lines({ title, lines, tone }: { title: string; lines: readonly string[] | undefined; tone?: Tone }) {
  if (!lines || lines.length === 0) return null;
  return (
    <Section title={title}>
      <ul class="lines">
        {lines.map((line, at) => (
          <li key={at}>
            {tone && <Badge tone={tone}>{tone === "bad" ? "error" : "note"}</Badge>} <Text value={line} max={1000} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
