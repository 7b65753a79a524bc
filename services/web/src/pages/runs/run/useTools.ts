/** Reads the calls of host tools of a run, again when the run has changed. */
import { type Pages, usePages } from "../../../api/usePages";
import { type RunTool, readHostTools } from "./tools";
import type { RunDetails } from "./useRun";

/** Returns the calls of host tools of `run`, page by page. */
export function useTools(run: RunDetails): Pages<RunTool> {
  const key = `${run.runId} ${run.attempt} ${run.state} ${run.waitingToolCalls?.join() ?? ""}`;
  return usePages(key, (cursor, signal) => readHostTools(run.runId, cursor, signal));
}
