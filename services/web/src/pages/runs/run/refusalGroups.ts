/** Puts refused calls together that were refused for the same reason. Pure. */
import type { Call } from "./calls";

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
