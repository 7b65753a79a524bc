/** Filters of the list of runs, as the address has them. */
import type { Schemas } from "../../../api/client";

/** Run in a list. */
export type Run = Schemas["Run"];

/** Group of states that a person filters by. */
export interface StateGroup {
  label: string;
  states: Run["state"][];
}

/** All groups: each state is in one of them. */
export const STATE_GROUPS: StateGroup[] = [
  { label: "Queued", states: ["queued"] },
  { label: "Running", states: ["preparing", "starting", "running", "collecting", "settling"] },
  { label: "Succeeded", states: ["succeeded"] },
  { label: "Failed", states: ["failed"] },
  { label: "Timed out", states: ["timed_out"] },
  { label: "Cancelled", states: ["cancelled"] },
];

/** Filters, and the page of the list. */
export interface RunFilter {
  states: string[];
  agent: string;
  account: string;
  /** Beginning of the ids. */
  id: string;
  cursor: string;
}

/** Reads the filters of an address. */
export function readFilter(query: URLSearchParams): RunFilter {
  return {
    states: (query.get("state") ?? "").split(",").filter((state) => state !== ""),
    agent: query.get("agent") ?? "",
    account: query.get("account") ?? "",
    id: query.get("id") ?? "",
    cursor: query.get("cursor") ?? "",
  };
}

/** Returns whether anything but the page is chosen. */
export function isFiltered({ states, agent, account, id }: RunFilter): boolean {
  return states.length > 0 || agent !== "" || account !== "" || id !== "";
}

/** Returns whether the list of `filter` would have `run`. */
export function matches(run: Run, { states, agent, account, id }: RunFilter): boolean {
  return (
    (states.length === 0 || states.includes(run.state)) &&
    (agent === "" || run.agentId === agent) &&
    (account === "" || run.account === account) &&
    run.runId.startsWith(id)
  );
}

/** Returns the states when `group` is switched on or off. */
export function toggleGroup(states: string[], group: StateGroup): string[] {
  const isOn = group.states.every((state) => states.includes(state));
  const others = states.filter((state) => !group.states.some((own) => own === state));
  return isOn ? others : [...others, ...group.states];
}
