/** Reads the tool calls of a run: those of host tools as the gateway recorded them, else those that the agent reported. */
import { buildPath, sendJson } from "../../api/client";
import { ApiError } from "../../api/problem";
import type { RunEvent } from "./eventRow";

/** Tool call as the page shows it. Sizes are in bytes. */
export interface RunTool {
  id: string;
  name: string;
  state: string;
  isFailure: boolean;
  startedAt: string | null;
  endedAt: string | null;
  arguments: string;
  result: string;
  cutBytes: number;
  sizes: { arguments: number | null; result: number | null };
}

/** Tools, and who says so: `gateway` for what ran on the host, `agent` for the agent's own words. */
export interface RunTools {
  source: "gateway" | "agent";
  tools: RunTool[];
  nextCursor: string | null;
}

/** Reads the calls of host tools. Returns null from a server without this list, and if the run had none. */
export async function readTools(run: string, cursor: string | undefined, signal: AbortSignal): Promise<RunTools | null> {
  try {
    const page = await sendJson<unknown>("get", buildPath("/api/v1/runs/{run}/tools", { run }, { cursor }), { signal });
    const rows: unknown = Reflect.get(Object(page), "tools") ?? Reflect.get(Object(page), "calls");
    const next: unknown = Reflect.get(Object(page), "nextCursor");
    if (!Array.isArray(rows)) return null;
    return { source: "gateway", tools: rows.map(toTool), nextCursor: typeof next === "string" ? next : null };
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 404) return null;
    throw thrown;
  }
}

function toTool(row: unknown): RunTool {
  const text = (...names: string[]) => pick(row, names, "string") ?? "";
  const number = (...names: string[]) => pick(row, names, "number") ?? null;
  const state = text("state");
  return {
    id: text("callId", "id"),
    name: text("tool", "name"),
    state,
    isFailure: /fail|denied|refused|error|unknown|timed/.test(state),
    startedAt: text("startedAt", "askedAt", "at") || null,
    endedAt: text("endedAt", "answeredAt") || null,
    arguments: text("arguments"),
    result: text("result"),
    cutBytes: number("cutBytes") ?? 0,
    sizes: { arguments: number("argumentBytes", "argumentsBytes"), result: number("resultBytes", "answerBytes") },
  };
}

function pick(row: unknown, names: string[], type: "string"): string | undefined;
function pick(row: unknown, names: string[], type: "number"): number | undefined;
function pick(row: unknown, names: string[], type: "string" | "number"): string | number | undefined {
  for (const name of names) {
    const value: unknown = Reflect.get(Object(row), name);
    if (typeof value === type) return value as string | number;
  }
  return undefined;
}

/** Returns the tool calls that the agent reported itself: its own words, which prove nothing. */
export function reportedTools(events: (RunEvent & { type: "tool_call" | "tool_result" })[]): RunTool[] {
  const tools = new Map<string, RunTool>();
  for (const event of events) {
    if (event.type === "tool_call") {
      tools.set(event.id, {
        id: event.id, name: event.name, state: "called", isFailure: false, startedAt: event.at ?? null, endedAt: null,
        arguments: event.arguments, result: "", cutBytes: event.cutBytes ?? 0, sizes: { arguments: null, result: null },
      });
      continue;
    }
    const tool = tools.get(event.id);
    if (tool === undefined) continue;
    const state = event.isError ? "failed" : "answered";
    tools.set(event.id, { ...tool, state, isFailure: event.isError, endedAt: event.at ?? null, result: event.result });
  }
  return [...tools.values()];
}
