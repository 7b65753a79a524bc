/** Lists what became of calls that were shown in this visit. */
import { AgentText } from "../../../components/AgentText";
import { StateChip } from "../../../components/StateChip";
import { type Outcome, keyOf } from "./waiting";
import { RunLink } from "../../../components/ObjectLink";

const WORDS: Record<Outcome["tone"], string> = { good: "approved", bad: "denied", warn: "not decided by you", idle: "no longer waits" };

/** Renders the list, the last first. */
export function Outcomes({ outcomes }: { outcomes: Outcome[] }) {
  if (outcomes.length === 0) return null;
  return (
    <section className="stack" aria-labelledby="outcomes">
      <h2 id="outcomes">Since you opened this page</h2>
      <ul className="outcomes">
        {outcomes.map((outcome) => (
          <li key={keyOf(outcome.approval)}>
            <StateChip state={WORDS[outcome.tone]} tone={outcome.tone} />
            <AgentText text={outcome.approval.tool} form="inline" />
            <RunLink id={outcome.approval.runId} />
            {outcome.text !== WORDS[outcome.tone] && <span className="muted"><AgentText text={outcome.text} form="inline" /></span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
