/** One mounted MCP server: its state, processes, tools, output and login. */
import type { McpServer } from "toold/browser";

import { Badge, Empty, Table } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { quote } from "../../shell.ts";
import { Block, oneLine, Text } from "../../text.tsx";
import { bytes, duration, Time } from "../../time.tsx";
import { toast } from "../../toasts.tsx";
import { Action, failing } from "./action.tsx";
import type { Inventory } from "./inventory.ts";
import { Login } from "./login.tsx";
import { Lines, Section, StateBadge, ToolTable } from "./parts.tsx";

export function ServerDetails({ name, inventory, reload }: { name: string; inventory: Inventory; reload: () => void }) {
  const server = inventory.servers.find((server) => server.name === name);
  if (!server) return <Empty title={`There is no MCP server ${name}`} />;
  const restart = async () => {
    // It answers when the server runs or has failed; a first start may install packages.
    const { servers } = await request("mcp.restart", { name }, { timeout: Infinity });
    const now = servers.find((server) => server.name === name);
    if (now?.state === "running") toast(`${name} runs again`);
  };
  return (
    <>
      <header class="card">
        <h2 class="row">
          <Text value={server.name} /> <StateBadge state={server.state} />
          {server.login && <LoginBadge state={server.login.state} />}
        </h2>
        <ServerFacts server={server} />
        <div class="buttons">
          <Action
            label={server.state === "stopped" ? "Start" : "Restart"}
            command={`toolctl mcp restart ${quote(name)}`}
            run={restart}
            question={failing(server.running, `Restart the MCP server ${oneLine(name)}?`, "Restart the server")}
            onDone={reload}
            disabled={server.state === "disabled"}
          />
        </div>
      </header>
      {server.error && (
        <Section title="Error">
          <Block value={server.error} label="Error" />
          {server.retry_ms !== undefined && (
            <p class="dim">
              {server.retry_ms === 0
                ? "The next call tries to start it."
                : `Calls are refused for ${duration(server.retry_ms)}; then the next one tries to start it.`}
            </p>
          )}
        </Section>
      )}
      {(server.login || server.transport === "http") && <Login server={server} onDone={reload} />}
      <Lines title="Tools that were left out" lines={server.problems} tone="warn" />
      {server.instances.length > 0 && <Instances instances={server.instances} />}
      <Section title="Tools">
        <ToolTable names={server.tools} tools={inventory.tools} />
      </Section>
      <Section title="Output">
        {server.stderr.length === 0 ? (
          <p class="dim">It has written nothing.</p>
        ) : (
          <Block value={server.stderr.join("\n")} from="end" label={`Output of ${name}`} />
        )}
      </Section>
    </>
  );
}

export function LoginBadge({ state }: { state: NonNullable<McpServer["login"]>["state"] }) {
  switch (state) {
    case "logged_in":
      return <Badge tone="good">logged in</Badge>;
    case "required":
      return <Badge tone="warn">login needed</Badge>;
    case "locked":
      return <Badge tone="warn">secrets are locked</Badge>;
  }
}

function ServerFacts({ server }: { server: McpServer }) {
  const facts: [string, string | undefined][] = [
    ["Transport", server.transport],
    [
      "Shared by",
      { shared: "all sessions", project: "the sessions of a project", session: "nothing: one process per session" }[
        server.scope
      ],
    ],
    ["Project", server.project],
    ["Protocol", server.protocol],
    ["Process", server.pid === undefined ? undefined : String(server.pid)],
    ["Running for", server.uptime_s === undefined ? undefined : duration(server.uptime_s * 1000)],
    ["Calls", `${server.calls}, ${server.bad_calls} of them failed, ${server.running} running`],
    ["Starts", String(server.starts)],
    ["Secrets", server.secrets?.join(", ")],
  ];
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <>
              <dt>{name}</dt>
              <dd>
                <Text value={value} />
              </dd>
            </>
          ),
      )}
    </dl>
  );
}

function Instances({ instances }: { instances: McpServer["instances"] }) {
  return (
    <Section title="Processes">
      <Table
        caption="Processes"
        rows={instances}
        keyOf={(instance) => `${instance.session} ${instance.project} ${instance.pid}`}
        columns={[
          { title: "For", cell: ({ session, project }) => <Text value={session ?? project ?? "all sessions"} /> },
          { title: "State", cell: ({ state }) => <StateBadge state={state} /> },
          { title: "Since", cell: ({ since }) => (since ? <Time at={since} /> : "") },
          {
            title: "Memory",
            numeric: true,
            wideOnly: true,
            cell: ({ memory_bytes }) => (memory_bytes ? bytes(memory_bytes) : ""),
          },
          { title: "Calls", numeric: true, cell: ({ running }) => running },
          { title: "Error", cell: ({ error }) => <Text value={error ?? ""} /> },
        ]}
      />
    </Section>
  );
}
