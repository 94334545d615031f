/** One mounted daemon: its state, tools and output. */
import { Empty } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { quote } from "../../shell.ts";
import { Block, oneLine, Text } from "../../text.tsx";
import { duration, Time } from "../../time.tsx";
import { Action, failing } from "./action.tsx";
import type { Inventory } from "./inventory.ts";
import { Lines, Section, StateBadge, ToolTable } from "./parts.tsx";

export function RemoteDetails({ name, inventory, reload }: { name: string; inventory: Inventory; reload: () => void }) {
  const remote = inventory.remotes.find((remote) => remote.name === name);
  if (!remote) return <Empty title={`There is no mounted daemon ${name}`} />;
  return (
    <>
      <header class="card">
        <h2 class="row">
          <Text value={remote.name} /> <StateBadge state={remote.state} />
        </h2>
        <dl class="facts">
          <dt>Transport</dt>
          <dd>
            {remote.transport}
            {remote.pid !== undefined && `, process ${remote.pid}`}
          </dd>
          {remote.version && (
            <>
              <dt>Version</dt>
              <dd>
                <Text value={remote.version} />
              </dd>
            </>
          )}
          {remote.cwd && (
            <>
              <dt>Folder there</dt>
              <dd>
                <Text class="mono" value={remote.cwd} />
              </dd>
            </>
          )}
          {remote.since && (
            <>
              <dt>Connected</dt>
              <dd>
                <Time at={remote.since} />
              </dd>
            </>
          )}
          <dt>Its asks</dt>
          <dd>{remote.relays_asks ? "are shown here" : "are answered there only"}</dd>
          <dt>Calls</dt>
          <dd>
            {remote.calls}, {remote.bad_calls} of them failed, {remote.running} running
          </dd>
        </dl>
        <div class="buttons">
          <Action
            label="Reconnect"
            command={`toolctl remotes reconnect ${quote(name)}`}
            run={() => request("remotes.reconnect", { name }, { timeout: Infinity })}
            question={failing(remote.running, `Reconnect to ${oneLine(name)}?`, "Reconnect")}
            onDone={reload}
            disabled={remote.state === "disabled"}
          />
        </div>
      </header>
      {remote.error && (
        <Section title="Error">
          <Block value={remote.error} label="Error" />
          {remote.retry_ms !== undefined && <p class="dim">The next attempt is in {duration(remote.retry_ms)}.</p>}
        </Section>
      )}
      <Lines title="Tools that were left out" lines={remote.problems} tone="warn" />
      <Section title="Tools">
        <ToolTable names={remote.tools} tools={inventory.tools} />
      </Section>
      {remote.stderr.length > 0 && (
        <Section title="Output">
          <Block value={remote.stderr.join("\n")} from="end" label={`Output of ${name}`} />
        </Section>
      )}
    </>
  );
}
