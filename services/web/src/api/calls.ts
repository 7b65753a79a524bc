/** Reads pages of the model calls of a run, the oldest first. */
import { type Schemas, api } from "./client";

/** Calls of a page. */
export const CALLS_PAGE = 100;

/** Returns the page behind `cursor`, or the first one. */
export function readCalls(run: string, cursor: string | undefined, signal: AbortSignal): Promise<Schemas["CallPage"]> {
  const query = cursor === undefined ? { limit: CALLS_PAGE } : { limit: CALLS_PAGE, cursor };
  return api.get("/api/v1/runs/{run}/calls", { path: { run }, query, signal });
}
