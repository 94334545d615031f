/** Unified diffs as the two texts of a diff editor. Does not use `vscode`. */

export interface Sides {
  before: string;
  after: string;
}

interface Hunk {
  /** From 0. */
  start: number;
  lines: string[];
}

/**
 * The file before and after. If the diff does not apply to `current`, the present text of the file, only the parts in the
 * diff.
 */
export function sides(diff: string, current: string): Sides {
  const hunks = parse(diff);
  const after = patch(hunks, current);
  if (after !== undefined) return { before: current, after };
  const part = (marks: string) => hunks.map(({ lines }) => join(lines, marks)).join("");
  return { before: part(" -"), after: part(" +") };
}

function parse(diff: string): Hunk[] {
  const hunks: Hunk[] = [];
  for (const line of diff.split("\n")) {
    const header = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/.exec(line);
    // A hunk without old lines names the line that it follows.
    if (header) hunks.push({ start: Number(header[1]) - (header[2] === "0" ? 0 : 1), lines: [] });
    else if (/^[ +\-\\]/.test(line)) hunks.at(-1)?.lines.push(line);
  }
  return hunks;
}

/** The lines with one of these marks, including line ends. */
function join(lines: string[], marks: string): string {
  let text = "";
  for (const [i, line] of lines.entries()) {
    if (!marks.includes(line[0]!)) continue;
    // `\ No newline at end of file` refers to the line before.
    text += line.slice(1) + (lines[i + 1]?.startsWith("\\") ? "" : "\n");
  }
  return text;
}

function patch(hunks: Hunk[], current: string): string | undefined {
  const lines = current.split(/(?<=\n)/);
  let after = "";
  let next = 0;
  for (const { start, lines: changes } of hunks) {
    if (start < next || start > lines.length) return undefined;
    const old = join(changes, " -");
    const count = old === "" ? 0 : old.split(/(?<=\n)/).length;
    if (lines.slice(start, start + count).join("") !== old) return undefined;
    after += lines.slice(next, start).join("") + join(changes, " +");
    next = start + count;
  }
  return after + lines.slice(next).join("");
}
