/** Times and durations, in the viewer's time zone. */
import { signal } from "@preact/signals";

/** The time, which changes each second while the page is visible. */
export const clock = signal(Date.now());

setInterval(() => {
  if (!document.hidden) clock.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => (clock.value = Date.now()));

const whole = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "long" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
const year = new Intl.DateTimeFormat("en", { dateStyle: "medium" });

/** How long ago a time was, or the time itself if that is longer than an hour; the whole of it is in the tooltip. */
export function Time({ at }: { at: string | Date }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return <span>unknown</span>;
  return (
    <time dateTime={time.toISOString()} title={whole.format(time)}>
      {ago(time, clock.value)}
    </time>
  );
}

export function ago(time: Date, now: number): string {
  const seconds = Math.round((now - time.getTime()) / 1000);
  if (seconds < 0) return `in ${duration(-seconds * 1000)}`;
  if (seconds < 2) return "now";
  if (seconds < 3600) return `${duration(seconds < 60 ? seconds * 1000 : Math.floor(seconds / 60) * 60_000)} ago`;
  if (seconds < 12 * 3600) return hour.format(time);
  return seconds < 300 * 24 * 3600 ? day.format(time) : year.format(time);
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

/** `512 B`, `1.5 KB`, `10 MB`. */
export function bytes(count: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let value = count;
  for (; value >= 1000 && at < units.length - 1; at += 1) value /= 1000;
  return `${at === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[at]}`;
}
