/** The outcome of a call: its blocks, its structured data and metadata, or why it failed. */
import { useEffect, useState } from "preact/hooks";
import type { Block as ResultBlock, ToolResult } from "toold/browser";

import { Badge, Copy } from "../../components.tsx";
import { Markdown } from "../../formatted.tsx";
import { Block, Text } from "../../text.tsx";
import { bytes, duration } from "../../time.tsx";
import { adviceFor, type CallEnd, type PageCall } from "./calls.ts";
import { JsonTree, Structured } from "./json-tree.tsx";

/** Types that a browser shows as pictures. SVG is not among them: it is a document. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);

export function Outcome({ end, call }: { end: CallEnd; call: PageCall }) {
  if ("error" in end) return <Failure error={end.error} after={end.at - call.started} />;
  return <Result result={end.result} />;
}

function Failure({ error, after }: { error: Error; after: number }) {
  const { kind, advice } = adviceFor(error);
  const { code, data } = error as Error & { code?: number; data?: Record<string, unknown> };
  const suggestions = Array.isArray(data?.["suggestions"]) ? data["suggestions"].map(String) : [];
  return (
    <section class="card outcome" aria-label="Error" role="alert">
      <p class="row">
        <Badge tone="bad">{kind === "cancelled" ? "cancelled" : "error"}</Badge>
        {kind && <code>{kind}</code>}
        {code !== undefined && <span class="dim mono">{code}</span>}
        <span class="dim">after {duration(after)}</span>
      </p>
      <Block value={error.message} label="Error message" />
      {suggestions.length > 0 && (
        <p>
          Did you mean <Text value={suggestions.join(", ")} />?
        </p>
      )}
      {advice && <p>{advice}</p>}
      {data && Object.keys(data).length > 0 && <Details title="Error data" value={data} />}
    </section>
  );
}

export function Result({ result }: { result: ToolResult }) {
  const { content, is_error, structured, metadata, duration_ms, cached } = result;
  return (
    <section class="card outcome" aria-label="Result">
      <p class="row">
        <Badge tone={is_error ? "bad" : "good"}>{is_error ? "failed" : "ok"}</Badge>
        <span class="dim">{duration(duration_ms)}</span>
        {cached && <Badge tone="info">from the cache</Badge>}
      </p>
      {content.length === 0 && <p class="dim">The result has no content.</p>}
      {content.map((block, at) => (
        <Content key={at} block={block} />
      ))}
      {structured !== undefined && (
        <section class="stack" aria-label="Structured data">
          <h3>Structured data</h3>
          <Structured value={structured} />
        </section>
      )}
      {Object.keys(metadata).length > 0 && <Details title="Metadata, which the model does not see" value={metadata} />}
    </section>
  );
}

function Details({ title, value }: { title: string; value: unknown }) {
  return (
    <details>
      <summary>{title}</summary>
      <JsonTree value={value} />
    </details>
  );
}

export function Content({ block }: { block: ResultBlock }) {
  switch (block.type) {
    case "text":
      return <TextContent value={block.text} />;
    case "image":
    case "audio":
      return <Media data={block.data} type={block.mime_type} />;
    case "resource":
      return <Resource {...block} />;
  }
}

function TextContent({ value }: { value: string }) {
  const [asMarkdown, setAsMarkdown] = useState(false);
  const worthIt = /^#{1,6} |^[-*] |^\d+\. |```|\*\*|^\|.*\|$|\]\(/m.test(value.slice(0, 20_000));
  return (
    <div class="stack">
      <div class="buttons">
        {worthIt && (
          <button type="button" aria-pressed={asMarkdown} onClick={() => setAsMarkdown(!asMarkdown)}>
            {asMarkdown ? "Show as text" : "Show as Markdown"}
          </button>
        )}
        <Copy value={value} label="Copy the text" />
      </div>
      {asMarkdown ? <Markdown value={value} /> : <Block value={value} label="Text of the result" />}
    </div>
  );
}

/** Pictures are shown. Everything else can be saved, but not opened here, since a browser might run it. */
function Media({ data, type }: { data: string; type: string }) {
  const url = useBlob(data, type);
  const size = bytes(Math.floor((data.length * 3) / 4));
  const isPicture = PICTURES.has(type.toLowerCase());
  return (
    <figure class="stack">
      {url && isPicture && <img class="result-image" src={url} alt={`Image of the result, ${type}`} />}
      <figcaption class="small dim">
        <Text value={type} max={80} />, {size}
        {url === null && ", which is not valid base64"}
        {url && !isPicture && (
          <>
            {" "}
            <a href={url} download="result">
              Save
            </a>
          </>
        )}
      </figcaption>
    </figure>
  );
}

/** A URL of the bytes while they are shown; `null` when they cannot be read. */
function useBlob(data: string, type: string): string | null | undefined {
  const [url, setUrl] = useState<string | null>();
  useEffect(() => {
    let made: string | undefined;
    try {
      const characters = atob(data.replace(/\s/g, ""));
      const array = Uint8Array.from(characters, (character) => character.charCodeAt(0));
      made = URL.createObjectURL(
        new Blob([array], { type: PICTURES.has(type.toLowerCase()) ? type : "application/octet-stream" }),
      );
      setUrl(made);
    } catch {
      setUrl(null);
    }
    return () => made !== undefined && URL.revokeObjectURL(made);
  }, [data, type]);
  return url;
}

function Resource({ uri, mime_type, text, blob, name, description }: Extract<ResultBlock, { type: "resource" }>) {
  const isWeb = /^https?:\/\//i.test(uri);
  return (
    <div class="card">
      <p class="row">
        <Badge>resource</Badge>
        {name && <Text value={name} />}
        {mime_type && <Text class="dim small" value={mime_type} max={80} />}
      </p>
      <p>
        {isWeb ? (
          <a href={uri} target="_blank" rel="noopener noreferrer">
            <Text value={uri} />
          </a>
        ) : (
          <Text class="mono" value={uri} />
        )}
      </p>
      {description && <Text value={description} max={600} />}
      {text !== undefined && <Block value={text} label="Text of the resource" />}
      {blob !== undefined && <Media data={blob} type={mime_type ?? "application/octet-stream"} />}
    </div>
  );
}
