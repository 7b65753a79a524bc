/** Turns events of a run into rows that people read. */
import type { Schemas } from "../../../api/client";
import { formatBytes, formatCount, plural } from "../../../base/text/format";

/** Event of a run. */
export type RunEvent = Schemas["Event"];

/** Kinds of rows, by which people filter. */
export const ROW_KINDS = ["phase", "text", "tool", "log", "usage", "gap", "end"] as const;

/** Kind of a row. */
export type RowKind = (typeof ROW_KINDS)[number];

/** Row of the list of events. Pieces of one text are one row. */
export interface EventRow {
  key: string;
  seq: number | null;
  at: string | null;
  kind: RowKind;
  label: string;
  text: string;
  cutBytes: number;
  isFailure: boolean;
  isLive: boolean;
}

type Content = Pick<EventRow, "kind" | "label" | "text"> & Partial<Pick<EventRow, "cutBytes" | "isFailure">>;

/** Returns the row of `event`; `number` makes the key of a live one unique. */
export function toRow(event: RunEvent, number: number): EventRow {
  const seq = event.seq ?? null;
  const base = { key: seq === null ? `live-${number}` : String(seq), seq, at: event.at ?? null, cutBytes: 0, isFailure: false };
  return { ...base, isLive: event.live === true, ...content(event) };
}

function content(event: RunEvent): Content {
  switch (event.type) {
    case "status":
      return { kind: "phase", label: event.phase, text: "" };
    case "activity":
      return { kind: "phase", label: event.kind.replaceAll("_", " "), text: event.label ?? "" };
    case "text_delta":
      return { kind: "text", label: "answer", text: event.delta };
    case "progress":
      return { kind: "text", label: "writes", text: event.text };
    case "assistant_final":
      return { kind: "text", label: "final answer", text: event.content, cutBytes: event.cutBytes ?? 0 };
    case "tool":
      return { kind: "tool", label: "model asks", text: event.name };
    case "tool_call":
      return { kind: "tool", label: "calls tool", text: `${event.name} ${event.arguments}`, cutBytes: event.cutBytes ?? 0 };
    case "tool_result":
      return {
        kind: "tool", label: event.isError ? "tool failed" : "tool result", text: event.result, cutBytes: event.cutBytes ?? 0,
        isFailure: event.isError,
      };
    case "host_tool":
      return {
        kind: "tool", label: `host tool ${event.state}`, text: `${event.name} ${event.arguments ?? ""}`,
        isFailure: ["failed", "denied", "unknown"].includes(event.state),
      };
    case "log":
      return { kind: "log", label: event.stream, text: event.text };
    default:
      return ending(event);
  }
}

type Tallied = Exclude<RunEvent, { type: "status" | "activity" | "text_delta" | "progress" | "assistant_final" | "tool" | "log" }>;

function ending(event: Exclude<Tallied, { type: "tool_call" | "tool_result" | "host_tool" }>): Content {
  switch (event.type) {
    case "log_cut":
      return { kind: "gap", label: "output cut", text: `${formatBytes(event.bytes)} of ${event.stream} left out here` };
    case "missed":
      return { kind: "gap", label: "missed", text: `${plural(event.count, "piece")} left out: there were too many` };
    case "pruned":
      return { kind: "gap", label: "no longer kept", text: `${plural(event.count, "older event")}; the answer stays` };
    case "agent_usage":
      return { kind: "usage", label: "agent counts", text: tokens(event.inputTokens, event.outputTokens) };
    case "usage_report":
      return { kind: "usage", label: "used", text: used(event.calls, event.tokens) };
    case "commits":
      return { kind: "end", label: `commits ${event.stage}`, text: `${event.branch} ${event.commit ?? ""}` };
    case "done":
      return { kind: "end", label: "succeeded", text: "" };
    case "error":
      return { kind: "end", label: "failed", text: `${event.code}: ${event.message}`, isFailure: true };
    default:
      // A newer server has types that this page does not know.
      return { kind: "gap", label: String((event as { type: unknown }).type), text: "" };
  }
}

function used(calls: number, { input, output }: { input: number; output: number }): string {
  return `${plural(calls, "call")}, ${tokens(input, output)}`;
}

function tokens(input: number, output: number): string {
  return `${formatCount(input)} tokens in, ${formatCount(output)} out`;
}
