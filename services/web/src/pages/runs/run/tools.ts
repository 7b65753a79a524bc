/** Reads the tool calls of a run: those of host tools as the gateway recorded them, and those that the agent reported. */
import { type Schemas, api } from "../../../api/client";
import type { Page } from "../../../api/pageList";
import { type Pages, usePages } from "../../../api/usePages";
import type { ToolEvent } from "./eventLog";
import type { RunDetails } from "./useRun";

/** Tool call as the page shows it. */
export interface RunTool {
  id: string;
  /** Number of the attempt, from 0; null if only its time says so. */
  attempt: number | null;
  name: string;
  state: string;
  isFailure: boolean;
  startedAt: string | null;
  endedAt: string | null;
  arguments: string | null;
  /** Result, of which the gateway keeps only the length. */
  result: string | null;
  resultBytes: number | null;
  /** Bytes of the arguments that were not stored. */
  cutBytes: number;
  /** Bytes of the result that were not stored. */
  resultCutBytes: number;
  /** Further facts by their names, such as the decision of a person. */
  facts: [string, string][];
}

/** Reads a page of the calls of host tools. */
export async function readHostTools(run: string, cursor: string | undefined, signal: AbortSignal): Promise<Page<RunTool>> {
  const query = cursor === undefined ? {} : { cursor };
  const page = await api.get("/api/v1/runs/{run}/tools", { path: { run }, query, signal });
  return { items: page.calls.map(hostTool), nextCursor: page.nextCursor };
}

function hostTool(call: Schemas["HostToolCall"]): RunTool {
  const facts: [string, string | null][] = [
    ["Effect", call.effect], ["Code", call.code], ["Decided by", call.decidedBy], ["Connection", call.connection],
    ["Attempt", call.attempt > 0 ? String(call.attempt + 1) : null],
  ];
  return {
    id: call.callId, attempt: call.attempt, name: call.tool, state: call.state, startedAt: call.beganAt, endedAt: call.endedAt,
    isFailure: call.state === "failed" || call.state === "denied" || call.state === "unknown",
    arguments: call.arguments, result: null, resultBytes: call.resultBytes, cutBytes: 0, resultCutBytes: 0,
    facts: facts.filter((fact): fact is [string, string] => fact[1] !== null),
  };
}

/**
 * Returns the tool calls that the agent reported itself: its own words, which prove nothing. A later attempt may use the ids of
 * an earlier one again.
 */
export function reportedTools(events: ToolEvent[]): RunTool[] {
  const tools = new Map<string, RunTool>();
  for (const { event, round } of events) {
    const id = `${round} ${event.id}`;
    if (event.type === "tool_call") {
      tools.set(id, {
        id, attempt: null, name: event.name, state: "called", isFailure: false, startedAt: event.at ?? null, endedAt: null,
        arguments: event.arguments, result: null, resultBytes: null, cutBytes: event.cutBytes ?? 0, resultCutBytes: 0, facts: [],
      });
      continue;
    }
    const tool = tools.get(id);
    if (tool === undefined) continue;
    const state = event.isError ? "failed" : "answered";
    tools.set(id, {
      ...tool, state, isFailure: event.isError, endedAt: event.at ?? null, result: event.result,
      resultCutBytes: event.cutBytes ?? 0,
    });
  }
  return [...tools.values()];
}

/** Returns the calls of host tools of `run`, page by page, and again when the run has changed. */
export function useTools(run: RunDetails): Pages<RunTool> {
  const key = `${run.runId} ${run.attempt} ${run.state} ${run.waitingToolCalls?.join() ?? ""}`;
  return usePages(key, (cursor, signal) => readHostTools(run.runId, cursor, signal));
}
