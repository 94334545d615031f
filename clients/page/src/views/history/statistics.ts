/** Figures about calls, for the plots. */
import type { AuditEntry } from "toold/browser";

import { savedBy } from "./audit-log.ts";

export interface Interval {
  /** In milliseconds since 1970. */
  start: number;
  calls: number;
  denied: number;
  /** By the cache, in milliseconds; 0 when the log does not say so. */
  savedMs: number;
}

export interface ToolLatency {
  tool: string;
  calls: number;
  p50: number;
  p95: number;
}

const MINUTE = 60_000;
const WIDTHS = [1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60].map((minutes) => minutes * MINUTE);
const MAX_INTERVALS = 180;

/** Equal intervals from the first call to the last, without gaps. */
export function intervals(entries: readonly AuditEntry[]): { widthMs: number; intervals: Interval[] } {
  const times = entries.map(({ at }) => Date.parse(at));
  let [first, last] = [Infinity, -Infinity];
  for (const time of times) [first, last] = [Math.min(first, time), Math.max(last, time)];
  if (times.length === 0) return { widthMs: MINUTE, intervals: [] };
  const widthMs = WIDTHS.find((width) => (last - first) / width < MAX_INTERVALS) ?? WIDTHS.at(-1)!;
  const start = Math.floor(first / widthMs) * widthMs;
  const count = Math.floor((last - start) / widthMs) + 1;
  const result = Array.from({ length: count }, (_, at) => ({
    start: start + at * widthMs,
    calls: 0,
    denied: 0,
    savedMs: 0,
  }));
  entries.forEach((entry, at) => {
    const interval = result[Math.floor((times[at]! - start) / widthMs)]!;
    interval.calls += 1;
    if (entry.outcome === "denied") interval.denied += 1;
    interval.savedMs += savedBy(entry);
  });
  return { widthMs, intervals: result };
}

/** Of the tools with the most calls, the most first. Calls that did not run don't count. */
export function latencies(entries: readonly AuditEntry[], max: number): ToolLatency[] {
  const byTool = new Map<string, number[]>();
  for (const { tool, outcome, duration_ms, cached } of entries) {
    if (cached || (outcome !== "ok" && outcome !== "error" && outcome !== "timed_out")) continue;
    const durations = byTool.get(tool);
    if (durations) durations.push(duration_ms);
    else byTool.set(tool, [duration_ms]);
  }
  return [...byTool]
    .sort(([, left], [, right]) => right.length - left.length)
    .slice(0, max)
    .map(([tool, durations]) => {
      durations.sort((left, right) => left - right);
      return { tool, calls: durations.length, p50: rank(durations, 0.5), p95: rank(durations, 0.95) };
    });
}

/** The nearest rank in a sorted list. */
function rank(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
