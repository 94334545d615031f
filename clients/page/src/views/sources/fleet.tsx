/** The fleet: this daemon, the others with their load, and the labels. */
import type { FleetStatusResult, Tool } from "toold/browser";

import { Badge, Empty, Table } from "../../components.tsx";
import { ViewLink } from "../../router.tsx";
import { Block, Text } from "../../text.tsx";
import { duration, Time } from "../../time.tsx";
import { Command } from "./action.tsx";
import { sourcePath } from "./inventory.ts";
import { Lines, Section, StateBadge, ToolTable } from "./parts.tsx";

interface FleetProps {
  fleet: FleetStatusResult;
  tools: readonly Tool[];
  /** A daemon or a mounted label; all of the fleet without it. */
  name?: string;
}

export default function Fleet({ fleet, tools, name }: FleetProps) {
  if (name === undefined) return <Section title="Fleet">{fleet.configured ? <All fleet={fleet} /> : <None />}</Section>;
  const daemon = fleet.daemons.find((daemon) => daemon.name === name);
  const label = fleet.label_groups.find((label) => label.name === name);
  if (daemon) return <Daemon daemon={daemon} tools={tools} />;
  if (label) return <Label label={label} tools={tools} />;
  return <Empty title={`The fleet has no daemon or label ${name}`} />;
}

function None() {
  return (
    <>
      <p class="dim">
        Daemons on several machines can share their tools, prompts and grants. Start a fleet in a terminal, with the address
        of a NATS server:
      </p>
      <Command value="toolctl fleet init NAME --server tls://HOST:4222 --person YOU" />
    </>
  );
}

function All({ fleet }: { fleet: FleetStatusResult }) {
  const refused = Object.entries(fleet.refused).filter(([, times]) => times > 0);
  return (
    <>
      <p class="row">
        <Text value={fleet.name ?? "this daemon"} /> <StateBadge state={fleet.connected ? "connected" : "not connected"} />
        <Load name={fleet.name ?? "this daemon"} running={fleet.running} most={fleet.max_calls} />
        <Text class="dim small" value={[...fleet.servers, ...fleet.labels].join(" ")} />
      </p>
      {fleet.error && <Block value={fleet.error} label="Error of the fleet" />}
      {fleet.daemons.length === 0 ? (
        <p class="dim">No other daemon is trusted. On this machine, run in a terminal what another one prints when it joins.</p>
      ) : (
        <Table
          caption="Daemons of the fleet"
          rows={fleet.daemons}
          keyOf={({ name }) => name}
          columns={[
            {
              title: "Daemon",
              cell: ({ name }) => (
                <ViewLink href={sourcePath("fleet", name)}>
                  <Text value={name} />
                </ViewLink>
              ),
            },
            {
              title: "State",
              cell: ({ state, trusts_this }) => (
                <span class="row">
                  <StateBadge state={state} />
                  {trusts_this === false && <Badge tone="warn">does not trust this machine</Badge>}
                </span>
              ),
            },
            { title: "Labels", wideOnly: true, cell: ({ labels }) => <Badges names={labels} /> },
            {
              title: "Load",
              cell: ({ name, state, running, max_calls }) =>
                state === "online" && <Load name={name} running={running} most={max_calls} />,
            },
            {
              title: "Heard",
              numeric: true,
              cell: ({ heard_ms }) => heard_ms !== undefined && `${duration(heard_ms)} ago`,
            },
            { title: "Audit rows waiting", numeric: true, wideOnly: true, cell: ({ audit_waiting }) => audit_waiting },
          ]}
        />
      )}
      {fleet.label_groups.length > 0 && (
        <p class="row">
          <span class="dim">Labels</span>
          {fleet.label_groups.map(({ name, online, away, mounted }) => (
            <span key={name}>
              {mounted ? <ViewLink href={sourcePath("fleet", name)}>{name}</ViewLink> : <Text value={name} />}{" "}
              <span class="dim small">
                {online.length} online{away.length > 0 && `, ${away.length} away`}
              </span>
            </span>
          ))}
        </p>
      )}
      <p class="dim small">
        {fleet.served} calls served, {fleet.offered} tools offered, {fleet.grants} grants valid, {fleet.audit_waiting} audit rows
        waiting
      </p>
      {refused.length > 0 && (
        <p>
          <Badge tone="warn">refused messages</Badge>{" "}
          {refused.map(([reason, times]) => `${times} ${reason.replaceAll("_", " ")}`).join(", ")}
          {fleet.last_refused && (
            <>
              ; the last one: <Text value={fleet.last_refused} max={300} />
            </>
          )}
        </p>
      )}
    </>
  );
}

function Load({ name, running, most }: { name: string; running: number; most: number }) {
  return (
    <span class="row load">
      <meter aria-label={`Load of ${name}`} min={0} max={most} value={running} /> {running}/{most}
    </span>
  );
}

function Badges({ names }: { names: readonly string[] }) {
  return (
    <span class="row">
      {names.map((name) => (
        <Badge key={name}>{name}</Badge>
      ))}
    </span>
  );
}

function Daemon({ daemon, tools }: { daemon: FleetStatusResult["daemons"][number]; tools: readonly Tool[] }) {
  return (
    <>
      <header class="card">
        <h2 class="row">
          <Text value={daemon.name} /> <StateBadge state={daemon.state} /> <Badges names={daemon.labels} />
        </h2>
        <dl class="facts">
          <dt>Load</dt>
          <dd>
            <Load name={daemon.name} running={daemon.running} most={daemon.max_calls} />
          </dd>
          {daemon.version && (
            <>
              <dt>Version</dt>
              <dd>
                <Text value={daemon.version} />
              </dd>
            </>
          )}
          {daemon.heard_at && (
            <>
              <dt>Last heard of</dt>
              <dd>
                <Time at={daemon.heard_at} />
              </dd>
            </>
          )}
          <dt>May call here</dt>
          <dd>{daemon.may_call ? "yes, if rules, grants or you allow it" : "no"}</dd>
          {daemon.trusts_this === false && (
            <>
              <dt>Trusts this machine</dt>
              <dd>no: `toolctl fleet doctor` says what to run there</dd>
            </>
          )}
          <dt>Calls from here</dt>
          <dd>
            {daemon.calls}, {daemon.bad_calls} of them failed
          </dd>
          <dt>Persons there</dt>
          <dd>
            <Text value={daemon.people.join(", ") || "none can be asked"} />
          </dd>
          <dt>Public key</dt>
          <dd>
            <Text class="mono small" value={daemon.key} />
          </dd>
        </dl>
      </header>
      {daemon.error && (
        <Section title="Error">
          <Block value={daemon.error} label="Error" />
        </Section>
      )}
      <Lines title="Tools that were left out" lines={daemon.problems} tone="warn" />
      <Section title="Tools">
        <ToolTable names={daemon.tools} tools={tools} />
      </Section>
    </>
  );
}

function Label({ label, tools }: { label: FleetStatusResult["label_groups"][number]; tools: readonly Tool[] }) {
  return (
    <>
      <header class="card">
        <h2>
          <Text value={label.name} />
        </h2>
        <p class="dim">
          Calls run on any free daemon with this label. Online: {label.online.join(", ") || "none"}. Away:{" "}
          {label.away.join(", ") || "none"}.
        </p>
        <Load name={label.name} running={label.running} most={label.max_calls} />
      </header>
      <Section title="Tools">
        <ToolTable names={label.tools} tools={tools} />
      </Section>
    </>
  );
}
