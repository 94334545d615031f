/** A unified diff: side by side on wide screens, unified on narrow ones. */
import { useMemo } from "preact/hooks";
import { Diff as FileDiff, Hunk, parseDiff, type FileData } from "react-diff-view";
import "react-diff-view/style/index.css";

import "./styles/diff.css";
import { useMedia } from "./media.ts";
import { Block, Text, visible } from "./text.tsx";

/** Longer diffs are shown as text, which has "Show more". */
const MAX_DIFF = 200_000;
const MAX_LINE = 2_000;

export default function Diff({ value }: { value: string }) {
  const wide = useMedia("(min-width: 60rem)");
  const files = useMemo(() => parse(value), [value]);
  if (files === undefined) return <Block value={value} label="Diff" />;
  return (
    <div class="diff-files" tabIndex={0} role="region" aria-label="Diff">
      {files.map((file, at) => (
        <div key={at}>
          {fileName(file) && (
            <p class="diff-name">
              <Text value={fileName(file)} />
            </p>
          )}
          <FileDiff viewType={wide ? "split" : "unified"} diffType={file.type} hunks={file.hunks} optimizeSelection>
            {(hunks) => hunks.map((hunk) => <Hunk key={hunk.content} hunk={hunk} />)}
          </FileDiff>
        </div>
      ))}
    </div>
  );
}

function fileName({ oldPath, newPath }: FileData): string {
  return newPath && newPath !== "/dev/null" ? newPath : (oldPath ?? "");
}

/** `undefined` for a text that is too long, or that is no diff. */
function parse(text: string): FileData[] | undefined {
  if (text.length > MAX_DIFF) return undefined;
  // The parser finds files by their headers, which a diff of one file may lack.
  const whole = /^(diff --git|--- )/m.test(text) ? text : `--- a\n+++ b\n${text}`;
  try {
    const lines = whole.split("\n").map((line) => visible(line.slice(0, MAX_LINE)));
    const files = parseDiff(lines.join("\n"), { nearbySequences: "zip" });
    if (!files.some((file) => file.hunks.length > 0)) return undefined;
    return files;
  } catch {
    return undefined;
  }
}
