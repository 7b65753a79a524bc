/** Shows a state as a word with a sign of its own shape, so that colour alone says nothing. */
import { AgentText } from "./AgentText";

/** Meaning of a state, which chooses the sign and the colour. */
export type Tone = "good" | "bad" | "warn" | "busy" | "idle";

const SIGNS: Record<Tone, string> = { good: "✓", bad: "✕", warn: "!", busy: "▸", idle: "○" };
const RUN_STATES = new Map<string, Tone>([
  ["queued", "idle"], ["preparing", "busy"], ["starting", "busy"], ["running", "busy"], ["collecting", "busy"],
  ["settling", "busy"], ["succeeded", "good"], ["failed", "bad"], ["cancelled", "warn"], ["timed_out", "bad"],
]);

/** Properties of a chip; `tone` follows from the state of a run if it is left out. */
export interface StateChipProps {
  state: string;
  tone?: Tone;
  code?: string | undefined;
}

/** Renders the state, with the code of a failure. */
export function StateChip({ state, tone = RUN_STATES.get(state) ?? "idle", code }: StateChipProps) {
  return (
    <span className={`chip chip-${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span> <AgentText text={state.replaceAll("_", " ")} form="inline" />
      {code !== undefined && (
        <code>
          <AgentText text={code} form="inline" />
        </code>
      )}
    </span>
  );
}
