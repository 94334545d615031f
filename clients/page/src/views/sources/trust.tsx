/** Content of a project that counts only once a person trusts it: what is there, and what it would allow. */
import { useEffect, useState } from "preact/hooks";
import type { PluginsTrustResult } from "toold/browser";

import { Badge } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { quote } from "../../shell.ts";
import { Block, Text } from "../../text.tsx";
import { bytes, Time } from "../../time.tsx";
import { Command, Refusal } from "./action.tsx";

type TrustItem = PluginsTrustResult["items"][number];

/** `path` is the project's folder, or a plugin in it. Trusting it needs a terminal: a page in a browser may not. */
export function TrustReview({ path, version }: { path: string; version: string }) {
  const [report, setReport] = useState<PluginsTrustResult>();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    let current = true;
    request("plugins.trust", { path, preview: true }).then(
      (report) => current && setReport(report),
      (error: unknown) => current && setProblem(error),
    );
    return () => void (current = false);
  }, [path, version]);
  const command = `toolctl plugins trust ${quote(path)}`;
  if (problem !== undefined) return <Refusal problem={problem} command={command} />;
  if (!report) return <p class="loading">Loading…</p>;
  if (report.items.length === 0) return <p class="dim">There is nothing here that needs trust.</p>;
  return (
    <>
      {report.items.map((item) => (
        <TrustItemView key={item.path} item={item} />
      ))}
      {report.items.some(({ trusted }) => !trusted) && (
        <>
          <p>To review and trust it, run in a terminal:</p>
          <Command value={command} />
        </>
      )}
    </>
  );
}

function TrustItemView({ item }: { item: TrustItem }) {
  const { kind, path, digest, trusted, last, files, allows = [], settings = [] } = item;
  return (
    <div class="card">
      <p class="row">
        <Badge tone={trusted ? "good" : "warn"}>{trusted ? "trusted" : "not trusted"}</Badge>
        {kind === "config" ? "Configuration" : "Plugin"} <Text class="mono" value={path} />
      </p>
      <dl class="facts">
        <dt>Content</dt>
        <dd class="mono">
          <Text value={digest} max={16} />
        </dd>
        {last && (
          <>
            <dt>Last trusted</dt>
            <dd>
              <Time at={last.at} />
              {last.client && (
                <>
                  {" "}
                  by <Text value={last.client} />
                </>
              )}
              {last.digest !== digest && ", with other content"}
            </dd>
          </>
        )}
        {files.map((file) => (
          <>
            <dt>File</dt>
            <dd>
              <Text class="mono" value={file.path} />, {bytes(file.bytes)}
            </dd>
          </>
        ))}
      </dl>
      {allows.length > 0 && (
        <>
          <p>Would allow without asking:</p>
          <ul class="lines">
            {allows.map((rule, at) => (
              <li key={at}>
                <Badge tone="warn">{rule.action}</Badge> <span class="mono">{rule.category}</span>{" "}
                <Text class="mono" value={rule.effect ? `${rule.pattern}, effect ${rule.effect}` : rule.pattern} />
                {(rule.agent || rule.tools) && (
                  <>
                    {" "}
                    for <Text value={[rule.agent, ...(rule.tools ?? [])].filter(Boolean).join(", ")} />
                  </>
                )}{" "}
                <Text class="dim" value={rule.source} />
              </li>
            ))}
          </ul>
        </>
      )}
      {settings.length > 0 && (
        <>
          <p>Would set:</p>
          <ul class="lines">
            {settings.map(({ key, value, origin }) => (
              <li key={key}>
                <Text class="mono" value={key} /> <Text class="dim" value={origin} />
                <Block value={JSON.stringify(value, undefined, 2)} label={key} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
