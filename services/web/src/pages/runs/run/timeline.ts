/** Computes the bars of a run's last attempt: the wait, its phases, its calls and its tools. */
import type { Schemas } from "../../../api/client";
import type { Bar } from "../../../components/SvgBars";
import type { RunTool } from "./tools";

/** What the bars are made of. `ends` are the times at which attempts ended. */
export interface TimelineParts {
  run: Pick<Schemas["RunDetails"], "createdAt" | "endedAt" | "attempt">;
  statuses: { phase: string; at: string }[];
  ends: string[];
  calls: Schemas["Call"][];
  tools: RunTool[];
  now: number;
}

/** Bars in their order, and the number of earlier calls that have none. */
export interface Timeline {
  bars: Bar[];
  leftOut: number;
}

const MAX_CALLS = 60;

/** Returns the bars: those of the phases, and of the last calls and tools. */
export function timeline({ run, statuses, ends, calls, tools, now }: TimelineParts): Timeline {
  const previousEnd = run.endedAt === null ? ends.at(-1) : ends.at(-2);
  const ended = run.attempt > 0 && previousEnd !== undefined ? Date.parse(previousEnd) : 0;
  const first = statuses.find(({ at }) => Date.parse(at) >= ended);
  // A later attempt is queued by an event of its own; the first one by its order.
  const origin = run.attempt > 0 && first !== undefined ? Date.parse(first.at) : Date.parse(run.createdAt);
  const end = run.endedAt === null ? now : Date.parse(run.endedAt);
  const since = (at: number) => Math.max(0, at - origin);
  const own = statuses.filter(({ at }) => Date.parse(at) >= ended);
  const bars: Bar[] = [];
  if (run.attempt === 0) {
    bars.push({ label: "queued", tone: "wait", start: 0, end: since(first === undefined ? end : Date.parse(first.at)) });
  }
  for (const [index, { phase, at }] of own.entries()) {
    const next = own[index + 1];
    const until = next === undefined ? end : Date.parse(next.at);
    bars.push({ label: phase, tone: phase === "queued" ? "wait" : "phase", start: since(Date.parse(at)), end: since(until) });
  }
  const asked = calls.filter((call) => call.attempt === run.attempt && call.kind === "model");
  for (const call of asked.slice(-MAX_CALLS)) {
    const start = since(Date.parse(call.at));
    const isBad = call.outcome !== "complete" || call.status >= 400;
    bars.push({ label: call.modelAsked ?? call.route, tone: isBad ? "bad" : "call", start, end: start + call.durationMs });
  }
  const used = toolsOf(tools, run.attempt, ended);
  for (const { tool, start } of used.slice(-MAX_CALLS)) {
    const until = tool.endedAt === null ? end : Date.parse(tool.endedAt);
    bars.push({ label: tool.name, tone: tool.isFailure ? "bad" : "tool", start: since(start), end: since(until) });
  }
  return { bars, leftOut: Math.max(0, asked.length - MAX_CALLS) + Math.max(0, used.length - MAX_CALLS) };
}

/** Returns the tools of an attempt in their order: those with its number, or that began after `ended`. */
function toolsOf(tools: RunTool[], attempt: number, ended: number): { tool: RunTool; start: number }[] {
  const begun = tools.flatMap((tool) => (tool.startedAt === null ? [] : [{ tool, start: Date.parse(tool.startedAt) }]));
  const own = begun.filter(({ tool, start }) => (tool.attempt === null ? start >= ended : tool.attempt === attempt));
  return own.sort((one, other) => one.start - other.start);
}
