/** Says which runs have not ended. */
import type { Run } from "./list/filter";

/** States of a run before its end, in their order. */
export const ACTIVE_STATES: Run["state"][] = ["queued", "preparing", "starting", "running", "collecting", "settling"];

/** Returns whether a run has not ended. */
export function isActive(run: Pick<Run, "state">): boolean {
  return ACTIVE_STATES.includes(run.state);
}
