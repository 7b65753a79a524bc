/**
 * Shows the calls of this run that wait for a person, and asks before a decision. They come from the API alone: what an agent
 * writes is never such a card, and no decision travels with a message.
 */
import { useEffect, useRef, useState } from "react";
import { announce } from "../../base/announce";
import { useSession } from "../../base/session";
import { AgentText } from "../../components/AgentText";
import { Card, type Verdict } from "../people/approvals/Card";
import { Decide } from "../people/approvals/Decide";
import { type Approval, type Outcome, keyOf, stillWaiting, useNow } from "../people/approvals/waiting";

/** Properties: `run` is that of the last answer; `onDecided` is called after each decision, also after one that came too late. */
export interface ApprovalsProps {
  approvals: Approval[];
  run: string | null;
  onDecided: () => void;
}

/** Renders the calls, and what became of the last one. */
export function Approvals({ approvals, run, onDecided }: ApprovalsProps) {
  const { may } = useSession();
  const [asked, setAsked] = useState<{ approval: Approval; verdict: Verdict } | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);
  const waiting = stillWaiting(approvals, outcomes);
  const now = useNow(waiting.length > 0);
  const isDecided = useRef(false);
  const done = (outcome: Outcome) => {
    announce(`${outcome.approval.tool}: ${outcome.text}`);
    setOutcomes((last) => [...last, outcome]);
    isDecided.current = true;
  };
  // Once the dialog is closed: it gives the focus back to a card that is gone.
  useEffect(() => {
    if (asked !== null || !isDecided.current) return;
    isDecided.current = false;
    onDecided();
  }, [asked]);
  const last = outcomes.findLast(({ approval }) => approval.runId === run);
  return (
    <>
      {waiting.map((approval) => (
        <Card
          key={keyOf(approval)} approval={approval} now={now}
          onAsk={may("member") ? (verdict) => setAsked({ approval, verdict }) : null}
        />
      ))}
      {!may("member") && waiting.length > 0 && <p className="hint">A decision takes the role member.</p>}
      {last !== undefined && (
        <p className="hint">
          <AgentText text={last.approval.tool} form="inline" />: <AgentText text={last.text} form="inline" />
        </p>
      )}
      {asked !== null && <Decide {...asked} onDone={done} onClose={() => setAsked(null)} />}
    </>
  );
}
