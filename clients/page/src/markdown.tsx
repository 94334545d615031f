/** Markdown of tools and models: no HTML, no images, links that show where they lead. */
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import Markdown, { type Components } from "react-markdown";
import type {} from "remark-parse";
import type { Processor } from "unified";

import { Block, visible } from "./text.tsx";

/** A longer text is shown as text: it would take too long to lay out. */
const MAX_MARKDOWN = 50_000;

/** Tables, tasks and links of GitHub. The package `remark-gfm` brings the way back to Markdown too, which is as long. */
function readGfm(this: Processor): void {
  const data = this.data();
  (data.micromarkExtensions ??= []).push(gfm());
  (data.fromMarkdownExtensions ??= []).push(gfmFromMarkdown());
}

const components: Components = {
  a({ href, children }) {
    if (typeof href !== "string" || !/^https?:\/\//i.test(href)) return <span>{children}</span>;
    return (
      <>
        <a href={href} target="_blank" rel="noopener noreferrer">
          {children}
        </a>{" "}
        <bdi class="target">({href})</bdi>
      </>
    );
  },
  img: ({ alt, src }) => (
    <bdi class="target">
      [image: {alt} {typeof src === "string" ? src : ""}]
    </bdi>
  ),
};

export default function MarkdownText({ value }: { value: string }) {
  if (value.length > MAX_MARKDOWN) return <Block value={value} />;
  return (
    <div class="markdown">
      <Markdown remarkPlugins={[readGfm]} components={components} skipHtml={false}>
        {visible(value)}
      </Markdown>
    </div>
  );
}
