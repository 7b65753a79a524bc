/** Reads the model calls of a run, with advice for those that were refused, and puts refusals for the same reason together. */
import { useEffect } from "react";
import { CALLS_PAGE, readCalls } from "../../../api/calls";
import type { Schemas } from "../../../api/client";
import { type Pages, usePages } from "../../../api/usePages";
import { isActive } from "../figures";
import type { RunDetails } from "./useRun";

const REFRESH_MS = 5_000;

/** Call of a run. */
export type Call = Schemas["Call"];

/** Returns the calls of `run`, read again while it is active, and when its state changes. */
export function useCalls(run: RunDetails): Pages<Call> {
  const key = `${run.runId} ${run.attempt} ${run.state} ${run.usage?.calls ?? 0} ${run.usage?.refusedCalls ?? 0}`;
  const pages = usePages<Call>(key, async (cursor, signal) => {
    const page = await readCalls(run.runId, cursor, signal);
    return { items: page.calls, nextCursor: page.nextCursor };
  });
  const { reload, items } = pages;
  // Later pages stay as they are: reading them again would move what is being read.
  const active = isActive(run) && (items?.length ?? 0) <= CALLS_PAGE;
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [active, reload]);
  return pages;
}

/** Refused calls that differ only in their time: the first one, their number, and the time of the last. */
export interface RefusalGroup {
  call: Call;
  count: number;
  last: string;
}

/** Returns the groups in the order of their first calls. */
export function groupRefusals(calls: Call[]): RefusalGroup[] {
  const groups = new Map<string, RefusalGroup>();
  for (const call of calls) {
    const { outcome, refusal, rule, timeout, route, modelAsked, advice } = call;
    const key = JSON.stringify([outcome, refusal, rule, timeout, route, modelAsked, advice?.why ?? null, advice?.settings ?? null]);
    const known = groups.get(key);
    const number = Math.max(1, call.calls);
    if (known === undefined) groups.set(key, { call, count: number, last: call.at });
    else groups.set(key, { call: known.call, count: known.count + number, last: call.at > known.last ? call.at : known.last });
  }
  return [...groups.values()];
}
