/** Reads the state of the system for people. Pure. */
import type { Schemas } from "../../../api/client";
import type { Tone } from "../../../components/StateChip";

/** Answer of `GET /api/v1/system`. */
export type System = Schemas["System"];
/** State of the data plane. */
export type DataPlane = Schemas["DataPlaneState"];
/** State of the journal, with its readers. */
export type Journal = Schemas["JournalStatus"];
/** Part of the system that needs an action. */
export type SystemFinding = Schemas["SystemFinding"];

/** Number of runs in one state, with its part of the largest number. */
export interface StateCount {
  state: string;
  count: number;
  share: number;
}

const TONES = new Map<string, Tone>([
  ["ok", "good"], ["ready", "good"], ["up", "good"], ["open", "good"],
  ["not_ready", "warn"], ["probing", "warn"], ["over_budget", "warn"],
  ["unavailable", "bad"], ["down", "bad"], ["full", "bad"], ["unmarked", "bad"], ["closed", "bad"], ["stopped", "bad"],
]);

const ORDER = ["queued", "preparing", "starting", "running", "collecting", "settling", "succeeded", "failed", "cancelled", "timed_out"];

/** Returns the meaning of a state of a part. A state of a later version has none. */
export function toneOf(state: string): Tone {
  return TONES.get(state) ?? "idle";
}

/** Returns the counts of runs in the order of a run's life; states of a later version come last. */
export function readCounts(runs: System["runs"]): StateCount[] {
  const rank = (state: string) => (ORDER.includes(state) ? ORDER.indexOf(state) : ORDER.length);
  const largest = Math.max(1, ...Object.values(runs));
  return Object.entries(runs)
    .map(([state, count]) => ({ state, count, share: count / largest }))
    .sort((a, b) => rank(a.state) - rank(b.state));
}

/** Formats a time of uninterrupted work, such as `3 d 4 h` or `12 m`. */
export function formatUptime(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes === 0 ? `${Math.max(0, Math.floor(seconds))} s` : `${minutes} m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
