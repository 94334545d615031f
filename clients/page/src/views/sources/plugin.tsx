/** One plugin: its state, errors, tools, needs, log and profile. */
import { useEffect, useState } from "preact/hooks";
import type { Plugin, PluginsShowResult } from "toold/browser";

import { Badge, Empty } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { quote } from "../../shell.ts";
import { Block, oneLine, Text } from "../../text.tsx";
import { bytes, duration, Time } from "../../time.tsx";
import { Action, Command } from "./action.tsx";
import type { Inventory } from "./inventory.ts";
import { PluginLogs } from "./logs.tsx";
import { Lines, PluginErrorView, Section, StateBadge, ToolTable } from "./parts.tsx";
import { TrustReview } from "./trust.tsx";

export function PluginDetails({ name, inventory, reload }: { name: string; inventory: Inventory; reload: () => void }) {
  const plugin = inventory.plugins.find((plugin) => plugin.name === name);
  const [shown, setShown] = useState<PluginsShowResult>();
  const version = JSON.stringify(plugin);
  useEffect(() => {
    let current = true;
    // A plugin that was never loaded has no details.
    request("plugins.show", { name }).then(
      (details) => current && setShown(details),
      () => current && setShown(undefined),
    );
    return () => void (current = false);
  }, [name, version]);
  if (!plugin) return <Empty title={`There is no plugin ${name}`} />;
  return (
    <>
      <header class="card">
        <h2 class="row">
          <Text value={plugin.name} /> <StateBadge state={plugin.status} />
          {plugin.bundled && <Badge>bundled</Badge>}
        </h2>
        {plugin.description && (
          <p>
            <Text value={plugin.description} max={1000} />
          </p>
        )}
        <PluginFacts plugin={plugin} shown={shown} />
        <PluginActions plugin={plugin} reload={reload} />
      </header>
      {plugin.error && (
        <Section title="Error">
          <PluginErrorView error={plugin.error} />
          {plugin.tools.length > 0 && <p class="dim">Its last good version keeps working.</p>}
        </Section>
      )}
      {plugin.status === "untrusted" && (
        <Section title="Not trusted">
          <p>It belongs to a project and is loaded only once you trust its content.</p>
          <TrustReview path={plugin.path} version={version} />
        </Section>
      )}
      <Lines title="Warnings" lines={plugin.warnings} tone="warn" />
      <Section title="Tools">
        <ToolTable names={plugin.tools} tools={shown?.tools ?? inventory.tools} />
      </Section>
      {shown && <Registrations shown={shown} />}
      {shown?.refused && shown.refused.length > 0 && <RefusedNeeds name={name} refused={shown.refused} />}
      <Section title="Log">
        <PluginLogs key={name} name={name} />
      </Section>
      <Section title="In a terminal">
        <p>A plugin&#39;s tests and checks run outside the daemon, and a profile is a file, so they need a terminal:</p>
        <Command value={`toolctl plugins test ${quote(plugin.path)}`} />
        <Command value={`toolctl plugins check ${quote(plugin.path)}`} />
        {plugin.status === "loaded" && <Command value={`toolctl plugins profile ${quote(name)}`} />}
      </Section>
    </>
  );
}

function PluginFacts({ plugin, shown }: { plugin: Plugin; shown: PluginsShowResult | undefined }) {
  return (
    <dl class="facts">
      <dt>Path</dt>
      <dd>
        <Text class="mono" value={plugin.path} />
      </dd>
      {plugin.version && (
        <>
          <dt>Version</dt>
          <dd>
            <Text value={plugin.version} />
          </dd>
        </>
      )}
      {plugin.project && (
        <>
          <dt>Project</dt>
          <dd>
            <Text class="mono" value={plugin.project} />
          </dd>
        </>
      )}
      {plugin.loaded_at && (
        <>
          <dt>Loaded</dt>
          <dd>
            <Time at={plugin.loaded_at} />
          </dd>
        </>
      )}
      {shown?.capabilities && (
        <>
          <dt>May use</dt>
          <dd>
            <Text value={shown.capabilities.join(" ") || "nothing"} />
          </dd>
        </>
      )}
      {shown?.trusted && (
        <>
          <dt>Trusted</dt>
          <dd>
            <Time at={shown.trusted.at} />
            {shown.trusted.client && (
              <>
                {" "}
                by <Text value={shown.trusted.client} />
              </>
            )}
          </dd>
        </>
      )}
    </dl>
  );
}

function PluginActions({ plugin: { name, status, tools }, reload }: { plugin: Plugin; reload: () => void }) {
  return (
    <div class="buttons">
      {status !== "disabled" && (
        <Action
          label="Reload"
          command={`toolctl plugins reload ${quote(name)}`}
          run={() => request("plugins.reload", { name })}
          onDone={reload}
        />
      )}
      {status === "disabled" ? (
        <Action
          label="Enable"
          tone="primary"
          command={`toolctl plugins enable ${quote(name)}`}
          run={() => request("plugins.enable", { name })}
          onDone={reload}
        />
      ) : (
        <Action
          label="Disable"
          command={`toolctl plugins disable ${quote(name)}`}
          run={() => request("plugins.disable", { name })}
          question={{
            title: `Disable the plugin ${oneLine(name)}?`,
            body: `It stays disabled until you enable it again. ${
              tools.length === 0 ? "It has no tools." : `Its tools disappear: ${tools.join(" ")}`
            }`,
            action: "Disable the plugin",
            danger: true,
          }}
          onDone={reload}
        />
      )}
    </div>
  );
}

/** Everything else that it registered. */
function Registrations({
  shown: { hooks, commands, subagents, resources, prompts, timers = [], files },
}: {
  shown: PluginsShowResult;
}) {
  return (
    <>
      <Lines
        title="Hooks"
        lines={hooks.map(
          ({ name, event, mode, priority, fail }) => `${name}: ${event}, ${mode}, priority ${priority}, fails ${fail}`,
        )}
      />
      <Lines title="Commands" lines={commands.map(({ name, description }) => `/${name}: ${description}`)} />
      <Lines title="Sub-agents" lines={subagents} />
      <Lines title="Resources" lines={resources} />
      <Lines title="Prompts" lines={prompts} />
      {timers.length > 0 && (
        <Section title="Timers">
          <ul class="lines">
            {timers.map(({ name, interval_ms, runs, last_run, last_error, stopped }) => (
              <li key={name}>
                <Text value={name} /> {stopped ? "stopped" : `every ${duration(interval_ms)}`}, {runs} runs
                {last_run && (
                  <>
                    , the last <Time at={last_run} />
                  </>
                )}
                {last_error && <Block value={last_error} label="Error" />}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Lines title="Files" lines={files.map((file) => `${file.path}, ${bytes(file.bytes)}`)} />
    </>
  );
}

function RefusedNeeds({ name, refused }: { name: string; refused: NonNullable<PluginsShowResult["refused"]> }) {
  return (
    <Section title="Refused permissions">
      <ul class="lines">
        {refused.map((need, at) => (
          <li key={at}>
            <p class="row">
              <Badge tone="bad">refused</Badge> <span class="mono">{need.category}</span>{" "}
              <Text class="mono" value={need.target} max={500} />
            </p>
            <p class="dim">
              {need.times === 1 ? "once" : `${need.times} times`}, last <Time at={need.last_at} />
              {need.at_load && " while it was loading"}, by <Text value={need.rule} />
              {need.reason && (
                <>
                  ; it says: <Text value={need.reason} />
                </>
              )}
              {need.pattern === undefined && "; no grant can allow it"}
            </p>
          </li>
        ))}
      </ul>
      {refused.some(({ pattern }) => pattern !== undefined) && (
        <>
          <p>To choose what to grant, run in a terminal:</p>
          <Command value={`toolctl plugins grant ${quote(name)}`} />
        </>
      )}
    </Section>
  );
}
