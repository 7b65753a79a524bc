/** Keeps a list of runs still while it is read: known runs change in place, and new ones wait until they are asked for. */
import { ACTIVE_STATES, isActive } from "../figures";
import { type Run, type RunFilter, matches } from "./filter";

/** Shown runs, and the ids of those that wait above them. */
export interface RunList {
  runs: Run[];
  waiting: ReadonlySet<string>;
}

/** Returns `list` after the server said how `changed` are now. */
export function mergeChanges(list: RunList, changed: Run[], filter: RunFilter): RunList {
  const latest = new Map(changed.map((run) => [run.runId, run]));
  const shown = new Set(list.runs.map((run) => run.runId));
  const runs = list.runs.map((run) => newer(run, latest.get(run.runId)));
  const waiting = new Set(list.waiting);
  const oldest = list.runs.at(-1)?.createdAt ?? "";
  for (const run of latest.values()) {
    const belongs = filter.cursor === "" && !shown.has(run.runId) && run.createdAt >= oldest;
    if (belongs && matches(run, filter)) waiting.add(run.runId);
    else waiting.delete(run.runId);
  }
  return { runs, waiting };
}

/** A state may come twice, and late: an ended attempt does not become active again. */
function newer(shown: Run, changed: Run | undefined): Run {
  if (changed === undefined || changed.attempt < shown.attempt) return shown;
  if (changed.attempt > shown.attempt) return changed;
  const merged = { ...onlyListed(shown, changed.state), ...changed };
  if (!isActive(changed)) return merged;
  if (!isActive(shown)) return shown;
  const isBack = ACTIVE_STATES.indexOf(changed.state) < ACTIVE_STATES.indexOf(shown.state);
  // A run that waits for a worker again goes back to the queue within its attempt.
  return isBack && changed.state !== "queued" ? shown : merged;
}

/** Changes come without what only a list says of a run. A run that no longer waits has no position. */
function onlyListed({ receipts, pullRequest, queueAhead, question }: Run, state: Run["state"]): Partial<Run> {
  return {
    ...(receipts === undefined ? {} : { receipts }),
    ...(pullRequest === undefined ? {} : { pullRequest }),
    ...(question === undefined ? {} : { question }),
    ...(queueAhead === undefined || state !== "queued" ? {} : { queueAhead }),
  };
}
