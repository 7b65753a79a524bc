/** Says whether what a page knows of a run is older than its events, so that it has to be read again. */
import type { StreamState } from "../../../api/stream";
import type { Loaded } from "../../../api/useLoad";
import { isActive } from "../active";
import type { RunDetails } from "./useRun";

/** Returns whether the last request failed, or the events have ended and the run is not known to have. */
export function isBehind({ data, error }: Pick<Loaded<RunDetails>, "data" | "error">, stream: StreamState["kind"]): boolean {
  return data !== null && (error !== null || (stream === "ended" && isActive(data)));
}
