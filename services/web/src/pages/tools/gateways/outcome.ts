/** Says in words what became of an action on a gateway. */
import type { Schemas } from "../../../api/client";

const TEXTS = new Map([
  ["started", "started: it answers after about 12 s"],
  ["unchanged", "it runs as it is configured"],
  ["reloaded", "it took its changed settings without a restart"],
  ["restarted", "restarted"],
  ["stopped", "stopped"],
  ["was_down", "it was down already"],
  ["underway", "underway: its sessions get a moment to end"],
]);

/** Returns the outcome in words, with the settings in which the gateway differed. */
export function outcomeText({ outcome, changed }: Schemas["GatewayAction"]): string {
  const text = TEXTS.get(outcome) ?? outcome;
  return changed.length === 0 ? text : `${text}; it differed in ${changed.join(", ")}`;
}
