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
  const read = useMemo(() => parse(value), [value]);
  if (read === undefined) return <Block value={value} label="Diff" />;
  return (
    <div class="diff-files" tabIndex={0} role="region" aria-label="Diff">
      {read.notes.map((note, at) => (
        <p key={at} class="diff-name">
          <Text value={note} />
        </p>
      ))}
      {read.files.map((file, at) => (
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

/** `undefined` for a text that is too long, that is no diff, or that the parser does not read to its end. */
function parse(text: string): { files: FileData[]; notes: readonly string[] } | undefined {
  if (text.length > MAX_DIFF) return undefined;
  const { lines, notes, count } = withHeaders(/^(diff --git|--- |#)/.test(text) ? text : `--- a\n+++ b\n${text}`);
  try {
    const files = parseDiff(lines.join("\n"), { nearbySequences: "zip" }).filter(({ hunks }) => hunks.length > 0);
    const read = files.flatMap((file) => file.hunks).reduce((sum, hunk) => sum + hunk.changes.length, 0);
    return read > 0 && read === count ? { files, notes } : undefined;
  } catch {
    return undefined;
  }
}

function shortened(line: string): string {
  const hidden = line.length - MAX_LINE;
  return visible(hidden > 0 ? `${line.slice(0, MAX_LINE)} … ${hidden} more characters` : line);
}

/**
 * The lines with a header for each file, since the parser finds files by those, and how many lines the hunks have. Lines of a
 * file may look like headers of another one, and what is approved must not be hidden by that. Modes, encodings and remarks,
 * which the parser leaves out, are notes.
 */
function withHeaders(diff: string): { lines: readonly string[]; notes: readonly string[]; count: number } {
  const lines: string[] = [];
  const notes: string[] = [];
  let count = 0;
  let name = "";
  let left = { old: 0, new: 0 };
  for (const line of diff.split("\n")) {
    const header = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (left.old > 0 || left.new > 0) {
      if (!line.startsWith("\\")) {
        count += 1;
        if (!line.startsWith("+")) left.old -= 1;
        if (!line.startsWith("-")) left.new -= 1;
      }
    } else if (header) {
      left = { old: Number(header[1] ?? 1), new: Number(header[2] ?? 1) };
      name = "";
    } else if (line.startsWith("diff --git ")) {
      name = line.replace(/.* b\//, "");
    } else if (line.startsWith("--- ")) {
      if (name === "" || !line.endsWith(name)) lines.push("diff --git a/ b/");
    } else if (/^(#|(old|new) mode|encoding|line ends)/.test(line)) {
      notes.push(name === "" ? line : `${name}: ${line}`);
      continue;
    }
    lines.push(shortened(line));
  }
  return { lines, notes, count };
}
