/**
 * The one way to show text that tools, models and plugins wrote: as text, with everything that could hide or move other
 * text made visible, and cut when it is long.
 */
import { useState } from "preact/hooks";

/** How much is shown at first, and with each "Show more". */
const MAX_CHARS = 20_000;
const MAX_LINES = 400;

/**
 * Controls but for tabs and line feeds, marks and overrides of the writing direction, invisible separators, tags, and
 * halves of surrogate pairs. Joiners stay: several scripts and emoji need them.
 */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** The text with visible symbols in place of what a browser would hide or obey. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (char) => {
    const code = char.codePointAt(0)!;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\\u{${code.toString(16)}}`;
  });
}

/** The same on one line. */
export function oneLine(text: string): string {
  return visible(text.trim()).replace(/\n/g, "\u240a").replace(/\t/g, " ");
}

/** Text within a line; line feeds are shown as symbols. The whole of it is in the tooltip. */
export function Text({ value, max = 300, class: name }: { value: string; max?: number; class?: string }) {
  const shown = oneLine(value.length > 4 * max ? value.slice(0, 4 * max) : value);
  const cut = [...shown].slice(0, max).join("");
  return (
    <bdi class={name} title={cut === shown ? undefined : shown}>
      {cut}
      {cut.length < shown.length || value.length > 4 * max ? "…" : ""}
    </bdi>
  );
}

interface BlockProps {
  value: string;
  /** Which end is shown of a text that is too long: `end` for output that grows. */
  from?: "start" | "end";
  class?: string;
  label?: string;
}

/** Text of several lines, with "Show more" when it is long. */
export function Block({ value, from = "start", class: name = "", label }: BlockProps) {
  const [steps, setSteps] = useState(1);
  const shown = cutText(value, from, steps * MAX_CHARS, steps * MAX_LINES);
  const hidden = value.length - shown.length;
  const more = hidden > 0 && (
    <button type="button" class="more" onClick={() => setSteps(steps * 3)}>
      Show more ({shown.length.toLocaleString("en")} of {value.length.toLocaleString("en")} characters)
    </button>
  );
  return (
    <div class={`block ${name}`}>
      {from === "end" && more}
      <pre tabIndex={0} aria-label={label} role={label === undefined ? undefined : "region"}>
        <code>{visible(shown)}</code>
      </pre>
      {from === "start" && more}
    </div>
  );
}

/** The part of a text that is shown. It never reads the whole of a text that is longer. */
export function cutText(text: string, from: "start" | "end", chars: number, lines: number): string {
  if (from === "end") {
    const tail = text.slice(-chars);
    let at = tail.length;
    for (let line = 0; line < lines && at >= 0; line += 1) at = tail.lastIndexOf("\n", at - 1);
    return at < 0 ? tail : tail.slice(at + 1);
  }
  const head = text.slice(0, chars);
  let at = -1;
  for (let line = 0; line < lines; line += 1) {
    at = head.indexOf("\n", at + 1);
    if (at < 0) return head;
  }
  return head.slice(0, at + 1);
}
