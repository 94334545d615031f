/** Diffs and Markdown: plain text until the code that formats them is loaded. */
import { onDemand } from "./on-demand.tsx";
import { Block } from "./text.tsx";

export const Diff = onDemand<{ value: string }>(
  () => import("./diff.tsx"),
  ({ value }) => <Block value={value} label="Diff" />,
);

export const Markdown = onDemand<{ value: string }>(
  () => import("./markdown.tsx"),
  ({ value }) => <Block value={value} />,
);
