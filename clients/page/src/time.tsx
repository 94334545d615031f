/** Times and durations, in the viewer's time zone. */
import { signal } from "@preact/signals";

/** The time, which changes each second while the page is visible. */
export const clock = signal(Date.now());

setInterval(() => {
  if (!document.hidden) clock.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => (clock.value = Date.now()));

/** In the browser's locale, but always with 24 hours. */
const format = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(undefined, { ...options, hourCycle: "h23" });
const minute = { hour: "2-digit", minute: "2-digit" } as const;
const second = { ...minute, second: "2-digit" } as const;
const day = { day: "numeric", month: "short" } as const;

/** The formats of all times and dates in the page. */
export const formats = {
  whole: format({ dateStyle: "full", timeStyle: "long" }),
  year: format({ dateStyle: "medium" }),
  day: format(day),
  dayMinute: format({ ...day, ...minute }),
  daySecond: format({ ...day, ...second }),
  minute: format(minute),
  second: format(second),
  millisecond: format({ ...second, fractionalSecondDigits: 3 }),
};

/** How long ago a time was, or the time itself if that is longer than an hour; the whole of it is in the tooltip. */
export function Time({ at }: { at: string | Date }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return <span>unknown</span>;
  return (
    <time dateTime={time.toISOString()} title={formats.whole.format(time)}>
      {ago(time, clock.value)}
    </time>
  );
}

export function ago(time: Date, now: number): string {
  const seconds = Math.round((now - time.getTime()) / 1000);
  if (seconds < 0) return `in ${duration(-seconds * 1000)}`;
  if (seconds < 2) return "now";
  if (seconds < 3600) return `${duration(seconds < 60 ? seconds * 1000 : Math.floor(seconds / 60) * 60_000)} ago`;
  if (seconds < 12 * 3600) return formats.second.format(time);
  return seconds < 300 * 24 * 3600 ? formats.dayMinute.format(time) : formats.year.format(time);
}

/** `340 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  return units(Math.round(seconds));
}

function units(seconds: number): string {
  const parts = [
    { unit: "d", count: Math.floor(seconds / 86_400) },
    { unit: "h", count: Math.floor(seconds / 3600) % 24 },
    { unit: "min", count: Math.floor(seconds / 60) % 60 },
    { unit: "s", count: seconds % 60 },
  ];
  const first = parts.findIndex(({ count }) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count} ${unit}`)
    .join(" ");
}

/** `512 B`, `1.5 KiB`, `10 MiB`. */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let value = count;
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${at === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[at]}`;
}
