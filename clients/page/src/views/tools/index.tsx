/** The view Tools: find a tool, read what it does, call it, and look at the messages of the call. */
import { useEffect, useState } from "preact/hooks";
import { UnknownTool } from "toold/browser";

import { Empty } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { useKeys } from "../../keys.tsx";
import { useLocation, useRoute, ViewLink } from "../../router.tsx";
import { Text } from "../../text.tsx";
import { CallTool } from "./call-tool.tsx";
import { followTools, tools } from "./catalogue.ts";
import { ToolDetails } from "./details.tsx";
import { Folder } from "./folder.tsx";
import { ToolList } from "./list.tsx";
import { PluginCommands } from "./plugin-commands.tsx";
import "./tools.css";

export default function ToolsView() {
  const [, params] = useRoute("/tools/:name");
  const [, navigate] = useLocation();
  const chosen = params?.name;
  useEffect(followTools, []);
  useKeys([
    { key: "/", label: "Search the tools", run: () => document.getElementById("tool-search")?.focus() },
    { key: "Escape", label: "Back to the list of tools", run: () => navigate("/tools") },
  ]);
  return (
    <div class={`tools ${chosen === undefined ? "" : "has-tool"}`}>
      <ToolList chosen={chosen} />
      <div class="chosen-tool">
        {chosen === undefined ? (
          <>
            <Empty title="Choose a tool">Press / to search for one.</Empty>
            <PluginCommands />
          </>
        ) : (
          <ChosenTool name={chosen} />
        )}
      </div>
    </div>
  );
}

function ChosenTool({ name }: { name: string }) {
  const tool = tools.value?.find((tool) => tool.name === name);
  return (
    <div class="stack">
      <p class="narrow-only">
        <ViewLink href="/tools">All tools</ViewLink>
      </p>
      {tools.value === undefined ? (
        <p class="loading">Loading…</p>
      ) : tool === undefined ? (
        <MissingTool name={name} />
      ) : (
        <>
          <ToolDetails tool={tool} />
          <section class="card" aria-label="Call the tool">
            <Folder />
            <CallTool key={tool.name} tool={tool} />
          </section>
        </>
      )}
    </div>
  );
}

/** The daemon says why a tool is not there: disabled, renamed, its source failed, or a wrong name. */
function MissingTool({ name }: { name: string }) {
  const [error, setError] = useState<Error>();
  useEffect(() => {
    request("tools.schema", { name }).catch((error: unknown) =>
      setError(error instanceof Error ? error : new Error(String(error))),
    );
  }, [name]);
  const similar = error instanceof UnknownTool ? error.suggestions : [];
  return (
    <Empty title="There is no such tool">
      {error && <Text value={error.message} max={1000} />}
      {similar.map((other) => (
        <ViewLink key={other} href={`/tools/${encodeURIComponent(other)}`}>
          <Text class="mono" value={other} />
        </ViewLink>
      ))}
    </Empty>
  );
}
