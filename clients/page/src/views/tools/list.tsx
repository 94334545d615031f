/** The list of tools by source, and the ranked search. */
import { useEffect, useState } from "preact/hooks";
import type { FoundTool, Tool } from "toold/browser";

import { Badge } from "../../components.tsx";
import { request, session } from "../../daemon.ts";
import { useLocation, ViewLink } from "../../router.tsx";
import { Text } from "../../text.tsx";
import { report } from "../../toasts.tsx";
import { cost, groups, tools, type ToolGroup } from "./catalogue.ts";

/** How many tools a search shows. */
const MAX_FOUND = 40;
const PAUSE = 120;

interface Found {
  tools: readonly FoundTool[];
  more: number;
}

export function ToolList({ chosen }: { chosen: string | undefined }) {
  const [query, setQuery] = useState("");
  const found = useSearch(query);
  const [, navigate] = useLocation();
  const openFirst = (event: KeyboardEvent) => {
    const first = found?.tools[0];
    if (event.key === "Enter" && first) navigate(`/tools/${encodeURIComponent(first.name)}`);
  };
  return (
    <section class="tool-list" aria-label="List of tools">
      <input
        type="search"
        id="tool-search"
        placeholder="Search: what should the tool do?"
        aria-label="Search the tools"
        value={query}
        onInput={({ currentTarget }) => setQuery(currentTarget.value)}
        onKeyDown={openFirst}
      />
      {tools.value === undefined && <p class="loading">Loading…</p>}
      {found === undefined ? <Groups chosen={chosen} /> : <SearchResult found={found} chosen={chosen} />}
    </section>
  );
}

/** `undefined` without a query. A slow answer never replaces that of a later query. */
function useSearch(query: string): Found | undefined {
  const [found, setFound] = useState<Found>();
  const wanted = query.trim();
  useEffect(() => {
    if (wanted === "") return setFound(undefined);
    const outdated = new AbortController();
    const timer = setTimeout(() => {
      const params = { query: wanted, limit: MAX_FOUND, session_id: session.peek()?.session_id };
      request("tools.search", params, { signal: outdated.signal })
        .then(setFound)
        .catch((error: unknown) => outdated.signal.aborted || report(error));
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      outdated.abort();
    };
  }, [wanted]);
  return wanted === "" ? undefined : found;
}

function SearchResult({ found, chosen }: { found: Found; chosen: string | undefined }) {
  if (found.tools.length === 0)
    return <p class="dim">No tool matches. Try other words: the search knows common synonyms.</p>;
  return (
    <>
      <h2 class="small dim">Best matches</h2>
      <ul class="tool-names" aria-label="Search result">
        {found.tools.map((tool) => (
          <ToolLink key={tool.name} name={tool.name} about={tool.description} source={tool.source} chosen={chosen} />
        ))}
      </ul>
      {found.more > 0 && <p class="small dim">{found.more} more: add a word.</p>}
    </>
  );
}

function Groups({ chosen }: { chosen: string | undefined }) {
  return (
    <>
      {groups.value.map((group) => (
        <Group key={`${group.source.kind} ${group.source.name}`} group={group} chosen={chosen} />
      ))}
    </>
  );
}

function Group({ group, chosen }: { group: ToolGroup; chosen: string | undefined }) {
  const { source } = group;
  const tokens = cost.value?.sources.find(({ source: each }) => each.kind === source.kind && each.name === source.name);
  return (
    <div>
      <h2 class="row small dim">
        <Text value={source.name} max={60} />
        <Badge>{source.kind}</Badge>
        {tokens && (
          <span title="Estimated tokens in a model's context">≈ {tokens.all.tokens.toLocaleString("en")} tokens</span>
        )}
      </h2>
      <ul class="tool-names">
        {group.tools.map((tool) => (
          <ToolLink key={tool.name} name={tool.name} about={firstSentence(tool)} chosen={chosen} />
        ))}
      </ul>
    </div>
  );
}

interface ToolLinkProps {
  name: string;
  about: string;
  source?: Tool["source"];
  chosen: string | undefined;
}

function ToolLink({ name, about, source, chosen }: ToolLinkProps) {
  return (
    <li>
      <ViewLink href={`/tools/${encodeURIComponent(name)}`} aria-current={name === chosen ? "page" : undefined}>
        <span class="row">
          <Text class="mono" value={name} />
          {source && source.kind !== "builtin" && (
            <span class="small dim">
              <Text value={source.name} max={40} />
            </span>
          )}
        </span>
        <Text class="small dim" value={about} max={110} />
      </ViewLink>
    </li>
  );
}

function firstSentence({ description }: Tool): string {
  return /^.*?[.!?](?=\s|$)/s.exec(description.slice(0, 400))?.[0] ?? description;
}
