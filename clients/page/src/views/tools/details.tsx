/** A tool: its description, schema and claims, and its time and cost. */
import { useEffect, useState } from "preact/hooks";
import type { Tool } from "toold/browser";

import { Badge, Copy } from "../../components.tsx";
import { Markdown } from "../../formatted.tsx";
import { Block, Text } from "../../text.tsx";
import { duration } from "../../time.tsx";
import { latencies, latencyWindow, tokensOf } from "./catalogue.ts";

export function ToolDetails({ tool }: { tool: Tool }) {
  const { name, label, description, source, version } = tool;
  return (
    <section class="stack" aria-label="About the tool">
      <header>
        <h2 class="row">
          <Text class="mono" value={name} />
          {label !== name && (
            <span class="dim">
              <Text value={label} max={80} />
            </span>
          )}
          <Badge>{source.kind}</Badge>
        </h2>
        <p class="small dim">
          <Text value={source.name} />
          {version !== undefined && (
            <>
              {" "}
              <Text value={version} max={40} />
            </>
          )}
          {source.path !== undefined && (
            <>
              , <Text class="mono" value={source.path} />
            </>
          )}
        </p>
      </header>
      <Markdown value={description} />
      <Facts tool={tool} />
      <details>
        <summary>Schema</summary>
        <SchemaText title="Arguments" schema={tool.input_schema} />
        {tool.output_schema !== undefined && <SchemaText title="Result" schema={tool.output_schema} />}
        {tool.grammar && (
          <>
            <h3>Grammar of its argument ({tool.grammar.syntax})</h3>
            <Block value={tool.grammar.definition} label="Grammar" />
          </>
        )}
      </details>
    </section>
  );
}

function SchemaText({ title, schema }: { title: string; schema: unknown }) {
  const text = JSON.stringify(schema, null, 2);
  return (
    <>
      <h3>{title}</h3>
      <Block value={text} label={`Schema: ${title}`} />
      <Copy value={text} label="Copy the schema" />
    </>
  );
}

function Facts({ tool }: { tool: Tool }) {
  const { annotations, permissions, parallelizable, cacheable, timeout_ms } = tool;
  const tokens = useTokens(tool);
  const claims = [
    annotations.read_only === true && "only reads",
    annotations.read_only === false && "changes things",
    annotations.destructive === true && "may be destructive",
    annotations.idempotent === true && "idempotent",
    annotations.open_world === true && "reaches external systems",
    annotations.task !== undefined && `task: ${annotations.task}`,
  ].filter((claim) => claim !== false);
  return (
    <dl class="facts">
      <dt>Permissions</dt>
      <dd class="row">
        {permissions.length === 0
          ? "none"
          : permissions.map((each) => (
              <Badge key={each} tone="warn">
                {each}
              </Badge>
            ))}
      </dd>
      {claims.length > 0 && (
        <>
          <dt title="As the tool declares it. No decision depends on it.">Claims</dt>
          <dd class="row">
            {claims.map((claim) => (
              <Badge key={claim}>{claim}</Badge>
            ))}
          </dd>
        </>
      )}
      <dt>Calls</dt>
      <dd>
        {parallelizable ? "run side by side" : "one at a time in a session"}
        {cacheable && ", results are cached"}
        {timeout_ms !== undefined && `, at most ${duration(timeout_ms)}`}
      </dd>
      <dt>Time</dt>
      <dd>
        <Latency name={tool.name} />
      </dd>
      {tokens !== undefined && (
        <>
          <dt>Cost</dt>
          <dd>≈ {tokens.toLocaleString("en")} tokens in a model's list of tools</dd>
        </>
      )}
    </dl>
  );
}

function Latency({ name }: { name: string }) {
  const latency = latencies.value.get(name);
  const over = `in the last ${duration(latencyWindow.value * 1000)}`;
  if (latency === undefined) return <span class="dim">not called {over}</span>;
  const shown = (us: number) => (us < 1000 ? `${us} µs` : duration(us / 1000));
  return (
    <>
      p50 {shown(latency.p50_us)}, p90 {shown(latency.p90_us)}, p99 {shown(latency.p99_us)}{" "}
      <span class="dim">
        ({latency.calls} {latency.calls === 1 ? "call" : "calls"}
        {latency.errors > 0 && `, ${latency.errors} not ok`}, {over})
      </span>
    </>
  );
}

function useTokens(tool: Tool): number | undefined {
  const [tokens, setTokens] = useState<number>();
  useEffect(() => {
    let current = true;
    setTokens(undefined);
    // A tool whose schema the provider's form cannot express has no cost to show.
    tokensOf(tool.name).then(
      (count) => current && setTokens(count),
      () => {},
    );
    return () => void (current = false);
  }, [tool]);
  return tokens;
}
