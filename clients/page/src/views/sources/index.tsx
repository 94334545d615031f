/** The view Sources: built-ins, plugins, MCP servers, other daemons, the fleet, and clients that provide tools. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import "./sources.css";
import { Badge, Empty, Table } from "../../components.tsx";
import { openSession, request, session } from "../../daemon.ts";
import { onDemand } from "../../on-demand.tsx";
import { useLocation, useRoute, ViewLink } from "../../router.tsx";
import { oneLine, Text } from "../../text.tsx";
import { Action } from "./action.tsx";
import { sourcePath, useInventory, type Inventory, type SourceKind } from "./inventory.ts";
import { Section, StateBadge, ToolTable } from "./parts.tsx";
import { PluginDetails } from "./plugin.tsx";
import { RemoteDetails } from "./remote.tsx";
import { LoginBadge, ServerDetails } from "./server.tsx";
import { TrustReview } from "./trust.tsx";

const Fleet = onDemand(() => import("./fleet.tsx"));

interface SourceRow {
  kind: SourceKind;
  name: string;
  state: string;
  tools: number;
  notes: ComponentChildren;
}

const KIND_NAMES: Record<SourceKind, string> = {
  builtin: "built-in",
  plugin: "plugin",
  mcp: "MCP server",
  remote: "daemon",
  fleet: "of the fleet",
  frontend: "client",
};
/** Sources in these states come first: they need a person. */
const STATE_ORDER = ["failed", "away", "untrusted", "shadowed"];

export default function SourcesView() {
  const { inventory, reload } = useInventory();
  const [isDetail, params] = useRoute("/sources/:kind/:name");
  if (!inventory) return <p class="loading">Loading…</p>;
  if (!isDetail) return <Overview inventory={inventory} reload={reload} />;
  const { kind, name } = params;
  const common = { name, inventory, reload };
  return (
    <div class="stack sources">
      <p>
        <ViewLink href="/sources">All sources</ViewLink>
      </p>
      {kind === "plugin" ? (
        <PluginDetails {...common} />
      ) : kind === "mcp" ? (
        <ServerDetails {...common} />
      ) : kind === "remote" ? (
        <RemoteDetails {...common} />
      ) : kind === "fleet" ? (
        <Fleet name={name} fleet={inventory.fleet} tools={inventory.tools} />
      ) : (
        <ToolSource {...common} kind={kind} />
      )}
    </div>
  );
}

function Overview({ inventory, reload }: { inventory: Inventory; reload: () => void }) {
  const [text, setText] = useState("");
  const [, navigate] = useLocation();
  const rows = rowsOf(inventory).filter(({ name, kind, state }) =>
    `${name} ${KIND_NAMES[kind]} ${state}`.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <div class="stack sources">
      <div class="row">
        <label class="inline">
          Filter
          <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <span class="grow" />
        <Action
          label="Reload all plugins"
          command="toolctl plugins reload"
          run={() => request("plugins.reload", {})}
          onDone={reload}
        />
      </div>
      {rows.length === 0 ? (
        <Empty title="No source matches the filter" />
      ) : (
        <Table
          caption="Sources"
          rows={rows}
          keyOf={({ kind, name }) => `${kind} ${name}`}
          onOpen={({ kind, name }) => navigate(sourcePath(kind, name))}
          columns={[
            {
              title: "Source",
              cell: ({ kind, name, notes }) => (
                <>
                  <ViewLink href={sourcePath(kind, name)}>
                    <Text value={name} />
                  </ViewLink>
                  <br />
                  <span class="dim small">{KIND_NAMES[kind]}</span>
                  <div class="narrow-only small">{notes}</div>
                </>
              ),
            },
            { title: "State", cell: ({ state }) => <StateBadge state={state} /> },
            { title: "Tools", numeric: true, cell: ({ tools }) => tools },
            { title: "Notes", wideOnly: true, cell: ({ notes }) => notes },
          ]}
        />
      )}
      <Fleet fleet={inventory.fleet} tools={inventory.tools} />
      <Project version={JSON.stringify(inventory.plugins)} />
    </div>
  );
}

/** The project of a folder: its plugins are seen from there, and its content needs trust. */
function Project({ version }: { version: string }) {
  const folder = session.value?.cwd;
  const [path, setPath] = useState(folder ?? "");
  return (
    <Section title="Project">
      <p class="dim">
        {folder === undefined ? (
          "Open a folder to see its project's plugins and configuration."
        ) : (
          <>
            This page works in <Text class="mono" value={folder} />.
          </>
        )}
      </p>
      <div class="row">
        <label class="inline">
          Folder
          <input
            value={path}
            spellcheck={false}
            placeholder="~/project"
            onInput={(event) => setPath(event.currentTarget.value)}
          />
        </label>
        <Action label="Open the folder" disabled={path.trim() === ""} run={() => openSession(path.trim())} />
      </div>
      {folder !== undefined && <TrustReview key={folder} path={folder} version={version} />}
    </Section>
  );
}

/** Built-ins, and clients that provide tools: there is nothing to control but their tools. */
function ToolSource({ kind, name, inventory }: { kind: string; name: string; inventory: Inventory }) {
  const tools = inventory.tools.filter(({ source }) => source.kind === kind && source.name === name);
  if (tools.length === 0) return <Empty title={`There is no source ${oneLine(name)} with tools`} />;
  return (
    <>
      <header class="card">
        <h2>
          <Text value={name} />
        </h2>
        <p class="dim">
          {kind === "builtin"
            ? "Part of the daemon. The configuration can disable or rename each tool."
            : "A connected client provides these tools; they go when it disconnects."}
        </p>
      </header>
      <ToolTable names={tools.map(({ name }) => name)} tools={tools} />
    </>
  );
}

function rowsOf({ plugins, servers, remotes, fleet, tools }: Inventory): SourceRow[] {
  const rows: SourceRow[] = [
    ...plugins.map(({ name, status, tools, error, warnings = [], bundled }) => ({
      kind: "plugin" as const,
      name,
      state: status,
      tools: tools.length,
      notes: (
        <>
          {error && <Text value={error.message} max={120} />}
          {warnings.length > 0 && <Badge tone="warn">{count(warnings.length, "warning")}</Badge>}
          {bundled && <Badge>bundled</Badge>}
        </>
      ),
    })),
    ...servers.map(({ name, state, tools, error, problems, login }) => ({
      kind: "mcp" as const,
      name,
      state,
      tools: tools.length,
      notes: (
        <>
          {login && <LoginBadge state={login.state} />} {error && <Text value={error} max={120} />}
          {problems.length > 0 && <Badge tone="warn">{count(problems.length, "problem")}</Badge>}
        </>
      ),
    })),
    ...remotes.map(({ name, state, tools, error }) => ({
      kind: "remote" as const,
      name,
      state,
      tools: tools.length,
      notes: error && <Text value={error} max={120} />,
    })),
    ...fleet.daemons.map(({ name, state, tools, error, problems }) => ({
      kind: "fleet" as const,
      name,
      state,
      tools: tools.length,
      notes: (
        <>
          {error && <Text value={error} max={120} />}
          {problems.length > 0 && <Badge tone="warn">{count(problems.length, "problem")}</Badge>}
        </>
      ),
    })),
    ...fleet.label_groups
      .filter(({ mounted }) => mounted)
      .map(({ name, online, tools }) => ({
        kind: "fleet" as const,
        name,
        state: online.length > 0 ? "online" : "away",
        tools: tools.length,
        notes: <span class="dim">any daemon with this label</span>,
      })),
  ];
  const others = new Map<string, SourceRow>();
  for (const { source } of tools) {
    if (source.kind !== "builtin" && source.kind !== "frontend") continue;
    const key = `${source.kind} ${source.name}`;
    const row = others.get(key);
    if (row) row.tools += 1;
    else others.set(key, { kind: source.kind, name: source.name, state: "connected", tools: 1, notes: undefined });
  }
  for (const row of others.values()) if (row.kind === "builtin") row.state = "loaded";
  const order = ({ state }: SourceRow) =>
    STATE_ORDER.includes(state) ? STATE_ORDER.indexOf(state) : state === "disabled" ? 9 : 8;
  return [...rows, ...others.values()].sort(
    (left, right) => order(left) - order(right) || left.name.localeCompare(right.name),
  );
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
