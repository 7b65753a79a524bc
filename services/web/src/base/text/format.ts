/** Formats numbers, money and durations the same way on all pages. */
import { visibleText } from "./marks";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats a number of bytes, such as `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

const COUNTS = new Intl.NumberFormat("en");

/** Formats a count with separators, such as `12,340`. */
export function formatCount(count: number): string {
  return COUNTS.format(count);
}

/** Returns a count with its noun, such as `1 call` or `2 calls`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Formats dollars, which are text so that no float rounds them: at least two decimals, and no others that are zero. */
export function formatDollars(dollars: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(dollars);
  if (match === null) return visibleText(dollars);
  const decimals = (match[3] ?? "").replace(/0+$/, "").padEnd(2, "0");
  return `${match[1]}$${Number(match[2]).toLocaleString("en")}.${decimals}`;
}

/** Formats a duration in milliseconds, such as `340 ms`, `4.2 s`, `3 m 05 s` or `2 h 10 m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} m`;
}

/** Formats a time of day, with the date unless it is today. */
export function formatTime(iso: string, now: Date = new Date()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const time = at.toLocaleTimeString("en-GB");
  if (at.toDateString() === now.toDateString()) return time;
  const day = at.toLocaleDateString("en-CA");
  return `${day} ${time}`;
}
