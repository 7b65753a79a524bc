/** Makes rows of charts of the figures of an overview. Pure. */
import { type Schemas, encodePart } from "../../../api/client";
import { formatDollars, formatDuration } from "../../../base/text/format";
import type { ChartRow, Series } from "../../../components/charts/ChartTable";

/** Answer of `GET /api/v1/ai/overview`. */
export type Overview = Schemas["Overview"];
/** Span of time that an overview covers. */
export type Range = Overview["range"];

/** All spans, with their names for people. */
export const RANGES: [Range, string][] = [
  ["1h", "Hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"],
];

/** Returns the span that `text` names, or a day. */
export function readRange(text: string | null): Range {
  return RANGES.find(([range]) => range === text)?.[0] ?? "24h";
}

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Formats a large count in a few characters, such as `1.2M`. */
export function formatCompact(count: number): string {
  return COMPACT.format(count);
}

/** Formats dollars that are a number, with as many decimals as a small amount needs. */
export function formatAmount(dollars: number): string {
  const decimals = dollars !== 0 && Math.abs(dollars) < 1 ? 4 : 2;
  return formatDollars(dollars.toFixed(decimals));
}

const DAY_SECONDS = 86_400;

/** Names the beginning of a span. Days are those of UTC, as the server counts them; hours are those of this browser. */
export function spanLabel(at: string, spanSeconds: number): string {
  const date = new Date(at);
  if (spanSeconds >= DAY_SECONDS) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** Formats the cost of calls, of which none may have a price. */
export function formatCost({ cost, calls, unpriced }: Pick<Overview["total"], "cost" | "calls" | "unpriced">): string {
  return calls > 0 && unpriced === calls ? "no price" : formatDollars(cost);
}

/** Series of spending. */
export const SPENDING: Series[] = [{ name: "Cost", tone: "one" }];
/** Series of tokens. */
export const TOKENS: Series[] = [{ name: "Output", tone: "one" }, { name: "Input", tone: "two" }];
/** Series of runs by outcome. */
export const OUTCOMES: Series[] = [
  { name: "Succeeded", tone: "good" }, { name: "Cancelled", tone: "idle" }, { name: "Timed out", tone: "warn" },
  { name: "Failed", tone: "bad" },
];
/** Series of what an account or a model used. */
export const USAGE: Series[] = [{ name: "Cost", tone: "one" }, { name: "Tokens", tone: "two" }, { name: "Calls", tone: "two" }];

/** Returns the cost of each span. */
export function spendingRows({ byTime, spanSeconds }: Overview): ChartRow[] {
  return byTime.map((row) => ({
    label: spanLabel(row.at, spanSeconds), values: [Number(row.cost)], exact: [formatCost(row)],
  }));
}

/** Returns the tokens of each span. */
export function tokenRows({ byTime, spanSeconds }: Overview): ChartRow[] {
  return byTime.map(({ at, inputTokens, outputTokens }) => ({ label: spanLabel(at, spanSeconds), values: [outputTokens, inputTokens] }));
}

/** Returns the runs of each span by outcome. */
export function outcomeRows({ runs, spanSeconds }: Overview): ChartRow[] {
  return runs.map((row) => ({
    label: spanLabel(row.at, spanSeconds), values: [row.succeeded, row.cancelled, row.timedOut, row.failed],
  }));
}

type Usage = Pick<Overview["total"], "cost" | "inputTokens" | "outputTokens" | "calls" | "unpriced">;

function usageRow(label: string, usage: Usage): ChartRow {
  const values = [Number(usage.cost), usage.inputTokens + usage.outputTokens, usage.calls];
  const [, tokens, calls] = values.map((value) => value.toLocaleString("en"));
  return { label, values, exact: [formatCost(usage), tokens ?? "", calls ?? ""] };
}

/** Returns what each account used. */
export function accountRows({ byAccount }: Overview): ChartRow[] {
  return byAccount.map((row) => ({ ...usageRow(row.account, row), to: `/accounts/${encodePart(row.account)}` }));
}

/** Returns what each model used. */
export function modelRows({ byModel }: Overview): ChartRow[] {
  return byModel.map((row) => usageRow(row.model ?? "no model", row));
}

/** Returns numbers by code. */
export function codeRows(counts: Overview["failures"]): ChartRow[] {
  return counts.map(({ code, count }) => ({ label: code.replaceAll("_", " "), values: [count] }));
}

/** Returns the runs by how long they waited. */
export function waitRows({ waits: { groups } }: Overview): ChartRow[] {
  return groups.map(({ belowMs, runs }, index) => {
    const before = groups[index - 1]?.belowMs ?? 0;
    const label = belowMs === null ? `${shortDuration(before)} or more` : `less than ${shortDuration(belowMs)}`;
    return { label, values: [runs] };
  });
}

function shortDuration(ms: number): string {
  return ms >= 60_000 ? `${ms / 60_000} m` : ms >= 1_000 ? `${ms / 1_000} s` : formatDuration(ms);
}

/** Returns the sum of the first values of `rows`. */
export function sumOf(rows: ChartRow[]): number {
  return rows.reduce((sum, { values }) => sum + (values[0] ?? 0), 0);
}

/** Returns how many runs ended, and how many of them as they should. */
export function countRuns({ runs }: Overview): { ended: number; succeeded: number } {
  const succeeded = runs.reduce((sum, row) => sum + row.succeeded, 0);
  return { succeeded, ended: runs.reduce((sum, row) => sum + row.succeeded + row.failed + row.cancelled + row.timedOut, 0) };
}
