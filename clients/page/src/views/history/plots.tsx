/** Plots of the chosen calls: how many, how many denied, how long, and what the cache saved. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEntry, CacheStatsResult } from "toold/browser";
import uPlot from "uplot";

import { Empty, Table } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { bytes, duration, formats } from "../../time.tsx";
import { report } from "../../toasts.tsx";
import { axis, Plot, type PlotColors } from "./plot.tsx";
import { intervals, latencies, type Interval, type ToolLatency } from "./statistics.ts";

const MAX_TOOLS = 12;

export default function Plots({ entries }: { entries: readonly AuditEntry[] }) {
  const time = useMemo(() => intervals(entries), [entries]);
  const tools = useMemo(() => latencies(entries, MAX_TOOLS), [entries]);
  if (entries.length === 0) return <Empty title="No calls to plot" />;
  return (
    <div class="plots">
      <CallsPlot {...time} />
      <DenialsPlot {...time} />
      {tools.length > 0 && <LatencyPlot tools={tools} />}
      <Cache entries={entries} {...time} />
    </div>
  );
}

interface Timed {
  widthMs: number;
  intervals: readonly Interval[];
}

function CallsPlot({ widthMs, intervals }: Timed) {
  const rate = (calls: number) => calls / (widthMs / 60_000);
  const data = useMemo(() => timed(intervals, ({ calls }) => rate(calls)), [intervals]);
  const highest = Math.max(...intervals.map(({ calls }) => rate(calls)));
  return (
    <Plot
      title="Calls per minute"
      summary={`At most ${number(highest)}, in intervals of ${duration(widthMs)}`}
      data={data}
      options={(colors) => overTime(colors, colors.accent, number)}
      table={
        <IntervalTable caption="Calls per minute" intervals={intervals} value={({ calls }) => number(rate(calls))} />
      }
    />
  );
}

function DenialsPlot({ widthMs, intervals }: Timed) {
  const share = ({ calls, denied }: Interval) => (calls === 0 ? null : (100 * denied) / calls);
  const data = useMemo(() => timed(intervals, share), [intervals]);
  const [calls, denied] = [sum(intervals, ({ calls }) => calls), sum(intervals, ({ denied }) => denied)];
  const percent = (value: number) => `${number(value)} %`;
  return (
    <Plot
      title="Share of denials"
      summary={`${number(denied)} of ${number(calls)} calls were denied, in intervals of ${duration(widthMs)}`}
      data={data}
      options={(colors) => overTime(colors, colors.bad, percent)}
      table={
        <IntervalTable
          caption="Share of denials"
          intervals={intervals.filter(({ calls }) => calls > 0)}
          value={(interval) => `${percent(share(interval) ?? 0)} (${interval.denied} of ${interval.calls})`}
        />
      }
    />
  );
}

function LatencyPlot({ tools }: { tools: readonly ToolLatency[] }) {
  // A logarithmic scale has no zero.
  const atLeast = (ms: number) => Math.max(ms, 1);
  const data = useMemo<uPlot.AlignedData>(
    () => [tools.map((_, at) => at), tools.map(({ p95 }) => atLeast(p95)), tools.map(({ p50 }) => atLeast(p50))],
    [tools],
  );
  const decades = (_: uPlot, splits: number[]) => splits.map((ms) => (Number.isInteger(Math.log10(ms)) ? ms : null));
  const slowest = tools.reduce((left, right) => (right.p95 > left.p95 ? right : left));
  const options = (colors: PlotColors): Omit<uPlot.Options, "width" | "height"> => ({
    padding: [8, 48, 0, 0],
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.6, tools.length - 0.4] },
      y: { distr: 3, range: (_, __, max) => [0.8, Math.max(10, max * 1.5)] },
    },
    axes: [
      axis(colors, {
        size: 72,
        rotate: -45,
        splits: () => tools.map((_, at) => at),
        values: () => tools.map(({ tool }) => (tool.length > 14 ? `${tool.slice(0, 13)}…` : tool)),
        grid: { show: false },
      }),
      axis(colors, {
        size: 60,
        filter: decades,
        grid: { stroke: colors.line, width: 1, filter: decades },
        ticks: { stroke: colors.line, width: 1, filter: decades },
        values: (_, splits) => splits.map((ms) => (ms === null ? "" : duration(ms))),
      }),
    ],
    series: [
      {},
      { label: "p95", stroke: colors.warn, fill: colors.warn, points: { show: false }, paths: bars(0.35, 1) },
      { label: "p50", stroke: colors.accent, fill: colors.accent, points: { show: false }, paths: bars(0.35, -1) },
    ],
  });
  return (
    <Plot
      // The axis has the tools' names, so other tools make another plot.
      key={tools.map(({ tool }) => tool).join(" ")}
      title="Duration of each tool"
      summary={`Left the median (p50), right what 95 % stay below (p95). The longest p95 is ${duration(slowest.p95)}, of ${slowest.tool}`}
      data={data}
      options={options}
      table={
        <Table
          caption="Duration of each tool"
          rows={tools}
          keyOf={({ tool }) => tool}
          columns={[
            { title: "Tool", cell: ({ tool }) => <Text value={tool} /> },
            { title: "Calls", numeric: true, cell: ({ calls }) => calls },
            { title: "p50", numeric: true, cell: ({ p50 }) => duration(p50) },
            { title: "p95", numeric: true, cell: ({ p95 }) => duration(p95) },
          ]}
        />
      }
    />
  );
}

function Cache({ entries, widthMs, intervals }: Timed & { entries: readonly AuditEntry[] }) {
  const [stats, setStats] = useState<CacheStatsResult & { saved_ms?: number }>();
  useEffect(() => void request("cache.stats", {}).then(setStats, report), []);
  const data = useMemo(() => timed(intervals, ({ savedMs }) => savedMs / 1000), [intervals]);
  const cached = entries.filter(({ cached }) => cached);
  const saved = sum(intervals, ({ savedMs }) => savedMs);
  return (
    <>
      {cached.length > 0 && (
        <Plot
          title="Time saved by the cache"
          summary={`${duration(saved)} by ${cached.length} answers, in intervals of ${duration(widthMs)}`}
          data={data}
          options={(colors) => overTime(colors, colors.good, (seconds) => duration(seconds * 1000))}
          table={
            <IntervalTable
              caption="Time saved by the cache"
              intervals={intervals}
              value={({ savedMs }) => duration(savedMs)}
            />
          }
        />
      )}
      {stats && (
        <section class="card" aria-labelledby="cache-title">
          <h2 id="cache-title">Cache of results</h2>
          <dl class="facts">
            <dt>Answered from it</dt>
            <dd>
              {stats.hits} of {stats.hits + stats.misses} cacheable calls ({number(100 * stats.hit_rate)} %)
            </dd>
            {stats.saved_ms !== undefined && (
              <>
                <dt>Saved</dt>
                <dd>{duration(stats.saved_ms)}</dd>
              </>
            )}
            <dt>Shared</dt>
            <dd>{stats.shared} calls waited for an identical one</dd>
            <dt>Results</dt>
            <dd>
              {stats.entries}, {bytes(stats.size)} of {bytes(stats.capacity)}; {stats.evictions} evicted
            </dd>
          </dl>
          <p class="dim small">
            Since the daemon&#39;s start.
            {cached.length === 0 && " None of the calls above is known to be answered from it."}
          </p>
        </section>
      )}
    </>
  );
}

interface IntervalTableProps {
  caption: string;
  intervals: readonly Interval[];
  value: (interval: Interval) => string;
}

function IntervalTable({ caption, intervals, value }: IntervalTableProps) {
  return (
    <Table
      caption={caption}
      rows={intervals}
      keyOf={({ start }) => start}
      columns={[
        { title: "From", cell: ({ start }) => formats.dayMinute.format(start) },
        { title: caption, numeric: true, cell: value },
      ]}
    />
  );
}

function timed(intervals: readonly Interval[], value: (interval: Interval) => number | null): uPlot.AlignedData {
  return [intervals.map(({ start }) => start / 1000), intervals.map(value)];
}

function overTime(
  colors: PlotColors,
  color: string,
  format: (value: number) => string,
): Omit<uPlot.Options, "width" | "height"> {
  return {
    padding: [8, 8, 0, 0],
    cursor: { show: false },
    scales: {
      // A plot of a single moment would show the years after it.
      x: { range: ({ data }, min, max) => (data[0].length > 1 ? [min, max] : [min - 59, min + 59]) },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      axis(colors, { size: 28, space: 64, values: (_, splits) => timeLabels(splits) }),
      axis(colors, { size: 64, values: (_, splits) => splits.map(format) }),
    ],
    series: [{}, { stroke: color, width: 1, fill: color, points: { show: false }, paths: bars(0.9, 0) }],
  };
}

/** Within a day the times, else the days. */
function timeLabels(seconds: readonly number[]): string[] {
  const [first = 0, last = 0] = [seconds[0], seconds.at(-1)];
  const format = last - first > 2 * 24 * 3600 ? formats.day : formats.minute;
  return seconds.map((second) => format.format(second * 1000));
}

function bars(share: number, align: -1 | 0 | 1): uPlot.Series.PathBuilder {
  return uPlot.paths.bars!({ size: [share, 60], align });
}

function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
